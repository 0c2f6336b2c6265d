//! The tasks of a group as `/proc` tells them: where each ran last, how long it ran and how long it waited for a
//! CPU. Read only when somebody asks: it costs a few files per task.

use std::time::Duration;

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

/// The tasks of a group and of those below it, by number. Tasks that end meanwhile are left out.
///
/// # Errors
/// [`Error::NoGroup`], [`Error::Refused`].
pub fn tasks(host: &Host, group: &GroupName) -> Result<Vec<Task>, Error> {
    let seats = host.existing(group)?;
    // on v1 a group's tasks may differ by hierarchy: those whose CPU time it gets come first
    let wanted = [Controller::Cpuset, Controller::Cpu].map(|one| host.hierarchy_of(one).map(|at| at.id));
    let seat = wanted.iter().flatten().find_map(|id| seats.iter().find(|seat| seat.at.id == *id));
    let Some(seat) = seat.or(seats.first()) else { return Ok(Vec::new()) };
    let below = host
        .kernel()
        .descendants(seat.at, &seat.path)
        .map_err(|errno| host.refused(Op::Read, seat, group, None, None, errno))?;
    let mut found = Vec::new();
    for path in std::iter::once(seat.path.clone()).chain(below) {
        let name = host.named(seat.at, &path);
        let numbers = match numbers(host, seat.at, &path) {
            Ok(numbers) => numbers,
            Err(Errno::NOENT | Errno::NODEV) if path != seat.path => continue, // removed meanwhile
            Err(errno) => return Err(host.refused(Op::Read, seat, group, None, None, errno)),
        };
        found.extend(numbers.into_iter().filter_map(|tid| {
            let process = host.kernel().process(tid).ok()?;
            Some(Task { group: name.clone(), process, scheduled: scheduled(host, tid) })
        }));
    }
    found.sort_by_key(|task| task.process.pid);
    Ok(found)
}

fn numbers(host: &Host, at: &kernel::Hierarchy, path: &str) -> Result<Vec<u32>, Errno> {
    let text = match at.version {
        Version::V1 => host.kernel().read(at, path, "tasks")?,
        // a threaded group's processes are told by its threads alone, an invalid one's by neither
        Version::V2 => host.kernel().read(at, path, "cgroup.threads").or_else(|errno| match errno {
            Errno::OPNOTSUPP => Ok(String::new()),
            errno => Err(errno),
        })?,
    };
    Ok(text.lines().filter_map(|line| line.trim().parse().ok()).collect())
}

/// What the kernel counted of a task's turns on CPUs.
pub(crate) fn scheduled(host: &Host, tid: u32) -> Option<Scheduled> {
    let text = host.kernel().outside(format!("/proc/{tid}/schedstat").as_ref()).ok()?;
    let mut numbers = text.split_whitespace().map_while(|word| word.parse::<u64>().ok());
    let (ran, waited, turns) = (numbers.next()?, numbers.next()?, numbers.next()?);
    Some(Scheduled { ran: Duration::from_nanos(ran), waited: Duration::from_nanos(waited), turns })
}
