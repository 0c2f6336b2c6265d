//! Figures that are worked out of several fields: what a group may use, and how much of its time the quota took.

use monitor::{
    Reading, Sample,
    rates::{FigureUnit, Window},
};

use super::{cell::Value, order::parent};

/// A figure made of several fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Derived {
    /// CPUs that a group may use.
    CpuAllotment,
    /// Share of the quota's periods in which it stopped the group.
    CpuThrottled,
    /// Memory that a group may use.
    MemoryLimit,
}

impl Derived {
    /// All of them.
    pub const ALL: [Derived; 3] = [Derived::CpuAllotment, Derived::CpuThrottled, Derived::MemoryLimit];

    /// Its name, in the way of fields.
    pub fn name(self) -> &'static str {
        match self {
            Derived::CpuAllotment => "cpu.allotment",
            Derived::CpuThrottled => "cpu.throttled",
            Derived::MemoryLimit => "memory.limit",
        }
    }

    /// What it is, without the last full stop.
    pub fn help(self) -> &'static str {
        match self {
            Derived::CpuAllotment => {
                "CPUs that the group may use: the least of its quota, of its CPUs and of those of the watched groups above"
            }
            Derived::CpuThrottled => {
                "Share of the periods in which the quota stopped the group, of those in which it wanted to run"
            }
            Derived::MemoryLimit => {
                "Memory that the group may use: the least memory.max of it and of the watched groups above"
            }
        }
    }

    /// What it counts.
    pub fn unit(self) -> FigureUnit {
        match self {
            Derived::CpuAllotment => FigureUnit::Cpus,
            Derived::CpuThrottled => FigureUnit::Share,
            Derived::MemoryLimit => FigureUnit::Bytes,
        }
    }

    /// The fields that it is worked out of.
    pub fn made_of(self) -> &'static [&'static str] {
        match self {
            Derived::CpuAllotment => &["cpu.max.quota", "cpu.max.period", "cpuset.cpus"],
            Derived::CpuThrottled => &["cpu.throttled.periods", "cpu.periods"],
            Derived::MemoryLimit => &["memory.max"],
        }
    }

    /// Its value for a row of the newest sample.
    pub fn value(self, window: &Window, row: usize) -> Value {
        let Some(sample) = window.newest() else { return Value::Missing };
        match self {
            Derived::CpuAllotment => {
                lesser(least(sample, row, "cpu.max.period", quota), least(sample, row, "cpuset.cpus", set))
            }
            Derived::CpuThrottled => throttled(window, sample, row),
            Derived::MemoryLimit => {
                let own = |sample: &Sample, row| limit(get(sample, row, "memory.max"), |bytes| bytes as f64);
                least(sample, row, "memory.max", own)
            }
        }
    }
}

fn get(sample: &Sample, row: usize, field: &str) -> Reading {
    let column = sample.groups.columns().first_named(field);
    column.map_or(Reading::Missing, |column| sample.groups.reading(row, column))
}

/// The least of a group's own and of those above it. A group that is not in the v1 hierarchy that has the field is
/// under no limit of those above it there.
fn least(sample: &Sample, row: usize, field: &str, of: impl Fn(&Sample, usize) -> Value) -> Value {
    let columns = sample.groups.columns();
    let of_v1 = columns.first_named(field).is_some_and(|column| columns.list()[column].of_v1);
    if of_v1 && get(sample, row, field) == Reading::Missing {
        return Value::Missing;
    }
    let mut all = Value::Missing;
    let mut row = Some(row);
    while let Some(group) = row {
        all = lesser(all, of(sample, group));
        let above = sample.groups.rows().get(group).and_then(|name| parent(name));
        row = above.and_then(|above| sample.groups.row(above));
    }
    all
}

fn lesser(one: Value, other: Value) -> Value {
    match (one, other) {
        (Value::At(one), Value::At(other)) => Value::At(one.min(other)),
        (Value::At(one), _) => Value::At(one),
        (Value::Max, Value::Missing) => Value::Max,
        (_, other) => other,
    }
}

fn limit(reading: Reading, value: impl Fn(u64) -> f64) -> Value {
    match reading {
        Reading::Missing => Value::Missing,
        Reading::Max => Value::Max,
        Reading::At(number) => Value::At(value(number)),
    }
}

/// By the group's own quota.
fn quota(sample: &Sample, row: usize) -> Value {
    match get(sample, row, "cpu.max.period") {
        Reading::At(period) if period > 0 => {
            limit(get(sample, row, "cpu.max.quota"), |quota| quota as f64 / period as f64)
        }
        _ => Value::Missing,
    }
}

/// By the group's own CPUs: a set that is empty has those of the group above.
fn set(sample: &Sample, row: usize) -> Value {
    match get(sample, row, "cpuset.cpus") {
        Reading::At(cpus) if cpus > 0 => Value::At(cpus as f64),
        _ => Value::Missing,
    }
}

fn throttled(window: &Window, sample: &Sample, row: usize) -> Value {
    let rate = |field| {
        let column = sample.groups.columns().first_named(field)?;
        window.group(row, column)?.value
    };
    match (rate("cpu.throttled.periods"), rate("cpu.periods")) {
        (Some(throttled), Some(periods)) if periods > 0.0 => Value::At((throttled / periods).min(1.0)),
        (Some(_), Some(_)) => Value::At(0.0),
        _ => Value::Missing,
    }
}
