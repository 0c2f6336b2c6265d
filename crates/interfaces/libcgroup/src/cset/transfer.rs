//! Tasks go from one set to another, each by itself: one that can't be moved is counted, and keeps none of the others where it
//! is.

use kernel::{Error, What};
use rustix::io::Errno;

use crate::cset::{
    failure::Failure,
    out::Out,
    sets::{Set, Sets},
    tasks::{is_kernel_thread, is_unbound},
};

/// Puts tasks into a set, and says how many could not be found or moved.
pub(crate) fn put(sets: &Sets, to: &Set, tasks: &[u32], out: Out) -> Result<(), Failure> {
    let into = [(sets.seat(to)?, to.group()?)];
    let (mut gone, mut stay) = (0, 0);
    for &task in tasks {
        match is_kernel_thread(sets, task) {
            None => gone += 1,
            Some(true) => match kernel_thread(sets, to, task)? {
                Ok(()) => {}
                Err(Errno::SRCH) => gone += 1,
                Err(_) => stay += 1,
            },
            Some(false) => {
                // on v1 threads of a process may be in different sets
                let what = if sets.is_v1() { What::Thread } else { What::Process };
                match sets.host.move_into(&into, &[task], what) {
                    Ok(_) => {}
                    Err(Error::NoProcess { .. }) => gone += 1,
                    Err(_) => stay += 1,
                }
            }
        }
    }
    out.progress(tasks.len());
    if gone > 0 {
        out.info(&format!("**> {gone} tasks were not found, so were not moved"));
    }
    if stay > 0 {
        out.info(&format!("**> {stay} tasks are not movable, impossible to move"));
    }
    Ok(())
}

/// Those are nobody's, and no command of ours moves them.
fn kernel_thread(sets: &Sets, to: &Set, task: u32) -> Result<Result<(), Errno>, Failure> {
    let seat = sets.seat(to)?;
    let file = if sets.is_v1() { "tasks" } else { "cgroup.procs" };
    Ok(sets.host.kernel().write(seat.at, &seat.path, file, &task.to_string()))
}

/// Which tasks are meant.
pub(crate) struct Selection<'s> {
    /// All of this set, or of the tasks below those in it.
    pub from: Option<&'s Set>,
    pub tasks: Vec<u32>,
    /// Threads of the kernel too, those that may run on all CPUs.
    pub kernel_threads: bool,
    /// And all others.
    pub force: bool,
}

/// How many of them go, and how many stay.
#[derive(Default)]
struct Sorted {
    go: Vec<u32>,
    users: usize,
    kernels: usize,
    bound: usize,
    elsewhere: usize,
    same: usize,
    seen_kernels: usize,
    seen_users: usize,
}

/// Moves the tasks that are meant, as `proc -m` and `proc -k` say it.
pub(crate) fn selected(sets: &Sets, to: &Set, selection: &Selection<'_>, out: Out) -> Result<(), Failure> {
    if selection.from == Some(to) && !selection.force {
        return Err(Failure::new("error, same source/destination cpuset, use --force if ok"));
    }
    let sorted = sort(sets, to, selection);
    if sorted.go.is_empty() {
        out.info("**> no task matched move criteria");
        return match () {
            () if sorted.same > 0 => Err(Failure::new("same source/destination cpuset, use --force if ok")),
            () if !selection.tasks.is_empty() && !selection.kernel_threads => {
                Err(Failure::new("if you want to move kernel threads, use -k"))
            }
            () if sorted.bound > 0 => Err(Failure::new("kernel tasks are bound, use --force if ok")),
            () => Ok(()),
        };
    }
    if sorted.users > 0 {
        out.info(&format!("moving {} userspace tasks to {}", sorted.users, to.path()));
    }
    if sorted.elsewhere > 0 {
        out.info(&format!("--> not moving {} tasks (not in fromset, use --force)", sorted.elsewhere));
    }
    if sorted.kernels > 0 || selection.kernel_threads {
        out.info(&format!("moving {} kernel threads to: {}", sorted.kernels, to.path()));
    }
    if sorted.bound > 0 {
        out.info(&format!("--> not moving {} threads (not unbound, use --force)", sorted.bound));
    }
    if sorted.seen_kernels > 0 && selection.force && !selection.kernel_threads && sorted.seen_users == 0 {
        out.info("*** not moving kernel threads, need both --force and --kthread");
    }
    put(sets, to, &sorted.go, out)
}

fn sort(sets: &Sets, to: &Set, selection: &Selection<'_>) -> Sorted {
    let (inside, there) = (selection.from.map(|from| sets.tasks(from)), sets.tasks(to));
    let mut sorted = Sorted::default();
    for &task in &selection.tasks {
        let is_there = there.contains(&task);
        match is_kernel_thread(sets, task) {
            None => {}
            Some(false) => {
                sorted.seen_users += 1;
                match &inside {
                    _ if selection.force => {}
                    Some(inside) if !inside.contains(&task) => {
                        sorted.elsewhere += 1;
                        continue;
                    }
                    None if is_there => {
                        sorted.same += 1;
                        continue;
                    }
                    _ => {}
                }
                sorted.users += 1;
                sorted.go.push(task);
            }
            Some(true) => {
                sorted.seen_kernels += 1;
                match () {
                    () if !selection.kernel_threads => {}
                    () if selection.force || is_unbound(sets, task) => {
                        sorted.kernels += 1;
                        sorted.go.push(task);
                    }
                    () if is_there => sorted.same += 1,
                    () => sorted.bound += 1,
                }
            }
        }
    }
    sorted
}
