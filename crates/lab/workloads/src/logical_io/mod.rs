//! Study S3's engine: readers of a buffer cache that holds everything, with or without instance caging, as a process of
//! its own. What it takes from the machine it is reported; it sets nothing but its own memory policy.

mod account; // where time goes
mod buffer_cache; // what is read
mod cage; // who may
mod placement; // where it lies

mod driver;
mod engine;
mod report;

#[cfg(test)]
mod tests;

use std::{ffi::OsString, io, time::Duration};

use experiment::file;
use topology::Machine;
use units::{Bytes, NodeSet};

pub use driver::LogicalIo;
pub use report::{LogicalIoReport, ProfileLine, TopEvent, Work};

use self::{engine::Engine, engine::Shape, placement::Placement, report::Circumstances};
use super::stop_request::{Clock, print_report, until_stopped};
use crate::{Error, options::Options, start::die_with};

/// What it is called.
const NAME: &str = "logical I/O engine";

/// The least that no cache holds.
const LEAST: u64 = 1 << 30;

/// How many times the last cache the buffer cache is by default.
const CACHES: u64 = 10;

/// What of all memory it takes at most by default.
const SHARE: u64 = 4;

/// The engine's whole process. Its options are those of [`file::LogicalIo`], with its defaults; and
/// `[--reads-per-execution N]` (64) `[--executions-per-call N]` (16) `[--calls-per-transaction N]` (64), and how it is
/// ended: `[--parent PID]` `[--time-ms T [--warm-up-ms W]]`. Writes `ready`, counts of reads, and its report as one line
/// of JSON.
///
/// # Errors
/// [`Error::Option`], [`Error::System`].
pub fn main_logical_io(words: impl IntoIterator<Item = OsString>) -> Result<(), Error> {
    let mut options = Options::new(words)?;
    let clock = Clock::of(&mut options)?;
    let machine = Machine::live().ok();
    let last_cache = machine.as_ref().and_then(last_cache);
    let all = machine.as_ref().and_then(Machine::memory_total);
    let memory = match options.text("memory")? {
        Some(text) => text
            .parse::<Bytes>()
            .map_err(|error| Error::Option { option: "--memory".to_owned(), reason: error.to_string() })?,
        None => Bytes(usual_memory(last_cache, all)),
    };
    let usual = file::LogicalIo::default();
    let readers = usual.readers.parse().unwrap_or(1);
    let mut number = |name, most, usual| {
        let number = options.number(name, u64::from(usual > 0)..=most, Some(usual))?;
        Ok::<_, Error>(u32::try_from(number).unwrap_or(u32::MAX))
    };
    let shape = Shape {
        readers: number("readers", 256, readers)?,
        memory: memory.0.min(1 << 44),
        words: number("words", 1024, usual.words.into())? as usize,
        cpu_count: Some(number("cpu-count", 8192, 0)?).filter(|count| *count > 0),
        quantum: Duration::from_millis(number("quantum-ms", 60_000, usual.quantum_ms.into())?.into()),
        reads_per_execution: number("reads-per-execution", 1 << 20, 64)?,
        executions_per_call: number("executions-per-call", 1 << 20, 16)?,
        calls_per_transaction: number("calls-per-transaction", 1 << 20, 64)?,
    };
    let nodes = machine.as_ref().map(Machine::node_set).filter(|nodes| !nodes.is_empty());
    let nodes = nodes.unwrap_or_else(|| NodeSet::range(0, 0));
    let placement = options.text("placement")?;
    let placement = Placement::parse(placement.as_deref().unwrap_or(&usual.placement), &nodes)?;
    options.end()?;
    die_with(clock.parent, c"rf-logical-io")?;
    placement.apply()?;
    let mut engine = Engine::start(shape, std::thread::available_parallelism().map_or(1, usize::from))?;
    let circumstances = Circumstances {
        shape: &engine.shape().clone(),
        memory: engine.bytes(),
        last_cache,
        placement: placement.to_string(),
        node_bytes: placement::bytes_per_node(),
        huge_page_bytes: placement::huge_page_bytes(),
        warnings: beforehand(&placement, &nodes, engine.bytes(), last_cache),
    };
    let Some(requested) = until_stopped(clock, || engine.look())? else { return Ok(()) };
    let found = report::of(&engine.stop(), requested, circumstances);
    if found.wrong > 0.0 {
        let source = io::Error::other(format!("{:.0} reads found another block", found.wrong));
        return Err(Error::System { what: "the buffer cache is broken", source });
    }
    print_report(NAME, &found)
}

/// The largest of the machine's last caches: no block may live in one.
fn last_cache(machine: &Machine) -> Option<u64> {
    machine.l3_groups()?.iter().filter_map(|group| group.size).map(|size| size.0).max()
}

fn usual_memory(last_cache: Option<u64>, all: Option<Bytes>) -> u64 {
    let wanted = last_cache.map_or(0, |size| size.saturating_mul(CACHES)).max(LEAST);
    all.map_or(wanted, |all| wanted.min(all.0 / SHARE))
}

/// What is known before the work begins.
fn beforehand(placement: &Placement, nodes: &NodeSet, memory: u64, last_cache: Option<u64>) -> Vec<String> {
    let mut reported = Vec::new();
    if nodes.len() == 1 && *placement != Placement::FirstTouch {
        reported.push(format!("{placement} makes no difference here: this machine has one NUMA node"));
    }
    if memory < LEAST || last_cache.is_some_and(|cache| memory < cache) {
        let cache = last_cache.map(|cache| format!(", the last cache {}", Bytes(cache))).unwrap_or_default();
        reported.push(format!("the buffer cache has {}{cache}: reads may stay in caches", Bytes(memory)));
    }
    if cfg!(debug_assertions) {
        reported.push("built without optimisation: the reads are slower than the machine".to_owned());
    }
    reported
}
