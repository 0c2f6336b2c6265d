//! What gates look at in which runs, and over which time each measure is taken: said before the first run as in the
//! results, so that a limit is never off without a word. Pure.

use std::collections::BTreeMap;

use crate::{
    Experiment,
    file::{Driver, Measure, Workload, applies},
    measure,
    note::Note,
};

/// What a reader must know of the gates of this experiment.
pub fn gate_notes(experiment: &Experiment) -> Vec<Note> {
    let gates = &experiment.gates;
    let named = |is: &dyn Fn(&Driver) -> bool| named(experiment, is);
    let mut notes = Vec::new();
    let open = [("foreign-cpu", gates.foreign_cpu), ("steal", gates.steal)];
    let open: Vec<String> =
        open.iter().filter(|(_, share)| *share >= 1.0).map(|(key, _)| (*key).to_owned()).collect();
    if !open.is_empty() {
        notes.push(Note::OpenGates { gates: open });
    }
    let io = if gates.io { Some("io = true".to_owned()) } else { named(&|driver| driver.row().is_io) };
    notes.extend(io.map(|what| Note::KernelThreadsApart { what, at_most: gates.foreign_cpu }));
    let own_clock = |driver: &Driver| driver.has_own_clock() && !driver.runs_to_its_end();
    notes.extend(named(&own_clock).map(|workloads| Note::NoSteadyState { workloads }));
    let measured = || experiment.workload.values();
    if measured().any(|one| one.driver.runs_to_its_end()) {
        let workloads = named(&Driver::runs_to_its_end).unwrap_or_default();
        let beside = measured().any(|one| !one.driver.runs_to_its_end());
        notes.push(Note::RunsToTheEnd { workloads, beside });
    }
    notes
}

/// The workloads and loads whose driver is so, as messages name them.
fn named(experiment: &Experiment, is: &dyn Fn(&Driver) -> bool) -> Option<String> {
    let workloads = experiment.workload.iter().filter(|(_, one)| is(&one.driver));
    let loads = experiment.load.iter().filter(|load| load.workload.iter().any(|one| is(&one.driver)));
    let named = workloads
        .map(|(name, _)| format!("'{name}'"))
        .chain(loads.map(|load| format!("load '{}'", load.name)))
        .collect::<Vec<_>>();
    (!named.is_empty()).then(|| named.join(", "))
}

/// Whether all that runs in a group in a condition under a load are measured commands that run to their end: what the group
/// uses is then taken from their start to their end.
pub fn runs_to_its_end(experiment: &Experiment, group: &str, condition: &str, load: Option<&str>) -> bool {
    let is_in = |one: &&Workload| {
        let groups = [&one.group, &one.clients_group].into_iter().flatten();
        groups.chain(one.driver.groups()).any(|name| name == group) && applies(&one.conditions, condition)
    };
    let loads = experiment.load.iter().filter(|one| Some(one.name.as_str()) == load);
    if loads.flat_map(|one| &one.workload).any(|one| is_in(&one)) {
        return false;
    }
    let mut measured = experiment.workload.values().filter(is_in).peekable();
    measured.peek().is_some() && measured.all(|one| one.driver.runs_to_its_end())
}

/// Measure → over which time of a run its figure is taken, in words.
pub fn spans(experiment: &Experiment) -> BTreeMap<String, String> {
    experiment.measure.iter().map(|measure| (measure.name.clone(), span(experiment, measure))).collect()
}

fn span(experiment: &Experiment, measure: &Measure) -> String {
    let mut words: Vec<String> = Vec::new();
    for name in measure::names(&measure.is) {
        let of = name.split('.').next().unwrap_or_default();
        let said = of_part(experiment, of);
        if !words.contains(&said) {
            words.push(said);
        }
    }
    let of = match &measure.between {
        Some([from, to]) => format!("from {from} to {to} of "),
        None => String::new(),
    };
    format!("{of}{}", words.join("; "))
}

/// Of a workload or a group.
fn of_part(experiment: &Experiment, of: &str) -> String {
    let whole = "all that counts of a run".to_owned();
    if let Some(workload) = experiment.workload.get(of) {
        return match &workload.driver {
            driver if driver.runs_to_its_end() => format!("'{of}' from its start to its end"),
            Driver::Command(_) => format!("'{of}' from its start, warm-up included, to the end of the run"),
            driver if driver.has_own_clock() => format!("`duration` by the clock of '{of}'"),
            _ => whole,
        };
    }
    let loads: Vec<Option<&str>> = match experiment.load.as_slice() {
        [] => vec![None],
        loads => loads.iter().map(|load| Some(load.name.as_str())).collect(),
    };
    let cells =
        experiment.condition.iter().flat_map(|one| loads.iter().map(|load| (one.name.as_str(), *load)));
    let to_the_end: Vec<bool> =
        cells.map(|(condition, load)| runs_to_its_end(experiment, of, condition, load)).collect();
    match (to_the_end.contains(&true), to_the_end.contains(&false)) {
        (true, false) => format!("the commands in '{of}' from their start to their end"),
        (true, true) => format!("{whole}, or where '{of}' has commands alone from their start to their end"),
        (false, _) => whole,
    }
}

#[cfg(test)]
mod tests {
    use layout::Source;

    use super::*;

    fn experiment(text: &str) -> Experiment {
        let head = "name = \"x\"\ntitle = \"x\"\n";
        let tail = "[[condition]]\nname = \"a\"\n";
        let read = crate::read(&Source::new("x.toml", &format!("{head}{text}{tail}")));
        read.experiment.unwrap_or_else(|| panic!("{:?}", read.diagnostics))
    }

    fn said(text: &str) -> Vec<String> {
        gate_notes(&experiment(text)).iter().map(Note::to_string).collect()
    }

    const MEASURE: &str = "[[measure]]\nname = \"rate\"\nis = \"work.rate\"\n";

    /// faults G1: in every run with I/O the gate was off, and nobody said so.
    #[test]
    fn a_gate_that_looks_at_something_else_is_named_with_what_stands_in_its_place() {
        let cpu = format!("[workload.work]\ndriver = \"cpu\"\n{MEASURE}");
        assert_eq!(said(&cpu), [""; 0]);
        let apart = |what: &str| {
            format!(
                "{what}: CPU time of the kernel's threads and interrupts may be this I/O's, so it is recorded in these runs as \
                 'kernel threads' and rejects none; the limit of 5 % on foreign CPU is for other programs alone there"
            )
        };
        for driver in ["fio", "read"] {
            let io = format!("[workload.disk]\ndriver = \"{driver}\"\ndevice = \"/dev/x\"\n{cpu}");
            assert_eq!(said(&io)[0], apart("'disk'"), "{driver}");
        }
        let load = format!("{cpu}[[load]]\nname = \"sync\"\n[[load.workload]]\ndriver = \"writers\"\n");
        assert_eq!(said(&load), [apart("load 'sync'")]);
        assert_eq!(said(&format!("[gates]\nio = true\n{cpu}")), [apart("io = true")]);
        let open = format!("[gates]\nforeign-cpu = 1.0\nsteal = 1.0\n{cpu}");
        assert_eq!(
            said(&open),
            ["no run is rejected for foreign-cpu or steal: the limit is all of the CPU time"]
        );
        let own = format!("[workload.wake]\ndriver = \"cyclictest\"\n{cpu}");
        assert!(said(&own)[0].starts_with("'wake': no steady rate is looked for"), "{:?}", said(&own));
    }

    /// faults G2: figures of a command's group were of another time than the command's.
    #[test]
    fn every_measure_says_over_which_time_it_is_taken() {
        let text = "[group.g]\n[group.other]\n[workload.work]\ndriver = \"command\"\ncommand = [\"true\"]\ngroup = \"g\"\n\
            [workload.disk]\ndriver = \"fio\"\ndevice = \"/dev/x\"\ngroup = \"other\"\n\
            [[measure]]\nname = \"wall\"\nis = \"work.seconds\"\n[[measure]]\nname = \"cpus\"\nis = \"g.cpu\"\n\
            [[measure]]\nname = \"beside\"\nis = \"other.cpu\"\nbetween = [\"50%\", \"100%\"]\n\
            [[measure]]\nname = \"p99\"\nis = \"disk.latency.p99\"\n";
        let beside = text.replace("fio\"\ndevice = \"/dev/x\"", "pgbench\"\nroles.postgresql.io = \"g\"");
        let beside = experiment(&beside.replace("disk.latency", "disk.lag"));
        let experiment = experiment(text);
        let spans = spans(&experiment);
        assert_eq!(spans["wall"], "'work' from its start to its end");
        assert_eq!(spans["cpus"], "the commands in 'g' from their start to their end");
        assert_eq!(spans["beside"], "from 50% to 100% of all that counts of a run");
        assert_eq!(spans["p99"], "`duration` by the clock of 'disk'");
        assert!(runs_to_its_end(&experiment, "g", "a", None));
        assert!(!runs_to_its_end(&experiment, "other", "a", None));
        assert!(!runs_to_its_end(&beside, "g", "a", None), "processes of a server are there, too");
        let notes = gate_notes(&experiment);
        assert!(notes.contains(&Note::RunsToTheEnd { workloads: "'work'".to_owned(), beside: true }));
    }
}
