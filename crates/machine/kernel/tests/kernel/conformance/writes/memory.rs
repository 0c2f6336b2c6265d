//! Rows for memory, tasks, block devices, and the files of every group.

use rustix::io::Errno;
use settings::{
    Controller::{Core, Freezer, Io, Memory, Pids},
    Version::{V1, V2},
};

use super::{Row, Step, no, ok, row, shows};

/// "No limit" as v1 prints it.
const UNLIMITED: &str = "9223372036854771712";

pub static ROWS: &[Row] = &[
    // memory
    row(
        "memory_limits_are_rounded_down_to_pages",
        Memory,
        V1,
        &[
            ok("memory.limit_in_bytes", "4095", "0"),
            ok("memory.limit_in_bytes", "4097", "4096"),
            ok("memory.limit_in_bytes", "2m", "2097152"),
            ok("memory.limit_in_bytes", " 4M ", "4194304"),
            ok("memory.limit_in_bytes", "0x100000", "1048576"),
            ok("memory.limit_in_bytes", "-1", UNLIMITED),
            ok("memory.limit_in_bytes", "18446744073709551615", UNLIMITED),
            no("memory.limit_in_bytes", "-2", Errno::INVAL, ""),
            no("memory.limit_in_bytes", "max", Errno::INVAL, ""),
            no("memory.limit_in_bytes", "4 M", Errno::INVAL, ""),
        ],
    ),
    row(
        "an_empty_line_is_a_memory_limit_of_zero",
        Memory,
        V1,
        &[
            ok("memory.soft_limit_in_bytes", "\n", "0"),
            ok("memory.limit_in_bytes", "\n", "0"),
            ok("memory.limit_in_bytes", "-1", UNLIMITED),
        ],
    ),
    row(
        "memory_and_swap_together_are_at_least_the_memory",
        Memory,
        V1,
        &[
            ok("memory.limit_in_bytes", "100M", "104857600"),
            no("memory.memsw.limit_in_bytes", "50M", Errno::INVAL, ""),
            no(
                "memory.memsw.limit_in_bytes",
                "52428800",
                Errno::INVAL,
                "at least memory.limit_in_bytes, which is",
            ),
            ok("memory.memsw.limit_in_bytes", "200M", "209715200"),
            no(
                "memory.limit_in_bytes",
                "314572800",
                Errno::INVAL,
                "at most memory.memsw.limit_in_bytes, which is",
            ),
            ok("memory.memsw.limit_in_bytes", "-1", UNLIMITED),
            ok("memory.limit_in_bytes", "-1", UNLIMITED),
        ],
    ),
    row(
        "swappiness_is_at_most_200",
        Memory,
        V1,
        &[
            ok("memory.swappiness", "0", "0"),
            ok("memory.swappiness", "200", "200"),
            no("memory.swappiness", "201", Errno::INVAL, "memory.swappiness"),
            no("memory.use_hierarchy", "0", Errno::INVAL, ""),
            ok("memory.oom_control", "1", "oom_kill_disable 1\nunder_oom 0\noom_kill 0"),
            no("memory.oom_control", "2", Errno::INVAL, ""),
        ],
    ),
    row(
        "memory_limits_are_rounded_down_to_pages",
        Memory,
        V2,
        &[
            ok("memory.max", "4095", "0"),
            ok("memory.max", "4097", "4096"),
            ok("memory.high", "1g", "1073741824"),
            ok("memory.min", " 5M ", "5242880"),
            ok("memory.low", "0x100000", "1048576"),
            ok("memory.low", "max", "max"),
            ok("memory.max", "9223372036854775807", "max"),
            no("memory.max", "-1", Errno::INVAL, "memory.max"),
            no("memory.high", "x", Errno::INVAL, "memory.high"),
            no("memory.min", "Max", Errno::INVAL, "memory.min"),
        ],
    ),
    row(
        "an_empty_line_is_a_memory_limit_of_zero",
        Memory,
        V2,
        &[
            ok("memory.high", "\n", "0"),
            ok("memory.max", "\n", "0"),
            ok("memory.max", "", "0"),
            ok("memory.max", "max", "max"),
        ],
    ),
    row(
        "swap_limits_are_rounded_like_memory_limits",
        Memory,
        V2,
        &[
            ok("memory.swap.max", "4097", "4096"),
            ok("memory.swap.high", "100k", "102400"),
            ok("memory.swap.max", "max", "max"),
            no("memory.swap.max", "-1", Errno::INVAL, "memory.swap.max"),
        ],
    ),
    row(
        "the_group_flag_of_the_memory_killer_is_0_or_1",
        Memory,
        V2,
        &[
            ok("memory.oom.group", "1", "1"),
            no("memory.oom.group", "2", Errno::INVAL, "memory.oom.group"),
            ok("memory.oom.group", "0", "0"),
        ],
    ),
    row(
        "what_is_not_used_can_not_be_reclaimed",
        Memory,
        V2,
        &[
            no("memory.reclaim", "1M", Errno::AGAIN, "could be reclaimed"),
            no("memory.reclaim", "x", Errno::INVAL, ""),
        ],
    ),
    // pids
    row("the_number_of_tasks_is_limited_up_to_the_largest_pid", Pids, V1, PIDS),
    row("the_number_of_tasks_is_limited_up_to_the_largest_pid", Pids, V2, PIDS),
    // io
    row(
        "v1_throttles_a_device_and_zero_takes_it_away",
        Io,
        V1,
        &[
            ok("blkio.throttle.read_iops_device", "$D 10", "$D 10"),
            ok("blkio.throttle.read_iops_device", "$D 1", "$D 1"),
            ok("blkio.throttle.read_iops_device", "  $D   7", "$D 7"),
            ok("blkio.throttle.read_iops_device", "$D 0", ""),
            ok("blkio.throttle.read_iops_device", "$D 4294967295", ""),
            ok("blkio.throttle.write_bps_device", "$D 4294967295", "$D 4294967295"),
            ok("blkio.throttle.write_bps_device", "$D 1M", "$D 1"),
            ok("blkio.throttle.write_bps_device", "$D 18446744073709551615", ""),
            no("blkio.throttle.read_bps_device", "9:9 1", Errno::NODEV, "no block device 9:9"),
            no("blkio.throttle.read_bps_device", "$D", Errno::INVAL, "MAJOR:MINOR"),
            no("blkio.throttle.read_bps_device", "$D -1", Errno::INVAL, "MAJOR:MINOR"),
            no("blkio.throttle.read_bps_device", "8 5", Errno::INVAL, "MAJOR:MINOR"),
            no("blkio.throttle.io_serviced", "1", Errno::INVAL, ""),
        ],
    ),
    row(
        "io_max_keeps_the_limits_that_are_not_named",
        Io,
        V2,
        &[
            ok("io.max", "$D riops=10", "$D rbps=max wbps=max riops=10 wiops=max"),
            ok("io.max", "$D rbps=1048576 wiops=5", "$D rbps=1048576 wbps=max riops=10 wiops=5"),
            ok("io.max", "$D rbps=max", "$D rbps=max wbps=max riops=10 wiops=5"),
            ok("io.max", "$D riops=4294967295 wiops=max", ""),
            ok("io.max", "$D riops=10 riops=20", "$D rbps=max wbps=max riops=20 wiops=max"),
            ok("io.max", "$D ", "$D rbps=max wbps=max riops=20 wiops=max"),
            no("io.max", "$D", Errno::INVAL, "MAJOR:MINOR"),
            no("io.max", "$D nope=5", Errno::INVAL, ""),
            no("io.max", "$D riops=x", Errno::INVAL, ""),
            no("io.max", "$D riops=0", Errno::RANGE, ""),
            no("io.max", "$D riops=30 nope=3", Errno::INVAL, ""),
            no("io.max", "9:9 riops=5", Errno::NODEV, "no block device 9:9"),
            no("io.max", "riops=5", Errno::INVAL, ""),
            ok("io.max", "$D riops=max", ""),
        ],
    ),
    row(
        "a_weight_for_one_device_needs_a_scheduler_that_knows_weights",
        Io,
        V2,
        &[
            ok("io.weight", "10000", "default 10000"),
            ok("io.weight", "default 50", "default 50"),
            no("io.weight", "0", Errno::INVAL, ""),
            no("io.weight", "10001", Errno::INVAL, ""),
            no("io.weight", "$D 200", Errno::OPNOTSUPP, "knows no weights"),
            no("io.weight", "9:9 5", Errno::NODEV, "no block device 9:9"),
        ],
    ),
    row(
        "the_bfq_weight_is_1_to_1000",
        Io,
        V1,
        &[
            ok("blkio.bfq.weight", "1000", "1000"),
            no("blkio.bfq.weight", "0", Errno::RANGE, ""),
            no("blkio.bfq.weight", "1001", Errno::RANGE, ""),
            no("blkio.bfq.weight_device", "$D 200", Errno::OPNOTSUPP, "knows no weights"),
        ],
    ),
    row(
        "the_bfq_weight_is_1_to_1000",
        Io,
        V2,
        &[
            ok("io.bfq.weight", "1000", "default 1000"),
            no("io.bfq.weight", "0", Errno::RANGE, ""),
            no("io.bfq.weight", "1001", Errno::RANGE, ""),
        ],
    ),
    // freezer and core
    row(
        "a_group_without_tasks_freezes_at_once",
        Freezer,
        V1,
        &[
            ok("freezer.state", "FROZEN", "FROZEN"),
            shows("freezer.state", "FROZEN", "freezer.self_freezing", "1"),
            ok("freezer.state", "THAWED\n", "THAWED"),
            no("freezer.state", "FREEZING", Errno::INVAL, "freezer.state"),
            no("freezer.state", "frozen", Errno::INVAL, "freezer.state"),
            no("freezer.state", "1", Errno::INVAL, "freezer.state"),
            no("freezer.self_freezing", "1", Errno::INVAL, ""),
        ],
    ),
    row(
        "a_group_without_tasks_freezes_at_once",
        Core,
        V2,
        &[
            shows("cgroup.freeze", "1", "cgroup.events", "populated 0\nfrozen 1"),
            shows("cgroup.freeze", "0", "cgroup.events", "populated 0\nfrozen 0"),
            no("cgroup.freeze", "2", Errno::RANGE, "cgroup.freeze"),
            no("cgroup.freeze", "FROZEN", Errno::INVAL, "cgroup.freeze"),
        ],
    ),
    row(
        "only_1_kills",
        Core,
        V2,
        &[
            no("cgroup.kill", "0", Errno::RANGE, "cgroup.kill"),
            no("cgroup.kill", "x", Errno::INVAL, "cgroup.kill"),
        ],
    ),
    row(
        "limits_on_groups_are_numbers_or_max",
        Core,
        V2,
        &[
            ok("cgroup.max.depth", "0", "0"),
            ok("cgroup.max.depth", "2147483647", "max"),
            ok("cgroup.max.descendants", "3", "3"),
            ok("cgroup.max.descendants", "max", "max"),
            no("cgroup.max.depth", "-1", Errno::RANGE, "cgroup.max.depth"),
            no("cgroup.max.depth", "2147483648", Errno::RANGE, "cgroup.max.depth"),
            no("cgroup.max.descendants", "x", Errno::INVAL, "cgroup.max.descendants"),
        ],
    ),
    row(
        "compressed_swap_is_limited_and_written_back_or_not",
        Memory,
        V2,
        &[
            ok("memory.zswap.max", "5000", "4096"),
            ok("memory.zswap.max", "max", "max"),
            no("memory.zswap.max", "x", Errno::INVAL, ""),
            ok("memory.zswap.writeback", "0", "0"),
            ok("memory.zswap.writeback", "1", "1"),
            no("memory.zswap.writeback", "2", Errno::INVAL, ""),
        ],
    ),
];

const PIDS: &[Step] = &[
    ok("pids.max", "0", "0"),
    ok("pids.max", " 7 ", "7"),
    ok("pids.max", "4194304", "4194304"),
    ok("pids.max", "max", "max"),
    no("pids.max", "4194305", Errno::INVAL, "pids.max"),
    no("pids.max", "-1", Errno::INVAL, "pids.max"),
    no("pids.max", "Max", Errno::INVAL, "pids.max"),
    no("pids.max", "\n", Errno::INVAL, "pids.max"),
    no("pids.current", "1", Errno::INVAL, ""),
];
