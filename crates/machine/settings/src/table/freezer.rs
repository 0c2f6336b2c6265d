//! Freezing: a controller of its own on v1, part of every group on v2.

use super::*;

const V1: Binding = Binding {
    controller: Controller::Freezer,
    since: "2.6.28",
    source: "admin-guide/cgroup-v1/freezer-subsystem.rst",
    ..BINDING
};

const FREEZE: Option<Order> = at(Stage::Freeze, "after all limits are in place");

/// Why a v1 group is frozen.
const fn freezing(name: &'static str, files: &'static [&'static str], doc: &'static str) -> Setting {
    Setting {
        name,
        controller: Controller::Freezer,
        doc,
        kind: Kind::Flag,
        access: Read,
        example: "",
        v1: Has(Binding { files, codec: Codec::Flag, since: "3.8", ..V1 }),
        v2: lacks("read cgroup.freeze of the group and of those above it, and frozen in cgroup.events"),
    }
}

pub(super) const ROWS: &[Setting] = &[
    Setting {
        name: "cgroup.freeze",
        controller: Controller::Freezer,
        doc: "Stops all tasks of the group and of those below it (1), or lets them continue (0)",
        kind: Kind::Flag,
        access: ReadWrite,
        example: "1",
        v1: Has(Binding {
            files: &["freezer.state"],
            codec: Codec::FlagWords { off: "THAWED", on: "FROZEN" },
            order: FREEZE,
            initial: &["THAWED"],
            read_back: ReadBack::Rescaled("THAWED, FREEZING until the last task has stopped, then FROZEN"),
            fidelity: Fidelity::Approximate("frozen tasks can't be killed before they are thawed"),
            ..V1
        }),
        v2: Has(Binding {
            files: &["cgroup.freeze"],
            codec: Codec::Flag,
            order: FREEZE,
            initial: &["0"],
            since: "5.2",
            source: "admin-guide/cgroup-v2.rst, Core Interface Files",
            ..BINDING
        }),
    },
    freezing("freezer.self_freezing", &["freezer.self_freezing"], "Whether the group itself was frozen"),
    freezing("freezer.parent_freezing", &["freezer.parent_freezing"], "Whether a group above it was frozen"),
];
