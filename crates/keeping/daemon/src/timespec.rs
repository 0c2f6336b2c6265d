//! Times as the kernel's calls take them.

use std::time::Duration;

use rustix::event::Timespec;

/// For poll(2).
pub(crate) fn timespec(time: Duration) -> Timespec {
    Timespec { tv_sec: time.as_secs().try_into().unwrap_or(i64::MAX), tv_nsec: time.subsec_nanos().into() }
}
