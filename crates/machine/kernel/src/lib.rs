//! The only crate that touches cgroupfs. It says which hierarchies there are (v1, v2 or both), where our groups
//! live in them, makes and removes groups, reads and writes their files, moves tasks, freezes and kills, and
//! turns every refusal into its cause. It holds no policy: what to write is decided elsewhere.

pub mod bpf;
mod descriptor;
mod error;
mod explain;
mod explain_write;
mod host;
mod interface;
mod mounts;
mod owners;
mod procfs;
mod real;
mod scene;
mod values;

mod bring;
mod charges;
mod control;
mod control_files;
mod deletion;
mod device_rules;
mod freezers;
mod groups;
mod listing;
mod mount;
mod protected;
mod reclaim;
mod run;
mod stragglers;
mod tasks;
mod unit;
mod unit_groups;

// beside groups: a thread's CPUs, and all that the machine offers
pub mod probe;
pub mod threads;

pub use bring::Brought;
pub use charges::LeftBehind;
pub use control::{State, kill, set_frozen, signal};
pub use deletion::Contents;
pub use descriptor::{read_path, write_to};
pub use error::{Error, OfUnit, Op, Refusal, describe};
pub use freezers::Freezers;
pub use groups::{Access, Created, Wanted, Who};
pub use host::{Host, Seat, base};
pub use interface::{Hierarchy, Kernel, Ownership, Process};
pub use listing::Listing;
pub use mount::{mount_cgroup, mount_v1, needs_to_mount, unmount_cgroup, unmount_v1};
pub use owners::{Change, Owner, refuse_foreign, set_command, thaw_command};
pub use procfs::{group_in, group_lines};
pub use protected::{PROTECTED, Protection, protected, started};
pub use real::Real;
pub use reclaim::{RECLAIM, use_above, write_reclaiming};
pub use run::{CLONE_INTO_CGROUP, Program, ProgramEnd, last_errno};
pub use settings::GroupName;
pub use tasks::{Moved, What};
pub use unit::{UnitError, is_unit_name, unit_group, unit_of};
