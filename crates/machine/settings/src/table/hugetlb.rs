//! Settings of the hugetlb controller, one set for each size of huge pages.

use super::*;

const V1: Binding = Binding {
    controller: Controller::Hugetlb,
    since: "3.6",
    at_root: true,
    source: "admin-guide/cgroup-v1/hugetlb.rst",
    ..BINDING
};
const V2: Binding = Binding {
    controller: Controller::Hugetlb,
    since: "5.6",
    source: "admin-guide/cgroup-v2.rst, HugeTLB Interface Files",
    ..BINDING
};
const PAGES: ReadBack = ReadBack::Rounded("down to whole huge pages");
const LIMIT: Range = between(0, 0x7fff_ffff_fffe_ffff);
const RESET_V1: Binding =
    Binding { codec: RESET.codec, range: RESET.range, read_back: RESET.read_back, ..V1 };
/// `max` of the events file counts what v1's failcnt does.
const MET: Binding = Binding {
    files: &["hugetlb.<size>.events"],
    codec: Codec::StatField { key: "max", scale: 1 },
    fidelity: Fidelity::Approximate("the field max of the events file, which counts the groups below too"),
    ..V2
};

const fn row(
    name: &'static str,
    kind: Kind,
    access: Access,
    example: &'static str,
    doc: &'static str,
    v1: Side,
    v2: Side,
) -> Setting {
    Setting { name, controller: Controller::Hugetlb, doc, kind, access, example, v1, v2 }
}

pub(super) const ROWS: &[Setting] = &[
    row(
        "hugetlb.<size>.max",
        Kind::Bytes,
        ReadWrite,
        "1G",
        "Hard limit of huge pages in use; a fault above it raises SIGBUS",
        Has(Binding {
            files: &["hugetlb.<size>.limit_in_bytes"],
            codec: MINUS_ONE,
            range: LIMIT,
            read_back: PAGES,
            ..V1
        }),
        Has(Binding { files: &["hugetlb.<size>.max"], codec: MAX, range: LIMIT, read_back: PAGES, ..V2 }),
    ),
    row(
        "hugetlb.<size>.rsvd.max",
        Kind::Bytes,
        ReadWrite,
        "1G",
        "Hard limit of huge pages reserved; mmap above it fails, so that nothing is killed later",
        Has(Binding {
            files: &["hugetlb.<size>.rsvd.limit_in_bytes"],
            codec: MINUS_ONE,
            range: LIMIT,
            read_back: PAGES,
            since: "5.7",
            ..V1
        }),
        Has(Binding {
            files: &["hugetlb.<size>.rsvd.max"],
            codec: MAX,
            range: LIMIT,
            read_back: PAGES,
            since: "5.7",
            ..V2
        }),
    ),
    row(
        "hugetlb.<size>.current",
        Kind::Bytes,
        Read,
        "",
        "Huge pages in use",
        Has(Binding { files: &["hugetlb.<size>.usage_in_bytes"], ..V1 }),
        Has(Binding { files: &["hugetlb.<size>.current"], ..V2 }),
    ),
    row(
        "hugetlb.<size>.rsvd.current",
        Kind::Bytes,
        Read,
        "",
        "Huge pages reserved",
        Has(Binding { files: &["hugetlb.<size>.rsvd.usage_in_bytes"], since: "5.7", ..V1 }),
        Has(Binding { files: &["hugetlb.<size>.rsvd.current"], since: "5.7", ..V2 }),
    ),
    row(
        "hugetlb.<size>.max_usage_in_bytes",
        Kind::Bytes,
        ReadWrite,
        "0",
        "The most huge pages in use so far; 0 starts it again",
        Has(Binding { files: &["hugetlb.<size>.max_usage_in_bytes"], ..RESET_V1 }),
        lacks("v2 keeps no highest value: watch hugetlb.<size>.current"),
    ),
    row(
        "hugetlb.<size>.rsvd.max_usage_in_bytes",
        Kind::Bytes,
        ReadWrite,
        "0",
        "The most huge pages reserved so far; 0 starts it again",
        Has(Binding { files: &["hugetlb.<size>.rsvd.max_usage_in_bytes"], since: "5.7", ..RESET_V1 }),
        lacks("v2 keeps no highest value: watch hugetlb.<size>.rsvd.current"),
    ),
    row(
        "hugetlb.<size>.failcnt",
        Kind::Count,
        ReadWrite,
        "0",
        "How often the limit was met; 0 starts it again on v1",
        Has(Binding { files: &["hugetlb.<size>.failcnt"], ..RESET_V1 }),
        Has(MET),
    ),
    row(
        "hugetlb.<size>.rsvd.failcnt",
        Kind::Count,
        ReadWrite,
        "0",
        "How often the limit of reservations was met; 0 starts it again",
        Has(Binding { files: &["hugetlb.<size>.rsvd.failcnt"], since: "5.7", ..RESET_V1 }),
        lacks("read hugetlb.<size>.events, which counts both limits"),
    ),
    text(
        "hugetlb.<size>.events",
        Controller::Hugetlb,
        "How often the limit was met, by the group and those below it",
        lacks("read hugetlb.<size>.failcnt"),
        Has(Binding { files: &["hugetlb.<size>.events"], ..V2 }),
    ),
    text(
        "hugetlb.<size>.events.local",
        Controller::Hugetlb,
        "How often the limit was met by this group alone",
        lacks("read hugetlb.<size>.failcnt"),
        Has(Binding { files: &["hugetlb.<size>.events.local"], ..V2 }),
    ),
    text(
        "hugetlb.<size>.numa_stat",
        Controller::Hugetlb,
        "Huge pages in use, by NUMA node",
        Has(Binding { files: &["hugetlb.<size>.numa_stat"], since: "5.17", ..V1 }),
        Has(Binding { files: &["hugetlb.<size>.numa_stat"], since: "5.17", ..V2 }),
    ),
];
