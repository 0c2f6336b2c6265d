//! The note about a machine that is too busy for an experiment: conditions of which no run counts, because other
//! programs used the CPUs in each. Reported once, with what fixes it.

use std::collections::BTreeMap;

use experiment::Note;
use experiment::results::{Gate, Run};

/// The gate's name.
pub(crate) const FOREIGN: &str = "foreign CPU";

/// The gate of what the hypervisor took.
pub(crate) const STEAL: &str = "steal";

/// What the kernel's threads and interrupts had, in runs with I/O.
pub(crate) const KERNEL: &str = "kernel threads";

/// Why that has no limit.
pub(crate) const KERNEL_INSTEAD: &str =
    "they may do this run's I/O; other programs' CPU time is limited by itself, as foreign CPU";

/// Why a run with commands has no late end.
pub(crate) const LATE_INSTEAD: &str =
    "the run ends with its commands, however long they take; the other gates cover all of that time";

/// The gate of a run that took longer than planned.
pub(crate) const LATE: &str = "late end";

/// Why a gate rejects a run; `None` if it does not.
pub(crate) fn rejection(gate: &Gate) -> Option<String> {
    let at_most = gate.at_most.filter(|at_most| gate.seen > *at_most)?;
    let (seen, most) = (gate.seen * 100.0, at_most * 100.0);
    Some(match gate.name.as_str() {
        FOREIGN => format!("other programs used {seen:.1} % of the CPU time (limit {most:.0} %)"),
        LATE => format!("the run took {seen:.1} % longer than planned (limit {most:.0} %)"),
        STEAL => format!("the hypervisor took {seen:.1} % of the CPU time (limit {most:.0} %)"),
        name => format!("{name} was {seen:.1} % (limit {most:.0} %)"),
    })
}

/// The share of the CPUs that others used and the one that is allowed, if that is why a run does not count.
pub(crate) fn disturbed(run: &Run) -> Option<(f64, f64)> {
    let foreign = run.gates.iter().find(|gate| gate.name == FOREIGN)?;
    let at_most = foreign.at_most.filter(|at_most| foreign.seen > *at_most)?;
    run.rejected.is_some().then_some((foreign.seen, at_most))
}

/// `None` if every condition has a run that counts, or was not rejected for that.
pub(crate) fn busy_machine(runs: &[Run]) -> Option<Note> {
    let mut cells: BTreeMap<(&str, Option<&str>), Vec<&Run>> = BTreeMap::new();
    for run in runs {
        cells.entry((&run.condition, run.load.as_deref())).or_default().push(run);
    }
    cells.retain(|_, runs| runs.iter().all(|run| disturbed(run).is_some()));
    let runs: Vec<&Run> = cells.values().flatten().copied().collect();
    let shares: Vec<(f64, f64)> = runs.iter().filter_map(|run| disturbed(run)).collect();
    let at_most = shares.first()?.1;
    let least = shares.iter().map(|(seen, _)| *seen).fold(f64::INFINITY, f64::min);
    let most = shares.iter().map(|(seen, _)| *seen).fold(0.0, f64::max);
    let name = |(condition, load): &(&str, Option<&str>)| match load {
        Some(load) => format!("'{condition}' under '{load}'"),
        None => format!("'{condition}'"),
    };
    Some(Note::BusyMachine {
        cells: cells.keys().map(name).collect(),
        least,
        most,
        allowed: at_most,
        busiest: busiest(&runs),
    })
}

/// Over all these runs.
fn busiest(runs: &[&Run]) -> String {
    let mut programs: BTreeMap<&str, f64> = BTreeMap::new();
    for (name, cpus) in runs.iter().flat_map(|run| &run.busiest) {
        *programs.entry(name).or_default() += cpus / runs.len() as f64;
    }
    let mut programs: Vec<(&str, f64)> = programs.into_iter().collect();
    programs.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    let reported: Vec<String> =
        programs.iter().take(3).map(|(name, cpus)| format!("{name} {cpus:.2} CPUs")).collect();
    if reported.is_empty() { String::new() } else { format!(" (most by {})", reported.join(", ")) }
}

#[cfg(test)]
mod tests {
    use experiment::results::Gate;

    use super::*;

    fn run(condition: &str, foreign: f64, steal: f64, busiest: &[(&str, f64)]) -> Run {
        let gate =
            |name: &str, seen| Gate { name: name.to_owned(), seen, at_most: Some(0.05), instead: None };
        Run {
            condition: condition.to_owned(),
            rejected: (foreign > 0.05 || steal > 0.05).then(|| "a gate".to_owned()),
            gates: vec![gate(FOREIGN, foreign), gate("steal", steal)],
            busiest: busiest.iter().map(|(name, cpus)| ((*name).to_owned(), *cpus)).collect(),
            ..Run::default()
        }
    }

    #[test]
    fn a_machine_that_is_too_busy_is_told_once_with_who_and_what_mends_it() {
        let runs = [
            run("a", 0.25, 0.0, &[("make", 0.2), ("cc1", 0.4)]),
            run("a", 0.5, 0.0, &[("cc1", 1.0)]),
            run("b", 0.3, 0.0, &[]),
            run("c", 0.3, 0.0, &[]),
            run("c", 0.01, 0.0, &[]),
            run("d", 0.0, 0.3, &[]),
        ];
        let reported = busy_machine(&runs).unwrap().to_string();
        let parts = [
            "no run of 'a', 'b' counts: other programs used 25.0 % to 50.0 %",
            "and 5.0 % is allowed (most by cc1 0.47 CPUs, make 0.07 CPUs)",
            "allow more: lab run --foreign-cpu 0.60",
        ];
        for part in parts {
            assert!(reported.contains(part), "no {part} in: {reported}");
        }
        assert_eq!(busy_machine(&runs[3..]), None, "one run counts, and the hypervisor is no program");
        assert_eq!(busy_machine(&[]), None);
    }
}
