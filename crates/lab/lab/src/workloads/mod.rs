//! The built-in workloads, and each as an experiment's driver: a process of its own (a hidden subcommand) that works until
//! it reports what it did in a span of time, and a [`crate::Driver`] that starts and asks it. None of them changes a
//! setting.

mod latency; // what it says of times that it knows one by one
mod stop_request; // how a process is ended, seen from inside

mod built_in; // the driver, one for all of them
mod process; // how a process is ended, seen from the driver

mod cpu; // CPU work
mod cyclic; // latency of wake-ups
mod loads; // disturbances
mod logical_io; // a buffer cache with instance caging
mod read; // direct reads of a device

pub use built_in::{BuiltIn, Workload};
pub use cpu::{Cpu, CpuReport, main_cpu};
pub use cyclic::{Cyclic, CyclicReport, main_cyclic};
pub use loads::{Load, LoadReport, main_load};
pub use logical_io::{LogicalIo, LogicalIoReport, ProfileLine, TopEvent, Work, main_logical_io};
pub use read::{ReadReport, Reader, main_read};
