//! CPU time used: a controller of its own on v1, `cpu.stat` of every group on v2.

use super::*;

const V1: Binding = Binding {
    controller: Controller::Cpuacct,
    at_root: true,
    since: "2.6.24",
    source: "admin-guide/cgroup-v1/cpuacct.rst",
    ..BINDING
};
const V2: Binding = Binding {
    files: &["cpu.stat"],
    at_root: true,
    since: "4.15",
    source: "admin-guide/cgroup-v2.rst, CPU Interface Files",
    ..BINDING
};
const PER_CPU: Side = lacks("v2 does not count by CPU: cpu.stat has the sum, `perf stat -G` counts by CPU");

const fn time(name: &'static str, doc: &'static str, v1: Binding, key: &'static str) -> Setting {
    let v2 = Binding {
        codec: Codec::StatField { key, scale: 1_000 },
        read_back: ReadBack::Rounded("down to microseconds"),
        ..V2
    };
    let access = match v1.codec {
        Codec::Reset => ReadWrite,
        _ => Read,
    };
    let example = match v1.codec {
        Codec::Reset => "0",
        _ => "",
    };
    Setting {
        name,
        controller: Controller::Cpuacct,
        doc,
        kind: Kind::CpuTime,
        access,
        example,
        v1: Has(v1),
        v2: Has(v2),
    }
}

pub(super) const ROWS: &[Setting] = &[
    time(
        "cpuacct.usage",
        "CPU time used by the group and those below it, in nanoseconds; 0 starts it again on v1",
        Binding {
            files: &["cpuacct.usage"],
            codec: Codec::Reset,
            range: between(0, 0),
            read_back: ReadBack::Rescaled("the counter, which starts again"),
            ..V1
        },
        "usage_usec",
    ),
    time(
        "cpuacct.usage_user",
        "CPU time used in programs, in nanoseconds",
        Binding { files: &["cpuacct.usage_user"], since: "4.6", ..V1 },
        "user_usec",
    ),
    time(
        "cpuacct.usage_sys",
        "CPU time used in the kernel, in nanoseconds",
        Binding { files: &["cpuacct.usage_sys"], since: "4.6", ..V1 },
        "system_usec",
    ),
    text(
        "cpuacct.stat",
        Controller::Cpuacct,
        "CPU time used in programs and in the kernel, in ticks of 10 ms",
        Has(Binding { files: &["cpuacct.stat"], since: "2.6.30", ..V1 }),
        Has(Binding { codec: Codec::UserSystem, ..V2 }),
    ),
    text(
        "cpuacct.usage_percpu",
        Controller::Cpuacct,
        "CPU time used on each CPU, in nanoseconds",
        Has(Binding { files: &["cpuacct.usage_percpu"], ..V1 }),
        PER_CPU,
    ),
    text(
        "cpuacct.usage_percpu_user",
        Controller::Cpuacct,
        "CPU time used in programs on each CPU, in nanoseconds",
        Has(Binding { files: &["cpuacct.usage_percpu_user"], since: "4.6", ..V1 }),
        PER_CPU,
    ),
    text(
        "cpuacct.usage_percpu_sys",
        Controller::Cpuacct,
        "CPU time used in the kernel on each CPU, in nanoseconds",
        Has(Binding { files: &["cpuacct.usage_percpu_sys"], since: "4.6", ..V1 }),
        PER_CPU,
    ),
    text(
        "cpuacct.usage_all",
        Controller::Cpuacct,
        "CPU time used in programs and in the kernel on each CPU, in nanoseconds, as a table",
        Has(Binding { files: &["cpuacct.usage_all"], since: "4.7", ..V1 }),
        PER_CPU,
    ),
];
