//! Network classes and priorities, which only v1 has.

use super::*;

const PRIORITY: &[Key] = &[Key { name: "", unit: Unit::Count, max: u32::MAX as u64 }];

pub(super) const ROWS: &[Setting] = &[
    Setting {
        name: "net_cls.classid",
        controller: Controller::NetCls,
        doc: "Class that the group's packets get, for tc and iptables; 0 is none",
        kind: Kind::ClassId,
        access: ReadWrite,
        example: "10:1",
        v1: Has(Binding {
            files: &["net_cls.classid"],
            reach: Reach::Machine("any class may be taken, also one that is meant for another group"),
            codec: Codec::ClassId,
            controller: Controller::NetCls,
            read_back: ReadBack::Rescaled("as a decimal number"),
            since: "2.6.29",
            at_root: true,
            source: "admin-guide/cgroup-v1/net_cls.rst",
            ..BINDING
        }),
        v2: lacks("match the group itself in nftables: nft … socket cgroupv2 level 1 \"GROUP\""),
    },
    Setting {
        name: "net_prio.ifpriomap",
        controller: Controller::NetPrio,
        doc: "Priority of the group's packets, by network interface",
        kind: Kind::Keyed(PRIORITY),
        access: ReadWrite,
        example: "eth0 5",
        v1: Has(Binding {
            files: &["net_prio.ifpriomap"],
            reach: Reach::Machine("packets of a higher priority go before those of all other groups"),
            codec: Codec::Keyed,
            controller: Controller::NetPrio,
            since: "3.3",
            at_root: true,
            source: "admin-guide/cgroup-v1/net_prio.rst",
            ..BINDING
        }),
        v2: lacks("set the priority in nftables: nft … socket cgroupv2 level 1 \"GROUP\" meta priority set"),
    },
    Setting {
        name: "net_prio.prioidx",
        controller: Controller::NetPrio,
        doc: "The kernel's own number of the group",
        kind: Kind::Count,
        access: Read,
        example: "",
        v1: Has(Binding {
            files: &["net_prio.prioidx"],
            controller: Controller::NetPrio,
            since: "3.3",
            at_root: true,
            source: "admin-guide/cgroup-v1/net_prio.rst",
            ..BINDING
        }),
        v2: lacks("v2 has no such number"),
    },
];
