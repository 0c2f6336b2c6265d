//! The noise probe's process: a thread on each CPU, all watching at the same time.

use std::{
    io,
    sync::{
        Barrier,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use kernel::threads;
use units::CpuSet;

use crate::interruptions::noise::{Noise, Policy, on_this_cpu};

/// The line that the process prints when its threads are on their CPUs.
pub const READY: &str = "ready";

/// Watches these CPUs for a span; `ready` is called when all threads are on their CPUs and about to begin.
///
/// # Errors
/// A CPU that the calling process may not use, and why.
pub fn watch(
    cpus: &CpuSet,
    span: Duration,
    threshold: Duration,
    stop: &AtomicBool,
    ready: impl FnOnce(),
) -> Result<Vec<Noise>, (usize, io::Error)> {
    let (placed, begin) = (Barrier::new(cpus.len() + 1), Barrier::new(cpus.len() + 1));
    let failed = AtomicBool::new(false);
    thread::scope(|scope| {
        let one = |cpu: usize| {
            let (placed, begin, failed) = (&placed, &begin, &failed);
            scope.spawn(move || {
                let policy = place(cpu);
                failed.fetch_or(policy.is_err(), Ordering::Relaxed);
                placed.wait();
                begin.wait();
                let policy = policy.map_err(|error| (cpu, error))?;
                if failed.load(Ordering::Relaxed) {
                    return Ok(None);
                }
                Ok(Some(on_this_cpu((cpu, policy), span, threshold, stop)))
            })
        };
        let threads: Vec<_> = cpus.iter().map(one).collect();
        placed.wait();
        // before they begin: real-time threads on all CPUs of a group leave this one none
        if !failed.load(Ordering::Relaxed) {
            ready();
        }
        begin.wait();
        let seen = threads.into_iter().map(|thread| {
            let lost = |_| Err((0, io::Error::other("the probe's thread ended by a defect")));
            thread.join().unwrap_or_else(lost)
        });
        Ok(seen.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
    })
}

/// Puts the calling thread on the CPU, before other tasks where that is allowed.
fn place(cpu: usize) -> io::Result<Policy> {
    threads::set_cpus(&[cpu].into_iter().collect())?;
    // without the right to it, or a budget of its group, it is one of many
    Ok(threads::set_fifo(1).map_or(Policy::Other, |()| Policy::Fifo))
}
