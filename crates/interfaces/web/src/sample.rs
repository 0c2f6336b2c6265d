//! One moment as JSON: which figures the pages show, and where each is in the answer. The figures themselves are `watch`'s.

use std::time::{Duration, SystemTime};

use exporters::view::{self, Choice, Heading, MachineFigures, Measure, Picture};
use monitor::{Field, FigureUnit, Window};
use topology::Machine;

use crate::api::{
    groups::{
        Column, ColumnUnit, GroupRow, LimitCount, MachineSample, NodeMemory, Pressure, Sample, SampleSource,
    },
    value::{Value, rounded},
};

/// What the pages show beside the figures of `top`.
const MORE: [&str; 3] = ["memory.swap", "cpuset.partition.invalid", "machine.interrupts/*"];

/// The figures that are read with every sample: those of `top`, and a few more.
#[derive(Debug, Clone)]
pub struct Figures(tui::Figures);

impl Default for Figures {
    fn default() -> Figures {
        let more: Vec<Choice> =
            MORE.iter().flat_map(|name| view::choices(name).unwrap_or_default()).collect();
        Figures(tui::Figures::new(&more, &[]))
    }
}

/// What one moment shows.
pub struct Sight {
    /// Groups as a tree, and the machine.
    pub picture: Picture,
}

impl Figures {
    /// Must this field of groups be read?
    pub fn needs(&self, field: &Field) -> bool {
        self.0.needs(field)
    }

    /// What the newest sample of a window shows.
    pub fn sight(&self, window: &Window) -> Option<Sight> {
        Some(Sight { picture: self.0.sight(window, None)?.picture })
    }

    /// How often a group's limits were met.
    pub fn limits(&self, window: &Window, group: &str) -> Vec<LimitCount> {
        let one = |(name, meaning, count): (&str, &str, u64)| LimitCount {
            name: name.to_owned(),
            meaning: meaning.to_owned(),
            count,
        };
        self.0.limits(window, group).into_iter().map(one).collect()
    }
}

/// What stands in a sample beside its figures.
#[derive(Debug, Clone, Copy)]
pub struct About {
    /// Counts samples.
    pub seq: u64,
    /// From where.
    pub source: SampleSource,
    /// Between two.
    pub interval: Duration,
    /// Of the owners.
    pub owners_version: u64,
    /// Of the list of groups.
    pub groups_version: u64,
}

/// A moment as JSON.
pub fn sample(sight: Sight, machine: &Machine, about: About) -> Sample {
    let Sight { picture } = sight;
    let figures = MachineFigures::of(&picture);
    let notes = picture.notes.iter().map(ToString::to_string);
    let late = view::lateness(picture.late, picture.missed);
    Sample {
        seq: about.seq,
        at_ms: picture.at.map(millis),
        now_ms: millis(SystemTime::now()),
        source: about.source,
        interval_ms: u64::try_from(about.interval.as_millis()).unwrap_or(u64::MAX),
        owners_version: about.owners_version,
        groups_version: about.groups_version,
        machine: of_machine(&figures, machine),
        notes: notes.chain(late).collect(),
        columns: columns(&picture.headings),
        rows: picture.rows.into_iter().map(row).collect(),
        log_problem: None,
    }
}

fn row(row: view::Row) -> GroupRow {
    GroupRow { group: row.group, values: row.values.into_iter().map(Value::from).collect() }
}

fn of_machine(figures: &MachineFigures, machine: &Machine) -> MachineSample {
    let get = |name| figures.get(name).map(rounded);
    let each =
        |of: &dyn Fn(usize) -> Option<f64>| machine.cpus.iter().map(|cpu| of(cpu.id).map(rounded)).collect();
    let node = |(id, [total, free, file]): (&usize, &[f64; 3])| NodeMemory {
        id: *id,
        total: Some(*total),
        free: Some(*free),
        file: Some(*file),
    };
    MachineSample {
        cpus: each(&|cpu| figures.busy.get(&cpu).copied()),
        interrupts: each(&|cpu| figures.interrupts.get(&cpu).copied()),
        nodes: figures.nodes.iter().map(node).collect(),
        load: get("load"),
        memory_total: get("memory.total"),
        memory_available: get("memory.available"),
        swap_total: get("swap.total"),
        swap_free: get("swap.free"),
        pressure: Pressure {
            cpu: get("cpu.pressure.some"),
            memory: get("memory.pressure.some"),
            io: get("io.pressure.some"),
        },
    }
}

/// Columns with what they are.
pub fn columns(headings: &[Heading]) -> Vec<Column> {
    headings.iter().map(column).collect()
}

fn column(heading: &Heading) -> Column {
    let field = heading.name.split('/').next().unwrap_or_default();
    let help = view::choices(field).ok().and_then(|found| found.first().map(|choice| choice.of.help()));
    let unit = match heading.measure {
        Measure::Figure(unit) => unit_of(unit),
        Measure::Raw(_) => ColumnUnit::Count,
    };
    Column { name: heading.name.clone(), unit, help: help.unwrap_or_default().to_owned() }
}

fn unit_of(unit: FigureUnit) -> ColumnUnit {
    match unit {
        FigureUnit::Cpus => ColumnUnit::Cpus,
        FigureUnit::Share => ColumnUnit::Share,
        FigureUnit::Seconds => ColumnUnit::Seconds,
        FigureUnit::Bytes => ColumnUnit::Bytes,
        FigureUnit::BytesPerSecond => ColumnUnit::BytesPerSecond,
        FigureUnit::Count => ColumnUnit::Count,
        FigureUnit::PerSecond => ColumnUnit::PerSecond,
        FigureUnit::Flag => ColumnUnit::Flag,
        FigureUnit::Reason => ColumnUnit::Reason,
    }
}

/// Milliseconds since 1970.
pub fn millis(at: SystemTime) -> u64 {
    let since = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
