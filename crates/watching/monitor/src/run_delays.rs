//! How long a group's tasks waited for a CPU, where the kernel does not count it by group (cgroup v1): their run delays,
//! from descriptors that stay open.

use std::{collections::HashMap, fs::File, os::unix::fs::FileExt};

use kernel::{GroupName, Host};
use settings::Controller;

use crate::{
    files::{Buffer, Files},
    tasks::TASKS,
};

/// Of more tasks than this the others are not looked at: each costs a read.
const MOST: usize = 256;
/// The number of looks after which the groups below are listed again.
const LIST: u64 = 10;

/// The tasks of one group.
#[derive(Debug)]
pub struct RunDelays<F: Files> {
    /// Its list of tasks and those of the groups below it.
    lists: Vec<F::Open>,
    tasks: HashMap<u32, Task>,
    looks: u64,
}

#[derive(Debug)]
struct Task {
    schedstat: File,
    /// In nanoseconds since its start.
    waited: u64,
    seen: u64,
}

impl<F: Files> Default for RunDelays<F> {
    fn default() -> RunDelays<F> {
        RunDelays { lists: Vec::new(), tasks: HashMap::new(), looks: 0 }
    }
}

impl<F: Files> RunDelays<F> {
    /// The sum of its tasks' waits since the look before, in seconds; tasks that are new count from now on.
    pub fn look(&mut self, host: &Host, files: &F, group: &GroupName, buffer: &mut Buffer) -> f64 {
        if self.looks.is_multiple_of(LIST) {
            self.lists = lists(host, files, group);
        }
        self.looks += 1;
        let mut grown = 0;
        for list in std::mem::take(&mut self.lists) {
            // a group that is gone has no tasks
            if files.read(&list, buffer).is_ok() {
                let numbers = buffer.text().split(|byte| *byte == b'\n').filter_map(number);
                numbers.for_each(|tid| grown += self.grown(tid));
                self.lists.push(list);
            }
        }
        let looks = self.looks;
        self.tasks.retain(|_, task| task.seen == looks);
        grown as f64 / 1e9
    }

    fn grown(&mut self, tid: u32) -> u64 {
        if let Some(task) = self.tasks.get_mut(&tid) {
            let Some(now) = waited(&task.schedstat) else { return 0 };
            let grown = now.saturating_sub(task.waited);
            (task.waited, task.seen) = (now, self.looks);
            return grown;
        }
        if self.tasks.len() < MOST
            && let Ok(schedstat) = File::open(format!("/proc/{tid}/schedstat"))
            && let Some(waited) = waited(&schedstat)
        {
            self.tasks.insert(tid, Task { schedstat, waited, seen: self.looks });
        }
        0
    }
}

fn lists<F: Files>(host: &Host, files: &F, group: &GroupName) -> Vec<F::Open> {
    let Ok(seat) = host.seat(group, Controller::Cpuacct) else { return Vec::new() };
    let below = host.kernel().descendants(seat.at, &seat.path).unwrap_or_default();
    let all = std::iter::once(seat.path.clone()).chain(below);
    all.filter_map(|path| files.open(seat.at, &path, TASKS).ok()).collect()
}

fn number(line: &[u8]) -> Option<u32> {
    std::str::from_utf8(line).ok()?.parse().ok()
}

/// The second number of `schedstat`; `None` once the task has ended.
fn waited(schedstat: &File) -> Option<u64> {
    let mut bytes = [0; 64];
    let count = schedstat.read_at(&mut bytes, 0).ok()?;
    let text = std::str::from_utf8(&bytes[..count]).ok()?;
    text.split_whitespace().nth(1)?.parse().ok()
}
