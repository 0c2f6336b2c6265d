//! What slowed a group down in the last seconds, ranked, with the numbers and the command that would change it.
//!
//! The way: [`gather()`] looks at a group twice and makes [`Facts`]; [`why`] makes an [`Answer`] of them, pure; its
//! `Display` says it in words. Never changes anything: a hint is text.
//!
//! # What "lost" means
//! All causes have one currency: seconds of tasks' time in which a task could have continued and did not. A cause's
//! share is its seconds of all that the group's tasks used and lost, so that the shares and the use add up to the
//! whole. What the kernel measures is marked as measured; where it measures nothing (cgroup v1 counts no waiting for
//! memory or I/O), states of tasks are sampled, or a bound is marked as a bound and counted half: the truth lies
//! between none of it and all.
//!
//! A single wait may have several reasons. It is given to the one whose removal would have ended it: first to the quota,
//! which holds though CPUs were free, and in a period that used it up costs the wait for others too; then to others that
//! ran on the group's CPUs, as far as they ran; the rest is its own tasks waiting for each other.

mod facts;

mod advice;
mod answer;
mod blocked;
mod by_load;
mod causes;
mod cpu;
mod docs;
mod io;
mod judge;
mod memory;
mod room;
mod stopped;
mod thresholds;

mod words;

mod gather;
mod killed;
mod records;
mod scan;

#[cfg(test)]
mod tests;

pub use answer::{Answer, Cause, Certainty, Choice, Lost, Note, NoteKind, Number};
pub use causes::{Effect, Kind};
pub use docs::{list, markdown};
pub use facts::{
    Busiest, ByLoad, CpuFacts, DeviceFacts, Facts, FrozenPart, Halt, InvalidPartition, IoFacts, Level,
    MemoryFacts, MemoryStop, NodeFacts, Other, Quota, RealtimeFacts, Resized, Throttle,
};
pub use gather::{gather, gather_while};
pub use judge::why;
pub use killed::{KernelKills, Kills, all_kills, kill_log, named, sentence};
pub use records::gather_recorded;
