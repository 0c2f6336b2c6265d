//! Settings between bounds that follow a group's load (`cpu.max = { min, max }`): where they are, and which values are
//! within.

use layout::{Assigned, BURST, QUOTA};
use serde::{Deserialize, Serialize};
use settings::{CpuMax, Facts, GroupName, NamedSetting, Value};
use units::{Bytes, Limit, Micros};

use crate::Place;

/// The period of a quota where none is given, in microseconds: the kernel's.
const PERIOD: u64 = 100_000;

/// A setting of a group between bounds, as the record of a layout has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Range {
    /// The group.
    pub group: String,
    /// Of a unit of systemd: the name of the unit's control group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// `cpu.max` or `memory.low`.
    pub setting: String,
    /// The least value: microseconds in each period, or bytes.
    pub min: u64,
    /// The largest, not below `min`.
    pub max: u64,
    /// Of a quota: the period in microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub period: Option<u64>,
    /// Of a quota: may the group burst (`cpu.max.burst`)? Not where the kernel lacks it, and not a unit of systemd.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub burst: bool,
}

impl Range {
    /// From a setting's two texts; `None` if it is no range, or one that the layout's checks refuse.
    pub(crate) fn of(
        group: &layout::Group,
        assigned: &Assigned,
        place: &Place,
        facts: &dyn Facts,
    ) -> Option<Range> {
        let most = assigned.most.as_ref()?;
        let bound = |text: &str| amount(&assigned.found.parse(text, facts).ok()?);
        let ((min, period), (max, _)) = (bound(&assigned.text)?, bound(most)?);
        let is_quota = assigned.found.setting.name == QUOTA;
        Some(Range {
            group: group.name.to_string(),
            unit: group.demands.unit.as_ref().map(|_| format!("/{}", place.path)),
            setting: assigned.found.setting.name.to_owned(),
            min,
            max,
            period: is_quota.then(|| period.unwrap_or(PERIOD)),
            burst: false,
        })
    }

    /// The name of the group's directory.
    pub fn directory(&self) -> &str {
        self.unit.as_ref().unwrap_or(&self.group)
    }

    /// A number between the bounds as a value of the setting.
    pub fn value(&self, number: u64) -> Value {
        match self.period {
            Some(period) => {
                let quota = Some(Limit::At(Micros(number)));
                Value::CpuMax(CpuMax { quota, period: Some(Micros(period)) })
            }
            None => Value::Bytes(Limit::At(Bytes(number))),
        }
    }

    /// A number of the setting as plans show it: `50%`, `2G`.
    pub fn show(&self, number: u64) -> String {
        match self.value(number) {
            Value::CpuMax(max) => max.in_percent(),
            _ => Bytes(number).to_string(),
        }
    }

    /// The number that a value is, if it is one that resizing may have written.
    pub fn number(&self, value: &Value) -> Option<u64> {
        let (number, period) = amount(value)?;
        let is_within = (self.min..=self.max).contains(&number) && period == self.period;
        is_within.then_some(number)
    }

    /// Is this value of a setting what resizing may have written? `None` if it does not write that setting.
    pub fn allows(&self, found: &NamedSetting, value: &Value) -> Option<bool> {
        match (found.setting.name, value) {
            (name, value) if name == self.setting => Some(self.number(value).is_some()),
            (BURST, Value::Micros(Limit::At(burst))) if self.burst => Some(burst.0 <= self.max),
            _ => None,
        }
    }
}

/// The range of a setting of a group.
pub fn range_of<'r>(ranges: &'r [Range], group: &GroupName, setting: &str) -> Option<&'r Range> {
    let name = group.to_string();
    ranges.iter().find(|range| range.group == name && range.setting == setting)
}

/// A number, and of a quota its period.
fn amount(value: &Value) -> Option<(u64, Option<u64>)> {
    match value {
        Value::CpuMax(CpuMax { quota: Some(Limit::At(quota)), period }) => {
            Some((quota.0, period.map(|period| period.0)))
        }
        Value::Bytes(Limit::At(bytes)) => Some((bytes.0, None)),
        _ => None,
    }
}
