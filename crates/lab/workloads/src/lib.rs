//! What an experiment asks of a workload ([`Driver`]), and the built-in workloads, each as a driver: a process of its own (a
//! hidden subcommand) that works until a report is requested of a span of time. None of them changes a setting.

mod error;
mod failure; // of a tool
pub mod files; // regular files, bounded
mod stop; // an end that was requested
pub mod urgent; // the lab before what it measures

mod options; // of a workload's hidden subcommand
mod program; // and how that subcommand is reached
mod start; // what every workload's process has

mod driver; // what an experiment asks of a workload

mod latency; // what it says of times that it knows one by one
mod stop_request; // how a process is ended, seen from inside

mod built_in; // the driver, one for all of them
mod process; // how a process is ended, seen from the driver

mod cpu; // CPU work
mod cyclic; // latency of wake-ups
mod loads; // disturbances
mod logical_io; // a buffer cache with instance caging
pub mod oltp; // a server and its clients
mod read; // direct reads of a device

pub mod drivers; // tools, and which driver a workload has

pub use built_in::{BuiltIn, Workload};
pub use cpu::{Cpu, CpuReport, main_cpu};
pub use cyclic::{Cyclic, CyclicReport, main_cyclic};
pub use driver::{Divided, Driver, Launch, Outcome, Site, Span, Timing};
pub use error::Error;
pub use failure::Failure;
pub use loads::{Load, LoadReport, main_load};
pub use logical_io::{LogicalIo, LogicalIoReport, ProfileLine, TopEvent, Work, main_logical_io};
pub use program::Program;
pub use read::{ReadReport, Reader, main_read};
pub use start::process_cpu_time;
pub use stop::Stop;
