//! What this machine has beside cgroups, as far as values and rules ask for it: its users and groups, its memory, CPUs,
//! devices and processes. It never writes.

mod accounts;
mod facts;
mod process;

pub use accounts::{AccountError, Accounts};
pub use facts::{Live, whole_disks};
pub use process::{Gone, Process, ProcessReader, Stat, Status};
