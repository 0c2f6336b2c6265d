//! What the io controller counts.

use super::*;

const V1: Binding = Binding {
    controller: Controller::Io,
    at_root: true,
    since: "2.6.37",
    source: "admin-guide/cgroup-v1/blkio-controller.rst, Throttling/Upper limit policy files",
    ..BINDING
};
const V2: Binding = Binding {
    controller: Controller::Io,
    since: "4.5",
    source: "admin-guide/cgroup-v2.rst, IO Interface Files",
    ..BINDING
};
const IO_STAT: Side = lacks("read io.stat");

const fn counts(
    name: &'static str,
    files: &'static [&'static str],
    since: &'static str,
    doc: &'static str,
) -> Setting {
    text(name, Controller::Io, doc, Has(Binding { files, since, ..V1 }), IO_STAT)
}

pub(super) const ROWS: &[Setting] = &[
    text(
        "io.stat",
        Controller::Io,
        "Bytes and operations read, written and discarded by the group and those below it, by device",
        Has(Binding {
            files: &["blkio.throttle.io_service_bytes_recursive", "blkio.throttle.io_serviced_recursive"],
            codec: Codec::IoStat,
            since: "4.14",
            fidelity: Fidelity::Approximate("writes through the page cache count for the root group"),
            ..V1
        }),
        Has(Binding { files: &["io.stat"], at_root: true, ..V2 }),
    ),
    counts(
        "blkio.throttle.io_service_bytes",
        &["blkio.throttle.io_service_bytes"],
        "2.6.37",
        "Bytes moved by this group alone, by device and kind",
    ),
    counts(
        "blkio.throttle.io_serviced",
        &["blkio.throttle.io_serviced"],
        "2.6.37",
        "Operations of this group alone, by device and kind",
    ),
    counts(
        "blkio.throttle.io_service_bytes_recursive",
        &["blkio.throttle.io_service_bytes_recursive"],
        "4.14",
        "Bytes moved by the group and those below it, by device and kind",
    ),
    counts(
        "blkio.throttle.io_serviced_recursive",
        &["blkio.throttle.io_serviced_recursive"],
        "4.14",
        "Operations of the group and those below it, by device and kind",
    ),
    counts(
        "blkio.bfq.io_service_bytes",
        &["blkio.bfq.io_service_bytes"],
        "4.12",
        "Bytes moved through BFQ by this group alone, by device and kind",
    ),
    counts(
        "blkio.bfq.io_serviced",
        &["blkio.bfq.io_serviced"],
        "4.12",
        "Operations through BFQ of this group alone, by device and kind",
    ),
    counts(
        "blkio.bfq.io_service_bytes_recursive",
        &["blkio.bfq.io_service_bytes_recursive"],
        "4.12",
        "Bytes moved through BFQ by the group and those below it, by device and kind",
    ),
    counts(
        "blkio.bfq.io_serviced_recursive",
        &["blkio.bfq.io_serviced_recursive"],
        "4.12",
        "Operations through BFQ of the group and those below it, by device and kind",
    ),
    Setting {
        name: "blkio.reset_stats",
        controller: Controller::Io,
        doc: "Starts the group's counters again",
        kind: Kind::Count,
        access: Write,
        example: "0",
        v1: Has(Binding {
            files: &["blkio.reset_stats"],
            codec: Codec::Reset,
            range: between(0, 0),
            read_back: ReadBack::Never,
            since: "2.6.35",
            ..V1
        }),
        v2: lacks("counters of io.stat only grow: take the difference of two readings"),
    },
    text(
        "io.pressure",
        Controller::Io,
        "Share of time in which some or all tasks of the group waited for I/O",
        lacks("pressure is counted per v2 group only; /proc/pressure/io shows the whole machine's"),
        Has(Binding {
            files: &["io.pressure"],
            controller: Controller::Core,
            since: "4.20",
            at_root: true,
            source: "accounting/psi.rst, Cgroup2 interface",
            ..V2
        }),
    ),
];
