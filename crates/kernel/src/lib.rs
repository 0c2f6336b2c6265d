//! The only crate that touches cgroupfs. It says which hierarchies there are (v1, v2 or both), where our groups
//! live in them, makes and removes groups, reads and writes their files, moves tasks, freezes and kills, and
//! turns every refusal into its cause. It holds no policy: what to write is decided elsewhere.

mod error;
mod explain;
mod explain_write;
mod host;
mod interface;
mod mounts;
mod owners;
mod procfs;
mod real;

pub mod facts;
pub mod fake;

mod charges;
mod control;
mod deletion;
pub mod device_program;
mod groups;
mod mount;
mod protected;
mod reclaim;
mod run;
mod stragglers;
mod systemd;
mod tasks;

pub use charges::LeftBehind;
pub use control::{State, kill, set_frozen, signal};
pub use deletion::Contents;
pub use device_program::{DeviceAccess, DeviceFilter};
pub use error::{Error, Op, Refusal, describe};
pub use fake::{Fake, Snapshot, Values};
pub use groups::{Access, Created, Wanted, Who};
pub use host::{Base, Host, Seat};
pub use interface::{Hierarchy, Kernel, Ownership, Process};
pub use mount::{mount_cgroup, mount_v1, needs_to_mount, unmount_cgroup, unmount_v1};
pub use owners::Owner;
pub use procfs::{group_in, group_lines};
pub use protected::{PROTECTED, Protection, protected};
pub use real::{Real, write_to};
pub use reclaim::write_reclaiming;
pub use run::{Ended, Program};
pub use settings::GroupName;
pub use systemd::{UnitError, ensure_unit, unit_of, unit_property};
pub use tasks::{Moved, What};
