//! A setting with its value, and when two of them speak of the same.

use settings::{Kind, NamedSetting, NoMachine, Value, Version, Via};

use crate::origin::Origin;

/// A quota: a setting that may follow its group's load between two values.
pub const QUOTA: &str = "cpu.max";
/// What the kernel lets a group save up of its quota.
pub const BURST: &str = "cpu.max.burst";
/// Protected memory: the other setting that may follow the load.
pub const PROTECTED: &str = "memory.low";

/// A setting with the value requested. The value stays the user's text until a machine is known (percentages,
/// device paths): [`NamedSetting::parse`] reads it. Its syntax has been checked.
#[derive(Debug, Clone)]
pub struct Assigned {
    /// The setting, by the name that was used.
    pub found: NamedSetting,
    /// The value, as [`NamedSetting::parse`] takes it.
    pub text: String,
    /// Of a setting that follows the group's load: the largest value, in the same syntax; `text` is the least then.
    pub most: Option<String>,
    /// Where the setting was named.
    pub origin: Origin,
}

impl Assigned {
    /// Does it make a group's CPUs its own?
    pub fn is_partition(&self) -> bool {
        self.found.setting.name == "cpuset.cpus.partition"
    }

    /// The kind of partition, `root` for v1's flag by its own name; `None` of every other setting.
    pub fn partition(&self) -> Option<String> {
        match self.found.parse(&self.text, &NoMachine) {
            Ok(Value::Word(kind)) if self.is_partition() => Some(kind),
            _ => None,
        }
    }

    /// Is it v1's flag by its own name? On v1 that one only forbids that siblings name the same CPUs.
    pub fn is_flag(&self) -> bool {
        self.is_partition() && matches!(self.found.via, Via::File { version: Version::V1, .. })
    }
}

impl PartialEq for Assigned {
    /// By name and texts: a name decides which setting is meant.
    fn eq(&self, other: &Assigned) -> bool {
        let parts = |of: &Assigned| (of.found.name.clone(), of.text.clone(), of.most.clone());
        parts(self) == parts(other) && self.origin == other.origin
    }
}
impl Eq for Assigned {}

/// Is each of its values one more, rather than another?
pub(crate) fn adds_up(found: &NamedSetting) -> bool {
    found.setting.name.starts_with("devices.")
}

/// Which part of its setting a name stands for: the file's index where a setting has several, `None` for the whole.
pub(crate) fn part(found: &NamedSetting) -> Option<usize> {
    let Via::File { version, index } = found.via else { return None };
    let names = found.side(version).binding().map_or(0, |binding| binding.names().len());
    (names > 1).then_some(index)
}

/// Are two names of one setting, each for a part of it or for all, the same to a reader? What names devices may stand beside
/// what names others: only a plan knows which these are, and joins both or sees a contradiction.
pub(crate) fn overlap(one: Option<usize>, other: Option<usize>, found: &NamedSetting) -> bool {
    one == other
        || (one.is_none() || other.is_none())
            && !matches!(found.setting.kind, Kind::PerDevice(_) | Kind::Weights)
}

/// Do two names speak of the same setting, or of the same part of it?
pub(crate) fn same(one: &Assigned, other: &Assigned) -> bool {
    let (one, other) = (&one.found, &other.found);
    let parts = (part(one), part(other));
    let overlap = parts.0 == parts.1 || parts.0.is_none() || parts.1.is_none();
    overlap && one.setting.name == other.setting.name && one.size == other.size
}
