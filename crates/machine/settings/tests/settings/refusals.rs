//! Texts and values that are refused, each with its reason and the way out.

use settings::{EncodeError, Value, ValueError, Version, find};
use units::{Bytes, Limit};

use super::Machine;

fn refused(name: &str, text: &str) -> ValueError {
    match find(name).unwrap().parse(text, &Machine) {
        Ok(value) => panic!("{name}={text} is taken as {value}"),
        Err(error) => error,
    }
}

#[test]
fn nonsense_is_refused_with_its_position_or_range() {
    for (name, text, expected) in [
        (
            "memory.max",
            "8Q",
            "memory.max: unknown unit 'Q' (known: K M G T P E, powers of 1024) at position 2 of '8Q'",
        ),
        ("memory.max", "-1", "memory.max: expected a number at position 1 of '-1'"),
        ("memory.max", "", "memory.max: expected a number at position 1 of ''"),
        ("memory.max", "9E", "memory.max: 9E is out of range: 0 to 9223372036854710271"),
        ("memory.limit_in_bytes", "lots", "memory.limit_in_bytes: expected a number at position 1 of 'lots'"),
        ("cpu.max", "banana", "cpu.max: expected a number at position 1 of 'banana'"),
        ("cpu.max", "50ms/5y", "cpu.max: unknown unit 'y' (known: us ms s min) at position 7 of '50ms/5y'"),
        ("cpu.max", "50ms/2s", "cpu.max: period 2s is out of range: 1ms to 1s"),
        ("cpu.max", "500us", "cpu.max: 500us is out of range: 1ms to 17592186044415us"),
        ("cpu.cfs_quota_us", "0", "cpu.cfs_quota_us: 0 is out of range: 1ms to 17592186044415us"),
        ("pids.max", "-5", "pids.max: -5 is out of range: 0 to 4194304"),
        ("pids.max", "4x", "pids.max: expected a whole number at position 2 of '4x'"),
        ("cpuset.cpus", "3-1", "cpuset.cpus: the end of the range is below its start at position 1 of '3-1'"),
        ("cpuset.mems", "0,-,1", "cpuset.mems: expected a number at position 3 of '0,-,1'"),
        ("cpu.weight", "0", "cpu.weight: 0 is out of range: 1 to 10000"),
        ("cpu.weight", "10001", "cpu.weight: 10001 is out of range: 1 to 10000"),
        ("cpu.shares", "-2", "cpu.shares: -2 is out of range: 2 to 262144"),
        ("cpu.uclamp.max", "101%", "cpu.uclamp.max: 101% is out of range: 0 to 100"),
        ("cpu.weight.nice", "20", "cpu.weight.nice: 20 is out of range: -20 to 19"),
        ("cgroup.freeze", "maybe", "cgroup.freeze: 'maybe' is neither on nor off"),
        ("freezer.state", "frozen", "freezer.state: 'frozen' is not known"),
        ("cpuset.cpus.partition", "roots", "cpuset.cpus.partition: 'roots' is not known"),
        ("io.max", "/dev/sdc riops=10", "io.max: /dev/sdc does not exist"),
        ("io.max", "8:16 iops=10", "io.max: 'iops' is not known"),
        ("io.max", "8:16 riops=0", "io.max: riops=0 is out of range: 1 to 4294967294"),
        ("io.max", "8:16", "io.max: '8:16' has no limit after the device"),
        (
            "blkio.throttle.read_iops_device",
            "8:16 4294967296",
            "blkio.throttle.read_iops_device: 4294967296 is out of range: 1 to 4294967294",
        ),
        (
            "blkio.throttle.read_iops_device",
            "8:16 wiops=5",
            "blkio.throttle.read_iops_device: 'wiops' is not known",
        ),
        ("blkio.weight", "5", "blkio.weight: 5 is out of range: 10 to 1000"),
        ("io.bfq.weight", "8:16 5000", "io.bfq.weight: 8:16 5000 is out of range: 1 to 1000"),
        (
            "devices.allow",
            "c 1:3 rwx",
            "devices.allow: expected some of r, w and m at position 9 of 'c 1:3 rwx'",
        ),
        (
            "devices.allow",
            "c 1:3 r; x",
            "devices.allow: expected a, b or c for all, block or character devices at position 10 of 'c 1:3 r; x'",
        ),
        ("net_cls.classid", "10:zz", "net_cls.classid: '10:zz' is no network class"),
        ("cgroup.kill", "0", "cgroup.kill: 0 is out of range: 1 to 1"),
        ("memory.failcnt", "5", "memory.failcnt: 5 is out of range: 0 to 0"),
        ("memory.current", "5", "memory.current can't be set"),
        ("memory.peak", "5", "memory.peak: 5 is out of range: 0 to 0"),
        ("cgroup.procs", "1", "cgroup.procs can't be set"),
        ("rdma.max", "mlx5_0", "rdma.max: 'mlx5_0' has no value after the name"),
    ] {
        assert_eq!(refused(name, text).to_string(), expected, "{name}={text}");
    }
}

#[test]
fn a_refusal_says_what_would_be_right() {
    for (name, text, expected) in [
        (
            "memory.max",
            "8Q",
            "expected a size in bytes or with K, M, G, T (powers of 1024), a percentage of the machine's memory, or max, such as 8G",
        ),
        (
            "cpu.cfs_period_us",
            "x",
            "expected a duration in us, ms or s (microseconds without a unit), such as 100000",
        ),
        ("cpu.shares", "x", "expected a whole number, such as 2048"),
        ("pids.max", "4194305", "the nearest value is 4194304"),
        // newcomers' friction: the nearest value was 1ms
        ("cpu.max", "2", "did you mean 2cpu? (2cpu are 2 CPUs, 50% is half of one, 50ms of each 100ms too)"),
        (
            "cpu.max",
            "1.5",
            "did you mean 1.5cpu? (2cpu are 2 CPUs, 50% is half of one, 50ms of each 100ms too)",
        ),
        ("cpu.max", "50", "did you mean 50%? (2cpu are 2 CPUs, 50% is half of one, 50ms of each 100ms too)"),
        (
            "blkio.throttle.read_bps_device",
            "8:16 99999999999999999999",
            "expected DEVICE LIMIT, several separated by ;, such as 8:16 1048576",
        ),
        ("io.max", "8:16 riops=0", "the nearest value is 1; `max` lifts the limit"),
        ("io.max", "8:16 riop=10", "did you mean riops?"),
        ("cpuset.cpus.partition", "roots", "did you mean root?"),
        ("freezer.state", "stop", "known are THAWED, FROZEN"),
        (
            "io.max",
            "/dev/sdc riops=10",
            "`lsblk` lists the devices with their MAJOR:MINOR, which can be given too",
        ),
        ("io.max", "sdc riops=10", "give a path such as /dev/sdb, or MAJOR:MINOR as `lsblk` prints it"),
        ("cgroup.procs", "1", "it is changed by ringfence move GROUP PID…"),
        ("cpuset.cpus", "a", "a list such as 0-3,8"),
    ] {
        assert_eq!(refused(name, text).hint().unwrap(), expected, "{name}={text}");
    }
}

#[test]
fn an_unknown_name_gets_the_nearest_ones() {
    for (name, hint) in [
        ("cpu.sahres", "cpu.shares"),
        ("memory.limit", "memory.limit_in_bytes"),
        ("cpu.wieght", "cpu.weight"),
        ("memory.maxx", "memory.max"),
        ("hugetlb.3XB.max", "hugetlb.<size>.max"),
        ("pids.mx", "pids.max"),
    ] {
        let error = find(name).unwrap_err();
        assert_eq!(error.to_string(), format!("unknown setting '{name}'"));
        assert!(error.hint().contains(hint), "{name}: {}", error.hint());
    }
    // finding A12 of the newcomers' review: never cpuset.cpus
    assert_eq!(find("cpus").unwrap().canonical(), "cpuset.cpus");
    assert_eq!(find("mems").unwrap().canonical(), "cpuset.mems");
    assert_eq!(find("partition").unwrap_err().hint(), "did you mean cpuset.cpus.partition?");
    assert_eq!(find("zzz").unwrap_err().hint(), "`ringfence settings` lists all names");
}

#[test]
fn what_a_version_lacks_says_what_to_use_instead() {
    let classid = find("net_cls.classid").unwrap();
    let error = classid.encode(Version::V2, &Value::ClassId(1), &|_| None).unwrap_err();
    assert_eq!(error.to_string(), "cgroup v2 has no net_cls.classid");
    assert!(error.hint().unwrap().contains("socket cgroupv2"));

    let partition = find("cpuset.cpus.partition").unwrap();
    let isolated = partition.parse("isolated", &Machine).unwrap();
    let error = partition.encode(Version::V1, &isolated, &|_| None).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cgroup v1 can't hold cpuset.cpus.partition=isolated: it knows member and root only"
    );

    let peak = find("memory.peak").unwrap();
    let reset = peak.parse("0", &Machine).unwrap();
    assert_eq!(peak.encode(Version::V1, &reset, &|_| None).unwrap()[0].file, "memory.max_usage_in_bytes");
    let error = peak.encode(Version::V2, &reset, &|_| None).unwrap_err();
    assert_eq!(error.to_string(), "cgroup v2 can't hold memory.peak=0: it can only be read there");

    let rules = find("devices.allow").unwrap();
    let value = rules.parse("a", &Machine).unwrap();
    assert!(matches!(rules.encode(Version::V2, &value, &|_| None), Err(EncodeError::Program { .. })));

    let low = find("memory.low").unwrap();
    let error = low.encode(Version::V1, &Value::Bytes(Limit::At(Bytes(4096))), &|_| None).unwrap_err();
    assert!(error.hint().unwrap().contains("memory.max"));
}

#[test]
fn a_value_of_another_kind_is_an_error_not_a_write() {
    let found = find("cpu.max").unwrap();
    for version in [Version::V1, Version::V2] {
        let error = found.encode(version, &Value::Flag(true), &|_| None).unwrap_err();
        assert!(matches!(error, EncodeError::WrongKind { .. }), "{error}");
    }
    let swappiness = find("memory.swappiness").unwrap();
    for wrong in [Limit::Max, Limit::At(300)] {
        let error = swappiness.encode(Version::V1, &Value::Count(wrong), &|_| None).unwrap_err();
        assert!(matches!(error, EncodeError::NotThere { .. }), "{error}");
    }
}

#[test]
fn numbers_are_taken_as_the_kernel_takes_them() {
    for (name, text, same) in [
        ("cpu.shares", "0x100", "256"),
        ("cpu.weight", "0X64", "100"),
        ("cpu.weight.nice", "0xa", "10"),
        ("memory.limit_in_bytes", "0x4000000", "64M"),
        ("memory.limit_in_bytes", "0x7ffffffffffff000", "-1"),
        ("memory.max", "0x4000000", "67108864"),
        ("memory.swappiness", "0x10", "16"),
        ("pids.max", "0x10", "16"),
        ("cpu.cfs_quota_us", "0xc350", "50000"),
        ("cpu.max", "0xc350 0x186a0", "50000 100000"),
        ("cpuset.cpus", "0-1,", "0-1"),
        ("cpuset.mems", "0,", "0"),
        ("cpuset.cpu_exclusive", "2", "1"),
        ("cpuset.cpu_exclusive", "0x0", "0"),
        ("cpuset.memory_migrate", "5", "1"),
        ("cgroup.clone_children", "2", "1"),
        ("notify_on_release", "7", "1"),
    ] {
        let value = |text: &str| find(name).unwrap().parse(text, &Machine);
        assert_eq!(value(text).unwrap(), value(same).unwrap(), "{name}={text}");
    }
    for (name, text) in [
        ("cpu.shares", "0x"),
        ("cpu.shares", "0x1g"),
        ("cpu.shares", "-0x1"),
        ("memory.limit_in_bytes", "0x4000K"),
        ("pids.max", "0x10000000000000000"),
        ("memory.oom_control", "2"),
        ("cgroup.freeze", "2"),
        ("cpuset.cpus", "0x1"),
        ("cpuset.cpus", ","),
        ("cpuset.cpu_exclusive", "-1"),
    ] {
        refused(name, text);
    }
}
