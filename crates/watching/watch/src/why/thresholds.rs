//! From where on a cause is told, each with its reason.

/// A cause that took less than this part of the time that was looked at is not told: the figures' own grain (ticks of 10 ms
/// in one second; one of [`super::scan::STATES`] looks at the tasks' states) is half of it.
pub(crate) const LEAST_SHARE: f64 = 0.02;

/// `io.max` is looked at where the rate is above this part of it. The rate alone does not tell: a group may have been at the
/// limit for a part of the span only, and on a busy machine each operation that is let through waits for the kernel's
/// workers too (seen: 2 of 5 a second). What was waited for the limit is what was not waited at the device.
pub(crate) const AT_IO_LIMIT: f64 = 0.2;

/// `io.max` is met where this part of it was used over the whole span, whatever the tasks' states were. The kernel lets
/// operations through in slices of a tenth of a second, of which the first and the last of a span are seen in part, and a busy
/// machine lets some pass late (seen: 0.91).
pub(crate) const MET_IO_LIMIT: f64 = 0.8;

/// Fewer operations than this in a span meet a limit by chance.
pub(crate) const LEAST_MET: u64 = 2;

/// Real-time tasks that used this part of their budget in the whole periods of a span have met it: the kernel may stop them
/// a tick early.
pub(crate) const AT_RT_BUDGET: f64 = 0.9;

/// Less remote memory than this part of the whole is not told: the kernel's own per-CPU data and shared pages of files
/// lie anywhere.
pub(crate) const LEAST_REMOTE: f64 = 0.1;

/// v1's limit of memory and swap together is met where usage is above this part of it: Linux 6.18 counts no failures of
/// it, and a group that reclaims is at most some batches of pages below.
pub(crate) const AT_MEMSW_LIMIT: f64 = 0.9;
