//! Texts of real kernels of both versions, and of none.

use super::*;
use crate::{
    field::{Field, From},
    group_fields::GROUP_FIELDS,
    machine_fields::MACHINE_FIELDS,
    sample::Table,
};
use settings::Version;
use std::sync::Arc;

/// All figures that `text` gives as the content of `file`, by name and instance; twice, as what was learned from
/// the first reading is used for the second.
fn read(fields: &'static [Field], version: Version, file: &str, text: &str) -> Vec<(String, Reading)> {
    let parts = Parts { cpus: vec![0, 1, 3], nodes: vec![0, 2] };
    let mut columns = Columns::new(fields, &parts, |_| (crate::field::Pace::Tick, false));
    let mut wants = Vec::new();
    let mut of_device = 0;
    for field in fields {
        let column = columns.first(field).unwrap_or_else(|| {
            of_device += 1;
            of_device - 1
        });
        let source = match field.from {
            From::Machine(source) => Some(source),
            From::Group { .. } => field.side(version).map(|side| side.source),
        };
        if let Some(source) = source.filter(|source| source.file == file) {
            wants.push(Want { shape: source.shape, kind: field.kind, scale: source.scale, column });
        }
    }
    assert!(!wants.is_empty(), "no field of {file}");
    let mut unknown = Vec::new();
    let mut table = Table::default();
    for _ in 0..2 {
        unknown.drain(..).for_each(|device| columns.add_device(fields, device, crate::field::Pace::Tick));
        let shared = Arc::new(columns.clone());
        table = Table::new(Arc::clone(&shared), Arc::from([String::new()]));
        let mut context = Context { columns: &shared, parts: &parts, node: 1, unknown: &mut unknown };
        parse(text.as_bytes(), &mut wants, &mut table.cells(0), &mut context);
    }
    let all = table.columns().list().iter().enumerate().map(|(index, column)| {
        let instance = column.instance.to_string();
        let name = if instance.is_empty() {
            column.field.name.to_owned()
        } else {
            format!("{}/{instance}", column.field.name)
        };
        (name, table.reading(0, index))
    });
    all.filter(|(_, reading)| *reading != Reading::Missing).collect()
}

#[track_caller]
fn gives(found: Vec<(String, Reading)>, expected: &[(&str, u64)]) {
    let expected: Vec<_> =
        expected.iter().map(|(name, number)| ((*name).to_owned(), Reading::At(*number))).collect();
    assert_eq!(found, expected);
}

#[test]
fn cpu_stat_of_both_versions_is_in_nanoseconds() {
    let v1 = "nr_periods 5\nnr_throttled 3\nthrottled_time 12345\nnr_bursts 0\nburst_time 0\n";
    gives(
        read(GROUP_FIELDS, Version::V1, "cpu.stat", v1),
        &[("cpu.periods", 5), ("cpu.throttled.periods", 3), ("cpu.throttled.time", 12345)],
    );
    let v2 = "usage_usec 7\nuser_usec 4\nsystem_usec 3\ncore_sched.force_idle_usec 0\nnr_periods 1\nnr_throttled 1\nthrottled_usec 9\n";
    gives(
        read(GROUP_FIELDS, Version::V2, "cpu.stat", v2),
        &[
            ("cpu.usage", 7000),
            ("cpu.user", 4000),
            ("cpu.system", 3000),
            ("cpu.periods", 1),
            ("cpu.throttled.periods", 1),
            ("cpu.throttled.time", 9000),
        ],
    );
    // without the cpu controller
    let core = "usage_usec 7\nuser_usec 4\nsystem_usec 3\n";
    gives(
        read(GROUP_FIELDS, Version::V2, "cpu.stat", core),
        &[("cpu.usage", 7000), ("cpu.user", 4000), ("cpu.system", 3000)],
    );
}

#[test]
fn a_key_is_not_taken_for_one_that_it_begins() {
    let text = "anon 10\nfile 20\nkernel_stack 1\nkernel 30\nfile_mapped 5\npgfault 2\npgfault_x 9\n";
    gives(
        read(GROUP_FIELDS, Version::V2, "memory.stat", text),
        &[
            ("memory.kernel", 30),
            ("memory.anon", 10),
            ("memory.file", 20),
            ("memory.mapped", 5),
            ("memory.faults", 2),
        ],
    );
}

#[test]
fn limits_that_are_none_are_no_numbers() {
    for (version, file, text, name, expected) in [
        (Version::V1, "memory.limit_in_bytes", "9223372036854771712\n", "memory.max", Reading::Max),
        (Version::V1, "memory.limit_in_bytes", "9223372036854710272\n", "memory.max", Reading::Max),
        (Version::V1, "memory.limit_in_bytes", "8192\n", "memory.max", Reading::At(8192)),
        (Version::V2, "memory.max", "max\n", "memory.max", Reading::Max),
        (Version::V1, "cpu.cfs_quota_us", "-1\n", "cpu.max.quota", Reading::Max),
        (Version::V1, "cpu.cfs_quota_us", "50000\n", "cpu.max.quota", Reading::At(50_000_000)),
        (Version::V1, "pids.max", "max\n", "pids.max", Reading::Max),
    ] {
        assert_eq!(read(GROUP_FIELDS, version, file, text), [(name.to_owned(), expected)], "{file} {text}");
    }
    assert_eq!(
        read(GROUP_FIELDS, Version::V2, "cpu.max", "max 100000\n"),
        [("cpu.max.quota".to_owned(), Reading::Max), ("cpu.max.period".to_owned(), Reading::At(100_000_000))]
    );
}

#[test]
fn devices_have_figures_once_they_are_used() {
    let bytes = "7:0 Read 0\n7:0 Write 0\n254:0 Read 4096\n254:0 Write 10\n254:0 Sync 3\n254:0 Discard 1\n254:0 Total 4107\nTotal 4107\n";
    gives(
        read(GROUP_FIELDS, Version::V1, "blkio.throttle.io_service_bytes_recursive", bytes),
        &[("io.rbytes/254:0", 4096), ("io.wbytes/254:0", 10), ("io.dbytes/254:0", 1)],
    );
    let stat = "8:16 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=5 dios=6 cost.wait=7\n8:0 rbytes=0 wbytes=0\n";
    gives(
        read(GROUP_FIELDS, Version::V2, "io.stat", stat),
        &[
            ("io.rbytes/8:16", 1),
            ("io.wbytes/8:16", 2),
            ("io.rios/8:16", 3),
            ("io.wios/8:16", 4),
            ("io.dbytes/8:16", 5),
            ("io.dios/8:16", 6),
            ("io.cost.wait/8:16", 7000),
        ],
    );
}

#[test]
fn nodes_are_distinguished_by_number_and_pages_are_bytes() {
    let v1 = "total=9 N0=5 N2=4\nanon=9 N0=9\nhierarchical_anon=3 N0=1 N2=2\nhierarchical_file=7 N0=7 N2=0\n";
    gives(
        read(GROUP_FIELDS, Version::V1, "memory.numa_stat", v1),
        &[
            ("memory.node.anon/0", 4096),
            ("memory.node.anon/2", 8192),
            ("memory.node.file/0", 28672),
            ("memory.node.file/2", 0),
        ],
    );
    let v2 = "anon N0=1 N2=2\nfile N0=3 N2=4\nanon_thp N0=9 N2=9\n";
    gives(
        read(GROUP_FIELDS, Version::V2, "memory.numa_stat", v2),
        &[
            ("memory.node.anon/0", 1),
            ("memory.node.anon/2", 2),
            ("memory.node.file/0", 3),
            ("memory.node.file/2", 4),
        ],
    );
}

#[test]
fn the_cpus_of_the_machine_are_distinguished_and_one_that_is_off_has_none() {
    let text = "cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\ncpu3 10 0 0 0 0 0 0 1 0 0\nintr 5 0\nctxt 77\nbtime 1\nprocesses 8\nprocs_running 2\nprocs_blocked 1\n";
    let found = read(MACHINE_FIELDS, Version::V1, "/proc/stat", text);
    let of = |name: &str| found.iter().find(|(known, _)| known == name).map(|(_, reading)| *reading);
    assert_eq!(of("cpu.user/0"), Some(Reading::At(10_000_000)));
    assert_eq!(of("cpu.steal/0"), Some(Reading::At(80_000_000)));
    assert_eq!(of("cpu.user/3"), Some(Reading::At(100_000_000)));
    assert_eq!(of("cpu.user/1"), None);
    assert_eq!((of("cpu.switches"), of("tasks.blocked")), (Some(Reading::At(77)), Some(Reading::At(1))));
    let interrupts = "     CPU0 CPU1\n 24: 1 2 IO-APIC 5-edge x\nNMI: 10 20 Non-maskable\nERR: 7\n";
    gives(
        read(MACHINE_FIELDS, Version::V1, "/proc/interrupts", interrupts),
        &[("interrupts/0", 11), ("interrupts/1", 22)],
    );
    gives(
        read(MACHINE_FIELDS, Version::V1, "/proc/loadavg", "1.07 0.92 1.19 6/127 27530\n"),
        &[("load", 107)],
    );
}

#[test]
fn pressure_words_and_lists_are_numbers() {
    let pressure =
        "some avg10=0.03 avg60=0.61 avg300=3.60 total=105\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7\n";
    gives(
        read(GROUP_FIELDS, Version::V2, "cpu.pressure", pressure),
        &[("cpu.pressure.some", 105_000), ("cpu.pressure.full", 7_000)],
    );
    gives(read(GROUP_FIELDS, Version::V1, "cpuset.effective_cpus", "0-3,8\n"), &[("cpuset.cpus", 5)]);
    gives(read(GROUP_FIELDS, Version::V1, "freezer.state", "FROZEN\n"), &[("frozen", 1)]);
    gives(read(GROUP_FIELDS, Version::V1, "freezer.state", "FREEZING\n"), &[("frozen", 0)]);
    let reasons = crate::group_fields::INVALID_PARTITION;
    for (text, valid, invalid) in [
        ("root\n", 1, None),
        ("isolated\n", 1, None),
        ("member\n", 0, None),
        ("root invalid\n", 0, Some("unknown")),
        ("root invalid (of a later kernel)\n", 0, Some("unknown")),
        ("isolated invalid (Parent is not a partition root)\n", 0, Some("Parent is not a partition root")),
    ] {
        let place =
            |reason| reasons.iter().position(|known| *known == reason).unwrap_or(reasons.len()) as u64 + 1;
        let expected = [("cpuset.partition", valid), ("cpuset.partition.invalid", invalid.map_or(0, place))];
        gives(read(GROUP_FIELDS, Version::V2, "cpuset.cpus.partition", text), &expected);
    }
    gives(
        read(GROUP_FIELDS, Version::V1, "cpuacct.usage_percpu", "5 6 7 \n"),
        &[("cpu.percpu/0", 5), ("cpu.percpu/1", 6), ("cpu.percpu/3", 7)],
    );
}

#[test]
fn text_that_is_not_as_documented_gives_no_figures() {
    for file in ["cpu.stat", "memory.stat", "memory.numa_stat", "blkio.throttle.io_serviced_recursive"] {
        for text in [
            "",
            "\n",
            "x",
            ":::\n",
            "99999999999999999999999\n",
            "nr_periods\n",
            "anon N=1 N0\n",
            "1:1 Read\n",
            "-\u{fffd}\0",
        ] {
            assert_eq!(read(GROUP_FIELDS, Version::V1, file, text), [], "{file} {text:?}");
        }
    }
}

/// Attack finding 30: a number larger than 64 bits is no figure, and the largest one overflows in no unit. Every number
/// of every file that is read is replaced.
#[test]
fn a_counter_that_overflows_gives_no_figure_and_no_panic() {
    let with = |text: &str, number: &str| -> String {
        let parts = text.split_inclusive([' ', '=', '\n']).map(|part| {
            let word = part.trim_end_matches([' ', '=', '\n']);
            let is_number = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
            if is_number { part.replace(word, number) } else { part.to_owned() }
        });
        parts.collect()
    };
    for (version, file, text) in [
        (Version::V1, "cpu.stat", "nr_periods 5\nnr_throttled 3\nthrottled_time 12345\n"),
        (Version::V1, "cpuacct.usage", "5\n"),
        (Version::V1, "cpuacct.usage_percpu", "5 6 7 8\n"),
        (Version::V1, "memory.stat", "total_rss 4096\ntotal_cache 4096\n"),
        (Version::V1, "memory.limit_in_bytes", "5\n"),
        (Version::V1, "blkio.throttle.io_serviced_recursive", "8:16 Read 5\n8:16 Write 6\nTotal 11\n"),
        (
            Version::V2,
            "cpu.stat",
            "usage_usec 7\nuser_usec 4\nsystem_usec 3\nnr_periods 1\nnr_throttled 1\nthrottled_usec 9\n",
        ),
        (Version::V2, "cpu.pressure", "some avg10=0.00 avg60=0.00 avg300=0.00 total=5\n"),
        (Version::V2, "io.stat", "8:16 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=5 dios=6\n"),
        (Version::V2, "memory.stat", "anon 5\nfile 6\n"),
        (Version::V2, "memory.max", "5\n"),
        (Version::V2, "pids.current", "5\n"),
    ] {
        let read = |number: &str| read(GROUP_FIELDS, version, file, &with(text, number));
        assert_ne!(read("5"), [], "{file}");
        for too_large in ["18446744073709551616", "99999999999999999999", "18446744073709551615999"] {
            assert_eq!(read(too_large), [], "{file} {too_large}");
        }
        let largest = read("18446744073709551615");
        let reads =
            |(_, reading): &(String, Reading)| matches!(reading, Reading::At(u64::MAX) | Reading::Max);
        assert!(!largest.is_empty() && largest.iter().all(reads), "{file} {largest:?}");
    }
}
