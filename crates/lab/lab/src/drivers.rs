//! The drivers: each makes a workload's data, starts it, ends it, and reads its figures, as [`Driver`] wants it. What a
//! tool prints is read as that tool's own; nothing is estimated. A driver never writes a setting or moves a process.

mod bounded_log; // what a tool prints
mod distribution; // latencies, however a tool says them
mod failure;
pub(crate) mod process; // a tool while it runs
mod programs; // where tools are, and how they are installed
mod series; // rates over time
mod transaction_log; // of pgbench and of whatever logs alike
mod transactions; // clients that do

mod delayed; // a tool that begins when the warm-up is over

mod command; // any program
mod cyclictest;
mod fio;
mod oltp; // built-in
mod pgbench;
mod postgresql; // the server that pgbench works on
mod stress_ng;
mod sysbench;

use experiment::file;

use crate::{Driver, Error};
pub use failure::Failure;

/// The driver of a workload.
///
/// # Errors
/// An option has no meaning.
pub fn new(driver: &file::Driver) -> Result<Box<dyn Driver>, Error> {
    Ok(match driver {
        file::Driver::Pgbench(options) => Box::new(pgbench::Pgbench::new(options)?),
        file::Driver::Fio(options) => Box::new(fio::Fio::new(options)?),
        file::Driver::Cyclictest(options) => Box::new(cyclictest::Cyclictest::new(options)?),
        file::Driver::Sysbench(options) => Box::new(sysbench::Sysbench::new(options)),
        file::Driver::StressNg(options) => Box::new(stress_ng::StressNg::new(options)),
        file::Driver::Command(options) => Box::new(command::AnyProgram::new(options)?),
        file::Driver::Oltp(options) => Box::new(oltp::Oltp::new(options)?),
        other => return Err(Failure::NoDriver { driver: format!("{other:?}") }.into()),
    })
}
