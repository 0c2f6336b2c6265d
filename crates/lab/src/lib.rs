//! Experiments: workloads that are measured, the conditions they run under, and what the figures say. Groups are
//! made and set through [`Division`] alone, by whoever calls; nothing here opens a cgroup file.

mod error;

mod options; // what a workload's hidden subcommand is told
mod reader;
mod start; // its barrier: all begin at the same instant
mod worker; // CPU work // direct reads of a block device

mod child; // the same, seen from the process that starts them
mod load;
mod loopdev; // a block device to read from // what else the machine was doing

mod division; // the caller's side: groups and their settings
mod statistics;

pub mod demo;

pub use child::{Child, Program, run_together};
pub use division::{Division, Refused};
pub use error::Error;
pub use load::Others;
pub use loopdev::LoopDevice;
pub use reader::{Latency, ReadReport, main_read};
pub use statistics::{Spread, spread};
pub use worker::{CpuReport, main_cpu};
