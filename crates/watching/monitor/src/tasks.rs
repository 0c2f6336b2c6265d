//! The tasks of a group as `/proc` shows them: where each ran last, how long it ran and how long it waited for a
//! CPU. Read only on request: it costs a few files per task.

use std::{collections::BTreeMap, time::Duration};

use kernel::{Error, GroupName, Host, Op, Process};
use rustix::io::Errno;
use settings::{Controller, Version};

/// A task (a process's thread) of a group.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Task {
    /// The group that it is in, as users write it.
    pub group: String,
    /// Numbers, name, state, policy, and the CPU that it ran on last.
    #[serde(flatten)]
    pub process: Process,
    /// Time on a CPU and time spent waiting for one, since it started; `None` on a kernel that does not count them
    /// (`CONFIG_SCHED_INFO`).
    pub scheduled: Option<Scheduled>,
}

/// `/proc/PID/schedstat` (scheduler/sched-stats.rst).
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Scheduled {
    /// Time on a CPU.
    pub ran: Duration,
    /// Time in which it could have run and waited for a CPU.
    pub waited: Duration,
    /// How often it was given a CPU.
    pub turns: u64,
}

/// The tasks of a group and of those below it, by number, of every hierarchy that has the group. Tasks that end meanwhile
/// are left out.
///
/// # Errors
/// [`Error::NoGroup`], [`Error::Refused`].
pub fn tasks(host: &Host, group: &GroupName) -> Result<Vec<Task>, Error> {
    let mut seats = host.existing(group)?;
    // a task that is in several groups below is named by the one whose CPU time it gets
    let first = [Controller::Cpuset, Controller::Cpu].map(|one| host.hierarchy_of(one).map(|at| at.id));
    seats.sort_by_key(|seat| first.iter().position(|id| *id == Some(seat.at.id)).unwrap_or(first.len()));
    let mut found: BTreeMap<u32, String> = BTreeMap::new();
    for seat in &seats {
        let below = host
            .kernel()
            .descendants(seat.at, &seat.path)
            .map_err(|errno| host.refused(Op::Read, seat, group, None, None, errno))?;
        for path in std::iter::once(seat.path.clone()).chain(below) {
            let numbers = match numbers(host, seat.at, &path) {
                Ok(numbers) => numbers,
                Err(Errno::NOENT | Errno::NODEV) if path != seat.path => continue, // removed meanwhile
                Err(errno) => return Err(host.refused(Op::Read, seat, group, None, None, errno)),
            };
            for tid in numbers {
                found.entry(tid).or_insert_with(|| host.named(seat.at, &path));
            }
        }
    }
    let task = |(tid, group): (u32, String)| {
        let process = host.kernel().process(tid).ok()?;
        Some(Task { group, process, scheduled: scheduled(host, tid) })
    };
    Ok(found.into_iter().filter_map(task).collect())
}

/// v1's list of a group's tasks.
pub(crate) const TASKS: &str = "tasks";

pub(crate) fn numbers(host: &Host, at: &kernel::Hierarchy, path: &str) -> Result<Vec<u32>, Errno> {
    let text = match at.version {
        Version::V1 => host.kernel().read(at, path, TASKS)?,
        // a threaded group lists its processes as threads alone, an invalid one not at all
        Version::V2 => host.kernel().read(at, path, "cgroup.threads").or_else(|errno| match errno {
            Errno::OPNOTSUPP => Ok(String::new()),
            errno => Err(errno),
        })?,
    };
    Ok(text.lines().filter_map(|line| line.trim().parse().ok()).collect())
}

/// What the kernel counted of a task's turns on CPUs.
pub fn scheduled(host: &Host, tid: u32) -> Option<Scheduled> {
    let text = host.kernel().outside(format!("/proc/{tid}/schedstat").as_ref()).ok()?;
    let mut numbers = text.split_whitespace().map_while(|word| word.parse::<u64>().ok());
    let (ran, waited, turns) = (numbers.next()?, numbers.next()?, numbers.next()?);
    Some(Scheduled { ran: Duration::from_nanos(ran), waited: Duration::from_nanos(waited), turns })
}
