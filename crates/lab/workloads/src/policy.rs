//! The calling thread's scheduling policy (sched(7)).
#![allow(unsafe_code, reason = "sched_setscheduler(2) has no safe wrapper; the one call says what holds")]

use std::{ffi::c_int, io};

/// SCHED_RR of the lowest priority, which processes and threads that it starts do not get.
///
/// # Errors
/// The kernel's refusal: it needs CAP_SYS_NICE, and a budget of the thread's group where groups have one.
pub(crate) fn set_urgent() -> io::Result<()> {
    set(libc::SCHED_RR | libc::SCHED_RESET_ON_FORK, 1)
}

/// SCHED_OTHER: as every other thread.
///
/// # Errors
/// The kernel's refusal.
pub(crate) fn set_other() -> io::Result<()> {
    set(libc::SCHED_OTHER, 0)
}

/// SCHED_FIFO: runs before all others, until it sleeps.
///
/// # Errors
/// The kernel's refusal; [`crate::cyclic`] says what it means.
pub(crate) fn set_fifo(priority: u32) -> io::Result<()> {
    set(libc::SCHED_FIFO, i32::try_from(priority).unwrap_or(0))
}

/// SCHED_IDLE: runs where nobody else of the group wants to.
///
/// # Errors
/// The kernel's refusal.
pub(crate) fn set_idle() -> io::Result<()> {
    set(libc::SCHED_IDLE, 0)
}

fn set(policy: c_int, sched_priority: c_int) -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority };
    // SAFETY: 0 is the calling thread, and the kernel only reads the parameters, which live until it returns
    match unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
