//! How long a group's tasks waited for a CPU, where the kernel does not count it by group (cgroup v1): their run delays.

use std::collections::HashMap;

use kernel::{GroupName, Host};
use settings::Controller;

use crate::{
    files::Files,
    open_files::{OpenFiles, Slot},
    tasks::TASKS,
};

/// Of more tasks than this the others are not looked at: each costs a read.
const MOST: usize = 256;
/// The number of looks after which the groups below are listed again.
const LIST: u64 = 10;

/// The tasks of one group.
#[derive(Debug)]
pub(crate) struct RunDelays<F: Files> {
    /// The group and those below it.
    groups: Vec<String>,
    tasks: HashMap<u32, Task<F::Open>>,
    /// Those that a list has now.
    numbers: Vec<u32>,
    looks: u64,
}

#[derive(Debug)]
struct Task<O> {
    schedstat: Slot<O>,
    /// In nanoseconds since its start.
    waited: u64,
    seen: u64,
}

impl<F: Files> Default for RunDelays<F> {
    fn default() -> RunDelays<F> {
        RunDelays { groups: Vec::new(), tasks: HashMap::new(), numbers: Vec::new(), looks: 0 }
    }
}

impl<F: Files> RunDelays<F> {
    /// The sum of its tasks' waits since the look before, in nanoseconds; tasks that are new count from now on.
    pub fn look(&mut self, host: &Host, files: &mut OpenFiles<F>, group: &GroupName) -> u64 {
        let Some(at) = host.hierarchy_of(Controller::Cpuacct) else { return 0 };
        if self.looks.is_multiple_of(LIST) {
            let top = host.seat_in(at, group).path;
            let below = host.kernel().descendants(at, &top).unwrap_or_default();
            self.groups = std::iter::once(top).chain(below).collect();
        }
        self.looks += 1;
        self.numbers.clear();
        for path in &self.groups {
            // v1 shows the same list again to who leaves it open and reads it more often than once a second
            if let Some(text) = files.read_once(|files| files.open(at, path, TASKS)) {
                self.numbers.extend(text.split(|byte| *byte == b'\n').filter_map(number));
            }
        }
        let mut grown = 0;
        let numbers = std::mem::take(&mut self.numbers);
        numbers.iter().for_each(|tid| grown += self.grown(files, *tid));
        self.numbers = numbers;
        let looks = self.looks;
        self.tasks.retain(|_, task| {
            let stays = task.seen == looks;
            if !stays {
                files.close(&mut task.schedstat);
            }
            stays
        });
        grown
    }

    fn grown(&mut self, files: &mut OpenFiles<F>, tid: u32) -> u64 {
        let schedstat = |files: &F| files.open_outside(&format!("/proc/{tid}/schedstat"));
        if let Some(task) = self.tasks.get_mut(&tid) {
            // a number may be another task's by now, whose waits began again
            let Some(now) = files.read(&mut task.schedstat, false, schedstat).and_then(waited) else {
                return 0;
            };
            let grown = now.saturating_sub(task.waited);
            (task.waited, task.seen) = (now, self.looks);
            return grown;
        }
        if self.tasks.len() < MOST {
            let mut slot = Slot::New;
            if let Some(waited) = files.read(&mut slot, true, schedstat).and_then(waited) {
                self.tasks.insert(tid, Task { schedstat: slot, waited, seen: self.looks });
            }
        }
        0
    }
}

fn number(line: &[u8]) -> Option<u32> {
    std::str::from_utf8(line).ok()?.parse().ok()
}

/// The second number of `schedstat`.
fn waited(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.split_whitespace().nth(1)?.parse().ok()
}
