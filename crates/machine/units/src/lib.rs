//! The values that every part of Ringfence speaks of: amounts with their unit, limits, and sets of CPUs and
//! NUMA nodes; and names, compared and made safe for a terminal and a shell. Parsers are strict, printers canonical:
//! what is printed parses to the same value.
//! Never reads a file, never asks the machine.

mod amount;
pub mod group_path;
pub mod hint;
mod idset;
mod limit;
mod nearest;
mod proc_stat;
mod text;

pub use amount::{Bytes, Micros, Nanos, UnitError, hexadecimal};
pub use idset::{Cpu, CpuSet, IdSet, ListError, MAX_ID, Node, NodeSet};
pub use limit::Limit;
pub use nearest::nearest;
pub use proc_stat::ProcStat;
pub use text::{counted, csv_cell, printable, shell_quote, unescaped};
