//! What is read of real machines, by every reader, and printed again by every printer.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test's failure is a panic")]

mod hostile;
mod json;
mod listings;
mod merge;
mod pasted;
mod print;
mod recorded;
mod sysfs;

use std::path::PathBuf;

use topology::Machine;
use units::CpuSet;

/// Every listing that is recorded, but not the trees (`*.sysfs.txt`).
const LISTINGS: [&str; 10] = [
    "nehalem-ex.numactl.txt",
    "e5504.lscpu.txt",
    "e7-4850.lscpu.txt",
    "e7-4850.cpu_topology.txt",
    "qemu-n4c8.numactl.txt",
    "qemu-n4c8.lscpu.txt",
    "qemu-n4c8.hwloc.xml",
    "one-node-2.hwloc.xml",
    "synthetic-2x8.hwloc.xml",
    "synthetic-2x8.hwloc1.xml",
];

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/machines").join(name)
}

fn recorded_text(name: &str) -> String {
    std::fs::read_to_string(path(name)).unwrap()
}

fn machine(name: &str) -> Machine {
    Machine::from_listing(name, &recorded_text(name)).unwrap_or_else(|error| panic!("{error}"))
}

fn refusal(text: &str) -> String {
    Machine::from_listing("given", text).unwrap_err().to_string()
}

fn cpus(list: &str) -> CpuSet {
    list.parse().unwrap()
}
