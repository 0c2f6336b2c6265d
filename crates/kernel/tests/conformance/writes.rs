//! What can be written to a file, and what is read back: rows of steps, done in order in a new group. A number of
//! the machine's is written `$D` (a whole disk).

use kernel::GroupName;
use rustix::io::Errno;
use settings::{
    Controller::{self, Core, Cpu, Cpuset, Freezer, Io, Memory, Pids},
    Version::{self, V1, V2},
};

use super::world::{World, refused};

/// One write.
pub struct Step {
    file: &'static str,
    text: &'static str,
    outcome: Outcome,
}

enum Outcome {
    /// Taken; the file (or another one) then holds this.
    Reads(&'static str, &'static str),
    /// Refused, with a part of the cause in words.
    Refused(Errno, &'static str),
}

/// A write that is taken, and what the file then holds.
const fn ok(file: &'static str, text: &'static str, reads: &'static str) -> Step {
    Step { file, text, outcome: Outcome::Reads(file, reads) }
}

/// A write that is taken, and what another file then holds.
const fn shows(file: &'static str, text: &'static str, other: &'static str, reads: &'static str) -> Step {
    Step { file, text, outcome: Outcome::Reads(other, reads) }
}

/// A write that is refused, and a part of the explained cause.
const fn no(file: &'static str, text: &'static str, errno: Errno, cause: &'static str) -> Step {
    Step { file, text, outcome: Outcome::Refused(errno, cause) }
}

pub struct Row {
    pub name: &'static str,
    controller: Controller,
    version: Version,
    steps: &'static [Step],
}

const fn row(name: &'static str, controller: Controller, version: Version, steps: &'static [Step]) -> Row {
    Row { name, controller, version, steps }
}

impl Row {
    /// Does the world have the controller on this version, and every file?
    pub fn fits(&self, world: &World) -> bool {
        world.has(self.controller)
            && world.version(self.controller) == Some(self.version)
            && self.steps.iter().all(|step| world.has_file(self.controller, step.file))
            && (world.disk().is_some() || self.steps.iter().all(|step| !step.text.contains("$D")))
    }

    pub fn run(&self, world: &World) {
        let group = world.create("", &[self.controller]);
        for step in self.steps {
            step.run(world, &group, self.controller);
        }
    }
}

impl Step {
    fn run(&self, world: &World, group: &GroupName, controller: Controller) {
        let disk = world.disk().unwrap_or_default();
        let text = self.text.replace("$D", &disk);
        let result = world.try_write(group, controller, self.file, &text);
        match self.outcome {
            Outcome::Reads(file, reads) => {
                result.unwrap_or_else(|error| panic!("{error}"));
                let now = world.read(group, controller, file);
                assert_eq!(now, reads.replace("$D", &disk), "{file} after '{text}' to {}", self.file);
            }
            Outcome::Refused(errno, cause) => {
                refused(result, errno, cause);
            }
        }
    }
}

pub fn rows() -> impl Iterator<Item = &'static Row> {
    ROWS.iter()
}

const UNLIMITED: &str = "9223372036854771712";

static ROWS: &[Row] = &[
    // what holds for every file
    row(
        "a_write_of_nothing_changes_nothing",
        Cpu,
        V1,
        &[
            ok("cpu.shares", "500", "500"),
            ok("cpu.shares", "", "500"),
            no("cpu.shares", "\n", Errno::INVAL, "cpu.shares"),
        ],
    ),
    row(
        "a_write_of_nothing_changes_nothing",
        Cpu,
        V2,
        &[
            ok("cpu.weight", "50", "50"),
            ok("cpu.weight", "", "50"),
            no("cpu.weight", "\n", Errno::INVAL, "cpu.weight"),
        ],
    ),
    row(
        "numbers_may_be_hexadecimal_octal_or_end_with_a_newline",
        Cpu,
        V1,
        &[
            ok("cpu.shares", "0x400", "1024"),
            ok("cpu.shares", "01000", "512"),
            ok("cpu.shares", "+500", "500"),
            ok("cpu.shares", "600\n", "600"),
            no("cpu.shares", " 500", Errno::INVAL, "cpu.shares"),
            no("cpu.shares", "500 ", Errno::INVAL, "cpu.shares"),
            no("cpu.shares", "5k", Errno::INVAL, "cpu.shares"),
        ],
    ),
    row("a_counter_can_not_be_written", Cpu, V1, &[no("cpu.stat", "1", Errno::INVAL, "cpu.stat")]),
    row(
        "a_counter_can_not_be_written",
        Memory,
        V2,
        &[no("memory.current", "0", Errno::INVAL, "memory.current")],
    ),
    // cpu
    row(
        "shares_are_clamped_silently",
        Cpu,
        V1,
        &[
            ok("cpu.shares", "0", "2"),
            ok("cpu.shares", "1", "2"),
            ok("cpu.shares", "262145", "262144"),
            ok("cpu.shares", "1000000", "262144"),
            no("cpu.shares", "-1", Errno::INVAL, "cpu.shares"),
            no("cpu.shares", "18446744073709551616", Errno::RANGE, "cpu.shares"),
        ],
    ),
    row(
        "a_weight_out_of_range_is_refused",
        Cpu,
        V2,
        &[
            ok("cpu.weight", "1", "1"),
            ok("cpu.weight", "10000", "10000"),
            ok("cpu.weight", "0x10", "16"),
            no("cpu.weight", "0", Errno::RANGE, "cpu.weight"),
            no("cpu.weight", "10001", Errno::RANGE, "cpu.weight"),
            no("cpu.weight", "-1", Errno::INVAL, "cpu.weight"),
            no("cpu.weight", "max", Errno::INVAL, "cpu.weight"),
        ],
    ),
    row(
        "a_weight_and_its_nice_level_show_each_other",
        Cpu,
        V2,
        &[
            shows("cpu.weight.nice", "-20", "cpu.weight", "8668"),
            shows("cpu.weight.nice", "1", "cpu.weight", "80"),
            shows("cpu.weight.nice", "15", "cpu.weight", "4"),
            ok("cpu.weight.nice", "15", "15"),
            shows("cpu.weight", "10", "cpu.weight.nice", "10"),
            shows("cpu.weight", "120", "cpu.weight.nice", "-1"),
            no("cpu.weight.nice", "20", Errno::RANGE, "cpu.weight.nice"),
        ],
    ),
    row(
        "an_idle_group_has_no_weight_of_its_own",
        Cpu,
        V2,
        &[
            ok("cpu.weight", "80", "80"),
            shows("cpu.idle", "0", "cpu.weight", "80"),
            shows("cpu.idle", "1", "cpu.weight", "0"),
            no("cpu.weight", "100", Errno::INVAL, ""),
            no("cpu.idle", "2", Errno::INVAL, ""),
            shows("cpu.idle", "0", "cpu.weight", "100"),
        ],
    ),
    row(
        "an_idle_group_has_no_shares_of_its_own",
        Cpu,
        V1,
        &[
            shows("cpu.idle", "1", "cpu.shares", "3"),
            no("cpu.shares", "1024", Errno::INVAL, ""),
            no("cpu.idle", "-1", Errno::INVAL, ""),
            shows("cpu.idle", "0", "cpu.shares", "1024"),
        ],
    ),
    row(
        "a_quota_is_at_least_a_millisecond_and_below_zero_none",
        Cpu,
        V1,
        &[
            ok("cpu.cfs_quota_us", "1000", "1000"),
            ok("cpu.cfs_quota_us", "-2", "-1"),
            ok("cpu.cfs_quota_us", "17592186044415", "17592186044415"),
            no("cpu.cfs_quota_us", "0", Errno::INVAL, "at least 1 ms"),
            no("cpu.cfs_quota_us", "999", Errno::INVAL, "at least 1 ms"),
            no("cpu.cfs_quota_us", "max", Errno::INVAL, ""),
            no("cpu.cfs_quota_us", "18446744073710", Errno::INVAL, ""),
        ],
    ),
    row(
        "a_period_is_a_millisecond_to_a_second",
        Cpu,
        V1,
        &[
            ok("cpu.cfs_period_us", "1000", "1000"),
            ok("cpu.cfs_period_us", "1000000", "1000000"),
            no("cpu.cfs_period_us", "999", Errno::INVAL, "1 ms to 1 s"),
            no("cpu.cfs_period_us", "1000001", Errno::INVAL, "1 ms to 1 s"),
            no("cpu.cfs_period_us", "-1", Errno::INVAL, "1 ms to 1 s"),
        ],
    ),
    row(
        "a_burst_is_at_most_the_quota",
        Cpu,
        V1,
        &[
            ok("cpu.cfs_quota_us", "50000", "50000"),
            ok("cpu.cfs_burst_us", "50000", "50000"),
            no("cpu.cfs_burst_us", "50001", Errno::INVAL, ""),
            no("cpu.cfs_quota_us", "40000", Errno::INVAL, ""),
            ok("cpu.cfs_burst_us", "0", "0"),
            ok("cpu.cfs_quota_us", "40000", "40000"),
        ],
    ),
    row(
        "cpu_max_keeps_the_period_that_is_not_named",
        Cpu,
        V2,
        &[
            ok("cpu.max", "1000", "1000 100000"),
            ok("cpu.max", "50000 200000", "50000 200000"),
            ok("cpu.max", "30000", "30000 200000"),
            ok("cpu.max", "max", "max 200000"),
            ok("cpu.max", "max 50000", "max 50000"),
            ok("cpu.max", "max max", "max 50000"),
            ok("cpu.max", "1000 x", "1000 50000"),
            ok("cpu.max", " 60000  100000 ", "60000 100000"),
            ok("cpu.max", "50000.5", "50000 100000"),
        ],
    ),
    row(
        "cpu_max_out_of_range_is_refused",
        Cpu,
        V2,
        &[
            no("cpu.max", "0", Errno::INVAL, "cpu.max"),
            no("cpu.max", "999", Errno::INVAL, "cpu.max"),
            no("cpu.max", "50000 999", Errno::INVAL, "cpu.max"),
            no("cpu.max", "50000 1000001", Errno::INVAL, "cpu.max"),
            no("cpu.max", "-1", Errno::INVAL, "cpu.max"),
            no("cpu.max", "x", Errno::INVAL, "cpu.max"),
            no("cpu.max", "0x7530", Errno::INVAL, "cpu.max"),
            no("cpu.max", "18446744073710", Errno::INVAL, "cpu.max"),
            no("cpu.max", "\n", Errno::INVAL, "cpu.max"),
        ],
    ),
    row(
        "a_burst_is_at_most_the_quota",
        Cpu,
        V2,
        &[
            ok("cpu.max", "50000 100000", "50000 100000"),
            ok("cpu.max.burst", "50000", "50000"),
            no("cpu.max.burst", "50001", Errno::INVAL, ""),
            no("cpu.max.burst", "max", Errno::INVAL, ""),
            no("cpu.max", "40000", Errno::INVAL, ""),
        ],
    ),
    row(
        "a_real_time_budget_is_part_of_its_period",
        Cpu,
        V1,
        &[
            ok("cpu.rt_runtime_us", "100000", "100000"),
            no("cpu.rt_period_us", "99999", Errno::INVAL, "longer than its period"),
            no("cpu.rt_period_us", "0", Errno::INVAL, ""),
            ok("cpu.rt_period_us", "4294967296", "4294967296"),
            ok("cpu.rt_period_us", "1000000", "1000000"),
            no("cpu.rt_runtime_us", "1000001", Errno::INVAL, "longer than its period"),
            no("cpu.rt_runtime_us", "-1", Errno::INVAL, ""),
            ok("cpu.rt_runtime_us", "0", "0"),
        ],
    ),
    row(
        "the_cpu_clock_of_a_group_can_only_be_set_to_zero",
        Controller::Cpuacct,
        V1,
        &[
            ok("cpuacct.usage", "0", "0"),
            no("cpuacct.usage", "5", Errno::INVAL, ""),
            no("cpuacct.stat", "0", Errno::INVAL, ""),
        ],
    ),
    // cpuset
    row(
        "lists_are_read_as_the_kernel_reads_them",
        Cpuset,
        V1,
        &[
            ok("cpuset.cpus", "0,0,1", "0-1"),
            ok("cpuset.cpus", " 0 , 1", "0-1"),
            ok("cpuset.cpus", "0-1:1/2", "0"),
            ok("cpuset.cpus", "1 0", "0-1"),
            ok("cpuset.cpus", "0,", "0"),
            ok("cpuset.cpus", "\n", ""),
            no("cpuset.cpus", "0-", Errno::INVAL, ""),
            no("cpuset.cpus", "1-0", Errno::INVAL, ""),
            no("cpuset.cpus", "x", Errno::INVAL, ""),
            ok("cpuset.cpus", "", ""),
        ],
    ),
    row(
        "lists_are_read_as_the_kernel_reads_them",
        Cpuset,
        V2,
        &[
            ok("cpuset.cpus", "0,0,1", "0-1"),
            ok("cpuset.cpus", "0-1:1/2", "0"),
            ok("cpuset.cpus", "0,", "0"),
            ok("cpuset.cpus", "\n", ""),
            no("cpuset.cpus", "1 - 2", Errno::INVAL, ""),
            no("cpuset.cpus", "1-0", Errno::INVAL, ""),
            ok("cpuset.cpus", "", ""),
        ],
    ),
    row(
        "cpus_and_nodes_that_the_machine_lacks_are_refused",
        Cpuset,
        V1,
        &[
            no("cpuset.cpus", "5000", Errno::RANGE, "the machine has no CPU 5000"),
            no("cpuset.cpus", "0-100000", Errno::RANGE, ""),
            no("cpuset.mems", "9", Errno::INVAL, "the machine has no memory node 9"),
            no("cpuset.mems", "5000", Errno::RANGE, ""),
        ],
    ),
    row(
        "cpus_and_nodes_that_the_machine_lacks_are_refused",
        Cpuset,
        V2,
        &[
            no("cpuset.cpus", "5000", Errno::RANGE, "the machine has no CPU 5000"),
            no("cpuset.mems", "9", Errno::INVAL, "the machine has no memory node 9"),
            no("cpuset.mems", "all", Errno::INVAL, ""),
        ],
    ),
    row(
        "any_number_but_zero_sets_a_v1_flag",
        Cpuset,
        V1,
        &[
            ok("cpuset.cpu_exclusive", "2", "1"),
            ok("cpuset.cpu_exclusive", "0", "0"),
            no("cpuset.cpu_exclusive", "x", Errno::INVAL, ""),
            no("cpuset.cpu_exclusive", "-1", Errno::INVAL, ""),
            ok("cpuset.mem_hardwall", "1", "1"),
            ok("cpuset.memory_migrate", "1", "1"),
            ok("cpuset.sched_load_balance", "0", "0"),
            ok("cpuset.memory_spread_page", "1", "1"),
            ok("cpuset.sched_relax_domain_level", "1", "1"),
            no("cpuset.sched_relax_domain_level", "-2", Errno::INVAL, ""),
            no("cpuset.memory_pressure", "1", Errno::INVAL, ""),
        ],
    ),
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
        "io_max_of_one_is_refused",
        Io,
        V2,
        &[
            no("io.max", "$D riops=1", Errno::INVAL, ""),
            no("io.max", "$D rbps=1", Errno::INVAL, ""),
            ok("io.max", "$D riops=2", "$D rbps=max wbps=max riops=2 wiops=max"),
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
