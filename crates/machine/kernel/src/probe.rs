//! What this machine's kernel offers, as it was seen: mounted hierarchies, features, budgets, devices, owners.
//! Nothing is concluded from a version number, and nothing is judged here; `plan::doctor` does that from a
//! recorded [`Facts`] alone. What could not be read is absent, never guessed.

mod groups;
mod machine;
mod trial;
mod writers;

use std::{collections::BTreeMap, path::Path};

use topology::facts::{Caller, Facts, Realtime, listed};
use units::CpuSet;

use crate::{Kernel, Real};

/// Looks at the running kernel, and tries what only a trial shows: whether the controllers that no hierarchy has
/// can be mounted (in a mount namespace of its own, gone when this returns; see [`MountTrial`]), whether
/// clone3(2) starts processes inside a group, and, on a v2 hierarchy without any group, which files a group
/// has: root makes `ringfence-probe-PID`, without processes and children, and removes it at once.
pub fn probe(kernel: &Real) -> Facts {
    let mut facts = seen(kernel);
    if let Some(v2) = facts.v2.as_mut().filter(|v2| v2.child.is_none() && v2.at.writable) {
        v2.child = groups::made_child(kernel);
    }
    facts.clone_into_cgroup = trial::clone_into_cgroup();
    trial::mounts(&mut facts);
    facts
}

/// The part of [`probe`] that only reads, and only through `kernel`.
pub fn seen(kernel: &dyn Kernel) -> Facts {
    let proc = Outside(kernel);
    let release = proc.text("/proc/sys/kernel/osrelease").unwrap_or_default();
    let hierarchies = groups::Hierarchies::read(kernel);
    let disks = machine::disks(&proc, &hierarchies.iocost());
    let exclusive = hierarchies.exclusive();
    Facts {
        proc: proc.exists("/proc/self/status"),
        caller: caller(kernel, &proc),
        boot: boot(&proc.text("/proc/cmdline").unwrap_or_default()),
        config: config(&proc, &release),
        v1: hierarchies.v1(),
        v2: hierarchies.v2(&proc),
        controllers: listed(&proc.text("/proc/cgroups").unwrap_or_default()),
        clone_into_cgroup: None,
        in_cpuset_root: (!exclusive.is_empty()).then(|| hierarchies.in_cpuset_root()).flatten(),
        exclusive,
        systemd: hierarchies.systemd(&proc),
        owned: hierarchies.owned(),
        writers: writers::writers(kernel, &proc),
        realtime: Realtime { root: hierarchies.realtime(), ..machine::realtime(&proc) },
        pressure: machine::pressure(&proc),
        memory: machine::memory(&proc),
        cpus: machine::cpus(&proc),
        disks,
        release,
    }
}

/// Files outside cgroupfs; one that can't be read is absent.
struct Outside<'k>(&'k dyn Kernel);

impl Outside<'_> {
    fn text(&self, path: &str) -> Option<String> {
        Some(self.0.outside(Path::new(path)).ok()?.trim_end().to_owned())
    }

    fn number<N: std::str::FromStr>(&self, path: &str) -> Option<N> {
        self.text(path)?.trim().parse().ok()
    }

    /// A CPU list; the kernel writes `(null)` for one that was never given (`nohz_full`).
    fn cpus(&self, path: &str) -> Option<CpuSet> {
        self.text(path)?.parse().ok()
    }

    fn exists(&self, path: &str) -> bool {
        self.0.outside(Path::new(path)).is_ok()
    }
}

const CAP_SYS_ADMIN: u32 = 21; // linux/capability.h

fn caller(kernel: &dyn Kernel, proc: &Outside<'_>) -> Caller {
    let status = proc.text("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let effective = effective.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    let map = proc.text("/proc/self/uid_map").unwrap_or_default();
    let marks = [("/.dockerenv", "docker"), ("/run/.containerenv", "podman")];
    let mark = marks.iter().find(|(file, _)| proc.exists(file)).map(|(_, name)| (*name).to_owned());
    Caller {
        uid: kernel.caller().1,
        sys_admin: effective & (1 << CAP_SYS_ADMIN) != 0,
        user_namespace: !map.is_empty() && !map.split_whitespace().eq(["0", "0", "4294967295"]),
        pid_namespace: proc.text("/proc/2/comm").is_none_or(|comm| comm != "kthreadd"),
        container: proc.text("/run/systemd/container").filter(|name| !name.is_empty()).or(mark),
    }
}

/// The parameters that bear on groups; others may be secrets, and are nobody's business in a report.
const PARAMETERS: [&str; 24] = [
    "cgroup_disable",
    "cgroup_enable",
    "cgroup_no_v1",
    "cgroup_v1_proc",
    "cgroup_favordynmods",
    "cgroup.memory",
    "default_hugepagesz",
    "hugepages",
    "hugepagesz",
    "irqaffinity",
    "isolcpus",
    "kthread_cpus",
    "maxcpus",
    "nohz_full",
    "nosmt",
    "nr_cpus",
    "numa",
    "numa_balancing",
    "psi",
    "rcu_nocbs",
    "rt_group_sched",
    "swapaccount",
    "systemd.unified_cgroup_hierarchy",
    "systemd.legacy_systemd_cgroup_controller",
];

fn boot(cmdline: &str) -> Vec<String> {
    let known = |word: &&str| PARAMETERS.contains(&word.split('=').next().unwrap_or_default());
    // what follows `--` is for process 1
    cmdline.split_whitespace().take_while(|word| *word != "--").filter(known).map(str::to_owned).collect()
}

/// The build options that a hint depends on.
const OPTIONS: [&str; 14] = [
    "BFQ_GROUP_IOSCHED",
    "BLK_CGROUP_IOCOST",
    "BLK_DEV_THROTTLING",
    "CFS_BANDWIDTH",
    "CGROUP_HUGETLB",
    "CGROUP_MISC",
    "CGROUP_NET_CLASSID",
    "CGROUP_NET_PRIO",
    "CGROUP_RDMA",
    "IOSCHED_BFQ",
    "PSI",
    "PSI_DEFAULT_DISABLED",
    "RT_GROUP_SCHED",
    "RT_GROUP_SCHED_DEFAULT_DISABLED",
];

fn config(proc: &Outside<'_>, release: &str) -> BTreeMap<String, String> {
    let places = [format!("/boot/config-{release}"), format!("/lib/modules/{release}/config")];
    let Some(text) = places.iter().find_map(|path| proc.text(path)) else { return BTreeMap::new() };
    let mut found = BTreeMap::new();
    for line in text.lines() {
        // `CONFIG_PSI=y`, or `# CONFIG_PSI is not set`
        let off = line.strip_prefix("# CONFIG_").and_then(|rest| rest.strip_suffix(" is not set"));
        let on = line.strip_prefix("CONFIG_").and_then(|rest| rest.split_once('='));
        if let Some((name, value)) = on.or_else(|| off.map(|name| (name, "n")))
            && OPTIONS.contains(&name)
        {
            found.insert(name.to_owned(), value.to_owned());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_parameters_that_concern_groups_are_recorded() {
        let boot = boot("quiet psi=1 token=secret isolcpus=2-3 nosmt hugepages=8 -- psi=0");
        assert_eq!(boot, ["psi=1", "isolcpus=2-3", "nosmt", "hugepages=8"]);
    }
}
