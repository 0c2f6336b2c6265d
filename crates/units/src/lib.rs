//! The values that every part of Ringfence speaks of: amounts with their unit, limits, and sets of CPUs and
//! NUMA nodes. Parsers are strict, printers canonical: what is printed parses to the same value.
//! Never reads a file, never asks the machine.

mod amount;
mod idset;
mod limit;
mod nearest;

pub use amount::{Bytes, Micros, UnitError, hexadecimal};
pub use idset::{Cpu, CpuSet, IdSet, ListError, MAX_ID, Node, NodeSet};
pub use limit::{Limit, Weight};
pub use nearest::nearest;
