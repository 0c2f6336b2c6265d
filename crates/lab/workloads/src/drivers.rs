//! The drivers: each makes a workload's data, starts it, ends it, and reads its figures, as [`Driver`] wants it. What a
//! tool prints is read as that tool's own; nothing is estimated. A driver never writes a setting or moves a process.

mod bounded_log; // what a tool prints
mod distribution; // latencies, however a tool says them
pub mod process; // a tool while it runs
mod programs; // where tools are, and how they are installed
mod reaped; // how it ended, and what it used
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
mod rtla;
mod stress_ng;
mod sysbench;

use experiment::file;
use units::Bytes;

use crate::{BuiltIn, Cpu, Cyclic, Driver, Error, Failure, Load, LogicalIo, Program, Reader, Workload};

/// The driver of a workload. `program` is this program with the hidden subcommand of built-in workloads; names of CPU sets
/// in the options are filled in already.
///
/// # Errors
/// An option has no meaning.
pub fn new(driver: &file::Driver, program: &Program) -> Result<Box<dyn Driver>, Error> {
    Ok(match driver {
        file::Driver::Pgbench(options) => Box::new(pgbench::Pgbench::new(options)?),
        file::Driver::Fio(options) => Box::new(fio::Fio::new(options)?),
        file::Driver::Cyclictest(options) => Box::new(cyclictest::Cyclictest::new(options)?),
        file::Driver::Sysbench(options) => Box::new(sysbench::Sysbench::new(options)),
        file::Driver::StressNg(options) => Box::new(stress_ng::StressNg::new(options)),
        file::Driver::Rtla(options) => Box::new(rtla::Rtla::new(options)?),
        file::Driver::Command(options) => Box::new(command::AnyProgram::new(options)?),
        file::Driver::Oltp(options) => Box::new(oltp::Oltp::new(options)?),
        file::Driver::Cpu(options) => {
            let threads = options.threads.parse();
            let threads = threads.map_err(|_| wrong("threads", &options.threads, "it is no number"))?;
            built_in(program, Cpu { threads })
        }
        file::Driver::Read(options) => {
            let block = options.block.parse::<Bytes>();
            let block = block.map_err(|error| wrong("block", &options.block, &error.to_string()))?.0;
            built_in(program, Reader { device: options.device.clone(), block, depth: options.depth.into() })
        }
        file::Driver::Cyclic(options) => built_in(program, Cyclic(options.clone())),
        file::Driver::LogicalIo(options) => built_in(program, LogicalIo(options.clone())),
        file::Driver::Busy(options) => built_in(program, Load::busy(options.clone())),
        file::Driver::Sleepers(options) => built_in(program, Load::sleepers(options.clone())),
        file::Driver::Writers(options) => built_in(program, Load::writers(options.clone())),
        file::Driver::IdlePoll(options) => built_in(program, Load::idle_poll(options.clone())),
    })
}

fn built_in<W: Workload + Send + 'static>(program: &Program, workload: W) -> Box<dyn Driver> {
    Box::new(BuiltIn::new(program.clone(), workload))
}

fn wrong(option: &'static str, value: &str, reason: &str) -> Error {
    Failure::Option { option, value: value.to_owned(), reason: reason.to_owned() }.into()
}
