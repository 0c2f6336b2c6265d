//! What was read at one moment: raw numbers in a table with a row per group and a column per figure, and a table
//! with one row for the machine. Never derives anything: that is `rates`' part.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, SystemTime},
};

use settings::DeviceNumber;

use crate::field::{Field, Instance, Pace, Per};

/// One number as it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reading {
    /// The kernel does not report it: the file or the key is not there.
    Missing,
    /// A number in the field's unit.
    At(u64),
    /// A limit that is none.
    Max,
}

impl Reading {
    /// The number, if it is one.
    pub fn at(self) -> Option<u64> {
        match self {
            Reading::At(number) => Some(number),
            Reading::Missing | Reading::Max => None,
        }
    }
}

/// What a cell of a table holds beside its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
pub(crate) enum State {
    #[default]
    Missing = 0,
    At = 1,
    Max = 2,
}

/// A column: a field, and which one of several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    /// The field.
    pub field: &'static Field,
    /// Which of several.
    pub instance: Instance,
    /// How often it is read where it was read: which of a row's [`Times`] it has.
    pub pace: Pace,
    /// Is it read of a v1 hierarchy, where a group has it only if it is there itself?
    pub of_v1: bool,
}

/// The CPUs and nodes that have figures of their own.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Parts {
    /// CPU numbers, ascending.
    pub cpus: Vec<u32>,
    /// Nodes' numbers, ascending.
    pub nodes: Vec<u32>,
}

/// The columns of a table. Those of a device are added when it is first used; none is ever taken away.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Columns {
    list: Vec<Column>,
    /// The first column of each field.
    first: HashMap<&'static str, usize>,
    /// The first column of each device; the device fields follow in the table's order.
    devices: Vec<(DeviceNumber, usize)>,
}

impl Columns {
    pub(crate) fn new(
        fields: &'static [Field],
        parts: &Parts,
        pace: impl Fn(&Field) -> (Pace, bool),
    ) -> Columns {
        let mut list = Vec::new();
        for field in fields {
            let (pace, of_v1) = pace(field);
            let mut several = |ids: &[u32], instance: fn(u32) -> Instance| {
                list.extend(ids.iter().map(|id| Column { field, instance: instance(*id), pace, of_v1 }));
            };
            match field.per {
                Per::One => several(&[0], |_| Instance::One),
                Per::Cpu => several(&parts.cpus, Instance::Cpu),
                Per::Node => several(&parts.nodes, Instance::Node),
                Per::Device => {}
            }
        }
        Columns::from_list(list)
    }

    pub(crate) fn add_device(&mut self, fields: &'static [Field], device: DeviceNumber, pace: Pace) {
        self.devices.push((device, self.list.len()));
        let of_device = fields.iter().filter(|field| field.per == Per::Device);
        let instance = Instance::Device(device);
        self.list.extend(of_device.map(|field| Column { field, instance, pace, of_v1: false }));
        self.first = first_of_each(&self.list);
    }

    pub(crate) fn from_list(list: Vec<Column>) -> Columns {
        Columns { first: first_of_each(&list), list, devices: Vec::new() }
    }

    /// The devices that have columns, each with its first.
    pub(crate) fn devices(&self) -> &[(DeviceNumber, usize)] {
        &self.devices
    }

    /// The first column of a field.
    pub(crate) fn first(&self, field: &Field) -> Option<usize> {
        self.list.iter().position(|column| column.field == field)
    }

    /// The first column of the field of that name.
    pub fn first_named(&self, name: &str) -> Option<usize> {
        self.first.get(name).copied()
    }

    /// All columns in order.
    pub fn list(&self) -> &[Column] {
        &self.list
    }

    /// The columns of the field of that name, one or several.
    pub fn named<'c>(&'c self, name: &'c str) -> impl Iterator<Item = usize> + 'c {
        self.list.iter().enumerate().filter(move |(_, column)| column.field.name == name).map(|(at, _)| at)
    }
}

fn first_of_each(list: &[Column]) -> HashMap<&'static str, usize> {
    list.iter().enumerate().rev().map(|(place, column)| (column.field.name, place)).collect()
}

/// When a row was read, on the clock of [`Sample::clock`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Times {
    /// The figures of every sample.
    pub tick: Duration,
    /// The figures that are read less often.
    pub slow: Duration,
}

/// Rows of numbers. A clone into a table that there is already allocates nothing unless rows or columns changed.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Table {
    pub(crate) columns: Arc<Columns>,
    pub(crate) rows: Arc<[String]>,
    pub(crate) numbers: Vec<u64>,
    pub(crate) states: Vec<State>,
    pub(crate) times: Vec<Times>,
}

impl Clone for Table {
    fn clone(&self) -> Table {
        let mut new = Table::default();
        new.clone_from(self);
        new
    }

    fn clone_from(&mut self, from: &Table) {
        self.columns.clone_from(&from.columns);
        self.rows.clone_from(&from.rows);
        self.numbers.clone_from(&from.numbers);
        self.states.clone_from(&from.states);
        self.times.clone_from(&from.times);
    }
}

impl Table {
    pub(crate) fn new(columns: Arc<Columns>, rows: Arc<[String]>) -> Table {
        let cells = columns.list.len() * rows.len();
        let (numbers, states) = (vec![0; cells], vec![State::Missing; cells]);
        Table { times: vec![Times::default(); rows.len()], columns, rows, numbers, states }
    }

    /// The columns.
    pub fn columns(&self) -> &Arc<Columns> {
        &self.columns
    }

    /// The rows' names, sorted: groups as users write them, parents before children. The machine's only row is "".
    pub fn rows(&self) -> &Arc<[String]> {
        &self.rows
    }

    /// The row of that name.
    pub fn row(&self, name: &str) -> Option<usize> {
        self.rows.binary_search_by(|row| row.as_str().cmp(name)).ok()
    }

    /// When a row was read.
    pub fn times(&self, row: usize) -> Times {
        self.times.get(row).copied().unwrap_or_default()
    }

    /// One number; missing outside of the table.
    pub fn reading(&self, row: usize, column: usize) -> Reading {
        let width = self.columns.list.len();
        if column >= width || row >= self.rows.len() {
            return Reading::Missing;
        }
        let cell = row * width + column;
        match self.states[cell] {
            State::Missing => Reading::Missing,
            State::At => Reading::At(self.numbers[cell]),
            State::Max => Reading::Max,
        }
    }

    /// The number of a field of which there is one, by names.
    pub fn get(&self, row: &str, field: &str) -> Reading {
        let place = || Some((self.row(row)?, self.columns.first_named(field)?));
        place().map_or(Reading::Missing, |(row, column)| self.reading(row, column))
    }

    pub(crate) fn cells(&mut self, row: usize) -> Cells<'_> {
        let width = self.columns.list.len();
        let range = row * width..(row + 1) * width;
        Cells { numbers: &mut self.numbers[range.clone()], states: &mut self.states[range] }
    }

    /// Makes a row's numbers missing.
    pub(crate) fn forget(&mut self, row: usize) {
        let width = self.columns.list.len();
        self.states[row * width..(row + 1) * width].fill(State::Missing);
        self.times[row] = Times::default();
    }

    /// The same rows with other columns behind the old ones, or other rows: what both have stays.
    pub(crate) fn reshaped(&self, columns: Arc<Columns>, rows: Arc<[String]>) -> Table {
        let mut table = Table::new(columns, rows);
        let (old, new) = (self.columns.list.len(), table.columns.list.len());
        for row in 0..table.rows.len() {
            let Some(from) = self.row(&table.rows[row]) else { continue };
            table.times[row] = self.times[from];
            table.numbers[row * new..row * new + old]
                .copy_from_slice(&self.numbers[from * old..(from + 1) * old]);
            table.states[row * new..row * new + old]
                .copy_from_slice(&self.states[from * old..(from + 1) * old]);
        }
        table
    }
}

/// A row that is being read.
pub(crate) struct Cells<'t> {
    numbers: &'t mut [u64],
    states: &'t mut [State],
}

impl Cells<'_> {
    pub(crate) fn set(&mut self, column: usize, reading: Reading) {
        let (state, number) = match reading {
            Reading::Missing => (State::Missing, 0),
            Reading::At(number) => (State::At, number),
            Reading::Max => (State::Max, 0),
        };
        self.numbers[column] = number;
        self.states[column] = state;
    }
}

/// Everything that was read at one moment.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// The wall clock when reading began; `None` before the first.
    pub at: Option<SystemTime>,
    /// The monotonic clock (since boot, without sleep) when reading began: what rows' times are on.
    pub clock: Duration,
    /// Samples before this one.
    pub number: u64,
    /// How much later than it was due reading began.
    pub late: Duration,
    /// Samples that were due since the last one and not taken.
    pub missed: u64,
    /// How long reading took.
    pub took: Duration,
    /// The groups.
    pub groups: Table,
    /// The machine.
    pub machine: Table,
}

impl Clone for Sample {
    fn clone(&self) -> Sample {
        let mut new = Sample::default();
        new.clone_from(self);
        new
    }

    fn clone_from(&mut self, from: &Sample) {
        let Sample { at, clock, number, late, missed, took, groups, machine } = from;
        (self.at, self.clock, self.number) = (*at, *clock, *number);
        (self.late, self.missed, self.took) = (*late, *missed, *took);
        self.groups.clone_from(groups);
        self.machine.clone_from(machine);
    }
}
