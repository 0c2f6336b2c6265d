//! What was requested of groups by what is applied, how far they differ from it, and whether the kernel keeps their partitions
//! valid. Reads only.

use std::{
    collections::{HashMap, HashSet},
    time::SystemTime,
};

use apply::{Drift, GroupStatus, RangeNumbers, SettingStatus};
use kernel::{GroupName, Host};
use layout::UnitName;
use settings::{Controller, Value, Version};
use units::Limit;

use super::{Bounds, Family, Writer, families};

const QUOTA: &str = "cpu.max";

/// What is known of groups beside their figures, at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Desired {
    /// When it was looked at.
    pub at: SystemTime,
    /// The groups that something in effect was requested of, by name.
    pub groups: Vec<DesiredGroup>,
}

/// What was requested of one group.
#[derive(Debug, Clone, PartialEq)]
pub struct DesiredGroup {
    /// The group.
    pub group: String,
    /// The unit of systemd that it is, or the template of the units that it stands for.
    pub unit: Option<String>,
    /// CPUs: the least of its quota and of its CPUs.
    pub cpus: Option<Limit<f64>>,
    /// The least and the most CPUs, if they change with its load.
    pub elastic: Option<(usize, usize)>,
    /// Its quota in CPUs with the least and the most, if that changes with its load.
    pub quota: Option<RangeNumbers>,
    /// Bytes of memory.
    pub memory: Option<Limit<u64>>,
    /// Tasks.
    pub pids: Option<Limit<u64>>,
    /// How many values, owners and directories differ.
    pub drifts: usize,
}

/// A group that is to be a partition, as the kernel has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partition {
    /// The group.
    pub group: String,
    /// `root` or `isolated`.
    pub kind: String,
    /// Why it is invalid, in the kernel's words; `None` if it is valid.
    pub reason: Option<String>,
}

impl Desired {
    /// From the answer of [`apply::status`]; `counts`: is a difference to be counted?
    pub fn of(statuses: &[GroupStatus], counts: impl Fn(&str, &Drift) -> bool) -> Desired {
        let one = |status: &GroupStatus| {
            let requested = Requested::of(&status.settings);
            DesiredGroup {
                group: status.group.clone(),
                unit: status.unit.as_ref().map(|unit| unit.name.clone()),
                cpus: requested.cpus(),
                elastic: status.elastic.as_ref().map(|bounds| (bounds.min, bounds.max)),
                quota: status.ranges.iter().find(|range| range.setting == QUOTA).map(|range| range.numbers),
                memory: requested.value("memory.max").and_then(|value| match value {
                    Value::Bytes(limit) => Some(limit.map(|bytes| bytes.0)),
                    _ => None,
                }),
                pids: requested.value("pids.max").and_then(|value| match value {
                    Value::Count(limit) => Some(limit),
                    _ => None,
                }),
                drifts: status.drift.iter().filter(|drift| counts(&status.group, drift)).count(),
            }
        };
        Desired { at: SystemTime::now(), groups: statuses.iter().map(one).collect() }
    }

    /// Its families.
    pub fn write(&self, bounds: Bounds, to: &mut Writer<'_>) {
        let groups = &self.groups[..self.groups.len().min(bounds.groups)];
        let limits = |family: &Family, to: &mut Writer<'_>, of: fn(&DesiredGroup) -> Option<Limit<f64>>| {
            let requested = |actual: &DesiredGroup| Some((actual.group.clone(), of(actual)?));
            let requested: Vec<_> = groups.iter().filter_map(requested).collect();
            if !requested.is_empty() {
                to.begin(family);
            }
            for (group, limit) in requested {
                match limit {
                    Limit::Max => to.sample(&[("group", &group)], "+Inf"),
                    Limit::At(number) => to.sample(&[("group", &group)], number),
                }
            }
        };
        limits(&families::REQUESTED_CPUS, to, |actual| actual.cpus);
        limits(&families::ELASTIC_MIN, to, |actual| actual.elastic.map(|(min, _)| Limit::At(min as f64)));
        limits(&families::ELASTIC_MAX, to, |actual| actual.elastic.map(|(_, max)| Limit::At(max as f64)));
        limits(&families::ELASTIC_QUOTA, to, |actual| actual.quota?.now.map(Limit::At));
        limits(&families::ELASTIC_QUOTA_MIN, to, |actual| Some(Limit::At(actual.quota?.min)));
        limits(&families::ELASTIC_QUOTA_MAX, to, |actual| Some(Limit::At(actual.quota?.max)));
        limits(&families::REQUESTED_MEMORY, to, |actual| {
            actual.memory.map(|limit| limit.map(|bytes| bytes as f64))
        });
        limits(&families::REQUESTED_PIDS, to, |actual| {
            actual.pids.map(|limit| limit.map(|count| count as f64))
        });
        if !groups.is_empty() {
            to.begin(&families::DRIFTS);
        }
        for actual in groups {
            to.sample(&[("group", &actual.group)], actual.drifts);
        }
        let at = self.at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        to.one(&families::COMPARED_TIMESTAMP, at.as_secs_f64());
    }
}

/// The rows of a sample that are units of the layout or in one, with the names that the layout has for them.
#[derive(Debug, Default)]
pub struct InUnits<'r> {
    rows: Vec<(&'r str, Name<'r>)>,
}

/// The unit, the group's name as the layout would have it, and how far below the unit it is.
type Name<'r> = (&'r str, String, usize);

impl<'r> InUnits<'r> {
    /// Of these rows.
    pub fn of(desired: Option<&Desired>, rows: &'r [String]) -> InUnits<'r> {
        let of_unit = |group: &DesiredGroup| {
            let unit = UnitName::of_file_name(group.unit.as_deref()?).ok()?;
            Some((unit, group.group.clone()))
        };
        let groups = desired.into_iter().flat_map(|desired| &desired.groups);
        let mut units: Vec<(UnitName, String)> = groups.filter_map(of_unit).collect();
        // a unit's own group before that of its template
        units.sort_by_key(|(unit, _)| unit.is_pattern());
        // rows in one unit have it in common
        let mut known: HashMap<&str, Option<usize>> = HashMap::new();
        let mut which = |part: &'r str| {
            *known.entry(part).or_insert_with(|| units.iter().position(|(unit, _)| unit.fits(part)))
        };
        let named = rows.iter().filter(|_| !units.is_empty()).filter_map(|row| {
            let (unit, index, inner) = place(row, &mut which)?;
            let of_layout = [units[index].1.as_str()].into_iter().chain(inner.iter().copied());
            Some((row.as_str(), (unit, of_layout.collect::<Vec<_>>().join("/"), inner.len())))
        });
        InUnits { rows: named.collect() }
    }

    /// The units, and the groups directly in them: what is deeper is of the unit's own making.
    pub fn are(&self) -> HashSet<&'r str> {
        self.rows.iter().filter(|(_, (_, _, depth))| *depth < 2).map(|(row, _)| *row).collect()
    }

    /// Their family.
    pub fn write(&self, to: &mut Writer<'_>) {
        let shown: Vec<_> = self.rows.iter().filter(|(row, _)| !to.hidden.contains(*row)).collect();
        if !shown.is_empty() {
            to.begin(&families::LAYOUT_GROUP);
        }
        for (group, (unit, of_layout, _)) in shown {
            to.sample(&[("group", group), ("layout_group", of_layout), ("unit", unit)], 1);
        }
    }
}

/// Of a group by its name from the root: its unit of the layout, by name and by what `which` says of it, and the parts below.
fn place<'r>(
    row: &'r str,
    which: &mut dyn FnMut(&'r str) -> Option<usize>,
) -> Option<(&'r str, usize, Vec<&'r str>)> {
    let parts: Vec<&str> = row.strip_prefix('/')?.split('/').collect();
    // what is below the first that is no slice has names of its own user's
    let slices = parts.iter().take_while(|part| part.ends_with(".slice")).count();
    let mut levels = (0..parts.len().min(slices + 1)).rev();
    levels.find_map(|level| Some((parts[level], which(parts[level])?, parts[level + 1..].to_vec())))
}

/// What was written to a group's files.
struct Requested<'s> {
    files: HashMap<&'s str, &'s str>,
}

impl<'s> Requested<'s> {
    fn of(settings: &'s [SettingStatus]) -> Requested<'s> {
        let name = |one: &'s SettingStatus| Some((one.file.file_name()?.to_str()?, one.requested.as_str()));
        Requested { files: settings.iter().filter_map(name).collect() }
    }

    /// A setting as either version's files were to have it.
    fn value(&self, name: &str) -> Option<Value> {
        let found = settings::lookup(name)?;
        let text = |file: &str| match self.files.get(file) {
            Some(text) => Some((*text).to_owned()),
            // a quota alone is one of the kernel's period
            None if file == "cpu.cfs_period_us" => Some("100000".to_owned()),
            None => None,
        };
        [Version::V1, Version::V2].into_iter().find_map(|version| found.decode(version, &text).ok())
    }

    fn cpus(&self) -> Option<Limit<f64>> {
        let set = match self.value("cpuset.cpus") {
            Some(Value::Cpus(cpus)) if !cpus.is_empty() => Some(Limit::At(cpus.len() as f64)),
            _ => None,
        };
        let quota = match self.value(QUOTA) {
            Some(Value::CpuMax(max)) => max.quota.and_then(|quota| match (quota, max.period) {
                (Limit::Max, _) => Some(Limit::Max),
                (Limit::At(quota), Some(period)) if period.0 > 0 => {
                    Some(Limit::At(quota.0 as f64 / period.0 as f64))
                }
                _ => None,
            }),
            _ => None,
        };
        match (set, quota) {
            (Some(Limit::At(set)), Some(Limit::At(quota))) => Some(Limit::At(set.min(quota))),
            (set, quota) => set.or(quota),
        }
    }
}

impl Partition {
    /// Those of these groups that are to be partitions; none on v1, which has no such thing.
    pub fn all(host: &Host, groups: &[String]) -> Vec<Partition> {
        let at = host.hierarchy_of(Controller::Cpuset).filter(|at| at.version == Version::V2);
        let one = |name: &String| {
            let group = GroupName::new(name).ok()?;
            let seat = host.seat_in(at?, &group);
            Partition::of(name, &host.read(&seat, &group, "cpuset.cpus.partition").ok()?)
        };
        groups.iter().filter_map(one).collect()
    }

    /// `root`, `isolated invalid (Cpu list in cpuset.cpus is empty)`; `None` for a member.
    fn of(group: &str, text: &str) -> Option<Partition> {
        let (kind, reason) = settings::partition(text);
        let is_one = matches!(kind, "root" | "isolated");
        is_one.then(|| Partition {
            group: group.to_owned(),
            kind: kind.to_owned(),
            reason: reason.map(str::to_owned),
        })
    }

    /// Their family.
    pub fn write(all: &[Partition], bounds: Bounds, to: &mut Writer<'_>) {
        if !all.is_empty() {
            to.begin(&families::PARTITION_VALID);
        }
        for Partition { group, kind, reason } in all.iter().take(bounds.groups) {
            let valid = u8::from(reason.is_none());
            let reason = reason.as_deref().unwrap_or_default();
            to.sample(&[("group", group), ("type", kind), ("reason", reason)], valid);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partitions_reason_is_the_kernels() {
        let of = |text| Partition::of("g", text).map(|one| (one.kind, one.reason));
        assert_eq!(of("member\n"), None);
        assert_eq!(of("root\n"), Some(("root".to_owned(), None)));
        let why = "Parent is not a partition root".to_owned();
        let text = format!("isolated invalid ({why})\n");
        assert_eq!(of(&text), Some(("isolated".to_owned(), Some(why))));
        assert_eq!(of("root invalid\n"), Some(("root".to_owned(), Some(String::new()))));
    }

    #[test]
    fn a_unit_has_the_layouts_name_with_what_is_below() {
        let group = |(unit, group): (&str, &str)| DesiredGroup {
            group: group.to_owned(),
            unit: Some(unit.to_owned()),
            cpus: None,
            elastic: None,
            quota: None,
            memory: None,
            pids: None,
            drifts: 0,
        };
        let units = [
            ("db@.service", "db"),
            ("a.slice", "all"),
            ("user-.slice", "users/each"),
            ("db@1.service", "first"),
        ];
        let desired = Desired { at: SystemTime::UNIX_EPOCH, groups: units.map(group).into() };
        for (row, expected) in [
            ("/system.slice/db@1.service", Some(("db@1.service", "first", 0))),
            ("/system.slice/db@2.service/main/x", Some(("db@2.service", "db/main/x", 2))),
            ("/user.slice/user-7.slice", Some(("user-7.slice", "users/each", 0))),
            ("/system.slice/cron.service", None),
            ("/a.slice/a-b.slice/db@1.service", Some(("db@1.service", "first", 0))),
            ("/a.slice/a-b.slice/x.service", Some(("a.slice", "all/a-b.slice/x.service", 2))),
            // a group that somebody named so
            ("/system.slice/x.service/db@1.service", None),
            // one of ours, of that name
            ("db@1.service", None),
        ] {
            let rows = [row.to_owned()];
            let found = InUnits::of(Some(&desired), &rows);
            let found =
                found.rows.iter().map(|(row, (unit, name, depth))| (*row, *unit, name.as_str(), *depth));
            let expected = expected.map(|(unit, name, depth)| (row, unit, name, depth));
            assert_eq!(found.collect::<Vec<_>>(), expected.into_iter().collect::<Vec<_>>());
        }
    }

    #[test]
    fn what_was_requested_is_read_from_either_versions_files() {
        let requested = |files: &[(&str, &str)]| {
            let settings: Vec<SettingStatus> = files
                .iter()
                .map(|(file, requested)| SettingStatus {
                    file: format!("/g/{file}").into(),
                    requested: (*requested).to_owned(),
                    actual: None,
                    as_requested: false,
                })
                .collect();
            let requested = Requested::of(&settings);
            (requested.cpus(), requested.value("memory.max"))
        };
        let half_and_two = [("cpuset.cpus", "0-3"), ("cpu.max", "150000 100000"), ("memory.max", "max")];
        assert_eq!(requested(&half_and_two), (Some(Limit::At(1.5)), Some(Value::Bytes(Limit::Max))));
        let of_v1 = [("cpuset.cpus", "0,2"), ("memory.limit_in_bytes", "4096"), ("cpu.cfs_quota_us", "-1")];
        let bytes = Value::Bytes(Limit::At(units::Bytes(4096)));
        assert_eq!(requested(&of_v1), (Some(Limit::At(2.0)), Some(bytes)));
        assert_eq!(requested(&[("cpu.cfs_quota_us", "50000")]).0, Some(Limit::At(0.5)));
        assert_eq!(requested(&[]), (None, None));
    }
}
