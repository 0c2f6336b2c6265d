//! What is seen in the hierarchies: where they are, what they hold, which files a group has, partitions and
//! exclusive sets, real-time budgets, and other owners' subtrees. Only [`made_child`] writes.

use std::collections::BTreeMap;

use settings::{Controller, Version};
use topology::facts::{
    Base, Child, Exclusive, GroupBudget, Mounted, Owned, Partition, RealtimeRoot, Systemd, UNIT_PATH, V1, V2,
};
use units::{CpuSet, Limit, Micros, group_path};

use super::Outside;
use crate::{GroupName, Hierarchy, Kernel, Owner};

/// The list that a group may have CPUs from.
const CPUS: &str = "cpuset.cpus";

/// The mounted hierarchies with the kernel that they were read from.
pub(super) struct Hierarchies<'k> {
    kernel: &'k dyn Kernel,
    all: Vec<Hierarchy>,
    systemd: bool,
}

impl<'k> Hierarchies<'k> {
    pub(super) fn read(kernel: &'k dyn Kernel) -> Self {
        let systemd = Outside(kernel).text("/proc/1/comm").is_some_and(|comm| comm == "systemd");
        Hierarchies { kernel, all: kernel.hierarchies().unwrap_or_default(), systemd }
    }

    fn unified(&self) -> Option<&Hierarchy> {
        self.all.iter().find(|at| at.version == Version::V2)
    }

    fn v1_of(&self, controller: Controller) -> Option<&Hierarchy> {
        self.all.iter().find(|at| at.version == Version::V1 && at.controllers.contains(&controller))
    }

    fn text(&self, at: &Hierarchy, group: &str, file: &str) -> Option<String> {
        Some(self.kernel.read(at, group, file).ok()?.trim().to_owned())
    }

    fn words(&self, at: &Hierarchy, group: &str, file: &str) -> Option<Vec<String>> {
        Some(self.text(at, group, file)?.split_whitespace().map(str::to_owned).collect())
    }

    fn cpus(&self, at: &Hierarchy, group: &str, file: &str) -> CpuSet {
        self.text(at, group, file).and_then(|list| list.parse().ok()).unwrap_or_default()
    }

    /// The paths of a group's children.
    fn below(&self, at: &Hierarchy, group: &str) -> Vec<String> {
        let names = self.kernel.children(at, group).unwrap_or_default();
        names.iter().map(|name| group_path::join(group, name)).collect()
    }

    fn mounted(&self, at: &Hierarchy) -> Mounted {
        let base = crate::base(self.kernel, at, self.systemd);
        // the unit that is not running yet is systemd's to make
        let writable = self.kernel.writable(at, base.path()) || (base == Base::Unit && !at.read_only);
        Mounted { mount: at.mount.clone(), root: at.root.clone(), read_only: at.read_only, base, writable }
    }

    pub(super) fn v1(&self) -> Vec<V1> {
        let one = |at: &Hierarchy| V1 {
            at: self.mounted(at),
            controllers: at
                .controllers
                .iter()
                .filter_map(|c| c.name(Version::V1))
                .map(str::to_owned)
                .collect(),
            name: at.name.clone(),
            memsw: at
                .controllers
                .contains(&Controller::Memory)
                .then(|| self.text(at, "", "memory.memsw.limit_in_bytes").is_some()),
        };
        self.all.iter().filter(|at| at.version == Version::V1).map(one).collect()
    }

    pub(super) fn v2(&self, proc: &Outside<'_>) -> Option<V2> {
        let at = self.unified()?;
        let mounted = self.mounted(at);
        Some(V2 {
            options: options(&proc.text("/proc/self/mountinfo").unwrap_or_default(), at),
            controllers: self.words(at, "", "cgroup.controllers").unwrap_or_default(),
            enabled: self.words(at, "", "cgroup.subtree_control").unwrap_or_default(),
            delegated: self.words(at, mounted.base.path(), "cgroup.controllers"),
            child: self.child(at),
            partitions: self.partitions(at),
            iocost: self.text(at, "", "io.cost.qos").is_some(),
            at: mounted,
        })
    }

    /// In a container the mount's root is such a group itself: only the real root lacks `cgroup.type`.
    fn child(&self, at: &Hierarchy) -> Option<Child> {
        let files = |group: String| Some(Child { files: self.kernel.files(at, &group).ok()?, group });
        let own = files(String::new()).filter(|child| child.files.iter().any(|file| file == "cgroup.type"));
        own.or_else(|| files(self.below(at, "").into_iter().next()?))
    }

    /// Device numbers that iocost is switched on for.
    pub(super) fn iocost(&self) -> Vec<String> {
        let text = self.unified().and_then(|at| self.text(at, "", "io.cost.qos")).unwrap_or_default();
        let on =
            |line: &str| line.contains("enable=1").then(|| line.split(' ').next().unwrap_or("").to_owned());
        text.lines().filter_map(on).collect()
    }

    /// Only groups whose parent hands out cpuset can be partitions, so the walk ends where that does.
    fn partitions(&self, at: &Hierarchy) -> Vec<Partition> {
        let mut found = Vec::new();
        let mut left = vec![String::new()];
        while let Some(parent) = left.pop() {
            let enabled = self.words(at, &parent, "cgroup.subtree_control").unwrap_or_default();
            if !enabled.iter().any(|name| name == "cpuset") {
                continue;
            }
            let children = self.below(at, &parent);
            found.extend(children.iter().filter_map(|group| self.partition(at, group, &children)));
            left.extend(children);
        }
        found.sort_by(|a, b| a.group.cmp(&b.group));
        found
    }

    fn partition(&self, at: &Hierarchy, group: &str, siblings: &[String]) -> Option<Partition> {
        let state = self.text(at, group, "cpuset.cpus.partition").filter(|state| state != "member")?;
        let (kind, invalid) = settings::partition(&state);
        let invalid = invalid.map(str::to_owned);
        let exclusive = self.cpus(at, group, "cpuset.cpus.exclusive");
        let cpus = if exclusive.is_empty() { self.cpus(at, group, CPUS) } else { exclusive };
        let overlap = |sibling: &String| {
            let used = self.cpus(at, sibling, CPUS);
            (sibling != group && !used.is_disjoint(&cpus)).then(|| (format!("/{sibling}"), used))
        };
        let overlaps = match invalid {
            Some(_) => siblings.iter().filter_map(overlap).collect(),
            None => Vec::new(),
        };
        Some(Partition { group: format!("/{group}"), kind: kind.to_owned(), invalid, cpus, overlaps })
    }

    /// A v1 group can be exclusive only if its parent is, so the walk ends at the first that is not.
    pub(super) fn exclusive(&self) -> Vec<Exclusive> {
        let Some(at) = self.v1_of(Controller::Cpuset) else { return Vec::new() };
        let mut found = Vec::new();
        let mut left = self.below(at, "");
        while let Some(group) = left.pop() {
            if self.text(at, &group, "cpuset.cpu_exclusive").as_deref() == Some("1") {
                left.extend(self.below(at, &group));
                let cpus = self.cpus(at, &group, CPUS);
                found.push(Exclusive { group: format!("/{group}"), cpus });
            }
        }
        found.sort_by(|a, b| a.group.cmp(&b.group));
        found
    }

    pub(super) fn in_cpuset_root(&self) -> Option<usize> {
        let at = self.v1_of(Controller::Cpuset)?;
        let pids = self.words(at, "", "cgroup.procs")?;
        let own = |pid: &&String| {
            pid.parse().is_ok_and(|pid| self.kernel.process(pid).is_ok_and(|process| !process.kernel_thread))
        };
        Some(pids.iter().filter(own).count())
    }

    pub(super) fn systemd(&self, proc: &Outside<'_>) -> Option<Systemd> {
        self.systemd.then(|| Systemd {
            version: proc.text("/proc/1/maps").as_deref().and_then(systemd_version),
            unit: self.all.iter().any(|at| self.kernel.exists(at, UNIT_PATH)),
        })
    }

    pub(super) fn owned(&self) -> Vec<Owned> {
        let mut by_owner: BTreeMap<&'static str, Vec<String>> = BTreeMap::new();
        for name in self.all.iter().flat_map(|at| self.kernel.children(at, "").unwrap_or_default()) {
            let owner = GroupName::new(&format!("/{name}")).ok().as_ref().and_then(Owner::of);
            // the slice of our own unit is systemd's, and there because of us
            if let Some(owner) = owner.filter(|_| !UNIT_PATH.starts_with(&format!("{name}/"))) {
                let groups = by_owner.entry(owner.name()).or_default();
                if !groups.contains(&name) {
                    groups.push(name);
                }
            }
        }
        by_owner.into_iter().map(|(owner, groups)| Owned { owner: owner.to_owned(), groups }).collect()
    }

    /// v1's budgets; absent unless the kernel was built with RT_GROUP_SCHED.
    pub(super) fn realtime(&self) -> Option<RealtimeRoot> {
        let at = self.v1_of(Controller::Cpu)?;
        let budget = |group: &str| {
            let runtime: i64 = self.text(at, group, "cpu.rt_runtime_us")?.parse().ok()?;
            let period = self.text(at, group, "cpu.rt_period_us")?.parse().ok()?;
            Some((u64::try_from(runtime).map_or(Limit::Max, |us| Limit::At(Micros(us))), Micros(period)))
        };
        let (runtime, period) = budget("")?;
        let child_budget = |group: String| {
            let (runtime, period) = budget(&group).filter(|(runtime, _)| *runtime != Limit::At(Micros(0)))?;
            Some(GroupBudget { group: format!("/{group}"), runtime, period })
        };
        Some(RealtimeRoot {
            runtime,
            period,
            held: self.below(at, "").into_iter().filter_map(child_budget).collect(),
        })
    }
}

/// The files of a group that this makes in the v2 root and removes again: without a process and a child it
/// takes nothing from anybody.
pub(super) fn made_child(kernel: &dyn Kernel) -> Option<Child> {
    let hierarchies = kernel.hierarchies().ok()?;
    let at = hierarchies.iter().find(|at| at.version == Version::V2)?;
    let group = format!("ringfence-probe-{}", kernel.caller().0);
    kernel.mkdir(at, &group).ok()?;
    let files = kernel.files(at, &group);
    let removed = kernel.rmdir(at, &group);
    Some(Child { files: files.ok()?, group }).filter(|_| removed.is_ok())
}

/// The super block's options of the v2 mount in a mountinfo text.
fn options(mountinfo: &str, at: &Hierarchy) -> Vec<String> {
    let mount = at.mount.to_string_lossy();
    let here = |line: &str| {
        let (before, after) = line.split_once(" - cgroup2 ")?;
        (before.split(' ').nth(4) == Some(&*mount)).then(|| after.split(' ').nth(1).map(str::to_owned))?
    };
    let options = mountinfo.lines().find_map(here).unwrap_or_default();
    options.split(',').filter(|option| !matches!(*option, "rw" | "ro" | "")).map(str::to_owned).collect()
}

/// `…/libsystemd-shared-252.so` or `…/libsystemd-shared-255.4-1ubuntu8.so` in `/proc/1/maps`.
fn systemd_version(maps: &str) -> Option<String> {
    let (_, rest) = maps.split_once("libsystemd-shared-")?;
    let end = rest.find(|c: char| !c.is_ascii_digit())?;
    (end > 0).then(|| rest[..end].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn systemds_version_is_read_from_the_library_it_has_mapped() {
        let maps = |name: &str| format!("7f00-7f10 r--p 0 fe:01 12  /usr/lib/systemd/{name}\n7f20-7f30 …");
        assert_eq!(systemd_version(&maps("libsystemd-shared-252.so")).as_deref(), Some("252"));
        assert_eq!(systemd_version(&maps("libsystemd-shared-255.4-1ubuntu8.so")).as_deref(), Some("255"));
        assert_eq!(systemd_version(&maps("libc.so.6")), None);
    }
}
