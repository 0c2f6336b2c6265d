//! The rows of the table, by controller, and what most rows of a kind have in common.

mod core;
mod cpu;
mod cpuacct;
mod cpuset;
mod device;
mod freezer;
mod hugetlb;
mod io;
mod iostat;
mod memory;
mod memstat;
mod net;
mod pids;
mod resource;

use crate::setting::{
    Access::{self, Command, Read, ReadWrite, Write},
    Binding, Codec, Controller, Fidelity, Key, Kind, OutOfRange, Range, ReadBack, Setting,
    Side::{self, Has, Lacks},
    Unit,
};

/// All rows, grouped by controller in the order of [`Controller::ALL`].
const TABLE: &[&[Setting]] = &[
    cpu::ROWS,
    cpuset::ROWS,
    cpuacct::ROWS,
    memory::ROWS,
    memstat::ROWS,
    io::ROWS,
    iostat::ROWS,
    pids::ROWS,
    device::ROWS,
    freezer::ROWS,
    hugetlb::ROWS,
    net::ROWS,
    resource::ROWS,
    core::ROWS,
];

/// Every setting, grouped by controller.
pub fn all() -> impl Iterator<Item = &'static Setting> {
    TABLE.iter().copied().flatten()
}

/// What most bindings are; rows say what differs.
const BINDING: Binding = Binding {
    files: &[],
    codec: Codec::Text,
    controller: Controller::Core,
    range: Range::Any,
    out_of_range: OutOfRange::Refused,
    read_back: ReadBack::Same,
    since: "",
    fidelity: Fidelity::Exact,
    at_root: false,
    source: "",
};

/// A limit in a v2 file.
const MAX: Codec = Codec::Amount { unlimited: "max" };
/// A limit in a v1 file.
const MINUS_ONE: Codec = Codec::Amount { unlimited: "-1" };
/// A number that always is one.
const NUMBER: Codec = Codec::Amount { unlimited: "" };
/// A counter that only its reset can be written to.
const RESET: Binding = Binding {
    codec: Codec::Reset,
    range: between(0, 0),
    read_back: ReadBack::Rescaled("the counter, which starts again"),
    ..BINDING
};

const fn between(min: i64, max: u64) -> Range {
    Range::Between { min, max }
}

const fn lacks(instead: &'static str) -> Side {
    Lacks { instead }
}

/// A row that is read as the kernel prints it.
const fn text(name: &'static str, controller: Controller, doc: &'static str, v1: Side, v2: Side) -> Setting {
    Setting { name, controller, doc, kind: Kind::Text, access: Read, example: "", v1, v2 }
}
