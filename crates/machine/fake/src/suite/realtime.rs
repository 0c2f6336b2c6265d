//! A suite started in a v1 group without a real-time budget, as in a session of systemd's: none of its tests could use a
//! real-time policy.

use std::fs;

use kernel::{Hierarchy, Kernel, Real};
use settings::{Controller, Version};

/// Moves this process into the root group of its `cpu` hierarchy, if its own group has no real-time budget. Without the right
/// to, it stays, and the tests that need it say so.
pub fn leave_group_without_budget() {
    let Ok(hierarchies) = Real::new().hierarchies() else { return };
    let cpu = |at: &&Hierarchy| at.version == Version::V1 && at.controllers.contains(&Controller::Cpu);
    let Some(at) = hierarchies.iter().find(cpu) else { return };
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let Some(group) = group_of_cpu(&groups) else { return };
    let group = group.strip_prefix(&at.root).unwrap_or(group).trim_start_matches('/');
    let budget = fs::read_to_string(at.mount.join(group).join("cpu.rt_runtime_us"));
    if budget.is_ok_and(|budget| budget.trim() == "0") {
        let _ = fs::write(at.mount.join("cgroup.procs"), "0");
    }
}

/// From /proc/PID/cgroup.
fn group_of_cpu(groups: &str) -> Option<&str> {
    groups.lines().find_map(|line| {
        let (controllers, group) = line.split_once(':')?.1.split_once(':')?;
        controllers.split(',').any(|controller| controller == "cpu").then_some(group)
    })
}

#[cfg(test)]
mod tests {
    use super::group_of_cpu;

    #[test]
    fn the_group_of_the_cpu_controller_is_found() {
        assert_eq!(group_of_cpu("3:cpuset:/a\n2:cpuacct,cpu:/b:c\n0::/d\n"), Some("/b:c"));
        assert_eq!(group_of_cpu("3:cpuset:/a\n0::/d\n"), None);
    }
}
