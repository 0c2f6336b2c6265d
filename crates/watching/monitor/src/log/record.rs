//! A sample as bytes. A key record holds the names of columns and rows and every number; a change holds the cells
//! that differ from the record before, column by column, as runs: a number of cells as they were, then one that is not.
//! Idle groups cost a fraction of a byte. Rows' times are stored to the millisecond.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use super::{
    frame::Kind,
    numbers::{Bytes, put, put_difference, put_text},
};
use crate::{
    GROUP_FIELDS, MACHINE_FIELDS,
    field::{Field, Instance, Pace},
    sample::{Column, Columns, Sample, State, Table, Times},
};

/// Writes `sample` as a change of `before`, or whole if rows or columns are not the same.
pub(super) fn encode(sample: &Sample, before: Option<&Sample>, to: &mut Vec<u8>) -> Kind {
    let is_same_shape = |before: &&Sample| {
        let same = |a: &Table, b: &Table| {
            let columns = Arc::ptr_eq(&a.columns, &b.columns) || a.columns.list() == b.columns.list();
            columns && (Arc::ptr_eq(&a.rows, &b.rows) || a.rows == b.rows)
        };
        same(&sample.groups, &before.groups) && same(&sample.machine, &before.machine)
    };
    let before = before.filter(is_same_shape);
    for number in heading(sample) {
        put(to, number);
    }
    for (table, before) in [
        (&sample.groups, before.map(|before| (&before.groups, before.clock))),
        (&sample.machine, before.map(|before| (&before.machine, before.clock))),
    ] {
        if before.is_none() {
            put_shape(table, to);
        }
        put_times(table, sample.clock, before, to);
        put_cells(table, before.map(|(before, _)| before), to);
    }
    if before.is_some() { Kind::Change } else { Kind::Key }
}

/// Every log may have tables of this size: about 10,000 groups on a machine with 400 columns.
const TABLES: usize = 128 << 20;
/// Beyond that, memory of this many times the bytes of the file: a table of few figures and many empty cells packs well.
const PER_BYTE: usize = 256;

/// The memory that tables may take when they are read from a file of this size. A table is packed to almost nothing
/// where it is empty, so that a file of a few kilobytes could ask for gigabytes.
pub(super) fn allowance(file: usize) -> usize {
    TABLES.saturating_add(file.saturating_mul(PER_BYTE))
}

/// The memory that a sample takes when it is read.
pub(super) fn footprint(sample: &Sample) -> usize {
    let of = |table: &Table| {
        let rows = table.rows.len();
        size(table.columns.list().len() * rows, rows).unwrap_or(usize::MAX)
    };
    of(&sample.groups).saturating_add(of(&sample.machine))
}

/// A cell is there twice, as it was read and as it is shown; a row is a name, whose letters are in the record, and its times.
fn size(cells: usize, rows: usize) -> Option<usize> {
    const CELL: usize = 2 * (size_of::<u64>() + size_of::<State>());
    const ROW: usize = 2 * (size_of::<String>() + size_of::<Times>());
    cells.checked_mul(CELL)?.checked_add(rows.checked_mul(ROW)?)
}

fn heading(sample: &Sample) -> [u64; 6] {
    let since_1970 =
        sample.at.and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok()).unwrap_or_default();
    [
        since_1970.as_nanos() as u64, // until the year 2554
        sample.clock.as_nanos() as u64,
        sample.number,
        sample.late.as_micros() as u64,
        sample.missed,
        sample.took.as_micros() as u64,
    ]
}

/// Beside a pace: the column is of a v1 hierarchy.
const OF_V1: u8 = 4;

/// Names of columns (`name`, `name/c3`), each with its pace, and of rows.
fn put_shape(table: &Table, to: &mut Vec<u8>) {
    put(to, table.columns.list().len() as u64);
    for column in table.columns.list() {
        put_text(to, column.field.name);
        put_text(to, &instance_text(column.instance));
        to.push(column.pace as u8 | if column.of_v1 { OF_V1 } else { 0 });
    }
    put(to, table.rows.len() as u64);
    table.rows.iter().for_each(|row| put_text(to, row));
}

fn instance_text(instance: Instance) -> String {
    match instance {
        Instance::One => String::new(),
        Instance::Cpu(id) => format!("c{id}"),
        Instance::Node(id) => format!("n{id}"),
        Instance::Device(number) => format!("d{number}"),
    }
}

fn instance_of(text: &str) -> Option<Instance> {
    if text.is_empty() {
        return Some(Instance::One);
    }
    let (kind, rest) = text.split_at_checked(1)?;
    match kind {
        "c" => rest.parse().ok().map(Instance::Cpu),
        "n" => rest.parse().ok().map(Instance::Node),
        "d" => rest.parse().ok().map(Instance::Device),
        _ => None,
    }
}

/// How long after the sample began a row was read, in ms, and whether it was read slowly now: most rows are like the
/// record before.
fn put_times(table: &Table, clock: Duration, before: Option<(&Table, Duration)>, to: &mut Vec<u8>) {
    for (row, times) in table.times.iter().enumerate() {
        let was = before.map_or(0, |(before, clock)| after(clock, before.times[row].tick));
        put_difference(to, was, after(clock, times.tick));
    }
    for (row, times) in table.times.iter().enumerate() {
        let same = before.is_some_and(|(before, _)| before.times[row].slow == times.slow);
        match same {
            true => put(to, 0),
            // a damaged log may have been read with any times
            false => put(to, (times.tick.saturating_sub(times.slow).as_millis() as u64).saturating_add(1)),
        }
    }
}

fn after(clock: Duration, time: Duration) -> u64 {
    time.saturating_sub(clock).as_millis() as u64
}

fn put_cells(table: &Table, before: Option<&Table>, to: &mut Vec<u8>) {
    let (width, height) = (table.columns.list().len(), table.rows.len());
    let mut same = 0;
    for column in 0..width {
        for row in 0..height {
            let cell = row * width + column;
            let now = (table.states[cell], table.numbers[cell]);
            let was =
                before.map_or((State::Missing, 0), |before| (before.states[cell], before.numbers[cell]));
            if now == was {
                same += 1;
                continue;
            }
            put(to, same);
            same = 0;
            to.push(now.0 as u8);
            put_difference(to, was.1, now.1);
        }
    }
    put(to, same);
}

/// The tables of the record that was read last, as they were written: also columns that this version has no field
/// for.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    groups: Option<Written>,
    machine: Option<Written>,
    clock: Duration,
}

#[derive(Debug)]
struct Written {
    table: Table,
    /// Width as written, and the columns that are known, by their places.
    width: usize,
    known: Vec<usize>,
    shown: Arc<Columns>,
    numbers: Vec<u64>,
    states: Vec<State>,
}

impl Decoder {
    /// Reads a record; `None` if it is not one, or a change without its key.
    ///
    /// `file`: how many bytes the record's file has, which bounds what a key record may make.
    pub(super) fn decode(
        &mut self,
        (kind, file): (Kind, u64),
        record: &[u8],
        into: &mut Sample,
    ) -> Option<()> {
        let mut left = allowance(usize::try_from(file).unwrap_or(usize::MAX));
        let bytes = &mut Bytes(record);
        let mut heading = [0; 6];
        for number in &mut heading {
            *number = bytes.number()?;
        }
        let [since_1970, clock, number, late, missed, took] = heading;
        let clock = Duration::from_nanos(clock);
        for (place, fields) in [(&mut self.groups, GROUP_FIELDS), (&mut self.machine, MACHINE_FIELDS)] {
            if kind == Kind::Key {
                *place = None;
                *place = Some(Written::read(bytes, fields, &mut left)?);
            }
            let written = place.as_mut()?;
            written.times(bytes, clock, self.clock)?;
            written.cells(bytes)?;
        }
        self.clock = clock;
        into.at = SystemTime::UNIX_EPOCH.checked_add(Duration::from_nanos(since_1970));
        (into.clock, into.number) = (clock, number);
        (into.late, into.missed) = (Duration::from_micros(late), missed);
        into.took = Duration::from_micros(took);
        self.groups.as_ref()?.show(&mut into.groups);
        self.machine.as_ref()?.show(&mut into.machine);
        bytes.0.is_empty().then_some(())
    }
}

impl Written {
    /// Takes what the table needs off `left`, before it is made.
    fn read(bytes: &mut Bytes<'_>, fields: &'static [Field], left: &mut usize) -> Option<Written> {
        let width = bytes.count()?;
        let (mut list, mut known) = (Vec::new(), Vec::new());
        for place in 0..width {
            let (name, instance) = (bytes.text()?, instance_of(bytes.text()?));
            let byte = bytes.byte()?;
            let of_v1 = byte & OF_V1 != 0;
            let pace = match byte & !OF_V1 {
                0 => Pace::Tick,
                1 => Pace::Slow,
                2 => Pace::Seldom,
                _ => return None,
            };
            let field = fields.iter().find(|field| field.name == name);
            if let (Some(field), Some(instance)) = (field, instance) {
                list.push(Column { field, instance, pace, of_v1 });
                known.push(place);
            }
        }
        let height = bytes.count()?;
        let cells = width.checked_mul(height)?;
        *left = left.checked_sub(size(cells, height)?)?;
        let rows = (0..height).map(|_| bytes.text().map(str::to_owned)).collect::<Option<Vec<_>>>()?;
        let shown = Arc::new(Columns::from_list(list));
        Some(Written {
            table: Table::new(Arc::clone(&shown), Arc::from(rows)),
            width,
            known,
            shown,
            numbers: vec![0; cells],
            states: vec![State::Missing; cells],
        })
    }

    fn times(&mut self, bytes: &mut Bytes<'_>, clock: Duration, clock_before: Duration) -> Option<()> {
        for times in &mut self.table.times {
            // in a key record nothing was before
            let was = if *times == Times::default() { 0 } else { after(clock_before, times.tick) };
            times.tick = clock.checked_add(Duration::from_millis(bytes.differing_from(was)?))?;
        }
        for times in &mut self.table.times {
            match bytes.number()? {
                0 => {}
                age => times.slow = times.tick.saturating_sub(Duration::from_millis(age - 1)),
            }
        }
        Some(())
    }

    fn cells(&mut self, bytes: &mut Bytes<'_>) -> Option<()> {
        let height = self.table.rows.len();
        let all = self.numbers.len();
        let mut at = 0; // counted column by column
        loop {
            at += usize::try_from(bytes.number()?).ok().filter(|same| *same <= all - at)?;
            if at == all {
                return Some(());
            }
            let cell = at % height * self.width + at / height;
            self.states[cell] = match bytes.byte()? {
                0 => State::Missing,
                1 => State::At,
                2 => State::Max,
                _ => return None,
            };
            self.numbers[cell] = bytes.differing_from(self.numbers[cell])?;
            at += 1;
        }
    }

    fn show(&self, into: &mut Table) {
        into.columns.clone_from(&self.shown);
        into.rows.clone_from(&self.table.rows);
        into.times.clone_from(&self.table.times);
        into.numbers.clear();
        into.states.clear();
        for row in 0..self.table.rows.len() {
            let cells = self.known.iter().map(|column| row * self.width + column);
            into.numbers.extend(cells.clone().map(|cell| self.numbers[cell]));
            into.states.extend(cells.map(|cell| self.states[cell]));
        }
    }
}
