//! The calling thread's scheduling policy (sched(7)).
#![allow(unsafe_code, reason = "sched_setscheduler(2) has no safe wrapper; the one call says what holds")]

use std::{ffi::c_int, io};

/// SCHED_FIFO: runs before all others, until it sleeps.
///
/// # Errors
/// The kernel's refusal; [`super::cyclic`] says what it means.
pub(super) fn set_fifo(priority: u32) -> io::Result<()> {
    set(libc::SCHED_FIFO, i32::try_from(priority).unwrap_or(0))
}

/// SCHED_IDLE: runs where nobody else of the group wants to.
///
/// # Errors
/// The kernel's refusal.
pub(super) fn set_idle() -> io::Result<()> {
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
