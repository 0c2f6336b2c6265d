//! What this machine has beside cgroups, as far as values and rules ask for it: its users and groups, its memory, CPUs
//! and devices. It never writes.

mod accounts;
mod facts;

pub use accounts::{AccountError, Accounts};
pub use facts::{Live, whole_disks};
