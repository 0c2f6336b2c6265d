//! Tasks between two moments: who ran on the group's CPUs, how long its own tasks waited, and in which states they were
//! meanwhile. Reads `/proc` alone.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    time::{Duration, Instant},
};

use kernel::{Freezers, GroupName, Host};
use settings::Controller;
use units::{CpuSet, group_path};

use super::facts::{Other, RealtimeFacts};
use monitor::{Scheduled, Task};

/// How often the states of tasks are looked at in a span.
pub(crate) const STATES: u32 = 100;
/// Of more tasks than this, every other one (or every third …) is looked at.
const LOOKED_AT: usize = 128;
/// The state of a task that was in another group.
const UNKNOWN: char = ' ';
/// Less CPU time than this is not looked up: whose it was would cost more reads than it took.
const LEAST: Duration = Duration::from_millis(1);

/// What all threads of the machine had run and waited.
pub(crate) type Scan = HashMap<u32, Scheduled>;

/// Looks at all threads.
pub(crate) fn scan(host: &Host) -> Scan {
    let kernel = host.kernel();
    let processes = kernel.processes().unwrap_or_default();
    let threads = processes.iter().flat_map(|pid| kernel.threads(*pid).unwrap_or_default());
    threads.filter_map(|tid| Some((tid, monitor::scheduled(host, tid)?))).collect()
}

/// Who else ran on `cpus` between two scans, the largest first. A task that moved meanwhile counts where it was last; of
/// tasks that ended nothing is known. Tasks may be in the root of the hierarchy that has the cpu controller, where their group
/// has no directory: the group's own are left out, and others are named by where they are given CPUs. `weight`: that of a group.
pub(crate) fn others(
    host: &Host,
    (group, own_tasks): (&GroupName, &[Task]),
    cpus: &CpuSet,
    (before, after): (&Scan, &Scan),
    weight: impl Fn(&str) -> Option<u64>,
) -> Vec<Other> {
    let at = [Controller::Cpu, Controller::Cpuset, Controller::Core]
        .iter()
        .find_map(|controller| host.hierarchy_of(*controller));
    let Some(at) = at else { return Vec::new() };
    let own = host.seat_in(at, group).path;
    let own_tasks: HashSet<u32> = own_tasks.iter().map(|task| task.process.pid).collect();
    let is_own = |path: &str| group_path::is_at_or_below(path, &own);
    let of_cpus = host.hierarchy_of(Controller::Cpuset).filter(|cpuset| cpuset.id != at.id);
    // by path and name
    let mut groups: BTreeMap<(String, String), (Duration, Duration, String)> = BTreeMap::new();
    for (&tid, &Scheduled { ran, .. }) in after {
        // a number that was used again runs from 0
        let earlier = before.get(&tid).map(|earlier| earlier.ran).filter(|earlier| *earlier <= ran);
        let ran = ran - earlier.unwrap_or_default();
        if ran < LEAST || own_tasks.contains(&tid) {
            continue;
        }
        let Ok(process) = host.kernel().process(tid) else { continue };
        let Ok(path) = host.kernel().group_of(at, tid) else { continue };
        let path = at.below_mount(&path).unwrap_or_default();
        if !cpus.contains(process.last_cpu as usize) || is_own(&path) {
            continue;
        }
        let elsewhere = of_cpus.filter(|_| path == host.base(at).path()).and_then(|at| {
            let path = at.below_mount(&host.kernel().group_of(at, tid).ok()?)?;
            (path != host.base(at).path()).then(|| host.named(at, &path))
        });
        let name = elsewhere.unwrap_or_else(|| host.named(at, &path));
        let (sum, most, task) = groups.entry((path, name)).or_default();
        *sum += ran;
        if ran > *most {
            (*most, *task) = (ran, format!("{} {tid}", process.comm));
        }
    }
    let other = |((path, group), (ran, _, task)): ((String, String), (Duration, Duration, String))| {
        let (meets, rival) = meeting(&own, &path);
        let rival =
            rival.map(|path| host.named(at, path)).and_then(|name| weight(&name).map(|of| (name, of)));
        Other { group, ran, task, meets, rival }
    };
    let mut others: Vec<Other> = groups.into_iter().map(other).collect();
    others.sort_by_key(|other| std::cmp::Reverse(other.ran));
    others
}

/// Where two groups contend for CPUs: how many levels above `own` (itself is 0), and the other's group beside that one; no
/// group where its tasks lie directly in one that is above both.
pub(crate) fn meeting<'p>(own: &str, other: &'p str) -> (usize, Option<&'p str>) {
    let parts = |path: &'p str| group_path::names(path);
    let own: Vec<&str> = group_path::names(own).collect();
    let common = own.iter().zip(parts(other)).take_while(|(own, other)| *own == other).count();
    let length = parts(other).take(common + 1).map(|part| part.len() + 1).sum::<usize>();
    let is_above = parts(other).count() == common;
    let rival = (!is_above).then(|| other.get(..length.saturating_sub(1))).flatten();
    (own.len().saturating_sub(common + 1), rival)
}

/// What the group's tasks ran and waited between two lists of them.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Own {
    pub ran: Duration,
    /// Of tasks that are not real-time; `None` where the kernel counts none.
    pub waited: Option<Duration>,
    pub realtime: Option<RealtimeFacts>,
}

/// The kernel counts a wait when it ends, and then all of it: a task that could run at both moments, `span` apart, and had no
/// turn between them waited all the time; one whose wait began before the first waited at most for what it did not run of the
/// span. `scan`: all threads at the first moment, as a task may have been in another group then.
pub(crate) fn own(before: &[Task], after: &[Task], scan: &Scan, span: Duration) -> Own {
    let earlier: HashMap<u32, (Scheduled, char)> = before
        .iter()
        .filter_map(|task| Some((task.process.pid, (task.scheduled?, task.process.state))))
        .collect();
    let mut own = Own::default();
    let mut by_cpu: BTreeMap<u32, Duration> = BTreeMap::new();
    let mut realtime = RealtimeFacts::default();
    for task in after {
        let Some(now) = task.scheduled else { continue };
        let pid = task.process.pid;
        let elsewhere = || Some((*scan.get(&pid)?, UNKNOWN));
        let was = earlier.get(&pid).copied().or_else(elsewhere);
        let was = was.filter(|(was, _)| was.ran <= now.ran && was.waited <= now.waited);
        let (ran, waited) = match was {
            Some((was, 'R')) if was == now && task.process.state == 'R' => (Duration::ZERO, span),
            Some((was, _)) => (now.ran - was.ran, now.waited - was.waited),
            None => (now.ran, now.waited),
        };
        let ran = ran.min(span);
        let waited = waited.min(span - ran);
        own.ran += ran;
        if task.process.is_realtime() {
            realtime.tasks += 1;
            realtime.waited += waited;
            *by_cpu.entry(task.process.last_cpu).or_default() += ran;
        } else {
            *own.waited.get_or_insert_default() += waited;
        }
    }
    if let Some((cpu, ran)) = by_cpu.into_iter().max_by_key(|(_, ran)| *ran) {
        own.realtime = Some(RealtimeFacts { ran_most: ran, cpu, ..realtime });
        own.waited.get_or_insert_default();
    }
    own
}

/// Looks at the tasks' states for `span`, and sums what they spent in uninterruptible sleep.
pub(crate) fn blocked(host: &Host, group: &GroupName, span: Duration) -> Duration {
    let begun = Instant::now();
    let step = span / STATES;
    let mut tasks: Vec<u32> = Vec::new();
    let (mut blocked, mut taken) = (0, 0usize);
    loop {
        let elapsed = begun.elapsed();
        if elapsed >= span {
            return span.mul_f64(blocked as f64 / taken.max(1) as f64);
        }
        if taken.is_multiple_of(10) {
            let now = monitor::tasks(host, group).unwrap_or_default();
            tasks = now.iter().map(|task| task.process.pid).collect();
            let frozen = frozen(host, tasks.iter().copied());
            tasks.retain(|tid| !frozen.contains_key(tid));
        }
        let stride = tasks.len().div_ceil(LOOKED_AT).max(1);
        let seen = tasks.iter().skip(taken % stride).step_by(stride);
        blocked += seen.filter(|tid| is_blocked(host, **tid)).count() * stride;
        taken += 1;
        // a look that was missed is not made up for: several at one moment are one
        let turns = elapsed.as_nanos() / step.as_nanos().max(1) + 1;
        let next = step * u32::try_from(turns).unwrap_or(STATES);
        std::thread::sleep(next.min(span).saturating_sub(begun.elapsed()));
    }
}

/// Tasks that a frozen group stopped, each with that group's name. On v1 they look as if they waited for a disk.
pub(crate) fn frozen(host: &Host, tasks: impl IntoIterator<Item = u32>) -> BTreeMap<u32, String> {
    let mut freezers = Freezers::new(host);
    tasks.into_iter().filter_map(|task| Some((task, freezers.stopping(task)?))).collect()
}

fn is_blocked(host: &Host, tid: u32) -> bool {
    let text = host.kernel().outside(format!("/proc/{tid}/stat").as_ref()).unwrap_or_default();
    units::ProcStat::parse(text.as_bytes()).and_then(|stat| stat.state()) == Some('D')
}
