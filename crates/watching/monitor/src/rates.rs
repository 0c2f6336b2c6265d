//! What readings mean: a counter's growth per second between two samples, a level as it is, with the unit. Pure: it
//! reads neither the clock nor the kernel.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use crate::{
    field::{Field, Kind, Pace, Unit},
    sample::{Reading, Sample, Table, Times},
};

/// A figure for people and programs.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Figure {
    /// The number; `None` for a limit that is none.
    pub value: Option<f64>,
    /// What it counts.
    pub unit: FigureUnit,
}

/// What a figure counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FigureUnit {
    /// CPUs: seconds of CPU time per second.
    Cpus,
    /// Share of the time that passed, 0 to 1.
    Share,
    /// Seconds.
    Seconds,
    /// Bytes.
    Bytes,
    /// Bytes per second.
    BytesPerSecond,
    /// Things.
    Count,
    /// Things per second.
    PerSecond,
    /// 0 or 1.
    Flag,
    /// One of several reasons, in words; 0 for none.
    Reason,
}

impl FigureUnit {
    /// What stands behind the number; empty for things.
    pub fn symbol(self) -> &'static str {
        match self {
            FigureUnit::Cpus => "cpu",
            FigureUnit::Share | FigureUnit::Count | FigureUnit::Flag | FigureUnit::Reason => "",
            FigureUnit::Seconds => "s",
            FigureUnit::Bytes => "B",
            FigureUnit::BytesPerSecond => "B/s",
            FigureUnit::PerSecond => "/s",
        }
    }

    /// The unit of a field's figures.
    pub fn of(field: &Field) -> FigureUnit {
        if field.reason(1).is_some() {
            return FigureUnit::Reason;
        }
        let is_cpu_time = field.name.starts_with("cpu.") && !field.name.contains("pressure");
        match (field.kind, field.unit) {
            (Kind::Counter, Unit::Nanos) if is_cpu_time => FigureUnit::Cpus,
            (Kind::Counter, Unit::Nanos) => FigureUnit::Share,
            (Kind::Counter, Unit::Bytes) => FigureUnit::BytesPerSecond,
            (Kind::Counter, _) => FigureUnit::PerSecond,
            (_, Unit::Nanos) => FigureUnit::Seconds,
            (_, Unit::Bytes) => FigureUnit::Bytes,
            (_, Unit::Flag) => FigureUnit::Flag,
            (_, Unit::Count | Unit::Hundredths) => FigureUnit::Count,
        }
    }
}

/// The figure of a field from two readings that are `elapsed` apart. A level needs the later one alone. `None`: not
/// known, no time between them, or a counter that was set back meanwhile.
pub fn figure(field: &Field, before: Reading, after: Reading, elapsed: Duration) -> Option<Figure> {
    let unit = FigureUnit::of(field);
    let value = match (field.kind, before, after) {
        (_, _, Reading::Missing) => return None,
        (Kind::Counter, Reading::At(before), Reading::At(after)) => {
            let growth = after.checked_sub(before)?;
            let seconds = elapsed.as_secs_f64();
            (seconds > 0.0).then(|| Some(in_unit(field.unit, growth) / seconds))?
        }
        (Kind::Counter, ..) => return None,
        (_, _, Reading::Max) => None,
        (_, _, Reading::At(level)) => Some(in_unit(field.unit, level)),
    };
    Some(Figure { value, unit })
}

/// A stored number in whole units: seconds, bytes, things.
pub fn in_unit(unit: Unit, number: u64) -> f64 {
    match unit {
        Unit::Nanos => number as f64 / 1e9,
        Unit::Hundredths => number as f64 / 100.0,
        Unit::Bytes | Unit::Count | Unit::Flag => number as f64,
    }
}

/// The figure of one cell between two tables, by the times at which its row was read in each.
pub fn between(before: &Table, after: &Table, row: usize, column: usize) -> Option<Figure> {
    let known = after.columns().list().get(column)?;
    let reading = after.reading(row, column);
    let earlier = same_row(before, after, row).zip(same_column(before, after, column));
    let (was, elapsed) = match earlier {
        Some((row_before, column_before)) => {
            let [now, then] =
                [after.times(row), before.times(row_before)].map(|times| read_at(times, known.pace));
            let elapsed = now.saturating_sub(then);
            (before.reading(row_before, column_before), elapsed)
        }
        None => (Reading::Missing, Duration::ZERO),
    };
    figure(known.field, was, reading, elapsed)
}

/// Where a row of `after` is in `before`: at the same place unless groups came or went between them.
fn same_row(before: &Table, after: &Table, row: usize) -> Option<usize> {
    let name = after.rows().get(row)?;
    if Arc::ptr_eq(before.rows(), after.rows()) { Some(row) } else { before.row(name) }
}

/// Where a column of `after` is in `before`: at the same place unless a new log was begun between them.
fn same_column(before: &Table, after: &Table, column: usize) -> Option<usize> {
    if Arc::ptr_eq(before.columns(), after.columns()) {
        return (column < after.columns().list().len()).then_some(column);
    }
    let wanted = after.columns().list().get(column)?;
    let list = before.columns().list();
    let same = |other: &crate::Column| other.field == wanted.field && other.instance == wanted.instance;
    if list.get(column).is_some_and(same) { Some(column) } else { list.iter().position(same) }
}

/// The last samples: as many as it takes for each figure to have been read twice.
#[derive(Debug)]
pub struct Window {
    samples: VecDeque<Sample>,
    length: usize,
}

impl Window {
    /// Keeps what a sampler with this [`crate::Sampler::slow_every`] needs; more of it for longer averages.
    pub fn new(slow_every: u64) -> Window {
        let length = usize::try_from(slow_every).unwrap_or(usize::MAX).clamp(1, 600) + 2;
        Window { samples: VecDeque::new(), length }
    }

    /// Takes a copy of a sample; the oldest one's memory is used again.
    pub fn push(&mut self, sample: &Sample) {
        let mut place = match self.samples.len() >= self.length {
            true => self.samples.pop_front().unwrap_or_default(),
            false => Sample::default(),
        };
        place.clone_from(sample);
        self.samples.push_back(place);
    }

    /// The newest sample.
    pub fn newest(&self) -> Option<&Sample> {
        self.samples.back()
    }

    /// A group's figure, from the newest sample and the last before it in which it was read again.
    pub fn group(&self, row: usize, column: usize) -> Option<Figure> {
        self.latest(row, column, |sample| &sample.groups)
    }

    /// The machine's figure, in the same way.
    pub fn machine(&self, column: usize) -> Option<Figure> {
        self.latest(0, column, |sample| &sample.machine)
    }

    fn latest(&self, row: usize, column: usize, table: fn(&Sample) -> &Table) -> Option<Figure> {
        let newest = table(self.samples.back()?);
        // what is missing has no figure, however far back is looked
        if newest.reading(row, column) == Reading::Missing {
            return None;
        }
        let pace = newest.columns().list().get(column)?.pace;
        let read = read_at(newest.times(row), pace);
        // between samples of the same rows the time of a reading only grows: the last that is earlier is looked for
        let is_earlier = |sample: &Sample| {
            let table = table(sample);
            !Arc::ptr_eq(table.rows(), newest.rows()) || read_at(table.times(row), pace) < read
        };
        let before = self.samples.len() - 1;
        let earlier = match pace {
            Pace::Tick => before,
            Pace::Slow | Pace::Seldom => self.samples.partition_point(is_earlier),
        };
        let earlier = self.samples.range(..earlier.min(before)).rev();
        earlier
            .map(|sample| between(table(sample), newest, row, column))
            .find(Option::is_some)
            .unwrap_or_else(|| between(&Table::default(), newest, row, column))
    }
}

fn read_at(times: Times, pace: Pace) -> Duration {
    match pace {
        Pace::Tick => times.tick,
        Pace::Slow | Pace::Seldom => times.slow,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::GROUP_FIELDS;

    fn field(name: &str) -> &'static Field {
        GROUP_FIELDS.iter().find(|field| field.name == name).unwrap()
    }

    #[test]
    fn counters_become_rates_in_their_unit() {
        let second = Duration::from_secs(1);
        for (name, before, after, elapsed, value, unit) in [
            ("cpu.usage", 1_000_000_000, 4_000_000_000, 2 * second, 1.5, FigureUnit::Cpus),
            ("cpu.pressure.some", 0, 250_000_000, second, 0.25, FigureUnit::Share),
            ("io.rbytes", 100, 4196, 4 * second, 1024.0, FigureUnit::BytesPerSecond),
            ("io.rios", 7, 8, second / 2, 2.0, FigureUnit::PerSecond),
        ] {
            let figure = figure(field(name), Reading::At(before), Reading::At(after), elapsed).unwrap();
            assert_eq!((figure.value, figure.unit), (Some(value), unit), "{name}");
        }
    }

    #[test]
    fn levels_and_limits_are_as_they_are() {
        let level = |name, after| figure(field(name), Reading::Missing, after, Duration::ZERO);
        let current = level("memory.current", Reading::At(4096)).unwrap();
        assert_eq!((current.value, current.unit), (Some(4096.0), FigureUnit::Bytes));
        assert_eq!(level("memory.max", Reading::Max).unwrap().value, None);
        assert_eq!(level("cpu.max.period", Reading::At(100_000_000)).unwrap().value, Some(0.1));
        assert_eq!(level("memory.max", Reading::Missing), None);
    }

    #[test]
    fn a_counter_that_was_set_back_has_no_rate() {
        let usage = field("cpu.usage");
        let rate = |before, after, elapsed| figure(usage, before, after, elapsed);
        assert_eq!(rate(Reading::At(5), Reading::At(4), Duration::from_secs(1)), None);
        assert_eq!(rate(Reading::At(4), Reading::At(5), Duration::ZERO), None);
        assert_eq!(rate(Reading::Missing, Reading::At(5), Duration::from_secs(1)), None);
    }
}
