//! Access to devices: files on v1, a BPF program on the group on v2.

use super::*;

const ROOT: Reach =
    Reach::Machine("it opens devices that root keeps from the group: the kernel asks for CAP_SYS_ADMIN");
const V1: Binding = Binding {
    controller: Controller::Devices,
    codec: Codec::DeviceRules,
    reach: ROOT,
    read_back: ReadBack::Rescaled("in devices.list"),
    since: "2.6.26",
    at_root: true,
    source: "admin-guide/cgroup-v1/devices.rst",
    ..BINDING
};
const V2: Binding = Binding {
    codec: Codec::DeviceProgram,
    reach: ROOT,
    read_back: ReadBack::Never,
    since: "4.15",
    fidelity: Fidelity::Approximate(
        "by a BPF program on the group; the kernel does not print the rules in it",
    ),
    source: "admin-guide/cgroup-v2.rst, Device controller",
    ..BINDING
};

const fn rules(
    name: &'static str,
    access: Access,
    doc: &'static str,
    example: &'static str,
    v1: Binding,
) -> Setting {
    Setting {
        name,
        controller: Controller::Devices,
        doc,
        kind: Kind::Rules,
        access,
        example,
        v1: Has(v1),
        v2: Has(Binding { unit_property: v1.unit_property, ..V2 }),
    }
}

pub(super) const ROWS: &[Setting] = &[
    rules(
        "devices.allow",
        Write,
        "Allows devices: class (c or b, a for all), MAJOR:MINOR or *, and r to read, w to write, m to make its node",
        "c 1:3 rwm; b 8:* r",
        Binding {
            files: &["devices.allow"],
            order: Some(Order::Always(Turn { stage: Stage::Allow, why: None })),
            unit_property: same("DeviceAllow"),
            ..V1
        },
    ),
    rules(
        "devices.deny",
        Write,
        "Denies devices, written as in devices.allow; a denies all but what is allowed later",
        "a",
        Binding {
            files: &["devices.deny"],
            order: at(Stage::Deny, "first what is taken, then what is given"),
            ..V1
        },
    ),
    rules(
        "devices.list",
        Read,
        "What is allowed now",
        "",
        Binding { files: &["devices.list"], read_back: ReadBack::Same, ..V1 },
    ),
];
