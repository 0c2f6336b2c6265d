//! The end of a child, with what the kernel counted of it. The standard library leaves that out.
#![allow(unsafe_code, reason = "wait4(2) has no safe wrapper; the one call says what holds")]

use std::{
    io,
    mem::MaybeUninit,
    os::unix::process::ExitStatusExt,
    process::{Child, ExitStatus},
    time::Duration,
};

/// What a child used, and all of its own children that it waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Used {
    /// CPU time.
    pub cpu: Duration,
    /// Most memory at a time of the process that had most, in bytes; that of what started it counts.
    pub peak: u64,
}

/// Waits for its end.
///
/// # Errors
/// It was waited for already.
pub(crate) fn reap(child: &Child) -> io::Result<(ExitStatus, Used)> {
    let pid = i32::try_from(child.id()).map_err(io::Error::other)?;
    let (mut status, mut usage) = (0, MaybeUninit::<libc::rusage>::zeroed());
    // SAFETY: both places live through the call, which only writes to them, and all zeros are a rusage.
    let (ended, usage) =
        unsafe { (libc::wait4(pid, &raw mut status, 0, usage.as_mut_ptr()), usage.assume_init()) };
    match ended {
        -1 => match io::Error::last_os_error() {
            error if error.kind() == io::ErrorKind::Interrupted => reap(child),
            error => Err(error),
        },
        _ => {
            let time = |time: libc::timeval| {
                let whole = Duration::from_secs(time.tv_sec.unsigned_abs());
                whole + Duration::from_micros(time.tv_usec.unsigned_abs())
            };
            let cpu = time(usage.ru_utime) + time(usage.ru_stime);
            // the kernel has it in KiB
            let used = Used { cpu, peak: usage.ru_maxrss.unsigned_abs() << 10 };
            Ok((ExitStatus::from_raw(status), used))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{process::Command, time::Instant};

    use super::*;

    #[test]
    fn what_a_child_and_its_own_children_used_is_known() {
        // the shell waits for what it starts
        let busy = "n=0; while [ $n -lt 100000 ]; do n=$((n+1)); done; exit 3";
        let begun = Instant::now();
        #[expect(clippy::zombie_processes)] // reap() waits for it
        let child = Command::new("sh").args(["-c", &format!("sh -c '{busy}'; exit 3")]).spawn().unwrap();
        let (status, used) = reap(&child).unwrap();
        assert_eq!(status.code(), Some(3));
        assert!(!used.cpu.is_zero() && used.cpu <= begun.elapsed(), "{used:?}");
        assert!(used.peak > 100 << 10, "{used:?}");
        assert!(reap(&child).is_err());
    }
}
