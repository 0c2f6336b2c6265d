//! How long a group's tasks waited for a CPU, where the kernel does not count it by group (cgroup v1): their run delays,
//! from descriptors that stay open.

use std::{collections::HashMap, fs::File, os::unix::fs::FileExt};

use kernel::{GroupName, Hierarchy, Host};
use settings::Controller;

use crate::tasks::numbers;

/// Of more tasks than this the others are not looked at: each costs a read.
const MOST: usize = 256;

/// The tasks of one group.
#[derive(Debug, Default)]
pub struct RunDelays {
    tasks: HashMap<u32, Task>,
    turn: u64,
}

#[derive(Debug)]
struct Task {
    schedstat: File,
    /// In nanoseconds since its start.
    waited: u64,
    seen: u64,
}

impl RunDelays {
    /// The sum of its tasks' waits since the look before, in seconds; tasks that are new count from now on.
    pub fn look(&mut self, host: &Host, group: &GroupName) -> f64 {
        self.turn += 1;
        let mut grown = 0;
        let Ok(seat) = host.seat(group, Controller::Cpuacct) else { return 0.0 };
        self.of(host, seat.at, &seat.path, &mut grown);
        for path in host.kernel().descendants(seat.at, &seat.path).unwrap_or_default() {
            self.of(host, seat.at, &path, &mut grown);
        }
        let turn = self.turn;
        self.tasks.retain(|_, task| task.seen == turn);
        grown as f64 / 1e9
    }

    fn of(&mut self, host: &Host, at: &Hierarchy, path: &str, grown: &mut u64) {
        for tid in numbers(host, at, path).unwrap_or_default() {
            if !self.tasks.contains_key(&tid) {
                if self.tasks.len() >= MOST {
                    continue;
                }
                let Ok(schedstat) = File::open(format!("/proc/{tid}/schedstat")) else { continue };
                let Some(waited) = waited(&schedstat) else { continue };
                self.tasks.insert(tid, Task { schedstat, waited, seen: self.turn });
            } else if let Some(task) = self.tasks.get_mut(&tid)
                && let Some(now) = waited(&task.schedstat)
            {
                *grown += now.saturating_sub(task.waited);
                (task.waited, task.seen) = (now, self.turn);
            }
        }
    }
}

/// The second number of `schedstat`; `None` once the task has ended.
fn waited(schedstat: &File) -> Option<u64> {
    let mut bytes = [0; 64];
    let count = schedstat.read_at(&mut bytes, 0).ok()?;
    let text = std::str::from_utf8(&bytes[..count]).ok()?;
    text.split_whitespace().nth(1)?.parse().ok()
}
