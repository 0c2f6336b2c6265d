//! CPUs of a group's own (`cpuset.cpus.partition`), for groups that are below one of the experiment's: what the group
//! above needs for it, which differs between v1 and v2, and what is not possible is reported. Pure but for one look at a file.

use std::collections::BTreeMap;

use kernel::Host;
use plan::CPUS;
use settings::{Controller, Version};
use units::CpuSet;

use crate::{Error, groups::Groups};

/// Group → settings with their values filled in.
pub(crate) type Filled = BTreeMap<String, Vec<(String, String)>>;

const PARTITION: [&str; 2] = ["cpuset.cpus.partition", "cpuset.cpu_exclusive"];
const EXCLUSIVE: &str = "cpuset.cpus.exclusive";

/// What keeps everything outside of the experiment off CPUs that are a group's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Closed {
    /// No group has CPUs of its own.
    NotRequested,
    /// The kernel.
    ByKernel,
    /// Nothing: v1's `cpu_exclusive` keeps groups off, but no task of the groups above.
    NotOnV1,
    /// Nothing: v1 refuses it, in these words, as a rule because other groups have the same CPUs.
    Refused(String),
    /// Nothing: before Linux 6.7 there is no partition below another group.
    PartitionUnavailable,
}

impl Closed {
    /// In words; `None` if there is nothing to report.
    pub fn why_open(&self) -> Option<String> {
        let why = match self {
            Closed::NotRequested | Closed::ByKernel => return None,
            Closed::NotOnV1 => {
                "cgroup v1's cpu_exclusive keeps other groups off a CPU, but not programs in none"
            }
            Closed::Refused(why) => return Some(format!("cgroup v1 refuses cpu_exclusive: {why}")),
            Closed::PartitionUnavailable => {
                "this kernel makes no partition below another group (since Linux 6.7), so a cpuset alone divides"
            }
        };
        Some(why.to_owned())
    }
}

/// Has a group CPUs of its own by these settings?
fn owns(settings: &[(String, String)]) -> bool {
    let member = |value: &str| matches!(value.trim(), "member" | "0" | "off");
    settings.iter().any(|(name, value)| PARTITION.contains(&name.as_str()) && !member(value))
}

/// Adds to the settings what the kernel needs, and gives the group above its part, which is put back with the run's.
pub(crate) fn prepare(host: &Host, groups: &mut Groups, wanted: &mut Filled) -> Result<Closed, Error> {
    let mut all = CpuSet::new();
    for settings in wanted.values().filter(|settings| owns(settings)) {
        for (_, value) in settings.iter().filter(|(name, _)| name == CPUS) {
            let cpus: CpuSet =
                value.parse().map_err(|error: units::ListError| Error::cannot(error.to_string()))?;
            all = all.union(&cpus);
        }
    }
    if all.is_empty() {
        return Ok(Closed::NotRequested);
    }
    let seat = host.seat(&groups.parent()?, Controller::Cpuset)?;
    if seat.at.version == Version::V1 {
        let Err(error) = groups.set_parent(host, &[(PARTITION[0].to_owned(), "root".to_owned())]) else {
            return Ok(Closed::NotOnV1);
        };
        without(wanted);
        return Ok(Closed::Refused(error.to_string().lines().next().unwrap_or_default().to_owned()));
    }
    if host.kernel().read(seat.at, &seat.path, EXCLUSIVE).is_err() {
        without(wanted);
        return Ok(Closed::PartitionUnavailable);
    }
    groups.set_parent(host, &[(EXCLUSIVE.to_owned(), all.to_string())])?;
    for settings in wanted.values_mut().filter(|settings| owns(settings)) {
        let cpus = settings.iter().find(|(name, _)| name == CPUS).map(|(_, cpus)| cpus.clone());
        if let (Some(cpus), false) = (cpus, settings.iter().any(|(name, _)| name == EXCLUSIVE)) {
            settings.push((EXCLUSIVE.to_owned(), cpus));
        }
    }
    Ok(Closed::ByKernel)
}

/// The CPUs alone.
fn without(wanted: &mut Filled) {
    let of_cpus = |(name, _): &(String, String)| !PARTITION.contains(&name.as_str());
    wanted.values_mut().for_each(|settings| settings.retain(of_cpus));
}

/// In an order that the kernel takes: groups that give up CPUs come before those that want them alone.
pub(crate) fn in_order(wanted: &Filled) -> Vec<(&String, &Vec<(String, String)>)> {
    let mut order: Vec<_> = wanted.iter().filter(|(_, settings)| !settings.is_empty()).collect();
    order.sort_by_key(|(_, settings)| owns(settings));
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(rows: &[(&str, &[(&str, &str)])]) -> Filled {
        let settings = |rows: &[(&str, &str)]| {
            rows.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        rows.iter().map(|(group, rows)| ((*group).to_owned(), settings(rows))).collect()
    }

    #[test]
    fn who_wants_cpus_alone_comes_behind_those_who_leave_them() {
        let wanted = filled(&[
            ("a", &[("cpuset.cpus", "1"), ("cpuset.cpus.partition", "root")]),
            ("b", &[]),
            ("c", &[("cpuset.cpus", "0"), ("cpuset.cpus.partition", "member")]),
            ("d", &[("cpuset.cpu_exclusive", "0")]),
        ]);
        let order: Vec<&str> = in_order(&wanted).into_iter().map(|(group, _)| group.as_str()).collect();
        assert_eq!(order, ["c", "d", "a"]);
    }
}
