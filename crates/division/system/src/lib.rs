//! What this machine has beside cgroups, as far as values and rules need it: its users and groups, its memory, CPUs,
//! devices and processes, and its configuration files. It never writes.

mod accounts;
mod facts;
pub mod files;
mod process;
mod program;
mod status;
mod time_zones;

pub use accounts::{AccountError, Accounts};
pub use facts::{Live, block_device, block_device_name, tasks_max, whole_disks};
pub use process::{NoProcess, Process, ProcessReader};
pub use program::{Program, runs_script};
pub use status::{KTHREADD, Stat, Status};
pub use time_zones::TimeZones;
