//! Experiments on this machine: groups, workloads, measurements. What is compared and what the figures say is the
//! business of the crate `experiment`; cgroup files are opened by `kernel` alone.

mod error;
mod own_directory; // the only writer of results

mod loopdev; // a block device to read from

mod groups; // the groups of an experiment
mod load; // what the machine does besides
mod spawn; // how processes get into their groups

pub mod run; // the experiment itself

pub use error::Error;
pub use loopdev::LoopDevice;
pub use own_directory::OwnDirectory;
pub use spawn::main_enter;
