//! What interrupted the CPUs of what is measured, where an experiment isolates CPUs in one of its conditions; and of each
//! condition, what is known of its longest latency.

use std::collections::BTreeMap;

use experiment::{
    Experiment, Note,
    file::{Settings, applies},
    results::{Latency, Run},
};
use monitor::interruptions::Counts;
use units::CpuSet;

/// What is counted in a run.
pub(super) struct Watched {
    cpus: CpuSet,
    before: Counts,
}

impl Watched {
    /// The CPUs of the groups whose workloads have figures in a condition, or all where they have none of their own. `None`
    /// where no condition isolates, or nothing can be counted.
    pub fn begin(
        experiment: &Experiment,
        condition: &str,
        settings: &BTreeMap<String, Settings>,
        fill: impl Fn(&str) -> Option<String>,
    ) -> Option<Watched> {
        if experiment.condition.iter().all(|one| one.isolate.is_empty()) {
            return None;
        }
        let before = Counts::now().ok()?;
        let measured = experiment.workload.values();
        let measured = measured.filter(|one| applies(&one.conditions, condition));
        let lists = measured.filter_map(|one| settings.get(one.group.as_ref()?)?.get(experiment::CPUS));
        let own = lists.filter_map(|list| fill(list)?.parse().ok());
        let own = own.fold(CpuSet::new(), |all, cpus: CpuSet| all.union(&cpus));
        let cpus = if own.is_empty() { before.cpus() } else { own.intersection(&before.cpus()) };
        Some(Watched { cpus, before })
    }

    /// What was counted since.
    pub fn end(self) -> Option<Note> {
        let now = Counts::now().ok()?;
        Some(Note::Interrupted { text: now.since(&self.before, &self.cpus).to_string() })
    }
}

/// Of each condition, in the order of runs, what is known of its longest latency.
pub(super) fn longest(runs: &[Run]) -> Vec<Note> {
    let mut worst: Vec<(&Run, &str, &Latency, &str)> = Vec::new();
    for run in runs.iter().filter(|run| run.rejected.is_none()) {
        let Some(said) = run.notes.iter().find_map(interrupted) else { continue };
        let latency = run.latencies.iter().max_by(|one, other| one.1.max.total_cmp(&other.1.max));
        let Some((name, latency)) = latency else { continue };
        let this = (run, name.as_str(), latency, said);
        match worst.iter_mut().find(|(of, ..)| of.condition == run.condition) {
            Some(known) if known.2.max < latency.max => *known = this,
            Some(_) => {}
            None => worst.push(this),
        }
    }
    let note = |(run, name, latency, said): (&Run, &str, &Latency, &str)| Note::LongestLatency {
        condition: run.condition.clone(),
        load: run.load.clone(),
        name: name.to_owned(),
        seconds: latency.max,
        meanwhile: said.to_owned(),
    };
    worst.into_iter().map(note).collect()
}

fn interrupted(note: &Note) -> Option<&str> {
    match note {
        Note::Interrupted { text } => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_latency_of_each_condition_is_named_with_what_interrupted_meanwhile() {
        let run = |condition: &str, max: f64, text: &str| Run {
            condition: condition.to_owned(),
            load: Some("io".to_owned()),
            latencies: [("task.latency".to_owned(), Latency { max, ..Latency::default() })].into(),
            notes: vec![Note::Interrupted { text: text.to_owned() }],
            ..Run::default()
        };
        let rejected = Run { rejected: Some("foreign CPU".to_owned()), ..run("a", 1.0, "never") };
        let runs = [run("a", 2e-5, "few"), rejected, run("b", 1e-5, "some"), run("a", 3e-4, "many")];
        let said: Vec<String> = longest(&runs).iter().map(Note::to_string).collect();
        let of_a = "the longest task.latency of 'a' took 300 us, under 'io'; in that run many";
        let of_b = "the longest task.latency of 'b' took 10 us, under 'io'; in that run some";
        assert_eq!(said, [of_a, of_b]);
    }
}
