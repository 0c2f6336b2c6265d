//! Which programs are in force that write what we write too. Only reads.

use topology::facts::{KnownWriter, SCHED_EXT_STATE, WRITERS, Writer};

use super::Outside;
use crate::{Kernel, unit_of};

/// Those of root: anybody may give a process any name.
pub(super) fn writers(kernel: &dyn Kernel, proc: &Outside<'_>) -> Vec<Writer> {
    let mut running: Vec<(String, u32)> = Vec::new();
    for pid in kernel.processes().unwrap_or_default() {
        let Ok(process) = kernel.process(pid) else { continue }; // it ended
        let runs = !process.kernel_thread && !process.is_dead();
        if runs && WRITERS.iter().any(|known| known.process == Some(&process.comm)) {
            running.push((process.comm, pid));
        }
    }
    let of = |known: &KnownWriter| {
        let is_it = |(comm, pid): &&(String, u32)| known.process == Some(comm) && is_roots(proc, *pid);
        let pid = running.iter().find(is_it).map(|(_, pid)| *pid);
        if pid.is_none() && !known.mark.is_some_and(|mark| is_in_force(proc, mark)) {
            return None;
        }
        Some(Writer {
            name: known.name.to_owned(),
            pid,
            unit: pid.and_then(|pid| unit(proc, pid)),
            choice: known.choice.and_then(|file| proc.text(file)).filter(|choice| !choice.is_empty()),
        })
    };
    WRITERS.iter().filter_map(of).collect()
}

fn is_roots(proc: &Outside<'_>, pid: u32) -> bool {
    let status = proc.text(&format!("/proc/{pid}/status")).unwrap_or_default();
    let uids = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    uids.and_then(|uids| uids.split_whitespace().nth(1)) == Some("0")
}

/// sched_ext's file is there without a scheduler, too.
fn is_in_force(proc: &Outside<'_>, mark: &str) -> bool {
    let text = proc.text(mark);
    if mark == SCHED_EXT_STATE { text.is_some_and(|state| state == "enabled") } else { text.is_some() }
}

fn unit(proc: &Outside<'_>, pid: u32) -> Option<String> {
    let groups = proc.text(&format!("/proc/{pid}/cgroup"))?;
    let of_systemd = |line: &str| {
        let (_, rest) = line.split_once(':')?;
        let (names, path) = rest.split_once(':')?;
        (names.is_empty() || names == "name=systemd").then(|| unit_of(path)).flatten()
    };
    groups.lines().find_map(of_systemd).filter(|unit| unit.ends_with(".service"))
}
