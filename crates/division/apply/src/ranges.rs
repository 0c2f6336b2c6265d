//! Settings between bounds that follow their group's load, as the kernel has them. Only reads.

use std::fmt;

use kernel::{GroupName, Host};
use serde::{Deserialize, Serialize};

use crate::reading::get;

/// A setting that follows its group's load between bounds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RangeStatus {
    /// Its name.
    pub setting: String,
    /// The least value, as `ringfence set` takes it.
    pub min: String,
    /// The largest.
    pub max: String,
    /// What it is, if it can be read.
    pub now: Option<String>,
    /// The bounds and what it is as numbers; `None`: it can't be read, or is no number.
    #[serde(skip)]
    pub numbers: RangeNumbers,
}

/// A setting between bounds: of a quota CPUs, of memory bytes.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct RangeNumbers {
    /// The least.
    pub min: f64,
    /// The largest.
    pub max: f64,
    /// What it is, if that can be read and is between them.
    pub now: Option<f64>,
}

impl RangeStatus {
    /// `None`: there is no such setting.
    pub(crate) fn of(host: &Host, range: &plan::Range) -> Option<RangeStatus> {
        let found = settings::lookup(&range.setting)?;
        let group = GroupName::new(range.directory()).ok()?;
        let value = get(host, &group, &found).ok().map(|reading| reading.value);
        let number = value.as_ref().and_then(|value| range.number(value));
        let now = value.map(|value| number.map_or_else(|| found.show(&value), |number| range.show(number)));
        let unit = range.period.map_or(1.0, |period| period as f64);
        let [min, max] = [range.min, range.max].map(|number| number as f64 / unit);
        let numbers = RangeNumbers { min, max, now: number.map(|number| number as f64 / unit) };
        let (min, max) = (range.show(range.min), range.show(range.max));
        Some(RangeStatus { setting: range.setting.clone(), min, max, now, numbers })
    }
}

impl fmt::Display for RangeStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RangeStatus { setting, min, max, now, .. } = self;
        write!(f, "{setting}: {}, between {min} and {max}", now.as_deref().unwrap_or("not readable"))
    }
}
