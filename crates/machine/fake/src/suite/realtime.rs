//! A suite started in a v1 group without a real-time budget, as in a session of systemd's: none of its tests could use a
//! real-time policy.

use kernel::{Hierarchy, Kernel, Real};
use settings::{Controller, Version};

/// Moves this process into the root group of its `cpu` hierarchy, if its own group has no real-time budget. Without the right
/// to, it stays, and the tests that need it say so.
pub fn leave_group_without_budget() {
    let kernel = Real::new();
    let cpu = |at: &Hierarchy| at.version == Version::V1 && at.controllers.contains(&Controller::Cpu);
    let Some(at) = kernel.hierarchies().unwrap_or_default().into_iter().find(cpu) else { return };
    let Ok(path) = kernel.group_of(&at, std::process::id()) else { return };
    let Some(group) = at.below_mount(&path) else { return };
    if kernel.read(&at, &group, "cpu.rt_runtime_us").is_ok_and(|budget| budget.trim() == "0") {
        let _ = kernel.write(&at, "", "cgroup.procs", "0");
    }
}
