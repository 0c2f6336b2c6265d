//! What elastic groups did since the sample before, as the policy takes it.

use kernel::{GroupName, Host};
use monitor::{Beat, Descriptors, Groups, Options, RunDelays, Sample, Sampler, rates};
use policy::GroupState;
use settings::Controller;

use crate::watching::few;

/// The figures that are read.
const USED: &str = "cpu.usage";
const WAITED: &str = "cpu.pressure.some";
const PERIODS: &str = "cpu.periods";
const THROTTLED: &str = "cpu.throttled.periods";
const FIGURES: [&str; 4] = [USED, WAITED, PERIODS, THROTTLED];

/// The figures of some groups.
pub(super) struct States {
    groups: Vec<(GroupName, String)>,
    sampler: Sampler<Descriptors>,
    /// By group; none where the kernel counts waits by group.
    waits: Option<Vec<RunDelays>>,
    before: Option<Sample>,
    states: Vec<GroupState>,
}

impl States {
    pub fn new(host: &Host, groups: Vec<GroupName>) -> States {
        let options = Options { groups: Groups::Named(groups.clone()), slow_every: 1 };
        let mut sampler = Sampler::new(host, few(), options, true);
        sampler.only(host, |field| FIGURES.contains(&field.name));
        sampler.groups_alone();
        let by_task = host.hierarchy_of(Controller::Cpuacct).is_some();
        let waits = by_task.then(|| groups.iter().map(|_| RunDelays::default()).collect());
        let states = vec![GroupState::default(); groups.len()];
        let groups = groups.into_iter().map(|group| (group.clone(), group.to_string())).collect();
        States { groups, sampler, waits, before: None, states }
    }

    /// In the groups' order. One of which nothing is known, as at first, has no numbers in its state.
    pub fn all(&self) -> &[GroupState] {
        &self.states
    }

    /// Takes a sample.
    ///
    /// # Errors
    /// The hierarchies can't be listed.
    pub fn look(&mut self, host: &Host, beat: Beat) -> Result<(), kernel::Error> {
        let after = self.sampler.tick(host, beat)?;
        let elapsed =
            self.before.as_ref().map_or(0.0, |before| after.clock.saturating_sub(before.clock).as_secs_f64());
        for (index, (group, name)) in self.groups.iter().enumerate() {
            let waited = self.waits.as_mut().map(|waits| waits[index].look(host, group));
            let state = self.before.as_ref().and_then(|before| state(before, after, name));
            self.states[index] = match (state, waited) {
                (None, _) => GroupState { used: f64::NAN, ..GroupState::default() },
                (Some(state), None) => state,
                (Some(state), Some(waited)) => {
                    GroupState { waiting: (waited / elapsed).clamp(0.0, 1.0), ..state }
                }
            };
        }
        match &mut self.before {
            Some(before) => before.clone_from(after),
            None => self.before = Some(after.clone()),
        }
        Ok(())
    }
}

fn state(before: &Sample, after: &Sample, group: &str) -> Option<GroupState> {
    let row = after.groups.row(group)?;
    let figure = |name: &str| {
        let column = after.groups.columns().first_named(name)?;
        rates::between(&before.groups, &after.groups, row, column)?.value
    };
    let (periods, throttled) = (figure(PERIODS).unwrap_or(0.0), figure(THROTTLED).unwrap_or(0.0));
    Some(GroupState {
        used: figure(USED)?,
        waiting: figure(WAITED).unwrap_or(0.0).clamp(0.0, 1.0),
        throttled: if periods > 0.0 { throttled / periods } else { 0.0 },
    })
}
