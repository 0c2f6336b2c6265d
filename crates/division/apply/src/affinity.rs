//! Keeps the tasks of a group off CPUs that another group has for itself, and gives them back. Changes threads'
//! affinities and nothing else: no task changes its group.

use std::collections::BTreeSet;

use kernel::{GroupName, Op};
use plan::{Instead, Place};
use rustix::io::Errno;
use units::CpuSet;

use crate::{
    Error, Unmoved,
    entry::Entry,
    journal::Journal,
    performer::{Performer, bring_online, unwritable},
    record::Affinity,
};

/// Threads may be started while others are moved: passes end when one finds nobody new. One that starts threads
/// faster than this has had its chance: a thread inherits its maker's affinity, which is moved by then.
const MAX_PASSES: usize = 10;

/// Moves every thread in the group itself away from `cpus` and reports those that refuse.
pub(crate) fn move_away(
    performer: &mut Performer<'_>,
    step: usize,
    entry: &Entry,
    (place, cpus, to): (Place, &CpuSet, &CpuSet),
    journal: &mut Journal<'_>,
) -> Result<Vec<Unmoved>, Error> {
    let system = performer.system();
    let mut unmoved: Vec<Unmoved> = Vec::new();
    for _ in 0..MAX_PASSES {
        let mut found = false;
        for thread in threads(performer, &place) {
            if unmoved.iter().any(|known| known.thread == thread) {
                continue;
            }
            let (Ok(actual), Ok(started)) = (system.affinity(thread), system.started(thread)) else {
                continue;
            };
            if actual.is_disjoint(cpus) {
                continue;
            }
            found = true;
            let rest = actual.difference(cpus);
            let new = if rest.is_empty() { to } else { &rest };
            let instead = Instead { cpus: new.clone(), since: system.ticks() };
            let before = Affinity { thread, started, cpus: actual.clone(), instead: Some(instead) };
            journal.thread(step, &before).map_err(unwritable)?;
            performer.affinities.push((step, before.clone()));
            match system.set_affinity(thread, new) {
                Ok(()) | Err(Errno::SRCH) => {}
                Err(errno) => unmoved.extend(refuser(performer, entry, &before, errno)?),
            }
        }
        if !found {
            break;
        }
    }
    Ok(unmoved)
}

/// Threads of the kernel may refuse; anybody else's refusal is an error. A worker of the kernel that was bound to its CPU may
/// have ended since it refused: then there is nobody to name.
fn refuser(
    performer: &Performer<'_>,
    entry: &Entry,
    before: &Affinity,
    errno: Errno,
) -> Result<Option<Unmoved>, Error> {
    let thread = before.thread;
    match performer.host().kernel().process(thread) {
        Ok(process) if errno == Errno::INVAL && (process.kernel_thread || process.bound) => {
            Ok(Some(Unmoved { thread, comm: process.comm, cpus: before.cpus.clone() }))
        }
        _ if performer.system().started(thread) != Ok(before.started) => Ok(None),
        _ => Err(performer.refused(Op::Move { pid: thread }, entry, None, None, errno)),
    }
}

/// Gives threads the CPUs that they had, and those that came since what their makers had. One that ended meanwhile
/// needs none. What of that the kernel did not give is the answer.
pub(crate) fn restore(
    performer: &mut Performer<'_>,
    step: usize,
    entry: &Entry,
    (place, threads): (&Place, &[Affinity]),
    journal: &mut Journal<'_>,
) -> Result<Option<String>, Error> {
    let system = performer.system();
    let mut lacking = Lacking::default();
    let mut due = threads.to_vec();
    for _ in 0..MAX_PASSES {
        for before in &due {
            if system.started(before.thread) != Ok(before.started) {
                continue; // another one by now
            }
            let Ok(actual) = system.affinity(before.thread) else { continue };
            if actual == before.cpus {
                continue;
            }
            let now = Affinity { cpus: actual, instead: None, ..before.clone() };
            journal.thread(step, &now).map_err(unwritable)?;
            performer.affinities.push((step, now));
            match system.set_affinity(before.thread, &before.cpus) {
                Ok(()) => lacking.look(performer, before),
                Err(Errno::SRCH) => {}
                // a worker of the kernel that was bound to a CPU since then
                Err(errno) => drop(refuser(performer, entry, before, errno)?),
            }
        }
        due = came_since(performer, place, threads);
        if due.is_empty() {
            break;
        }
    }
    Ok(lacking.in_words(performer))
}

/// Threads that did not get all their CPUs back: before Linux 6.3 a thread can't be given one that is offline, and the kernel
/// leaves it out without a word.
#[derive(Default)]
struct Lacking {
    threads: Vec<u32>,
    cpus: CpuSet,
}

impl Lacking {
    /// What a thread has, now that it was given what it had before.
    fn look(&mut self, performer: &Performer<'_>, before: &Affinity) {
        let (Ok(actual), Some(online)) = (performer.system().affinity(before.thread), performer.online())
        else {
            return;
        };
        let offline = before.cpus.difference(&actual).difference(&online);
        if !offline.is_empty() {
            self.threads.push(before.thread);
            self.cpus = self.cpus.union(&offline);
        }
    }

    fn in_words(&self, performer: &Performer<'_>) -> Option<String> {
        const NAMED: usize = 3;
        let name = |thread: &u32| match performer.host().kernel().process(*thread) {
            Ok(process) => format!("{thread} ({})", process.comm),
            Err(_) => thread.to_string(),
        };
        let named: Vec<String> = self.threads.iter().take(NAMED).map(name).collect();
        let more = self.threads.len().saturating_sub(NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let (threads, lack) = if self.threads.len() == 1 { ("thread", "lacks") } else { ("threads", "lack") };
        let fix: Vec<String> = self.cpus.iter().map(bring_online).collect();
        (!named.is_empty()).then(|| {
            format!(
                "{threads} {}{more} {lack} CPUs {}, which are offline and before Linux 6.3 can't be given to a thread \
                 ({}, then the next undo or apply gives them back)",
                named.join(", "),
                self.cpus,
                fix.join("; ")
            )
        })
    }
}

/// Threads of the group that were started since others in it got other CPUs, and have those of their maker, each with
/// what the maker had before. Where the maker is gone, all who got the same have to have had the same.
pub(crate) fn came_since(performer: &Performer<'_>, place: &Place, moved: &[Affinity]) -> Vec<Affinity> {
    let (system, kernel) = (performer.system(), performer.host().kernel());
    let known: BTreeSet<(u32, u64)> = moved.iter().map(|one| (one.thread, one.started)).collect();
    let got: Vec<(&Affinity, &Instead)> =
        moved.iter().filter_map(|one| Some((one, one.instead.as_ref()?))).collect();
    let came = threads(performer, place).into_iter().filter_map(|thread| {
        let actual = system.affinity(thread).ok()?;
        let mut makers = got.iter().filter(|(_, instead)| instead.cpus == actual).peekable();
        makers.peek()?;
        let started = system.started(thread).ok().filter(|started| !known.contains(&(thread, *started)))?;
        let makers: Vec<&Affinity> =
            makers.filter(|(_, instead)| instead.since <= started).map(|(maker, _)| *maker).collect();
        // the kernel gives those of its own that are bound their CPUs
        let process = kernel.process(thread).ok().filter(|process| !process.bound)?;
        let own = makers.iter().find(|maker| [process.tgid, process.parent].contains(&maker.thread));
        let first = makers.first().filter(|first| makers.iter().all(|maker| maker.cpus == first.cpus));
        Some(Affinity { thread, started, ..(*own.or(first)?).clone() })
    });
    came.collect()
}

/// The threads in the group itself.
fn threads(performer: &Performer<'_>, place: &Place) -> Vec<u32> {
    let text = performer.content(place, "tasks").or_else(|| performer.content(place, "cgroup.threads"));
    let text = text.unwrap_or_default();
    text.lines().filter_map(|line| line.parse().ok()).collect()
}

/// Puts threads' CPUs back after a failure, as far as that goes; says what is left.
pub(crate) fn put_back(performer: &Performer<'_>, entry: &Entry, threads: &[Affinity]) -> Vec<String> {
    let system = performer.system();
    let group: GroupName = entry.group.clone();
    let came = entry.action.place().map(|place| came_since(performer, place, threads)).unwrap_or_default();
    let (mut left, mut lacking) = (Vec::new(), Lacking::default());
    for before in threads.iter().rev().chain(&came) {
        if system.started(before.thread) != Ok(before.started)
            || system.affinity(before.thread).is_ok_and(|actual| actual == before.cpus)
        {
            continue;
        }
        match system.set_affinity(before.thread, &before.cpus) {
            Ok(()) => lacking.look(performer, before),
            Err(Errno::SRCH) => {}
            Err(errno) if refuser(performer, entry, before, errno).is_ok() => {}
            Err(errno) => left.push(format!(
                "the CPUs {} of thread {} in group '{group}': {}",
                before.cpus,
                before.thread,
                kernel::describe(errno)
            )),
        }
    }
    left.extend(lacking.in_words(performer));
    left
}
