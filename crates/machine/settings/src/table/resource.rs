//! Settings of the rdma and misc controllers, the same on both versions.

use super::*;

const HANDLES: &[Key] = &[
    Key { name: "hca_handle", unit: Unit::Count, max: i32::MAX as u64 },
    Key { name: "hca_object", unit: Unit::Count, max: i32::MAX as u64 },
];
const SCALAR: &[Key] = &[Key { name: "", unit: Unit::Count, max: i64::MAX as u64 }];

const RDMA_V1: Binding = Binding {
    controller: Controller::Rdma,
    since: "4.11",
    source: "admin-guide/cgroup-v1/rdma.rst",
    ..BINDING
};
const RDMA_V2: Binding = Binding { source: "admin-guide/cgroup-v2.rst, RDMA Interface Files", ..RDMA_V1 };
const MISC_V1: Binding = Binding {
    controller: Controller::Misc,
    since: "5.13",
    source: "admin-guide/cgroup-v1/misc.rst",
    ..BINDING
};
const MISC_V2: Binding = Binding { source: "admin-guide/cgroup-v2.rst, Misc Interface Files", ..MISC_V1 };

pub(super) const ROWS: &[Setting] = &[
    Setting {
        name: "rdma.max",
        controller: Controller::Rdma,
        doc: "Most handles and objects of each RDMA device",
        kind: Kind::Keyed(HANDLES),
        access: ReadWrite,
        example: "mlx5_0 hca_handle=2 hca_object=2000",
        v1: Has(Binding { files: &["rdma.max"], codec: Codec::Keyed, ..RDMA_V1 }),
        v2: Has(Binding { files: &["rdma.max"], codec: Codec::Keyed, ..RDMA_V2 }),
    },
    text(
        "rdma.current",
        Controller::Rdma,
        "Handles and objects of each RDMA device in use",
        Has(Binding { files: &["rdma.current"], ..RDMA_V1 }),
        Has(Binding { files: &["rdma.current"], ..RDMA_V2 }),
    ),
    Setting {
        name: "misc.max",
        controller: Controller::Misc,
        doc: "Most of each resource that is merely counted, such as the keys of encrypted virtual machines",
        kind: Kind::Keyed(SCALAR),
        access: ReadWrite,
        example: "sev 5",
        v1: Has(Binding { files: &["misc.max"], codec: Codec::Keyed, ..MISC_V1 }),
        v2: Has(Binding { files: &["misc.max"], codec: Codec::Keyed, ..MISC_V2 }),
    },
    text(
        "misc.current",
        Controller::Misc,
        "How much of each resource is in use",
        Has(Binding { files: &["misc.current"], ..MISC_V1 }),
        Has(Binding { files: &["misc.current"], ..MISC_V2 }),
    ),
    text(
        "misc.peak",
        Controller::Misc,
        "The most of each resource that was in use so far",
        Has(Binding { files: &["misc.peak"], since: "6.11", ..MISC_V1 }),
        Has(Binding { files: &["misc.peak"], since: "6.11", ..MISC_V2 }),
    ),
    text(
        "misc.capacity",
        Controller::Misc,
        "How much of each resource the machine has; in the root group only",
        Has(Binding { files: &["misc.capacity"], at_root: true, ..MISC_V1 }),
        Has(Binding { files: &["misc.capacity"], at_root: true, ..MISC_V2 }),
    ),
    text(
        "misc.events",
        Controller::Misc,
        "How often each limit was met, by the group and those below it",
        Has(Binding { files: &["misc.events"], since: "5.16", ..MISC_V1 }),
        Has(Binding { files: &["misc.events"], since: "5.16", ..MISC_V2 }),
    ),
    text(
        "misc.events.local",
        Controller::Misc,
        "How often each limit was met by this group alone",
        Has(Binding { files: &["misc.events.local"], since: "6.11", ..MISC_V1 }),
        Has(Binding { files: &["misc.events.local"], since: "6.11", ..MISC_V2 }),
    ),
];
