//! v1's limits of memory, set below what a group uses. One write reclaims once over and then gives up (EBUSY), however
//! much it reclaimed; v2's `memory.max` goes on by itself (cgroup-v2.rst).

use std::time::Duration;

use rustix::io::Errno;
use settings::Version;

use crate::{
    Hierarchy, Kernel,
    protected::{freezes, protected_in},
};

/// v2's file for bytes that a group is to give up (Linux 5.19).
pub const RECLAIM: &str = "memory.reclaim";

/// Give up after this many writes in a row without progress: the first only clears the accessed bit of pages in use (seen:
/// a busy program with 200 MB refused 100 MB at the first write, and gave it at the second).
const IN_VAIN: u32 = 3;
/// Between two writes: the kernel frees some pages late.
const PAUSE: Duration = Duration::from_millis(10);

/// A write to a group's file. That of a limit is repeated as long as the group's use falls by it. A write that would
/// freeze the daemon or its exec gate ([`crate::protected`]) is refused.
///
/// # Errors
/// The kernel's errno; `EBUSY` if no more could be reclaimed, or for a protected process.
pub fn write_reclaiming(
    kernel: &dyn Kernel,
    at: &Hierarchy,
    group: &str,
    file: &str,
    text: &str,
) -> Result<(), Errno> {
    if freezes(file, text) && protected_in(kernel, at, group).is_some() {
        return Err(Errno::BUSY);
    }
    let usage = match at.version {
        Version::V1 => settings::usage(Version::V1, file),
        Version::V2 => None,
    };
    let Some(usage) = usage else {
        return kernel.write(at, group, file, text);
    };
    let used = || kernel.read(at, group, usage).ok()?.trim().parse().ok();
    while_it_falls(|| kernel.write(at, group, file, text), used)
}

/// The use of a group, in bytes, that a v2 limit would have the kernel kill for: what could be reclaimed (Linux 5.19)
/// was, and it is still above the limit. `None` where the limit can be written. v1 refuses such a limit by itself.
pub fn use_above(kernel: &dyn Kernel, at: &Hierarchy, group: &str, file: &str, text: &str) -> Option<u64> {
    if at.version != Version::V2 {
        return None;
    }
    let usage = settings::usage(Version::V2, file)?;
    let limit: u64 = text.trim().parse().ok()?;
    let used = || kernel.read(at, group, usage).ok()?.trim().parse::<u64>().ok();
    let over = || used()?.checked_sub(limit).filter(|over| *over > 0);
    over()?;
    let reclaimed =
        while_it_falls(|| reclaim(over, |bytes| kernel.write(at, group, RECLAIM, &bytes.to_string())), used);
    // an older kernel has no such file: what are pages of files it drops by itself
    let dropped = if reclaimed == Err(Errno::NOENT) { cached(kernel, at, group) } else { 0 };
    used().filter(|used| used.saturating_sub(dropped) > limit)
}

/// Reclaims what is over, once; `EBUSY` while anything still is.
fn reclaim(over: impl Fn() -> Option<u64>, write: impl Fn(u64) -> Result<(), Errno>) -> Result<(), Errno> {
    let Some(bytes) = over() else { return Ok(()) };
    match write(bytes) {
        // less could be reclaimed
        Err(Errno::AGAIN) => Err(Errno::BUSY),
        // the use may have grown meanwhile, or the kernel counted pages that it frees late
        Ok(()) => over().map_or(Ok(()), |_| Err(Errno::BUSY)),
        refused => refused,
    }
}

/// Bytes of files that nobody has to write anywhere before they go.
fn cached(kernel: &dyn Kernel, at: &Hierarchy, group: &str) -> u64 {
    let stat = kernel.read(at, group, "memory.stat").unwrap_or_default();
    let counts = stat.lines().filter_map(|line| line.split_once(' '));
    let counts = counts.filter(|(name, _)| matches!(*name, "inactive_file" | "active_file"));
    counts.filter_map(|(_, bytes)| bytes.parse::<u64>().ok()).sum()
}

fn while_it_falls(
    mut write: impl FnMut() -> Result<(), Errno>,
    mut used: impl FnMut() -> Option<u64>,
) -> Result<(), Errno> {
    let (mut least, mut in_vain) = (u64::MAX, 0);
    while in_vain < IN_VAIN {
        match write() {
            Err(Errno::BUSY) => {}
            written => return written,
        }
        let Some(used) = used() else { break };
        if used < least {
            (least, in_vain) = (used, 0);
        } else {
            in_vain += 1;
            std::thread::sleep(PAUSE);
        }
    }
    Err(Errno::BUSY)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// Each write takes so much away, down to what can't be taken; the limit fits where that is reached.
    fn lowered(steps: u64, floor: u64, limit: u64) -> (Result<(), Errno>, u64) {
        let (use_now, writes) = (Cell::new(100_u64), Cell::new(0));
        let write = || {
            writes.set(writes.get() + 1);
            use_now.set(use_now.get().saturating_sub(steps).max(floor));
            if use_now.get() <= limit { Ok(()) } else { Err(Errno::BUSY) }
        };
        (while_it_falls(write, || Some(use_now.get())), writes.get())
    }

    #[test]
    fn a_limit_is_written_again_while_the_use_falls_and_no_longer() {
        assert_eq!(lowered(30, 0, 20), (Ok(()), 3));
        let in_vain = u64::from(IN_VAIN);
        assert_eq!(lowered(30, 50, 20), (Err(Errno::BUSY), 2 + in_vain), "two took something away");
        assert_eq!(lowered(0, 100, 20), (Err(Errno::BUSY), 1 + in_vain));
        assert_eq!(while_it_falls(|| Err(Errno::INVAL), || None), Err(Errno::INVAL));
        assert_eq!(while_it_falls(|| Err(Errno::BUSY), || None), Err(Errno::BUSY));
    }

    /// A write that the kernel took as done left 84 KiB, and the limit was refused.
    #[test]
    fn what_is_left_after_a_write_that_was_taken_is_reclaimed_as_well() {
        let (limit, use_now) = (20_u64, Cell::new(100_u64));
        let over = || use_now.get().checked_sub(limit).filter(|over| *over > 0);
        let write = |bytes: u64| {
            use_now.set(use_now.get() - bytes.div_ceil(2));
            Ok(())
        };
        assert_eq!(while_it_falls(|| reclaim(over, write), || Some(use_now.get())), Ok(()));
        assert_eq!(use_now.get(), limit);
        assert_eq!(reclaim(|| Some(1), |_| Err(Errno::NOENT)), Err(Errno::NOENT));
    }
}
