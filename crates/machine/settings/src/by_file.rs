//! What the table says of a file, whatever setting it holds.

use std::{collections::HashMap, sync::LazyLock};

use crate::{
    laws::{Pair, Stage, Turn},
    names,
    setting::{Codec, Reach, UnitProperty, Version},
    table::{BY_KEY, FILES, File, all},
};

/// Of every file of the table the farthest reach of what it holds. Hundreds of lookups are made for each group.
static REACH: LazyLock<HashMap<(Version, &'static str), Reach>> = LazyLock::new(|| {
    let mut reach = HashMap::new();
    for setting in all() {
        for version in [Version::V1, Version::V2] {
            let Some(binding) = setting.side(version).binding() else { continue };
            for file in binding.files {
                let of_file = reach.entry((version, *file)).or_insert(binding.reach);
                *of_file = binding.reach.max(*of_file);
            }
        }
    }
    reach
});

fn files(version: Version, file: &str) -> impl Iterator<Item = &'static File> {
    FILES.iter().filter(move |known| known.version == version && known.name == file)
}

/// What `file` of a group has that nobody set yet, where that is the same on every machine.
pub fn initial(version: Version, file: &str) -> Option<&'static str> {
    files(version, file).find_map(|file| file.binding.initial.get(file.index).copied())
}

/// When a write of `text` to `file` comes among the others of its group.
pub fn turn(version: Version, file: &str, text: &str) -> Turn {
    let order = files(version, file).find_map(|file| file.binding.order);
    order.map_or(Turn { stage: Stage::Limits, why: None }, |order| order.turn(text))
}

/// Every rule between two files of a group: the first file, and the rule with the second.
pub fn pairs(version: Version) -> impl Iterator<Item = (&'static str, Pair)> {
    let first = FILES.iter().filter(move |file| file.version == version && file.index == 0);
    first.filter_map(|file| Some((file.name, file.binding.pair?)))
}

/// The files that a write to `file` changes as well.
pub fn changes(version: Version, file: &str) -> &'static [&'static str] {
    files(version, file).map(|file| file.binding.changes).find(|changes| !changes.is_empty()).unwrap_or(&[])
}

/// The files whose values wait while `file` has this text: an idle group takes no weight.
pub fn suspends(version: Version, file: &str, text: &str) -> &'static [&'static str] {
    let is_last = || turn(version, file, text).stage == Stage::Deny;
    Some(changes(version, file)).filter(|files| !files.is_empty() && is_last()).unwrap_or(&[])
}

/// Does a write to another file of the group change this one as well?
pub fn is_changed_by_others(version: Version, file: &str) -> bool {
    FILES.iter().any(|other| other.version == version && other.binding.changes.contains(&file))
}

/// What of a file's content can be written to it: without the counters that some show beside their value.
pub fn as_written(version: Version, file: &str, text: String) -> String {
    let codec = files(version, file).next().map(|file| file.binding.codec);
    let Some(Codec::FlagInStat(key)) = codec else { return text };
    let value = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' '));
    value.map_or_else(|| text.clone(), |value| value.trim().to_owned())
}

/// The file with the use that a limit in `file` bounds and that has to fall before the limit can.
pub fn usage(version: Version, file: &str) -> Option<&'static str> {
    files(version, file).filter(|file| file.index == 0).find_map(|file| file.binding.usage)
}

/// The property of a systemd unit that means the same as `file` of the unit's v2 group.
pub fn unit_property(file: &str) -> Option<UnitProperty> {
    files(Version::V2, file).filter(|file| file.index == 0).find_map(|file| file.binding.unit_property)
}

/// Which files of a group its admin gets.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum AdminFiles {
    /// Those whose writes change nothing for other groups.
    #[default]
    Own,
    /// Those that divide what the group above has, too: that group is the same admin's.
    Beside,
    /// All, as libcgroup gives them.
    Every,
}

impl AdminFiles {
    /// Is the file, which takes no tasks, among them? One that the table does not know may do anything.
    pub fn has(self, version: Version, file: &str) -> bool {
        match (self, reach(version, file)) {
            // these two, which are in v1's root groups only, libcgroup leaves as well
            (AdminFiles::Every, _) => !matches!(file, "release_agent" | "cgroup.sane_behavior"),
            (_, Some(Reach::Own)) => true,
            (AdminFiles::Beside, Some(Reach::Beside(_))) => true,
            (AdminFiles::Own | AdminFiles::Beside, _) => false,
        }
    }
}

/// Whose resources a write to `file` changes; `None`: the table has no such file.
pub fn reach(version: Version, file: &str) -> Option<Reach> {
    let known = |file: &str| REACH.get(&(version, file)).copied();
    known(file).or_else(|| known(&names::any_size(file)))
}

/// Does the file hold a line for each device or resource?
pub fn is_by_key(file: &str) -> bool {
    BY_KEY.iter().any(|known| known.name == file)
}

/// Does a line for a device leave what it does not name as it is?
pub fn adds_to_line(file: &str) -> bool {
    BY_KEY.iter().any(|known| known.name == file && known.binding.codec == Codec::DeviceKeys)
}

/// Does the file hold a quota and its period, of which a write may name the quota alone? Texts of it are a [`crate::CpuMax`].
pub fn has_period(file: &str) -> bool {
    FILES.iter().any(|known| known.name == file && known.binding.codec == Codec::CpuMax)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_by_device_in_one_file_add_to_each_other() {
        assert!(["io.max", "io.latency"].into_iter().all(adds_to_line));
        for file in ["blkio.throttle.read_bps_device", "io.weight", "rdma.max", "memory.max"] {
            assert!(!adds_to_line(file), "{file}");
        }
    }

    #[test]
    fn only_an_idle_group_has_no_weight() {
        for file in FILES.iter() {
            for text in ["0", "1", "root", "member"] {
                let expected = usize::from(file.name == "cpu.idle" && text != "0");
                assert_eq!(suspends(file.version, file.name, text).len(), expected, "{} {text}", file.name);
            }
        }
    }

    #[test]
    fn what_takes_from_other_groups_is_known_by_its_file() {
        for (version, file) in [
            (Version::V1, "cpu.shares"),
            (Version::V1, "cpu.rt_runtime_us"),
            (Version::V1, "cpuset.cpus"),
            (Version::V1, "cpuset.cpu_exclusive"),
            (Version::V1, "cpuset.mem_exclusive"),
            (Version::V1, "blkio.weight_device"),
            (Version::V2, "cpu.weight.nice"),
            (Version::V2, "cpuset.cpus"),
            (Version::V2, "cpuset.cpus.partition"),
            (Version::V2, "cpuset.cpus.exclusive"),
            (Version::V2, "memory.min"),
            (Version::V2, "memory.low"),
            (Version::V2, "io.weight"),
            (Version::V2, "io.latency"),
            (Version::V2, "cgroup.type"),
        ] {
            assert!(matches!(reach(version, file), Some(Reach::Beside(_))), "{file}");
        }
        for (version, file) in [
            (Version::V1, "cpuset.sched_load_balance"),
            (Version::V1, "net_cls.classid"),
            (Version::V1, "release_agent"),
            (Version::V1, "notify_on_release"),
            (Version::V1, "blkio.prio.class"),
            (Version::V2, "io.cost.qos"),
            (Version::V2, "io.prio.class"),
        ] {
            assert!(matches!(reach(version, file), Some(Reach::Machine(_))), "{file}");
        }
        for (version, file) in [
            (Version::V1, "memory.limit_in_bytes"),
            (Version::V1, "cpu.cfs_quota_us"),
            (Version::V1, "hugetlb.2MB.limit_in_bytes"),
            (Version::V2, "hugetlb.1GB.max"),
            (Version::V2, "cpu.max"),
            (Version::V2, "cgroup.subtree_control"),
            (Version::V2, "memory.max"),
            (Version::V2, "cpuset.mems"),
        ] {
            assert_eq!(reach(version, file), Some(Reach::Own), "{file}");
        }
        assert_eq!(reach(Version::V2, "cpu.shares"), None);
    }

    #[test]
    fn every_file_that_a_row_names_is_one_of_the_table() {
        for file in FILES.iter() {
            let known = |name: &str| {
                crate::lookup(name).is_some_and(|found| found.side(file.version).binding().is_some())
            };
            let named = file.binding.changes.iter().copied().chain(file.binding.usage);
            let named = named.chain(file.binding.pair.map(|pair| pair.other));
            assert_eq!(named.filter(|name| !known(name)).collect::<Vec<_>>(), [""; 0], "{}", file.name);
            assert!(file.binding.initial.len() <= file.binding.files.len(), "{}", file.name);
        }
    }
}
