//! One picture: the chosen figures of the groups and of the machine at one moment, ready to be written.

use std::{
    fmt,
    time::{Duration, SystemTime},
};

use settings::DeviceNumber;

use monitor::{
    Field, Options, Reading, Sample, Table, counting,
    rates::{FigureUnit, Window},
    slow_every,
};

use super::{
    cell::{Measure, Row, Value},
    choice::{Choice, Of, Part},
    order,
};

/// What was chosen, at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Picture {
    /// When it was sampled.
    pub at: Option<SystemTime>,
    /// How much later than it was due.
    pub late: Duration,
    /// Samples that were due before it and not taken.
    pub missed: u64,
    /// The groups' columns.
    pub headings: Vec<Heading>,
    /// The groups, as a tree.
    pub rows: Vec<Row>,
    /// The machine's figures.
    pub machine: Vec<(Heading, Value)>,
    /// What the figures do not say.
    pub notes: Vec<Note>,
}

/// What the figures of a group do not say on v1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Note {
    /// Its tasks are not the same ones in every hierarchy.
    Split {
        /// The group.
        group: String,
        /// How many there are in each: `cpu 10, cpuset 0`.
        by_hierarchy: String,
    },
    /// Its CPU time is counted nowhere.
    Uncounted {
        /// The group.
        group: String,
    },
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Note::Split { group, by_hierarchy } => write!(f, "tasks of {group} by hierarchy: {by_hierarchy}"),
            Note::Uncounted { group } => {
                let command = counting(group);
                write!(f, "{group} is not in cpuacct, which counts CPU time; {command}")
            }
        }
    }
}

/// A column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heading {
    /// As users type it.
    pub name: String,
    /// What its numbers count.
    pub measure: Measure,
}

/// Rates and levels, or what was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Numbers {
    /// Rates of counters, levels in whole units.
    Figures,
    /// As they were read; what is worked out of several is missing.
    Raw,
}

/// A window that is long enough for the rates of samples like this one, as a recorder takes them.
pub fn window_for(sample: &Sample) -> Window {
    Window::new(slow_every(Options::default().slow_every, sample.groups.rows().len()))
}

/// A column of the picture, and where its numbers are in the table.
struct Place {
    heading: Heading,
    of: Of,
    columns: Vec<usize>,
}

impl Picture {
    /// The newest sample of a window. `tops`: only these groups and those below them; empty: all.
    pub fn new(window: &Window, choices: &[Choice], numbers: Numbers, tops: &[String]) -> Option<Picture> {
        let sample = window.newest()?;
        let of_groups = places(&sample.groups, choices, numbers, |of| !matches!(of, Of::Machine(_)));
        let of_machine = places(&sample.machine, choices, numbers, |of| matches!(of, Of::Machine(_)));
        let value = |place: &Place, row| match place.of {
            Of::Derived(_) if numbers == Numbers::Raw => Value::Missing,
            Of::Derived(derived) => derived.value(window, row),
            Of::Group(_) => sum(place, |column| of_group(window, sample, numbers, row, column)),
            Of::Machine(_) => sum(place, |column| of_machine_cell(window, sample, numbers, column)),
        };
        let groups =
            sample.groups.rows().iter().enumerate().filter(|(_, group)| order::is_shown(group, tops));
        let mut rows: Vec<Row> = groups
            .filter(|_| !of_groups.is_empty())
            .map(|(row, group)| Row {
                group: group.clone(),
                label: group.clone(),
                depth: 0,
                values: of_groups.iter().map(|place| value(place, row)).collect(),
            })
            .collect();
        order::by_tree(&mut rows);
        let machine = of_machine.into_iter().map(|place| {
            let value = value(&place, 0);
            (place.heading, value)
        });
        Some(Picture {
            at: sample.at,
            late: sample.late,
            missed: sample.missed,
            machine: machine.collect(),
            headings: of_groups.into_iter().map(|place| place.heading).collect(),
            rows,
            notes: Vec::new(),
        })
    }

    /// Calls each device by its name where it has one, but for those that were requested by number.
    pub fn name_devices(&mut self, choices: &[Choice], name: impl Fn(DeviceNumber) -> Option<String>) {
        let is_requested = |heading: &str| {
            choices.iter().any(|choice| match &choice.part {
                Part::One(one) => heading.strip_prefix(&choice.of.name()) == Some(&format!("/{one}")),
                _ => false,
            })
        };
        for heading in &mut self.headings {
            let Some((field, instance)) = heading.name.rsplit_once('/') else { continue };
            let Ok(number) = instance.parse::<DeviceNumber>() else { continue };
            if let Some(name) = name(number).filter(|_| !is_requested(&heading.name)) {
                heading.name = format!("{field}/{name}");
            }
        }
    }

    /// Puts the groups with the largest figure first, as a list. `false`: it has no such column.
    pub fn sort_by(&mut self, name: &str) -> bool {
        let column = self.headings.iter().position(|heading| heading.name == name);
        column.inspect(|column| order::by_figure(&mut self.rows, *column)).is_some()
    }
}

fn places(table: &Table, choices: &[Choice], numbers: Numbers, wanted: impl Fn(&Of) -> bool) -> Vec<Place> {
    choices
        .iter()
        .filter(|choice| wanted(&choice.of))
        .flat_map(|choice| places_of(table, choice, numbers))
        .collect()
}

fn places_of(table: &Table, choice: &Choice, numbers: Numbers) -> Vec<Place> {
    let name = choice.of.name();
    let measure = choice.of.measure(numbers == Numbers::Raw);
    let place = |name: String, columns| Place { heading: Heading { name, measure }, of: choice.of, columns };
    let columns = match choice.of {
        Of::Group(field) | Of::Machine(field) => columns_of(table, field),
        Of::Derived(_) => Vec::new(),
    };
    let all = || columns.iter().map(|(column, _)| *column);
    match &choice.part {
        Part::Sum => vec![place(name, all().collect())],
        // a field of which there is one has no parts
        Part::Each if columns.iter().all(|(_, instance)| instance.is_empty()) => {
            vec![place(name, all().collect())]
        }
        Part::Each => columns
            .iter()
            .map(|(column, instance)| place(format!("{name}/{instance}"), vec![*column]))
            .collect(),
        Part::One(one) => {
            let these = columns.iter().filter(|(_, instance)| instance == one).map(|(column, _)| *column);
            vec![place(format!("{name}/{one}"), these.collect())]
        }
        Part::Named { name: device, number } => {
            let number = number.to_string();
            let these = columns.iter().filter(|(_, instance)| *instance == number).map(|(column, _)| *column);
            vec![place(format!("{name}/{device}"), these.collect())]
        }
    }
}

fn columns_of(table: &Table, field: &Field) -> Vec<(usize, String)> {
    let columns = table.columns().named(field.name);
    columns.map(|column| (column, table.columns().list()[column].instance.to_string())).collect()
}

fn sum(place: &Place, cell: impl Fn(usize) -> Value) -> Value {
    place.columns.iter().map(|column| cell(*column)).fold(Value::Missing, Value::plus)
}

fn of_group(window: &Window, sample: &Sample, numbers: Numbers, row: usize, column: usize) -> Value {
    match numbers {
        Numbers::Raw => raw(sample.groups.reading(row, column)),
        Numbers::Figures => match sample.groups.columns().list()[column].field {
            field if FigureUnit::of(field) == FigureUnit::Reason => {
                let reason = sample.groups.reading(row, column).at().and_then(|number| field.reason(number));
                reason.map_or(Value::Missing, Value::Text)
            }
            _ => figure(window.group(row, column)),
        },
    }
}

fn of_machine_cell(window: &Window, sample: &Sample, numbers: Numbers, column: usize) -> Value {
    match numbers {
        Numbers::Raw => raw(sample.machine.reading(0, column)),
        Numbers::Figures => figure(window.machine(column)),
    }
}

fn raw(reading: Reading) -> Value {
    match reading {
        Reading::Missing => Value::Missing,
        Reading::Max => Value::Max,
        Reading::At(number) => Value::Whole(number),
    }
}

fn figure(figure: Option<monitor::Figure>) -> Value {
    figure.map_or(Value::Missing, |figure| figure.value.map_or(Value::Max, Value::At))
}
