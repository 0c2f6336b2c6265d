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

use crate::{
    laws::{Law, Order, Pair, Stage, Turn},
    setting::{
        Access::{self, Command, Read, ReadWrite, Write},
        Binding, Codec, Controller, Fidelity, Form, Key, Kind, OutOfRange, Range, Reach, ReadBack, Setting,
        Side::{self, Has, Lacks},
        Unit, UnitProperty, Version,
    },
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
    initial: &[],
    order: None,
    pair: None,
    changes: &[],
    usage: None,
    reach: Reach::Own,
    unit_property: None,
    source: "",
};

/// A property of systemd's that takes what the file takes.
const fn same(name: &'static str) -> Option<UnitProperty> {
    Some(UnitProperty { name, form: Form::Same })
}

/// A property whose lines add up.
const fn list(name: &'static str) -> Option<UnitProperty> {
    Some(UnitProperty { name, form: Form::List })
}
/// Properties of systemd's for the keys of a device.
const fn by_key(name: &'static str, keys: &'static [(&'static str, &'static str)]) -> Option<UnitProperty> {
    Some(UnitProperty { name, form: Form::Devices(keys) })
}
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

const fn at(stage: Stage, why: &'static str) -> Option<Order> {
    Some(Order::Always(Turn { stage, why: Some(why) }))
}

/// `off` releases what another text takes.
const fn switch(
    off: &'static str,
    release: (Stage, &'static str),
    take: (Stage, &'static str),
) -> Option<Order> {
    let release = Turn { stage: release.0, why: Some(release.1) };
    let take = Turn { stage: take.0, why: Some(take.1) };
    Some(Order::Switch { off, release, take })
}

/// What can't be undone.
const ACTION: Option<Order> = at(Stage::Tasks, "can't be undone, so it comes last");

const fn pair(law: Law, other: &'static str, why: &'static str) -> Option<Pair> {
    Some(Pair { other, law, why })
}

/// Of weights and all that has their place.
const SHARE: Reach = Reach::Beside("what one group gets more of, the groups beside it get less of");

const fn lacks(instead: &'static str) -> Side {
    Lacks { instead }
}

/// A row that is read as the kernel prints it.
const fn text(name: &'static str, controller: Controller, doc: &'static str, v1: Side, v2: Side) -> Setting {
    Setting { name, controller, doc, kind: Kind::Text, access: Read, example: "", v1, v2 }
}

/// Goes through every file of every binding while this is compiled: constants have no iterators.
macro_rules! each_file {
    ($file:ident, $body:expr) => {{
        let mut group = 0;
        while group < TABLE.len() {
            let mut row = 0;
            while row < TABLE[group].len() {
                let setting: &'static Setting = &TABLE[group][row];
                let sides = [(Version::V1, &setting.v1), (Version::V2, &setting.v2)];
                let mut side = 0;
                while side < sides.len() {
                    if let Has(binding) = sides[side].1 {
                        let mut index = 0;
                        while index < binding.files.len() {
                            let version = sides[side].0;
                            let $file = File { version, name: binding.files[index], index, binding };
                            $body;
                            index += 1;
                        }
                    }
                    side += 1;
                }
                row += 1;
            }
            group += 1;
        }
    }};
}

/// One file of a binding, to be found by its name.
#[derive(Debug, Clone, Copy)]
pub(crate) struct File {
    pub version: Version,
    pub name: &'static str,
    pub index: usize,
    pub binding: &'static Binding,
}

const fn has_laws(binding: &Binding) -> bool {
    !binding.initial.is_empty()
        || binding.order.is_some()
        || binding.pair.is_some()
        || !binding.changes.is_empty()
        || binding.usage.is_some()
        || binding.unit_property.is_some()
        || matches!(binding.codec, Codec::FlagInStat(_))
}

const fn is_by_key(codec: Codec, index: usize) -> bool {
    match codec {
        Codec::DeviceKeys | Codec::DeviceFiles | Codec::Weights | Codec::Keyed | Codec::DeviceRules => true,
        Codec::WeightFiles { .. } => index == 1,
        _ => false,
    }
}

/// How many files [`FILES`] and [`BY_KEY`] have.
const COUNTS: (usize, usize) = {
    let (mut laws, mut by_key) = (0, 0);
    each_file!(file, {
        laws += has_laws(file.binding) as usize;
        by_key += is_by_key(file.binding.codec, file.index) as usize;
    });
    (laws, by_key)
};

/// The files that planning knows more of than their values.
pub(crate) static FILES: [File; COUNTS.0] = {
    let mut files = [File { version: Version::V1, name: "", index: 0, binding: &BINDING }; COUNTS.0];
    let mut next = 0;
    each_file!(file, {
        if has_laws(file.binding) {
            files[next] = file;
            next += 1;
        }
    });
    files
};

/// The files that hold a line for each device or resource.
pub(crate) static BY_KEY: [File; COUNTS.1] = {
    let mut files = [File { version: Version::V1, name: "", index: 0, binding: &BINDING }; COUNTS.1];
    let mut next = 0;
    each_file!(file, {
        if is_by_key(file.binding.codec, file.index) {
            files[next] = file;
            next += 1;
        }
    });
    files
};
