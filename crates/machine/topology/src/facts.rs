//! What was seen of a machine and its kernel: mounted hierarchies, features, budgets, devices, owners. Only data:
//! `kernel::probe` looks, and `plan::doctor` judges from a recorded [`Facts`] alone. What could not be read is absent, never
//! guessed, and nothing is concluded from a version number.

mod base;
mod groups;
mod machine;
mod writers;

use std::collections::BTreeMap;

pub use base::{Base, UNIT_NAME, UNIT_PATH, UNIT_SLICE};
pub use groups::{Child, Exclusive, Mounted, Owned, Partition, Systemd, V1, V2};
pub use machine::{Cpus, Disk, GroupBudget, HugePages, Memory, Pressure, Realtime, RealtimeRoot, Swap};
pub use writers::{KnownWriter, SCHED_EXT_STATE, WRITERS, Writer};

/// Everything that was seen. Serialised facts of one machine can be judged on another.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct Facts {
    /// `/proc` is mounted; without it hardly anything can be seen.
    pub proc: bool,
    /// The calling process, and what contains it.
    pub caller: Caller,
    /// The kernel's release (`/proc/sys/kernel/osrelease`); for messages, nothing is inferred from it.
    pub release: String,
    /// Those parameters of `/proc/cmdline` that concern the division of the machine, as they stand there.
    pub boot: Vec<String>,
    /// Options that the kernel says it was built with (`/boot/config-RELEASE`), for hints only: `PSI` = `y`.
    /// Empty if there is no such file.
    pub config: BTreeMap<String, String>,
    /// The mounted v1 hierarchies, in mount order.
    pub v1: Vec<V1>,
    /// The mounted v2 hierarchy.
    pub v2: Option<V2>,
    /// What `/proc/cgroups` lists.
    pub controllers: Vec<ControllerRow>,
    /// Whether clone3(2) knows CLONE_INTO_CGROUP; `None` if that was not tried.
    pub clone_into_cgroup: Option<bool>,
    /// v1 groups below the root with `cpuset.cpu_exclusive`.
    pub exclusive: Vec<Exclusive>,
    /// Processes, other than the kernel's own, in v1 cpuset's root group; counted only if a group is exclusive.
    pub in_cpuset_root: Option<usize>,
    /// systemd, if it is process 1.
    pub systemd: Option<Systemd>,
    /// Top-level groups that another program keeps as it wants them.
    pub owned: Vec<Owned>,
    /// Programs in force that write what we write too.
    pub writers: Vec<Writer>,
    /// Real-time throttling and v1's real-time budgets.
    pub realtime: Realtime,
    /// Pressure stall information.
    pub pressure: Pressure,
    /// Swap, huge pages, NUMA.
    pub memory: Memory,
    /// SMT, isolation, clocks.
    pub cpus: Cpus,
    /// Whole disks that hold something.
    pub disks: Vec<Disk>,
}

/// The calling process.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct Caller {
    /// Effective user.
    pub uid: u32,
    /// `CAP_SYS_ADMIN` is in effect (bit 21 of `CapEff`): without it root can't mount.
    pub sys_admin: bool,
    /// In a user namespace: `/proc/self/uid_map` is not the identity.
    pub user_namespace: bool,
    /// In a PID namespace of its own: process 2 is not the kernel's thread starter.
    pub pid_namespace: bool,
    /// The container program that left its mark here (`docker`, `podman`, what systemd wrote).
    pub container: Option<String>,
}

/// A row of `/proc/cgroups`. It lists what the kernel knows; whether it can be mounted is another matter.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ControllerRow {
    /// v1's name of the controller.
    pub name: String,
    /// The v1 hierarchy that has it; 0 for none.
    pub hierarchy: u32,
    /// Groups in the hierarchy that has it, v2's if none else.
    pub groups: u32,
    /// Not switched off at boot.
    pub enabled: bool,
    /// Whether a v1 mount of it works.
    #[serde(default)]
    pub trial: MountTrial,
}

/// Whether a v1 hierarchy of a controller can be mounted that is mounted on no hierarchy.
///
/// A mount takes the controller from v2 for its duration. So it is never tried for one that v2 has; nor for those
/// whose work every v2 group does without a controller, least of all `perf_event`, which the kernel would take
/// away from groups that use it (`rebind_subsystems`, implicit controllers). A mount that nobody moves a task into
/// changes nothing else, also for `net_cls` and `net_prio`, which switch socket groups off only when used.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MountTrial {
    /// Not tried: not needed, or not requested.
    #[default]
    Untried,
    /// Not tried, for this reason.
    Forgone(String),
    /// The mount worked, and is gone again.
    Mounts,
    /// The kernel refused, in words with the errno's name.
    Refused(String),
}

/// The rows of `/proc/cgroups`; a line that is none is skipped.
pub fn listed(text: &str) -> Vec<ControllerRow> {
    let row = |line: &str| {
        let mut words = line.split_whitespace();
        let name = words.next().filter(|name| !name.starts_with('#'))?.to_owned();
        let mut number = || words.next()?.parse::<u32>().ok();
        let (hierarchy, groups, enabled) = (number()?, number()?, number()? != 0);
        Some(ControllerRow { name, hierarchy, groups, enabled, trial: MountTrial::Untried })
    };
    text.lines().filter_map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_list_of_controllers_is_read_and_nonsense_passed_over() {
        let text =
            "#subsys_name\thierarchy\tnum_cgroups\tenabled\ncpuset\t3\t1\t1\nmemory\t0\t80\t0\nx\t1\n\n";
        let row = |name: &str, hierarchy, groups, enabled| ControllerRow {
            name: name.to_owned(),
            hierarchy,
            groups,
            enabled,
            trial: MountTrial::Untried,
        };
        assert_eq!(listed(text), [row("cpuset", 3, 1, true), row("memory", 0, 80, false)]);
    }
}
