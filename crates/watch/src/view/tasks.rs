//! The tasks of a group between two looks: on which CPU each ran last, how much it ran, and how long it waited for a
//! CPU.

use std::time::Duration;

use serde::Serialize;
use units::{Cpu, IdSet};

use crate::tasks::Task;

use super::text::{columns, share};

/// A task, and its share of the time since it was looked at before.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ran {
    /// The task now.
    #[serde(flatten)]
    pub task: Task,
    /// Share of the time on a CPU, 0 to 1; `None` for a task that is new, and where the kernel does not tell.
    pub running: Option<f64>,
    /// Share of the time in which it could have run and waited for a CPU.
    pub waiting: Option<f64>,
}

/// The tasks that are there now. A number that was given to another task meanwhile counts as new if that ran less.
pub fn ran_between(before: &[Task], now: Vec<Task>, elapsed: Duration) -> Vec<Ran> {
    let one = |task: Task| {
        let was = before.iter().find(|was| was.process.pid == task.process.pid);
        let both = was.and_then(|was| was.scheduled).zip(task.scheduled).filter(|_| !elapsed.is_zero());
        let part = |was: Duration, now: Duration| {
            now.checked_sub(was).map(|grown| grown.as_secs_f64() / elapsed.as_secs_f64())
        };
        Ran {
            running: both.and_then(|(was, now)| part(was.ran, now.ran)),
            waiting: both.and_then(|(was, now)| part(was.waited, now.waited)),
            task,
        }
    };
    now.into_iter().map(one).collect()
}

/// The CPUs that these ran on last.
pub fn cpus_of(tasks: &[Ran]) -> IdSet<Cpu> {
    tasks.iter().filter_map(|ran| usize::try_from(ran.task.process.last_cpu).ok()).collect()
}

/// A line per task for people.
pub fn task_table(tasks: &[Ran]) -> String {
    let heading = ["TASK", "PROCESS", "NAME", "STATE", "POLICY", "CPU", "RUNNING", "WAITING", "GROUP"];
    let mut lines = vec![heading.map(str::to_owned).to_vec()];
    for Ran { task, running, waiting } in tasks {
        let process = &task.process;
        let part = |part: Option<f64>| part.map_or_else(|| "-".to_owned(), share);
        lines.push(vec![
            process.pid.to_string(),
            process.tgid.to_string(),
            process.comm.escape_debug().to_string(),
            process.state.to_string(),
            policy(process.policy),
            process.last_cpu.to_string(),
            part(*running),
            part(*waiting),
            task.group.escape_debug().to_string(),
        ]);
    }
    columns(&lines, &[2, 3, 4, 8])
}

/// By sched(7)'s names.
fn policy(number: u32) -> String {
    let name = match number {
        0 => "other",
        1 => "fifo",
        2 => "rr",
        3 => "batch",
        5 => "idle",
        6 => "deadline",
        7 => "ext",
        other => return other.to_string(),
    };
    name.to_owned()
}

#[cfg(test)]
mod tests {
    use kernel::Process;

    use super::*;
    use crate::tasks::Scheduled;

    fn task(pid: u32, ran: u64, waited: u64, last_cpu: u32) -> Task {
        let process = Process {
            pid,
            tgid: pid,
            parent: 1,
            comm: "p".to_owned(),
            state: 'R',
            kernel_thread: false,
            bound: false,
            uid: 0,
            policy: 1,
            last_cpu,
        };
        let (ran, waited) = (Duration::from_millis(ran), Duration::from_millis(waited));
        Task { group: "g".to_owned(), process, scheduled: Some(Scheduled { ran, waited, turns: 1 }) }
    }

    #[test]
    fn tasks_have_their_share_of_the_time_between_two_looks() {
        let before = [task(7, 1000, 500, 0), task(8, 900, 0, 0), task(9, 5, 5, 0)];
        let now = vec![task(7, 2000, 1500, 3), task(8, 100, 0, 5), task(10, 1, 1, 4)];
        let ran = ran_between(&before, now, Duration::from_secs(2));
        let shares: Vec<_> = ran.iter().map(|ran| (ran.running, ran.waiting)).collect();
        assert_eq!(shares[0], (Some(0.5), Some(0.5)));
        assert_eq!(shares[1].0, None, "another task under an old number");
        assert_eq!(shares[2], (None, None));
        assert_eq!(cpus_of(&ran).to_string(), "3-5");
        let table = task_table(&ran);
        assert!(table.lines().nth(1).unwrap().ends_with("fifo      3    50.0%    50.0%  g"), "{table}");
    }
}
