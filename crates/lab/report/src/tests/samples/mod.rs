//! Results as a lab could have made them, worked out from a small generator: for the tests and for the example that
//! draws a report to look at. Their statistics are plain stand-ins (interval: second to last but one value).

use std::collections::BTreeMap;

use experiment::Experiment;
use experiment::file::{
    Better, Busy, Chart, ChartKind, Condition, Driver, Event, Gates, Lengths, Line, Load, LogicalIo, Measure,
    Pgbench, Table, TableKind, Workload,
};
use experiment::results::{
    Cell, Comparison, Design, Environment, EventDone, Gate, Latency, Results, Run, Series, Setting, TaskSeen,
    Verdict,
};

mod studies;

pub use studies::*;

/// A generator with a fixed seed (Marsaglia's xorshift): the same results each time.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice(seed.max(1))
    }

    /// In [0, 1).
    pub fn share(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    /// About this value, up to a share more or less.
    pub fn about(&mut self, value: f64, share: f64) -> f64 {
        value * (1.0 + share * (self.share() + self.share() - 1.0))
    }
}

/// An experiment with these conditions, loads and measures.
pub fn experiment(
    name: &str,
    title: &str,
    conditions: &[&str],
    loads: &[&str],
    measures: &[Measure],
) -> Experiment {
    Experiment {
        name: name.to_owned(),
        title: title.to_owned(),
        about: String::new(),
        lengths: Lengths::default(),
        quick: Lengths::default(),
        gates: Gates::default(),
        machine: None,
        cpus: BTreeMap::new(),
        device: BTreeMap::new(),
        group: BTreeMap::new(),
        others: None,
        workload: BTreeMap::from([(
            "load".to_owned(),
            Workload {
                driver: Driver::Cpu(Busy { threads: "2".to_owned() }),
                group: Some("server".to_owned()),
                clients_group: None,
                conditions: Vec::new(),
            },
        )]),
        condition: conditions
            .iter()
            .map(|name| Condition { name: (*name).to_owned(), ..Condition::default() })
            .collect(),
        load: loads.iter().map(|name| Load { name: (*name).to_owned(), workload: Vec::new() }).collect(),
        event: Vec::new(),
        measure: measures.to_vec(),
        comparison: Vec::new(),
        published: Vec::new(),
        chart: Vec::new(),
        table: Vec::new(),
    }
}

pub fn measure(name: &str, unit: &str, better: Better) -> Measure {
    Measure {
        name: name.to_owned(),
        is: format!("load.{name}"),
        unit: unit.to_owned(),
        better,
        between: None,
        target: BTreeMap::new(),
    }
}

pub fn chart(title: &str, kind: ChartKind, of: &[&str]) -> Chart {
    Chart {
        title: title.to_owned(),
        kind,
        of: of.iter().map(|one| (*one).to_owned()).collect(),
        conditions: Vec::new(),
        log: false,
        line: Vec::new(),
        ideal: None,
    }
}

pub fn table(title: &str, kind: TableKind, of: &str) -> Table {
    Table { title: title.to_owned(), kind, of: of.to_owned(), conditions: Vec::new() }
}

pub fn environment() -> Environment {
    let facts = [
        ("kernel", "6.18.5 #1 SMP PREEMPT_DYNAMIC"),
        (
            "command line",
            "root=/dev/vda1 rw console=ttyS0 systemd.unified_cgroup_hierarchy=0 mitigations=auto",
        ),
        ("CPU", "AMD EPYC 9V74 80-Core Processor"),
        ("CPUs", "2 (0-1), SMT off"),
        ("NUMA nodes", "1"),
        ("memory", "8.0 GiB, no swap"),
        ("mitigations", "spectre_v2: retpolines; retbleed: untrained return thunk; all others not affected"),
        ("governor", "not reported by the hypervisor"),
        ("transparent huge pages", "madvise"),
        ("hypervisor", "KVM"),
        ("cgroup version", "1 (cpuset, cpu, memory, blkio)"),
        ("PostgreSQL", "15.14"),
        ("ringfence", "0.1.0"),
    ];
    Environment {
        began: "2026-03-14T09:26:53Z".to_owned(),
        facts: facts.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
    }
}

pub fn design(repetitions: u32) -> Design {
    Design {
        seed: 20_260_314,
        repetitions,
        duration: 30.0,
        warm_up: 5.0,
        quick: false,
        cpus: Vec::new(),
        took: 1_384.0,
    }
}

pub fn gates(foreign: f64) -> Vec<Gate> {
    let gate = |name: &str, seen, at_most| Gate { name: name.to_owned(), seen, at_most, instead: None };
    vec![gate("foreign CPU", foreign, Some(0.05)), gate("steal", 0.002, Some(0.05))]
}

pub fn setting(group: &str, name: &str, requested: &str, written: &str) -> Setting {
    Setting {
        group: group.to_owned(),
        name: name.to_owned(),
        requested: requested.to_owned(),
        written: vec![written.to_owned()],
    }
}

/// Without a figure: what every run has.
pub fn run(number: u32, block: u32, condition: &str, load: Option<&str>, dice: &mut Dice) -> Run {
    Run {
        number,
        block,
        attempt: 1,
        condition: condition.to_owned(),
        load: load.map(str::to_owned),
        began: format!("2026-03-14T09:{:02}:{:02}Z", (26 + number / 2) % 60, (number * 7) % 60),
        seconds: 30.0,
        warm_up: 5.2,
        steady: Some(true),
        gates: gates(dice.about(0.012, 0.5)),
        ..Run::default()
    }
}

/// Cells of all conditions, loads and measures out of the runs.
pub fn cells(results: &mut Results) {
    let experiment = &results.experiment;
    let loads: Vec<Option<String>> = match experiment.load.len() {
        0 => vec![None],
        _ => experiment.load.iter().map(|load| Some(load.name.clone())).collect(),
    };
    let mut cells = Vec::new();
    for measure in &experiment.measure {
        for condition in &experiment.condition {
            for load in &loads {
                let of_cell = |run: &&Run| run.condition == condition.name && run.load == *load;
                let all: Vec<&Run> = results.runs.iter().filter(of_cell).collect();
                let counted = all.iter().filter(|run| run.rejected.is_none());
                let values: Vec<f64> =
                    counted.filter_map(|run| run.figures.get(&measure.name).copied()).collect();
                let mut sorted = values.clone();
                sorted.sort_by(f64::total_cmp);
                let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
                let squares = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
                let deviation = (squares / (values.len().max(2) - 1) as f64).sqrt();
                cells.push(Cell {
                    condition: condition.name.clone(),
                    load: load.clone(),
                    measure: measure.name.clone(),
                    rejected_values: Vec::new(),
                    rejected: all.iter().filter(|run| run.rejected.is_some()).count() as u32,
                    median: median(&sorted),
                    interval: (sorted.len() >= 3)
                        .then(|| (sorted[1.min(sorted.len() - 1)], sorted[sorted.len() - 2])),
                    variation: Some(deviation / mean).filter(|share| sorted.len() >= 2 && share.is_finite()),
                    values,
                    published: None,
                    warnings: Vec::new(),
                });
            }
        }
    }
    results.cells = cells;
}

pub fn median(sorted: &[f64]) -> Option<f64> {
    match sorted.len() {
        0 => None,
        count => Some((sorted[(count - 1) / 2] + sorted[count / 2]) / 2.0),
    }
}

/// A comparison out of the cells.
pub fn compared(
    results: &Results,
    measure: &str,
    pair: (&str, &str),
    load: Option<&str>,
    verdict: Verdict,
) -> Comparison {
    let cell = |condition: &str| {
        results.cells.iter().find(|cell| {
            cell.condition == condition && cell.load.as_deref() == load && cell.measure == measure
        })
    };
    let (baseline, condition) = (cell(pair.0), cell(pair.1));
    let medians = baseline.and_then(|cell| cell.median).zip(condition.and_then(|cell| cell.median));
    let ratio = medians.map(|(one, other)| other / one);
    let count = |cell: Option<&Cell>| cell.map_or(0, |cell| cell.values.len() as u32);
    let rejected = |cell: Option<&Cell>| cell.map_or(0, |cell| cell.rejected);
    Comparison {
        measure: measure.to_owned(),
        baseline: pair.0.to_owned(),
        condition: pair.1.to_owned(),
        load: load.map(str::to_owned),
        medians,
        ratio,
        interval: ratio.map(|ratio| (ratio * 0.965, ratio * 1.04)),
        shift: medians.map(|(one, other)| other - one),
        p: Some(0.002_165),
        p_holm: Some(0.006_494),
        runs: (count(baseline), count(condition)),
        rejected: (rejected(baseline), rejected(condition)),
        margin: 0.05,
        verdict,
        because: match verdict {
            Verdict::Faster | Verdict::Slower => {
                "the whole interval lies on one side of 1 and p is below 0.05"
            }
            Verdict::Equivalent => "the interval 0.98 to 1.03 lies within 0.95 to 1.05",
            Verdict::Inconclusive => "the interval 0.94 to 1.09 holds 1 and reaches beyond 0.95 to 1.05",
        }
        .to_owned(),
        published: None,
        note: None,
    }
}

pub fn results(experiment: Experiment, repetitions: u32) -> Results {
    Results {
        schema: experiment::results::SCHEMA,
        experiment,
        environment: environment(),
        design: design(repetitions),
        runs: Vec::new(),
        spans: Default::default(),
        cells: Vec::new(),
        comparisons: Vec::new(),
        targets: Vec::new(),
        notes: Vec::new(),
        complete: true,
    }
}
