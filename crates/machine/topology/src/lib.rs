//! A machine as Linux numbers it: packages, NUMA nodes, L3 groups, cores, logical CPUs and block devices; read
//! from `/sys` and `/proc` or from a listing, and printed in the forms people know.
//! What a source lacks stays `None`. Never writes to the machine, never starts a program.

mod bounded; // lists of its JSON
mod machine;

mod error;

mod check;
mod merge;
mod query;
mod read;

pub mod svg;

pub mod print;

// and of its kernel
pub mod facts;

pub use error::TopologyError;
pub use machine::{
    BlockDevice, Core, L3Group, LogicalCpu, MAX_CPUS, MAX_NODES, Machine, Node, NumactlStyle, Package,
    Source, SourceKind, Stated,
};
pub use read::MAX_LISTING;
