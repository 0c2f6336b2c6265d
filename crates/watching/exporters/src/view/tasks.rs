//! The tasks of a group between two looks: on which CPU each ran last, how much it ran, and how long it waited for a
//! CPU.

use std::{collections::BTreeMap, time::Duration};

use serde::Serialize;
use units::{Cpu, IdSet, printable};

use monitor::Task;

use super::text::{columns, share};

/// A task, and its share of the time since it was looked at before.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ran {
    /// The task now.
    #[serde(flatten)]
    pub task: Task,
    /// Share of the time on a CPU, 0 to 1; `None` for a task that is new, and where the kernel does not count it.
    pub running: Option<f64>,
    /// Share of the time in which it could have run and waited for a CPU.
    pub waiting: Option<f64>,
    /// The CPUs that it had run on last at the looks before this one, the oldest first.
    pub cpus_before: Vec<u32>,
}

/// Where tasks ran last, look by look.
#[derive(Debug, Default)]
pub struct Trail {
    seen: BTreeMap<u32, Vec<u32>>,
}

/// Looks that are remembered of each task.
const LOOKS: usize = 12;

impl Trail {
    /// Gives each task the places where it was before, and remembers where it is now; those that ended are forgotten.
    pub fn follow(&mut self, tasks: &mut [Ran]) {
        let mut now = BTreeMap::new();
        for ran in tasks {
            let process = &ran.task.process;
            // a new task has no time to compare, and may have the number of one that ended
            let mut cpus =
                self.seen.remove(&process.pid).filter(|_| ran.running.is_some()).unwrap_or_default();
            ran.cpus_before.clone_from(&cpus);
            cpus.push(process.last_cpu);
            cpus.drain(..cpus.len().saturating_sub(LOOKS));
            now.insert(process.pid, cpus);
        }
        self.seen = now;
    }
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
            cpus_before: Vec::new(),
            task,
        }
    };
    now.into_iter().map(one).collect()
}

/// The CPUs that these ran on last.
pub fn cpus_of(tasks: &[Ran]) -> IdSet<Cpu> {
    tasks.iter().filter_map(|ran| usize::try_from(ran.task.process.last_cpu).ok()).collect()
}

/// A line per task for people; where each was before, if that is known of any.
pub fn task_table(tasks: &[Ran]) -> String {
    let heading =
        ["TASK", "PROCESS", "NAME", "STATE", "POLICY", "CPU", "RUNNING", "WAITING", "GROUP", "CPU BEFORE"];
    let mut lines = vec![heading.map(str::to_owned).to_vec()];
    for Ran { task, running, waiting, cpus_before } in tasks {
        let process = &task.process;
        let part = |part: Option<f64>| part.map_or_else(|| "-".to_owned(), share);
        lines.push(vec![
            process.pid.to_string(),
            process.tgid.to_string(),
            printable(&process.comm).into_owned(),
            process.state.to_string(),
            policy(process.policy),
            process.last_cpu.to_string(),
            part(*running),
            part(*waiting),
            printable(&task.group).into_owned(),
            cpus_before.iter().map(u32::to_string).collect::<Vec<_>>().join(" "),
        ]);
    }
    if tasks.iter().all(|ran| ran.cpus_before.is_empty()) {
        lines.iter_mut().for_each(|line| _ = line.pop());
    }
    columns(&lines, &[2, 3, 4, 8, 9])
}

/// A scheduling policy by sched(7)'s names.
pub fn policy(number: u32) -> String {
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
    use monitor::Scheduled;

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

    #[test]
    fn where_tasks_were_is_shown_in_the_order_of_the_looks() {
        let mut trail = Trail::default();
        let mut before = Vec::new();
        let mut table = String::new();
        for (look, cpu) in [0, 0, 1, 3].into_iter().enumerate() {
            let now = vec![task(7, 1000 + look as u64, 0, cpu)];
            let mut ran = ran_between(&before, now.clone(), Duration::from_secs(1));
            trail.follow(&mut ran);
            (before, table) = (now, task_table(&ran));
        }
        assert!(table.lines().nth(1).unwrap().ends_with("g      0 0 1"), "{table}");
        // another task under its number
        let mut ran = ran_between(&before, vec![task(7, 1, 0, 2)], Duration::from_secs(1));
        trail.follow(&mut ran);
        assert_eq!(ran[0].cpus_before, [] as [u32; 0]);
        assert!(!task_table(&ran).contains("BEFORE"));
    }
}
