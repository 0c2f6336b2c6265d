//! Demands over time.

use crate::simulator::STEP;

/// What groups request over time.
#[derive(Debug, Clone, PartialEq)]
pub struct Load {
    /// Its name.
    pub name: String,
    /// Per group, in the groups' order, the CPUs requested in each step of [`STEP`]. All are as long.
    pub demands: Vec<Vec<f64>>,
}

impl Load {
    /// Of samples at uneven times: per group, CPUs used up to each time (seconds from the start, ascending).
    pub fn recorded(name: &str, groups: &[Vec<(f64, f64)>]) -> Load {
        let end = groups.iter().flatten().map(|(time, _)| *time).fold(0.0, f64::max);
        let steps = (end / STEP).ceil() as usize;
        let demand = |samples: &Vec<(f64, f64)>| {
            let mut samples = samples.iter().peekable();
            let value = |step: usize| {
                let time = (step + 1) as f64 * STEP - STEP / 2.0;
                while samples.next_if(|(until, _)| *until < time).is_some() {}
                samples.peek().map_or(0.0, |(_, used)| used.max(0.0))
            };
            (0..steps).map(value).collect()
        };
        Load { name: name.to_owned(), demands: groups.iter().map(demand).collect() }
    }

    /// Steps.
    pub fn steps(&self) -> usize {
        self.demands.first().map_or(0, Vec::len)
    }

    /// What a group requests in a step.
    pub fn demand(&self, group: usize, step: usize) -> f64 {
        self.demands.get(group).and_then(|demands| demands.get(step)).copied().unwrap_or(0.0)
    }
}
