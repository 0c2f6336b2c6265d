//! Whether an experiment has enough runs to decide its comparisons, before any is made: an experiment that can only end
//! in "inconclusive" should say so at its start. Pure.

use crate::statistics::{LEAST_RUNS, LEVEL, smallest_p};

use crate::{Experiment, design, drivers, file::Workload, times::Lengths};

/// How long an experiment is planned to be, and what it can decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// Runs that are to count.
    pub runs: usize,
    /// Comparisons, each under each of its loads.
    pub comparisons: usize,
    /// Of every condition.
    pub repetitions: usize,
    /// With fewer repetitions than this no difference can be shown, however large it is.
    pub needed: usize,
}

impl Plan {
    /// Of an experiment with this many repetitions.
    pub fn of(experiment: &Experiment, repetitions: u32) -> Plan {
        let loads = experiment.load.len().max(1);
        let under = |one: &crate::file::Comparison| if one.load.is_some() { 1 } else { loads };
        let comparisons = experiment.comparison.iter().map(under).sum();
        Plan {
            runs: design::cells(experiment).len() * repetitions as usize,
            comparisons,
            repetitions: repetitions as usize,
            needed: needed(comparisons),
        }
    }

    /// Why no comparison can show a difference, and what would help; `None` if they can, or if there is none.
    pub fn too_few(&self) -> Option<String> {
        if self.comparisons == 0 || self.repetitions >= self.needed {
            return None;
        }
        let Plan { comparisons, repetitions, needed, .. } = self;
        let what = match repetitions {
            few if *few < LEAST_RUNS => "no comparison can be decided",
            _ => "no comparison can show a difference",
        };
        let of =
            if *comparisons == 1 { "1 comparison".to_owned() } else { format!("{comparisons} comparisons") };
        let have = if *repetitions == 1 {
            "1 repetition is".to_owned()
        } else {
            format!("{repetitions} repetitions are")
        };
        Some(format!(
            "{what}: {have} too few for {of}, at least {needed} are needed (--repetitions {needed})"
        ))
    }
}

/// Of this many comparisons the largest possible difference is significant with as many runs of each condition.
fn needed(comparisons: usize) -> usize {
    let enough = |runs: &usize| smallest_p(*runs, *runs) * (comparisons.max(1) as f64) < LEVEL;
    (LEAST_RUNS..).find(enough).unwrap_or(LEAST_RUNS)
}

/// Settings, starts and ends between two runs take about this many seconds.
const BETWEEN: f64 = 0.5;

/// A database server takes as many more to start and to end (seen: 0.8 of one, 2.2 of four).
const SERVER: f64 = 0.6;

/// The planned time of all runs, if no gate rejects one: each warms up for as long as it may, and starts and ends its
/// workloads.
pub fn planned_seconds(experiment: &Experiment, lengths: &Lengths) -> f64 {
    let own_clock = experiment.workload.values().any(|workload| workload.driver.has_own_clock());
    let warm_up = if own_clock { lengths.warm_up } else { lengths.steady_within };
    let is_server = |workload: &&Workload| workload.driver.row().tool == Some(&drivers::PGBENCH);
    let servers = experiment.workload.values().filter(is_server).count() as f64;
    let runs = design::cells(experiment).len() as f64 * f64::from(lengths.repetitions);
    runs * ((warm_up + lengths.duration).as_secs_f64() + BETWEEN + SERVER * servers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{fixture, statistics};

    /// newcomers A8: three repetitions can decide nothing, and nobody said so.
    #[test]
    fn too_few_repetitions_are_known_before_the_first_run() {
        let mut experiment = fixture::experiment(&["a", "b"]);
        assert_eq!(Plan::of(&experiment, 1).too_few(), None, "there is nothing to decide");
        experiment.comparison = vec![fixture::comparison("a", "b")];
        let said = |experiment: &Experiment, repetitions| Plan::of(experiment, repetitions).too_few();
        assert_eq!(
            said(&experiment, 3).unwrap(),
            "no comparison can be decided: 3 repetitions are too few for 1 comparison, at least 4 are needed (--repetitions 4)"
        );
        assert_eq!(said(&experiment, 4), None);
        experiment.load = fixture::loads(&["calm", "storm"]);
        experiment.comparison = vec![fixture::comparison("a", "b"); 4];
        let plan = Plan::of(&experiment, 5);
        assert_eq!((plan.comparisons, plan.runs, plan.needed), (8, 20, 6));
        assert!(plan.too_few().unwrap().starts_with("no comparison can show a difference: 5 repetitions"));
        assert_eq!(said(&experiment, 6), None);
    }

    #[test]
    fn what_is_said_to_be_enough_is_what_the_verdict_takes_for_enough() {
        for comparisons in [1, 2, 8, 32, 100] {
            let runs = needed(comparisons);
            let (low, high): (Vec<f64>, Vec<f64>) =
                (0..runs).map(|run| (100.0 + run as f64 / 10.0, 900.0 + run as f64 / 10.0)).unzip();
            let compared = statistics::compare(&low, &high);
            let limits = statistics::Limits { margin: 0.05, variation: 0.1 };
            let p = compared.p.unwrap_or(1.0) * comparisons as f64;
            assert_eq!(statistics::verdict(&compared, p, comparisons, &limits), statistics::Word::Higher);
        }
    }
}
