//! Values to files and back, on both versions, under every name.

use std::collections::BTreeMap;

use proptest::prelude::*;
use settings::{
    Access, Codec, CpuMax, DeviceNumber, FileWrite, Hundredths, Key, Kind, NamedSetting, Range, Setting,
    Unit, Value, Version, Via, all, find,
};
use units::{Bytes, CpuSet, IdSet, Limit, Micros, Nanos};

use super::fake::Group;
use super::{Machine, VERSIONS, bindings, row};

fn limit<T: std::fmt::Debug + Clone + 'static>(
    at: impl Strategy<Value = T> + 'static,
    may_be_max: bool,
) -> BoxedStrategy<Limit<T>> {
    let at = at.prop_map(Limit::At);
    if may_be_max { prop_oneof![4 => at, 1 => Just(Limit::Max)].boxed() } else { at.boxed() }
}

fn set<K: 'static>() -> BoxedStrategy<IdSet<K>> {
    proptest::collection::btree_set(0usize..300, 0..20).prop_map(|ids| ids.into_iter().collect()).boxed()
}

fn device() -> impl Strategy<Value = DeviceNumber> {
    (0u32..300, 0u32..100).prop_map(|(major, minor)| DeviceNumber { major, minor })
}

fn hundredths(range: std::ops::RangeInclusive<u64>, grain: u64) -> BoxedStrategy<Hundredths> {
    range.prop_map(move |weight| Hundredths(weight * grain)).boxed()
}

fn key_text(key: Key) -> BoxedStrategy<String> {
    match key.unit {
        Unit::Word(words) => proptest::sample::select(words).prop_map(str::to_owned).boxed(),
        Unit::Percent => (0u64..10_000).prop_map(|n| format!("{}.{:02}", n / 100, n % 100)).boxed(),
        _ => (1..=key.max).prop_map(|n| n.to_string()).boxed(),
    }
}

/// Values that `version` can hold, of settings that can be set there.
fn values(setting: &'static Setting, version: Version) -> Option<BoxedStrategy<Value>> {
    let binding = setting.side(version).binding()?;
    let settable = setting.access == Access::ReadWrite;
    let held =
        !matches!(binding.codec, Codec::Reset | Codec::Text | Codec::StatField { .. } | Codec::DeviceProgram);
    if !(settable && held) {
        return None;
    }
    let (low, high) = match binding.range {
        Range::Between { min, max } => (min, max),
        Range::Any => (0, u64::MAX / 2),
    };
    let from = low.max(0).unsigned_abs();
    let lifted = !matches!(binding.codec, Codec::Amount { unlimited: "" });
    Some(match setting.kind {
        Kind::Flag => any::<bool>().prop_map(Value::Flag).boxed(),
        Kind::Number => (low..=i64::try_from(high).unwrap()).prop_map(Value::Number).boxed(),
        Kind::Count => limit(from..=high, lifted).prop_map(Value::Count).boxed(),
        // memory plus swap: the fake group's memory is limited to 1 GiB
        Kind::Bytes => {
            let sums = matches!(binding.codec, Codec::MemoryPlusSwap | Codec::SwapAlone);
            let (from, to) = if sums { (1 << 30, 1 << 50) } else { (from, high) };
            limit((from..=to).prop_map(|n| Bytes(n & !4095)), lifted).prop_map(Value::Bytes).boxed()
        }
        Kind::Micros => limit((from..=high).prop_map(Micros), lifted).prop_map(Value::Micros).boxed(),
        Kind::CpuTime => (from..=high).prop_map(|time| Value::CpuTime(Nanos(time))).boxed(),
        Kind::Percent => limit((0u64..=10_000).prop_map(Hundredths), true).prop_map(Value::Percent).boxed(),
        Kind::Weight => hundredths(1..=10_000, 100).prop_map(Value::Weight).boxed(),
        Kind::CpuMax => {
            let quota = proptest::option::of(limit((1_000u64..1 << 40).prop_map(Micros), true));
            let period = proptest::option::of((1_000u64..=1_000_000).prop_map(Micros));
            let parts = (quota, period).prop_filter("says something", |(q, p)| q.is_some() || p.is_some());
            parts.prop_map(|(quota, period)| Value::CpuMax(CpuMax { quota, period })).boxed()
        }
        Kind::Cpus => set().prop_map(Value::Cpus).boxed(),
        Kind::Nodes => set().prop_map(Value::Nodes).boxed(),
        Kind::Word(words) => {
            let known: Vec<&str> = match binding.codec {
                Codec::WordFlag { off, on } => vec![off, on],
                _ => words.to_vec(),
            };
            proptest::sample::select(known).prop_map(|word| Value::Word(word.to_owned())).boxed()
        }
        Kind::PerDevice(keys) => {
            let one = proptest::sample::select(keys)
                .prop_flat_map(|key| limit(1..=key.max, true).prop_map(move |limit| (key.name, limit)));
            let of = proptest::collection::btree_map(0..keys.len(), one, 1..=keys.len())
                .prop_map(|picked| picked.into_values().collect::<BTreeMap<_, _>>());
            proptest::collection::btree_map(device(), of, 1..4).prop_map(Value::PerDevice).boxed()
        }
        Kind::Weights => {
            let (low, high) = match binding.codec {
                Codec::WeightFiles { default, min, max } => (min * 100 / default, max * 100 / default),
                _ => (from, high),
            };
            let weight = move || hundredths(low..=high, 100);
            let devices = proptest::collection::btree_map(device(), proptest::option::of(weight()), 1..4);
            (proptest::option::of(weight()), devices)
                .prop_map(|(default, devices)| Value::Weights { default, devices })
                .boxed()
        }
        Kind::ClassId => any::<u32>().prop_map(Value::ClassId).boxed(),
        Kind::Keyed(keys) => {
            let one = proptest::sample::select(keys)
                .prop_flat_map(|key| key_text(key).prop_map(|text| (key.name.to_owned(), text)));
            let of = proptest::collection::vec(one, 1..=keys.len())
                .prop_map(|pairs| pairs.into_iter().collect::<BTreeMap<_, _>>());
            let name =
                if setting.name.starts_with("io.") { "[0-9]{1,2}:[0-9]{1,2}" } else { "[a-z][a-z0-9_]{0,8}" };
            let name = name.prop_filter("is canonical", |name: &String| {
                name.parse::<DeviceNumber>().map_or(!name.contains(':'), |device| device.to_string() == *name)
            });
            proptest::collection::btree_map(name, of, 1..4).prop_map(Value::Keyed).boxed()
        }
        Kind::Text => "[a-z/]{1,20}".prop_map(Value::Text).boxed(),
        Kind::Rules => return None,
    })
}

/// Every setting and version with values.
fn cases() -> impl Strategy<Value = (NamedSetting, Version, Value)> {
    let every: Vec<(&'static Setting, Version)> = all()
        .flat_map(|setting| VERSIONS.map(|version| (setting, version)))
        .filter(|(setting, version)| values(setting, *version).is_some())
        .collect();
    proptest::sample::select(every).prop_flat_map(|(setting, version)| {
        let values = values(setting, version).expect("filtered");
        values.prop_map(move |value| (row(setting), version, value))
    })
}

fn written(found: &NamedSetting, version: Version, value: &Value) -> Value {
    let group = Group::new(found, version);
    for write in found.encode(version, value, &|file| group.read(file)).unwrap() {
        assert!(!write.text.is_empty() && !write.text.trim_end_matches('\n').contains('\n'), "{write:?}");
        group.write(found, &write);
    }
    found.decode(version, &|file| group.read(file)).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_reads_back_as_asked((found, version, value) in cases()) {
        let held = written(&found, version, &value);
        prop_assert!(found.satisfied(&value, &held), "{}={value} on {version} holds {held}", found.name);
    }

    #[test]
    fn what_is_printed_parses_to_the_same((found, version, value) in cases()) {
        let again = found.parse(&value.to_string(), &Machine);
        prop_assert_eq!(again, Ok(value), "{} on {}", found.name, version);
    }

    #[test]
    fn a_v1_name_shows_and_takes_the_same_number((found, version, value) in cases()) {
        for file in found.files(Version::V1) {
            let named = find(&file).unwrap();
            let shown = named.show(&value);
            if named.setting.name != found.setting.name || shown.is_empty() || named.via == Via::Canonical {
                continue;
            }
            // a value for v2 may be out of v1's range, and a v1 file may hold only one part of it
            let partial = matches!(value, Value::CpuMax(_) | Value::Word(_) | Value::Weights { .. });
            match named.parse(&shown, &Machine) {
                Ok(again) => prop_assert_eq!(named.show(&again), shown, "{} of {}", file, found.name),
                Err(error) => prop_assert!(version == Version::V2 || partial, "{}: {}", file, error),
            }
        }
    }

    #[test]
    fn every_share_of_v1_keeps_its_number(shares in 2u64..=262_144) {
        let found = find("cpu.shares").unwrap();
        let value = found.parse(&shares.to_string(), &Machine).unwrap();
        prop_assert_eq!(written(&found, Version::V1, &value), value.clone());
        let writes = found.encode(Version::V1, &value, &|_| None).unwrap();
        prop_assert_eq!(&writes[0].text, &shares.to_string());
        prop_assert_eq!(found.show(&value), shares.to_string());
        let weight: u64 = found.encode(Version::V2, &value, &|_| None).unwrap()[0].text.parse().unwrap();
        prop_assert!((1..=10_000).contains(&weight));
    }

    #[test]
    fn any_text_is_a_value_or_an_error(text in "\\PC{0,40}|[0-9a-z:;=/%. -]{0,30}", index in any::<prop::sample::Index>()) {
        let every: Vec<&Setting> = all().collect();
        let found = row(every[index.index(every.len())]);
        match found.parse(&text, &Machine) {
            Ok(value) => {
                let again = found.parse(&value.to_string(), &Machine);
                prop_assert_eq!(again, Ok(value), "{}={:?}", found.name, text);
            }
            Err(error) => prop_assert!(error.to_string().starts_with(&found.name) && !error.to_string().ends_with('.')),
        }
    }

    #[test]
    fn any_file_is_a_value_or_an_error(text in "\\PC{0,40}|[0-9a-z:=/ \n-]{0,60}", index in any::<prop::sample::Index>()) {
        let every: Vec<&Setting> = all().collect();
        let found = row(every[index.index(every.len())]);
        for version in VERSIONS {
            let _ = found.decode(version, &|_| Some(text.clone()));
        }
    }
}

fn writes(name: &str, version: Version, text: &str, files: &[(&str, &str)]) -> Vec<(String, String)> {
    let found = find(name).unwrap();
    let value = found.parse(text, &Machine).unwrap();
    let current =
        |file: &str| files.iter().find(|(name, _)| *name == file).map(|(_, text)| (*text).to_owned());
    let writes = found.encode(version, &value, &current).unwrap();
    writes.into_iter().map(|FileWrite { file, text }| (file, text)).collect()
}

fn one(file: &str, text: &str) -> Vec<(String, String)> {
    vec![(file.to_owned(), text.to_owned())]
}

#[test]
fn the_studies_lines_are_written_as_they_say() {
    use Version::{V1, V2};
    let quota = [("cpu.cfs_quota_us", "-1\n"), ("cpu.cfs_period_us", "100000\n")];
    for (name, version, text, expected) in [
        ("blkio.throttle.read_iops_device", V1, "8:16 10", one("blkio.throttle.read_iops_device", "8:16 10")),
        ("blkio.throttle.read_iops_device", V2, "8:16 10", one("io.max", "8:16 riops=10")),
        ("blkio.throttle.read_iops_device", V2, "/dev/sdb 0", one("io.max", "8:16 riops=max")),
        ("io.max", V1, "/dev/sdb riops=10", one("blkio.throttle.read_iops_device", "8:16 10")),
        ("io.max", V1, "8:16 riops=max", one("blkio.throttle.read_iops_device", "8:16 0")),
        ("memory.limit_in_bytes", V1, "8589934592", one("memory.limit_in_bytes", "8589934592")),
        ("memory.limit_in_bytes", V2, "-1", one("memory.max", "max")),
        // as v1 prints that there is none, with pages of 4 KiB and of 64 KiB, and LONG_MAX itself
        ("memory.limit_in_bytes", V2, "9223372036854771712", one("memory.max", "max")),
        ("memory.limit_in_bytes", V1, "9223372036854710272", one("memory.limit_in_bytes", "-1")),
        ("memory.soft_limit_in_bytes", V1, "9223372036854775807", one("memory.soft_limit_in_bytes", "-1")),
        ("hugetlb.2MB.limit_in_bytes", V1, "9223372036852678656", one("hugetlb.2MB.limit_in_bytes", "-1")),
        ("memory.max", V1, "max", one("memory.limit_in_bytes", "-1")),
        ("memory.max", V2, "25%", one("memory.max", "4294967296")),
        ("cpuset.cpus", V1, "0,4,8,12,16,20,24,28", one("cpuset.cpus", "0,4,8,12,16,20,24,28")),
        ("cpuset.cpus", V2, "all", one("cpuset.cpus", "0-7")),
        ("cpuset.mems", V2, "", one("cpuset.mems", "\n")),
        ("cpuset.cpu_exclusive", V2, "1", one("cpuset.cpus.partition", "root")),
        ("cpuset.cpus.partition", V1, "member", one("cpuset.cpu_exclusive", "0")),
        ("cpu.rt_runtime_us", V1, "950000", one("cpu.rt_runtime_us", "950000")),
        ("memory.oom_control", V1, "1", one("memory.oom_control", "1")),
        ("blkio.weight", V1, "1000", one("blkio.weight", "1000")),
        ("blkio.weight", V2, "1000", one("io.weight", "default 200")),
        ("freezer.state", V1, "FROZEN", one("freezer.state", "FROZEN")),
        ("freezer.state", V2, "FROZEN", one("cgroup.freeze", "1")),
        ("cgroup.freeze", V1, "no", one("freezer.state", "THAWED")),
        ("cpu.shares", V2, "2", one("cpu.weight", "1")),
        ("cpu.shares", V1, "1000000", one("cpu.shares", "262144")),
        ("cpu.max", V2, "1.5cpu", one("cpu.max", "150000 100000")),
        ("cpu.max", V2, "150%/50ms", one("cpu.max", "75000 50000")),
        ("cpu.max", V2, "50ms", one("cpu.max", "50000")),
        ("cpu.cfs_quota_us", V2, "-1", one("cpu.max", "max")),
        ("cpu.cfs_quota_us", V1, "-1", one("cpu.cfs_quota_us", "-1")),
        ("net_cls.classid", V1, "10:1", one("net_cls.classid", "0x00100001")),
        ("devices.deny", V1, "a", one("devices.deny", "a")),
        ("memory.force_empty", V1, "0", one("memory.force_empty", "0")),
        ("cgroup.kill", V2, "1", one("cgroup.kill", "1")),
    ] {
        assert_eq!(writes(name, version, text, &quota), expected, "{name}={text} on {version}");
    }
}

#[test]
fn a_device_rule_and_a_device_line_is_one_write_each() {
    let allow = writes("devices.allow", Version::V1, "c 1:3 rwm; b 8:* r", &[]);
    assert_eq!(allow, [one("devices.allow", "c 1:3 rwm"), one("devices.allow", "b 8:* r")].concat());
    let max = writes("io.max", Version::V2, "8:16 riops=10 wbps=1M; 8:0 max", &[]);
    let lifted = one("io.max", "8:0 rbps=max riops=max wbps=max wiops=max");
    assert_eq!(max, [lifted, one("io.max", "8:16 riops=10 wbps=1048576")].concat());
}

#[test]
fn quota_and_period_are_written_in_the_order_the_kernel_accepts() {
    let order = |held: (&str, &str), text: &str| {
        let files = [("cpu.cfs_quota_us", held.0), ("cpu.cfs_period_us", held.1)];
        let files: Vec<String> =
            writes("cpu.max", Version::V1, text, &files).into_iter().map(|(file, _)| file).collect();
        files.iter().map(|file| file.split('_').nth(1).unwrap()).collect::<Vec<_>>().join(" ")
    };
    // half a CPU to a quarter over a shorter period: the period first would give a whole CPU in between
    assert_eq!(order(("50000", "100000"), "12500 50000"), "quota period");
    // to half over twice the period: the quota first would give a whole CPU
    assert_eq!(order(("50000", "100000"), "100000 200000"), "period quota");
    assert_eq!(order(("50000", "100000"), "max 50000"), "quota period");
    assert_eq!(order(("-1", "100000"), "25000 50000"), "period quota");
    assert_eq!(order(("-1", "100000"), "/50ms"), "period");
}

#[test]
fn a_period_alone_keeps_the_quota() {
    assert_eq!(
        writes("cpu.cfs_period_us", Version::V2, "50000", &[("cpu.max", "20000 100000\n")]),
        one("cpu.max", "20000 50000")
    );
}

#[test]
fn swap_and_memory_plus_swap_are_made_of_each_other() {
    let limit = ("memory.limit_in_bytes", "1073741824\n");
    assert_eq!(
        writes("memory.swap.max", Version::V1, "512M", &[limit]),
        one("memory.memsw.limit_in_bytes", "1610612736")
    );
    assert_eq!(
        writes("memory.memsw.limit_in_bytes", Version::V2, "1536M", &[("memory.max", "1073741824\n")]),
        one("memory.swap.max", "536870912")
    );
    let found = find("memory.swap.max").unwrap();
    let unlimited = |file: &str| (!file.is_empty()).then(|| "9223372036854771712\n".to_owned());
    let refused = found.encode(Version::V1, &Value::Bytes(Limit::At(Bytes(0))), &unlimited).unwrap_err();
    assert!(refused.to_string().contains("memory.max must be limited first"), "{refused}");
    assert_eq!(found.decode(Version::V1, &unlimited), Ok(Value::Bytes(Limit::Max)));
}

#[test]
fn reclaiming_all_names_what_is_there() {
    assert_eq!(
        writes("memory.force_empty", Version::V2, "0", &[("memory.current", "4096000\n")]),
        one("memory.reclaim", "4096000")
    );
}

#[test]
fn files_of_both_versions_read_as_one_value() {
    let group = |name: &str, version, files: &[(&str, &str)]| {
        let found = find(name).unwrap();
        let fake = Group::new(&found, version);
        files.iter().for_each(|(file, text)| fake.put(file, text));
        found.decode(version, &|file| fake.read(file)).map(|value| value.to_string())
    };
    use Version::{V1, V2};
    let stat = ("cpu.stat", "usage_usec 5000123\nuser_usec 3000000\nsystem_usec 2000123\n");
    let oom = ("memory.oom_control", "oom_kill_disable 1\nunder_oom 0\noom_kill 3\n");
    let bytes = (
        "blkio.throttle.io_service_bytes_recursive",
        "8:16 Read 8192\n8:16 Write 0\n8:16 Total 8192\nTotal 8192\n",
    );
    let ios = ("blkio.throttle.io_serviced_recursive", "8:16 Read 2\n8:16 Sync 2\nTotal 2\n");
    for (name, version, files, expected) in [
        ("cpuacct.usage", V2, vec![stat], "5000123000"),
        ("cpuacct.usage_user", V2, vec![stat], "3000000000"),
        ("cpuacct.stat", V2, vec![stat], "user 300\nsystem 200"),
        ("memory.limit_in_bytes", V1, vec![("memory.limit_in_bytes", "9223372036854771712\n")], "max"),
        ("hugetlb.2MB.max", V1, vec![("hugetlb.2MB.limit_in_bytes", "9223372036852678656\n")], "max"),
        ("hugetlb.1GB.max", V1, vec![("hugetlb.1GB.limit_in_bytes", "9223372035781033984\n")], "max"),
        ("hugetlb.1GB.max", V1, vec![("hugetlb.1GB.limit_in_bytes", "2147483648\n")], "2G"),
        ("memory.oom_control", V1, vec![oom], "1"),
        ("memory.failcnt", V2, vec![("memory.events", "low 0\nhigh 0\nmax 7\noom 1\n")], "7"),
        ("cgroup.freeze", V1, vec![("freezer.state", "FREEZING\n")], "1"),
        ("cpu.weight", V1, vec![("cpu.shares", "1000\n")], "97.66"),
        ("cpu.max", V2, vec![("cpu.max", "max 100000\n")], "max 100000"),
        (
            "cpuset.cpus.partition",
            V2,
            vec![("cpuset.cpus.partition", "root invalid (Cpu list in cpuset.cpus not exclusive)\n")],
            "root invalid (Cpu list in cpuset.cpus not exclusive)",
        ),
        ("io.max", V1, vec![("blkio.throttle.read_iops_device", "8:16 10\n")], "8:16 riops=10"),
        (
            "io.max",
            V2,
            vec![("io.max", "8:16 rbps=2097152 wbps=max riops=max wiops=120\n")],
            "8:16 rbps=2097152 riops=max wbps=max wiops=120",
        ),
        (
            "io.bfq.weight",
            V1,
            vec![("blkio.bfq.weight", "300\n"), ("blkio.bfq.weight_device", "default 300\n8:16 500\n")],
            "300; 8:16 500",
        ),
        ("io.stat", V1, vec![bytes, ios], "8:16 rbytes=8192 wbytes=0 rios=2 wios=0 dbytes=0 dios=0"),
        ("devices.list", V1, vec![("devices.list", "c 1:3 rwm\nb 8:* rw\n")], "c 1:3 rwm; b 8:* rw"),
        ("net_cls.classid", V1, vec![("net_cls.classid", "1048577\n")], "10:1"),
        ("cpu.rt_runtime_us", V1, vec![("cpu.rt_runtime_us", "-1\n")], "max"),
        (
            "memory.swap.current",
            V1,
            vec![("memory.memsw.usage_in_bytes", "12288\n"), ("memory.usage_in_bytes", "4096\n")],
            "8K",
        ),
    ] {
        assert_eq!(group(name, version, &files).unwrap(), expected, "{name} on {version}");
    }
}

#[test]
fn a_partition_that_is_invalid_is_not_what_was_asked() {
    let (requested, held) =
        (Value::Word("root".into()), Value::Word("root invalid (parent is not a partition root)".into()));
    assert!(!requested.satisfied_by(&held));
    let cpus = |list: &str| Value::Cpus(list.parse::<CpuSet>().unwrap());
    assert!(cpus("0-3").satisfied_by(&cpus("0,1,2,3")) && !cpus("0-3").satisfied_by(&cpus("0-2")));
}

#[test]
fn a_rule_is_satisfied_by_a_wider_one() {
    let rules = |text: &str| find("devices.allow").unwrap().parse(text, &Machine).unwrap();
    assert!(rules("c 1:3 r").satisfied_by(&rules("c 1:* rw; b 8:0 r")));
    assert!(rules("c 1:3 r").satisfied_by(&rules("a")));
    assert!(!rules("c 1:3 rw").satisfied_by(&rules("c 1:3 r")));
    assert!(!rules("c 1:3 r").satisfied_by(&rules("b 1:3 r")));
}

/// `status` took nanoseconds for microseconds, as both were a number without a unit.
#[test]
fn cpu_time_has_its_unit_whatever_a_file_counts_in() {
    let held = [
        ("cpuacct.usage", Version::V1, "cpuacct.usage", "1234567899\n"),
        ("cpuacct.usage_user", Version::V1, "cpuacct.usage_user", "1234567899\n"),
        ("cpuacct.usage", Version::V2, "cpu.stat", "usage_usec 1234567\nuser_usec 1\nsystem_usec 2\n"),
        ("cpuacct.usage_sys", Version::V2, "cpu.stat", "usage_usec 1\nuser_usec 2\nsystem_usec 1234567\n"),
    ];
    for (name, version, file, text) in held {
        let files = |requested: &str| (requested == file).then(|| text.to_owned());
        let value = find(name).unwrap().decode(version, &files).unwrap();
        let Value::CpuTime(time) = value else { panic!("{name}: {value:?}") };
        assert_eq!(time.to_micros(), Micros(1_234_567), "{name} on {version}");
    }
}

/// A counter or limit larger than 64 bits is an error that names the file, in whatever file it is; the largest one that
/// fits panics in no conversion of units.
#[test]
fn a_number_that_overflows_is_an_error() {
    const TOO_LARGE: &str = "99999999999999999999";
    let forms = [
        "{n}\n",
        "{n} {n}\n",
        "default {n}\n8:16 {n}\n",
        "8:16 {n}\n",
        "8:16 Read {n}\n8:16 Write {n}\n",
        "8:16 rbps={n} wbps={n} riops={n} wiops={n}\n",
        "usage_usec {n}\nuser_usec {n}\nsystem_usec {n}\nunder_oom {n}\noom_kill_disable {n}\n",
    ];
    let mut refused = 0;
    for (setting, version, _) in bindings() {
        if setting.access == Access::Write {
            continue;
        }
        let found = row(setting);
        for form in forms {
            let decode = |number: &str| found.decode(version, &|_| Some(form.replace("{n}", number)));
            let _ = decode(&u64::MAX.to_string());
            let _ = decode(&i64::MAX.to_string());
            let is_number = decode("1").is_ok() && decode("2").is_ok() && decode("1") != decode("2");
            // a text is shown as it is
            let is_text = matches!(decode("1"), Ok(Value::Text(_) | Value::Word(_) | Value::Keyed(_)));
            if is_number && !is_text {
                let error = decode(TOO_LARGE).unwrap_err().to_string();
                assert!(error.contains(TOO_LARGE), "{} {version} {form}: {error}", setting.name);
                refused += 1;
            }
        }
    }
    assert!(refused > 40, "{refused}");
}
