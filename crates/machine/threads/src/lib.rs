//! The calling thread's scheduling policy (sched(7)) and the CPUs that it may run on.
#![allow(unsafe_code, reason = "sched_setscheduler(2) has no safe wrapper; the one call says what holds")]

use std::{ffi::c_int, io};

use rustix::thread::{CpuSet as Mask, sched_getaffinity, sched_setaffinity};
use units::CpuSet;

/// SCHED_RR of the lowest priority, which processes and threads that it starts do not get.
///
/// # Errors
/// The kernel's refusal: it needs CAP_SYS_NICE, and a budget of the thread's group where groups have one.
pub fn set_urgent() -> io::Result<()> {
    set(libc::SCHED_RR | libc::SCHED_RESET_ON_FORK, 1)
}

/// SCHED_OTHER: as every other thread.
///
/// # Errors
/// The kernel's refusal.
pub fn set_other() -> io::Result<()> {
    set(libc::SCHED_OTHER, 0)
}

/// SCHED_FIFO: runs before all others, until it sleeps.
///
/// # Errors
/// The kernel's refusal: it needs CAP_SYS_NICE, and a budget of the thread's group where groups have one.
pub fn set_fifo(priority: u32) -> io::Result<()> {
    set(libc::SCHED_FIFO, i32::try_from(priority).unwrap_or(0))
}

/// SCHED_IDLE: runs where nobody else of the group wants to.
///
/// # Errors
/// The kernel's refusal.
pub fn set_idle() -> io::Result<()> {
    set(libc::SCHED_IDLE, 0)
}

/// The CPUs that it may run on.
///
/// # Errors
/// The kernel's refusal.
pub fn cpus() -> io::Result<CpuSet> {
    let mask = sched_getaffinity(None)?;
    Ok((0..Mask::MAX_CPU).filter(|cpu| mask.is_set(*cpu)).collect())
}

/// Makes it run on these CPUs alone.
///
/// # Errors
/// The kernel's refusal: `EINVAL` where its group has none of them.
pub fn set_cpus(cpus: &CpuSet) -> io::Result<()> {
    let mut mask = Mask::new();
    cpus.iter().filter(|cpu| *cpu < Mask::MAX_CPU).for_each(|cpu| mask.set(cpu));
    Ok(sched_setaffinity(None, &mask)?)
}

fn set(policy: c_int, sched_priority: c_int) -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority };
    // SAFETY: 0 is the calling thread, and the kernel only reads the parameters, which live until it returns
    match unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
