//! Settings of the pids controller.

use super::*;

const V1: Binding = Binding {
    controller: Controller::Pids,
    since: "4.3",
    source: "admin-guide/cgroup-v1/pids.rst",
    ..BINDING
};
const V2: Binding = Binding {
    controller: Controller::Pids,
    since: "4.5",
    source: "admin-guide/cgroup-v2.rst, PID Interface Files",
    ..BINDING
};
/// `PID_MAX_LIMIT` on 64-bit kernels.
const TASKS: Range = between(0, 4_194_304);

const fn counter(name: &'static str, doc: &'static str, v1: Binding, v2: Binding) -> Setting {
    Setting {
        name,
        controller: Controller::Pids,
        doc,
        kind: Kind::Count,
        access: Read,
        example: "",
        v1: Has(v1),
        v2: Has(v2),
    }
}

pub(super) const ROWS: &[Setting] = &[
    Setting {
        name: "pids.max",
        controller: Controller::Pids,
        doc: "Hard limit of tasks (processes and threads) in the group and those below it: a fork above it fails, a move does not",
        kind: Kind::Count,
        access: ReadWrite,
        example: "512",
        v1: Has(Binding { files: &["pids.max"], codec: MAX, range: TASKS, initial: &["max"], ..V1 }),
        v2: Has(Binding {
            files: &["pids.max"],
            codec: MAX,
            range: TASKS,
            initial: &["max"],
            unit_property: same("TasksMax"),
            ..V2
        }),
    },
    counter(
        "pids.current",
        "Tasks in the group and those below it",
        Binding { files: &["pids.current"], ..V1 },
        Binding { files: &["pids.current"], ..V2 },
    ),
    counter(
        "pids.peak",
        "The most tasks there were so far",
        Binding { files: &["pids.peak"], since: "6.1", ..V1 },
        Binding { files: &["pids.peak"], since: "6.1", ..V2 },
    ),
    text(
        "pids.events",
        Controller::Pids,
        "How often a fork failed by the limit",
        Has(Binding { files: &["pids.events"], since: "4.8", ..V1 }),
        Has(Binding { files: &["pids.events"], since: "4.8", ..V2 }),
    ),
    text(
        "pids.events.local",
        Controller::Pids,
        "How often a fork failed by the limit of this group alone",
        lacks("read pids.events, which on v1 counts this group alone"),
        Has(Binding { files: &["pids.events.local"], since: "6.11", ..V2 }),
    ),
];
