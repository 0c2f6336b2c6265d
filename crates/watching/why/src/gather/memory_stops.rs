//! Groups whose tasks the kernel stops at a limit of memory, which only v1 can. Decides nothing.

use std::collections::BTreeSet;

use kernel::{GroupName, Host};
use settings::{Controller, Version};
use units::group_path;

use super::Looked;
use crate::facts::MemoryStop;

/// Says whether tasks wait, beside the flag that keeps the kernel from killing them.
const OOM_CONTROL: &str = "memory.oom_control";

/// The state of a task that waits for memory, as of one that waits for a disk.
const WAITS: char = 'D';

/// The names of the groups on the way to `group`, and below it, that are out of memory with tasks that wait. With one group all
/// below it are.
pub(super) fn under_oom(host: &Host, group: &GroupName) -> BTreeSet<String> {
    let at = host.hierarchy_of(Controller::Memory).filter(|at| at.version == Version::V1);
    let Some(at) = at else { return BTreeSet::new() };
    let own = host.seat_in(at, group).path;
    let is_stopped = |path: &String| {
        let text = host.kernel().read(at, path, OOM_CONTROL).unwrap_or_default();
        let value = |name: &str| {
            text.lines().find_map(|line| line.strip_prefix(name)).is_some_and(|rest| rest.trim() != "0")
        };
        value("oom_kill_disable ") && value("under_oom ")
    };
    let below = host.kernel().descendants(at, &own).unwrap_or_default();
    let all = group_path::branch(&own).map(str::to_owned).chain(below);
    all.filter(is_stopped).map(|path| host.named(at, &path)).collect()
}

impl Looked<'_> {
    pub(super) fn memory_stops(&self) -> Vec<MemoryStop> {
        let (first, last) = (&self.first.out_of_memory, &self.last.out_of_memory);
        let all: BTreeSet<&String> = first.union(last).collect();
        // those below a stopped group are stopped by its limit
        let is_highest = |name: &&&String| !all.iter().any(|other| group_path::is_below(name, other));
        let stop = |name: &String| MemoryStop {
            level: self.level(name),
            tasks: self.waiting_in(name),
            stopped: (first.contains(name), last.contains(name)),
        };
        all.iter().filter(is_highest).map(|name| stop(name)).collect()
    }

    fn waiting_in(&self, name: &str) -> usize {
        let at = self.host.hierarchy_of(Controller::Memory);
        let is_in = |tid: u32| {
            let path = at.and_then(|at| at.below_mount(&self.host.kernel().group_of(at, tid).ok()?));
            let named = at.zip(path).map(|(at, path)| self.host.named(at, &path));
            named.is_some_and(|named| group_path::is_at_or_below(&named, name))
        };
        let waits = self.last.tasks.iter().filter(|task| task.process.state == WAITS);
        waits.filter(|task| is_in(task.process.pid)).count()
    }
}
