//! Experiments on this machine: groups, workloads, measurements. What is compared and what the figures say is the
//! business of the crate `experiment`; cgroup files are opened by `kernel` alone.

mod error;
mod files; // regular files, bounded
mod own_directory; // the only writer of results
mod policy; // a thread's scheduling policy
mod stop; // an end that was requested
mod urgent; // the lab before what it measures

mod options; // what a workload's hidden subcommand is reported
mod program; // and how that subcommand is reached
mod start; // what every workload's process has

mod loopdev; // a block device to read from
mod oltp; // the built-in server and its clients

mod driver; // what an experiment asks of a workload
pub mod drivers; // what answers: real tools
pub mod workloads; // and built-in workloads

mod enter; // how processes get into their groups
mod groups; // the groups of an experiment
mod load; // what the machine does besides

pub mod run; // the experiment itself

pub use driver::{Driver, Launch, Outcome, Site, Span, Timing};
pub use enter::main_enter;
pub use error::Error;
pub use loopdev::LoopDevice;
pub use oltp::{main_oltp_clients, main_oltp_server};
pub use own_directory::OwnDirectory;
pub use program::Program;
pub use stop::Stop;
