//! Facts in, ranked causes out; every hint is a command that the settings table takes. Real-time budgets and remote
//! memory are seen here alone: the first would take the machine's time from others, the second needs two nodes.

use std::time::Duration;

use settings::{DeviceNumber, Version};
use units::{CpuSet, Limit, NodeSet};

use super::*;

const LOOP: DeviceNumber = DeviceNumber { major: 7, minor: 0 };

fn millis(number: u64) -> Duration {
    Duration::from_millis(number)
}

fn cpus(list: &str) -> CpuSet {
    list.parse().unwrap()
}

/// A group `db/oltp` on CPUs 0-1 of 8, with a group above that has 0-3, that was looked at for ten seconds, used one CPU
/// and waited for nothing.
fn facts() -> Facts {
    let level = |group: &str, list: &str| Level {
        group: group.to_owned(),
        cpus: Some(cpus(list)),
        mems: Some("0".parse().unwrap()),
        memory_max: Some(Limit::Max),
        pids_max: Some(Limit::Max),
        ..Level::default()
    };
    Facts {
        group: "db/oltp".to_owned(),
        span: Duration::from_secs(10),
        tasks: 3,
        levels: vec![level("db/oltp", "0-1"), level("db", "0-3")],
        cpu: CpuFacts {
            used: Duration::from_secs(10),
            waited: Some(Duration::ZERO),
            cpus: cpus("0-1"),
            online: cpus("0-7"),
            weight: Some(100),
            ..CpuFacts::default()
        },
        memory: MemoryFacts {
            version: Some(Version::V2),
            current: 1 << 30,
            pressure: Some(Duration::ZERO),
            machine_pressure: Some(Duration::ZERO),
            ..MemoryFacts::default()
        },
        io: IoFacts { pressure: Some(Duration::ZERO), ..IoFacts::default() },
        realtime: None,
    }
}

fn kinds(facts: &Facts) -> Vec<Kind> {
    let answer = why(facts);
    answer.causes.iter().filter_map(|cause| cause.hint.as_deref()).for_each(is_a_command);
    answer.causes.iter().map(|cause| cause.kind).collect()
}

fn only(facts: &Facts) -> Cause {
    let answer = why(facts);
    assert_eq!(answer.causes.len(), 1, "{answer}");
    answer.causes[0].hint.iter().for_each(|hint| is_a_command(hint));
    answer.causes[0].clone()
}

/// `ringfence set GROUP SETTING=VALUE…` that the settings table reads, or `ringfence thaw GROUP`.
fn is_a_command(hint: &str) {
    let words: Vec<&str> = match hint.split_once(" '") {
        Some((before, quoted)) => before.split(' ').chain([quoted.trim_end_matches('\'')]).collect(),
        None => hint.split(' ').collect(),
    };
    match words.as_slice() {
        ["ringfence", "thaw", group] => assert!(!group.is_empty()),
        ["ringfence", "set", group, values @ ..] => {
            assert!(!group.is_empty() && !values.is_empty(), "{hint}");
            for value in values {
                let (name, value) = value.split_once('=').unwrap_or_else(|| panic!("{hint}"));
                let found = settings::find(name).unwrap_or_else(|error| panic!("{hint}: {error}"));
                found.parse(value, &settings::Nowhere).unwrap_or_else(|error| panic!("{hint}: {error}"));
            }
        }
        _ => panic!("{hint}"),
    }
}

fn set_quota(level: &mut Level, throttled: Duration) {
    level.quota = Some(Quota { quota: Limit::At(millis(20)), period: millis(100) });
    (level.periods, level.throttled_periods, level.throttled) = (100, 98, throttled);
}

#[test]
fn a_group_that_waits_for_nothing_is_told_what_it_used() {
    let answer = why(&facts());
    assert_eq!(answer.causes, []);
    let text = answer.to_string();
    assert!(text.contains("nothing held it back") && text.contains("cpu.usage 10.0 s"), "{text}");
    assert!(text.contains("memory.current 1.0 GiB"), "{text}");
}

#[test]
fn a_quota_is_told_with_its_periods_and_one_that_lets_everything_through() {
    let mut facts = facts();
    facts.cpu.used = Duration::from_secs(2);
    facts.cpu.waited = Some(Duration::from_secs(8));
    set_quota(&mut facts.levels[0], Duration::from_secs(8));
    let cause = only(&facts);
    assert_eq!((cause.kind, cause.lost.unwrap().seconds), (Kind::Quota, 8.0));
    assert_eq!(cause.share, Some(0.8));
    assert!(cause.sentence.contains("its quota (0.2 CPUs: 20 ms of each 100 ms)"), "{}", cause.sentence);
    assert!(cause.sentence.contains("98 of 100 periods"), "{}", cause.sentence);
    assert_eq!(cause.hint.unwrap(), "ringfence set db/oltp cpu.max=100%");
}

#[test]
fn a_quota_above_is_told_by_the_name_of_its_group() {
    let mut facts = facts();
    facts.cpu.waited = Some(Duration::from_secs(6));
    set_quota(&mut facts.levels[1], Duration::from_secs(6));
    let cause = only(&facts);
    assert_eq!((cause.kind, cause.at.as_str()), (Kind::Quota, "db"));
    assert!(cause.sentence.starts_with("the quota of db (0.2 CPUs"), "{}", cause.sentence);
    assert!(cause.hint.unwrap().starts_with("ringfence set db cpu.max="));
}

/// Two tasks on one CPU under a quota of half of it: they run for half of the time, one waits for the other meanwhile, and
/// both are stopped for the other half.
#[test]
fn a_wait_under_a_quota_is_divided_among_quota_and_crowd() {
    let mut facts = facts();
    facts.cpu.cpus = cpus("0");
    facts.levels[0].cpus = Some(cpus("0"));
    facts.cpu.used = Duration::from_secs(5);
    facts.cpu.waited = Some(Duration::from_secs(15));
    set_quota(&mut facts.levels[0], Duration::from_secs(5));
    assert_eq!(kinds(&facts), [Kind::Quota, Kind::FewCpus]);
    let lost: Vec<f64> = why(&facts).causes.iter().map(|cause| cause.lost.unwrap().seconds).collect();
    assert!((lost[0] - 10.0).abs() < 0.01 && (lost[1] - 5.0).abs() < 0.01, "{lost:?}");
}

#[test]
fn tasks_that_ended_leave_the_throttled_time() {
    let mut facts = facts();
    facts.cpu.waited = Some(millis(10));
    set_quota(&mut facts.levels[0], Duration::from_secs(4));
    assert_eq!(only(&facts).lost.unwrap().seconds, 4.0);
}

fn others() -> Vec<Other> {
    let other = |group: &str, seconds, task: &str| Other {
        group: group.to_owned(),
        ran: Duration::from_secs(seconds),
        task: task.to_owned(),
    };
    vec![other("batch", 4, "cc1 4711"), other("/", 1, "sshd 12")]
}

#[test]
fn who_ran_on_the_groups_cpus_is_named_and_sent_elsewhere() {
    let mut facts = facts();
    facts.cpu.waited = Some(Duration::from_secs(5));
    facts.cpu.foreign = Duration::from_secs(6);
    facts.cpu.others = others();
    let cause = only(&facts);
    assert_eq!((cause.kind, cause.at.as_str()), (Kind::Neighbours, "batch"));
    assert_eq!(cause.lost.unwrap().seconds, 5.0);
    assert!(cause.sentence.contains("batch 4.00 s (most of it cc1 4711)"), "{}", cause.sentence);
    assert!(cause.sentence.contains("tasks of the root group 1.00 s"), "{}", cause.sentence);
    assert_eq!(cause.hint.unwrap(), "ringfence set batch cpuset.cpus=2-7");
}

#[test]
fn where_no_other_cpus_are_a_greater_share_is_advised() {
    let mut facts = facts();
    facts.cpu.online = cpus("0-1");
    facts.cpu.waited = Some(Duration::from_secs(5));
    facts.cpu.foreign = Duration::from_secs(6);
    facts.cpu.others = others();
    assert_eq!(only(&facts).hint.unwrap(), "ringfence set db/oltp cpu.weight=400");
}

#[test]
fn the_hypervisor_is_no_group_that_could_be_set() {
    let mut facts = facts();
    facts.cpu.waited = Some(Duration::from_secs(5));
    facts.cpu.foreign = Duration::from_secs(6);
    facts.cpu.steal = Duration::from_secs(5);
    let cause = only(&facts);
    assert!(cause.sentence.ends_with("the hypervisor 5.00 s"), "{}", cause.sentence);
    assert_eq!(cause.hint, None);
}

#[test]
fn more_tasks_than_cpus_are_given_more_of_those_above() {
    let mut facts = facts();
    facts.cpu.used = Duration::from_secs(20);
    facts.cpu.waited = Some(Duration::from_secs(10));
    let cause = only(&facts);
    assert_eq!(cause.kind, Kind::FewCpus);
    assert_eq!(cause.hint.unwrap(), "ringfence set db/oltp cpuset.cpus=0-2");
    // the group above has no more: that one first
    facts.levels[1].cpus = Some(cpus("0-1"));
    assert_eq!(only(&facts).hint.unwrap(), "ringfence set db cpuset.cpus=0-2");
    // nor has the machine
    facts.cpu.online = cpus("0-1");
    let cause = only(&facts);
    assert!(
        cause.hint.is_none() && cause.sentence.ends_with("which are all there are"),
        "{}",
        cause.sentence
    );
}

#[test]
fn tasks_that_wake_up_together_wait_though_the_cpus_would_do_on_average() {
    let mut facts = facts();
    facts.cpu.waited = Some(Duration::from_secs(2));
    let cause = only(&facts);
    assert_eq!(cause.kind, Kind::FewCpus);
    assert!(
        cause.sentence.contains("at times, though on average they wanted 1.2 CPUs"),
        "{}",
        cause.sentence
    );
}

#[test]
fn a_cause_below_two_hundredths_is_not_told() {
    let mut facts = facts();
    facts.cpu.foreign = Duration::from_secs(10);
    facts.cpu.waited = Some(millis(199));
    assert_eq!(kinds(&facts), []);
    facts.cpu.waited = Some(millis(201));
    assert_eq!(kinds(&facts), [Kind::Neighbours]);
}

#[test]
fn a_group_without_cpus_or_nodes_takes_no_tasks() {
    let mut facts = facts();
    facts.tasks = 0;
    facts.levels[0].cpus = Some(CpuSet::new());
    let cause = only(&facts);
    assert_eq!((cause.kind, cause.effect, cause.lost), (Kind::NoCpus, Effect::Refused, None));
    assert_eq!(cause.hint.unwrap(), "ringfence set db/oltp cpuset.cpus=0-3");
    facts.levels[0].mems = Some(NodeSet::new());
    assert_eq!(only(&facts).hint.unwrap(), "ringfence set db/oltp cpuset.cpus=0-3 cpuset.mems=0");
}

#[test]
fn a_frozen_group_stands_before_everything_else_and_the_highest_is_thawed() {
    let mut facts = facts();
    set_quota(&mut facts.levels[0], Duration::from_secs(60));
    facts.levels[0].frozen = (true, true);
    facts.levels[0].failed_forks = 1;
    facts.levels[0].pids_max = Some(Limit::At(3));
    assert_eq!(kinds(&facts), [Kind::Frozen, Kind::PidsLimit, Kind::Quota]);
    facts.levels[1].frozen = (true, true);
    let answer = why(&facts);
    assert_eq!(answer.causes[0].hint.as_deref(), Some("ringfence thaw db"));
    assert_eq!(answer.causes[0].lost, Some(Lost { seconds: 30.0, known: Known::Measured }));
    // thawed by now: nothing is left to do
    facts.levels[0].frozen = (true, false);
    facts.levels[1].frozen = (false, false);
    let answer = why(&facts);
    assert_eq!((answer.causes[0].kind, answer.causes[0].hint.as_deref()), (Kind::Frozen, None));
    assert_eq!(answer.causes[0].lost.unwrap().known, Known::AtMost);
}

/// v1 counts where the fork was, though the limit is above.
#[test]
fn of_several_limits_of_tasks_the_fullest_is_told() {
    let mut facts = facts();
    facts.levels[0].failed_forks = 7;
    (facts.levels[0].pids_max, facts.levels[0].pids) = (Some(Limit::At(100)), 20);
    (facts.levels[1].pids_max, facts.levels[1].pids) = (Some(Limit::At(40)), 40);
    let cause = only(&facts);
    assert_eq!((cause.kind, cause.at.as_str()), (Kind::PidsLimit, "db"));
    assert_eq!(cause.sentence, "7 forks failed by the pids.max of db (40), with 40 tasks there now");
    assert_eq!(cause.hint.unwrap(), "ringfence set db pids.max=80");
}

#[test]
fn a_met_limit_of_memory_is_told_by_the_time_that_reclaim_took() {
    let mut facts = facts();
    facts.levels[0].memory_max = Some(Limit::At(1 << 30));
    (facts.levels[0].met_max, facts.memory.refaults_file) = (500, 30_000);
    facts.memory.pressure = Some(Duration::from_secs(4));
    let cause = only(&facts);
    assert_eq!((cause.kind, cause.lost.unwrap().known), (Kind::MemoryLimit, Known::Measured));
    assert!(cause.sentence.contains("its memory.max (1.0 GiB) was met 500 times"), "{}", cause.sentence);
    assert_eq!(cause.hint.unwrap(), "ringfence set db/oltp memory.max=1536M");
}

#[test]
fn memory_high_is_told_where_it_was_the_one_that_was_met() {
    let mut facts = facts();
    facts.levels[0].memory_high = Some(Limit::At(512 << 20));
    facts.levels[0].met_high = 90;
    facts.memory.pressure = Some(Duration::from_secs(4));
    assert_eq!(only(&facts).hint.unwrap(), "ringfence set db/oltp memory.high=768M");
}

#[test]
fn on_v1_the_limit_of_memory_and_swap_is_raised_with_that_of_memory() {
    let mut facts = facts();
    facts.memory.version = Some(Version::V1);
    (facts.memory.pressure, facts.memory.machine_pressure) = (None, Some(Duration::from_secs(4)));
    facts.levels[0].memory_max = Some(Limit::At(64 << 20));
    facts.levels[0].memsw_max = Some(Limit::At(80 << 20));
    facts.levels[0].met_max = 3;
    let cause = only(&facts);
    assert_eq!(cause.lost.unwrap().known, Known::AtMost);
    let hint = "ringfence set db/oltp memory.max=96M memory.memsw.limit_in_bytes=96M";
    assert_eq!(cause.hint.unwrap(), hint);
    // nothing of the group's was met or came back: the machine's pressure is another's
    facts.levels[0].met_max = 0;
    assert_eq!(kinds(&facts), []);
}

#[test]
fn without_any_pressure_time_in_the_kernel_bounds_reclaim() {
    let mut facts = facts();
    (facts.memory.pressure, facts.memory.machine_pressure) = (None, None);
    facts.memory.system = Some(Duration::from_secs(2));
    facts.levels[0].memory_max = Some(Limit::At(64 << 20));
    facts.levels[0].met_max = 3;
    assert_eq!(only(&facts).lost, Some(Lost { seconds: 2.0, known: Known::AtMost }));
}

#[test]
fn what_was_swapped_is_told_apart_from_what_was_dropped() {
    let mut facts = facts();
    facts.levels[0].memory_max = Some(Limit::At(1 << 30));
    facts.levels[0].met_max = 9;
    facts.memory.pressure = Some(Duration::from_secs(4));
    (facts.memory.refaults_anon, facts.memory.refaults_file) = (3000, 1000);
    assert_eq!(kinds(&facts), [Kind::Swap, Kind::MemoryLimit]);
    facts.levels[0].met_max = 0;
    assert_eq!(kinds(&facts), [Kind::Swap, Kind::MachineMemory]);
    let hint = why(&facts).causes[0].hint.clone().unwrap();
    assert_eq!(hint, "ringfence set db/oltp memory.min=1536M");
    facts.memory.version = Some(Version::V1);
    assert_eq!(why(&facts).causes[0].hint.as_deref(), Some("ringfence set db/oltp memory.swappiness=0"));
}

#[test]
fn killed_processes_are_told_before_slowness() {
    let mut facts = facts();
    facts.levels[0].oom_kills = 2;
    facts.levels[1].memory_max = Some(Limit::At(1 << 30));
    facts.levels[1].met_max = 4;
    facts.memory.pressure = Some(Duration::from_secs(9));
    assert_eq!(kinds(&facts), [Kind::OutOfMemory, Kind::MemoryLimit]);
    let cause = why(&facts).causes[0].clone();
    assert_eq!(cause.sentence, "2 processes were killed as memory met the memory.max of db (1.0 GiB)");
}

fn device(rios: u64, others: u64) -> DeviceFacts {
    DeviceFacts {
        device: LOOP,
        name: Some("loop0".to_owned()),
        rbytes: rios * 4096,
        wbytes: 0,
        rios,
        wios: 0,
        service: Some(millis(1)),
        others: if others > 0 { vec![("batch".to_owned(), others)] } else { Vec::new() },
    }
}

#[test]
fn io_at_a_limit_is_the_limits_and_otherwise_the_devices_or_its_neighbours() {
    let mut facts = facts();
    facts.io.pressure = Some(Duration::from_secs(8));
    facts.io.devices = vec![device(95, 900)];
    facts.levels[1].io_max = vec![Throttle { device: LOOP, key: "riops", limit: 10 }];
    let cause = only(&facts);
    assert!((cause.lost.unwrap().seconds - 7.905).abs() < 1e-9, "all but 95 times a millisecond: {cause:?}");
    assert_eq!((cause.kind, cause.at.as_str()), (Kind::IoLimit, "db"));
    assert!(cause.sentence.contains("it read 9.5 operations/s on /dev/loop0"), "{}", cause.sentence);
    assert_eq!(cause.hint.unwrap(), "ringfence set db 'io.max=7:0 riops=20'");
    facts.levels[1].io_max[0].limit = 1000;
    assert_eq!(kinds(&facts), [Kind::IoNeighbours, Kind::Device]);
    let hint = why(&facts).causes[0].hint.clone().unwrap();
    assert_eq!(hint, "ringfence set batch 'io.max=7:0 riops=45 wiops=45'");
    facts.io.devices = vec![device(95, 0)];
    assert_eq!(kinds(&facts), [Kind::Device]);
}

#[test]
fn a_slow_device_is_told_though_a_limit_is_near() {
    let mut facts = facts();
    facts.io.pressure = Some(Duration::from_secs(8));
    facts.io.devices = vec![DeviceFacts { service: Some(millis(60)), ..device(100, 0) }];
    facts.levels[0].io_max = vec![Throttle { device: LOOP, key: "riops", limit: 40 }];
    assert_eq!(kinds(&facts), [Kind::Device, Kind::IoLimit]);
}

#[test]
fn what_was_read_again_for_want_of_memory_is_memorys_and_not_the_devices() {
    let mut facts = facts();
    facts.io.pressure = Some(Duration::from_secs(8));
    facts.io.devices = vec![device(1000, 0)];
    facts.memory.refaults_file = 1000;
    assert_eq!(only(&facts).kind, Kind::MachineMemory);
    facts.memory.refaults_file = 750;
    assert_eq!(kinds(&facts), [Kind::MachineMemory, Kind::Device]);
    let lost: Vec<f64> = why(&facts).causes.iter().map(|cause| cause.lost.unwrap().seconds).collect();
    assert_eq!(lost, [6.0, 2.0]);
    // where tasks are held in reclaim for longer than they read, that is more
    facts.memory.pressure = Some(Duration::from_secs(7));
    assert_eq!(why(&facts).causes[0].lost.unwrap().seconds, 7.0);
}

/// v1 charges both together first.
#[test]
fn a_limit_of_memory_and_swap_that_is_as_low_as_that_of_memory_is_the_one_that_counts() {
    let mut facts = facts();
    facts.memory.version = Some(Version::V1);
    facts.levels[0].memory_max = Some(Limit::At(24 << 20));
    facts.levels[0].memsw_max = Some(Limit::At(24 << 20));
    (facts.levels[0].met_swap_max, facts.levels[0].oom_kills) = (5, 1);
    let cause = only(&facts);
    assert_eq!(cause.sentence, "1 process was killed as memory met its memory.max (24 MiB)");
    let hint = "ringfence set db/oltp memory.max=36M memory.memsw.limit_in_bytes=36M";
    assert_eq!(cause.hint.unwrap(), hint);
    // swap was full too: memory.max was never met
    facts.levels[0].memsw_max = Some(Limit::At(64 << 20));
    let cause = only(&facts);
    assert!(cause.sentence.contains("its memory.memsw.limit_in_bytes (64 MiB)"), "{}", cause.sentence);
    assert_eq!(cause.hint.unwrap(), "ringfence set db/oltp memory.memsw.limit_in_bytes=96M");
}

/// Linux 6.18 counts no failures of it.
#[test]
fn a_full_limit_of_memory_and_swap_is_met_though_no_count_grew() {
    let mut facts = facts();
    facts.memory.version = Some(Version::V1);
    facts.levels[0].memory_max = Some(Limit::At(24 << 20));
    facts.levels[0].memsw_max = Some(Limit::At(24 << 20));
    facts.memory.pressure = Some(Duration::from_secs(3));
    facts.memory.refaults_file = 100;
    assert_eq!(kinds(&facts), [Kind::MachineMemory]);
    facts.levels[0].memory = 24 << 20;
    let cause = only(&facts);
    assert_eq!(cause.kind, Kind::MemoryLimit);
    assert!(cause.sentence.starts_with("its memory.max (24 MiB) was met: its tasks"), "{}", cause.sentence);
    facts.levels[0].oom_kills = 1;
    assert_eq!(kinds(&facts), [Kind::OutOfMemory, Kind::MemoryLimit]);
}

#[test]
fn states_that_were_sampled_stand_for_pressure_that_is_not_counted() {
    let mut facts = facts();
    (facts.io.pressure, facts.io.blocked) = (None, Some(Duration::from_secs(5)));
    facts.io.devices = vec![device(10, 0)];
    assert_eq!(only(&facts).lost, Some(Lost { seconds: 5.0, known: Known::Sampled }));
}

#[test]
fn memory_on_a_far_node_costs_at_most_its_distance() {
    let mut facts = facts();
    let node = |node, bytes, distance| NodeFacts { node, bytes, distance };
    facts.memory.nodes = vec![node(0, 1 << 30, 10), node(1, 3 << 30, 20)];
    let cause = only(&facts);
    assert_eq!(cause.kind, Kind::RemoteMemory);
    // three quarters of the memory at twice the distance: half of three quarters of 10 s
    assert_eq!(cause.lost, Some(Lost { seconds: 3.75, known: Known::AtMost }));
    assert!(cause.sentence.contains("75 % of its memory"), "{}", cause.sentence);
    assert_eq!(cause.hint.as_deref(), Some("ringfence set db/oltp cpuset.mems=0"));
    facts.memory.version = Some(Version::V1);
    let hint = "ringfence set db/oltp cpuset.memory_migrate=1 cpuset.mems=0";
    assert_eq!(only(&facts).hint.as_deref(), Some(hint));
    facts.memory.nodes[1].bytes = 1 << 25;
    assert_eq!(kinds(&facts), []);
}

#[test]
fn real_time_tasks_that_met_their_budget_are_told_and_those_below_it_not() {
    let mut facts = facts();
    facts.levels[0].realtime = Some((Limit::At(millis(50)), millis(1000)));
    facts.levels[1].realtime = Some((Limit::At(millis(500)), millis(1000)));
    facts.realtime =
        Some(RealtimeFacts { tasks: 1, ran_most: millis(495), cpu: 1, waited: Duration::from_secs(9) });
    let cause = only(&facts);
    assert_eq!((cause.kind, cause.at.as_str()), (Kind::RealtimeBudget, "db/oltp"));
    assert_eq!(cause.lost.unwrap().seconds, 9.0);
    assert_eq!(cause.hint.unwrap(), "ringfence set db/oltp cpu.rt_runtime_us=95ms");
    facts.realtime.as_mut().unwrap().ran_most = millis(300);
    assert_eq!(kinds(&facts), []);
}

#[test]
fn a_group_without_a_real_time_budget_has_that_as_a_note_and_no_cause() {
    let mut facts = facts();
    facts.levels[0].realtime = Some((Limit::At(Duration::ZERO), millis(1000)));
    facts.levels[1].realtime = Some((Limit::At(Duration::ZERO), millis(1000)));
    let answer = why(&facts);
    assert_eq!(answer.causes, []);
    assert_eq!(answer.notes[0].hint, "ringfence set db cpu.rt_runtime_us=50ms");
    is_a_command(&answer.notes[0].hint);
    assert!(answer.to_string().contains("note: a real-time task would be refused"), "{answer}");
}

#[test]
fn shares_and_use_are_the_whole() {
    let mut facts = facts();
    facts.cpu.waited = Some(Duration::from_secs(6));
    facts.cpu.foreign = Duration::from_secs(2);
    facts.io.pressure = Some(Duration::from_secs(4));
    facts.io.devices = vec![device(1000, 0)];
    assert_eq!(kinds(&facts), [Kind::FewCpus, Kind::Device, Kind::Neighbours]);
    let shares: f64 = why(&facts).causes.iter().filter_map(|cause| cause.share).sum();
    assert!((shares + 10.0 / 20.0 - 1.0).abs() < 1e-9, "{shares}");
}

#[test]
fn a_name_that_a_shell_would_take_apart_is_quoted() {
    assert_eq!(words::quoted("db/oltp-1"), "db/oltp-1");
    assert_eq!(words::quoted("my db's"), r"'my db'\''s'");
}

#[test]
fn a_long_sentence_is_broken_and_a_command_is_not() {
    let mut facts = facts();
    facts.cpu.waited = Some(Duration::from_secs(5));
    facts.cpu.foreign = Duration::from_secs(6);
    facts.cpu.others = others();
    let text = why(&facts).to_string();
    assert!(text.lines().all(|line| line.len() <= 100), "{text}");
    assert!(text.contains("\n   hint: ringfence set batch cpuset.cpus=2-7\n"), "{text}");
    assert!(text.contains("\n1. 33% neighbours, 5.00 s lost\n"), "{text}");
}

/// The in-memory kernel: what `gather` asks it is what the facts hold, on both versions.
mod gathering {
    use kernel::{Fake, GroupName, Host};
    use settings::Controller;

    use super::*;
    use crate::Anew;

    struct World {
        fake: Fake,
        host: Host,
    }

    impl World {
        /// With the groups `db` and `db/oltp`, and a task in the latter.
        fn new(fake: Fake) -> (World, u32) {
            let world = World { host: Host::new(Box::new(fake.clone())).unwrap(), fake };
            let kernel = world.host.kernel();
            let pid = world.fake.spawn(1).unwrap();
            for at in world.host.hierarchies() {
                for (parent, group) in [("", "db"), ("db", "db/oltp")] {
                    if at.version == Version::V2 {
                        let names = at.controllers.iter().filter_map(|one| one.name(Version::V2));
                        let all: Vec<String> = names.map(|name| format!("+{name}")).collect();
                        kernel.write(at, parent, "cgroup.subtree_control", &all.join(" ")).unwrap();
                    }
                    kernel.mkdir(at, group).unwrap();
                    if at.version == Version::V1 && at.controllers.contains(&Controller::Cpuset) {
                        kernel.write(at, group, "cpuset.cpus", "0-1").unwrap();
                        kernel.write(at, group, "cpuset.mems", "0").unwrap();
                    }
                }
                kernel.write(at, "db/oltp", "cgroup.procs", &pid.to_string()).unwrap();
            }
            (world, pid)
        }

        fn facts(&self, meanwhile: impl FnOnce()) -> Facts {
            let group = GroupName::new("db/oltp").unwrap();
            gather_while(&self.host, Anew(self.fake.clone()), &group, |_| {
                meanwhile();
                None
            })
            .unwrap()
        }

        fn count(&self, controller: Controller, group: &str, file: &str, text: &str) {
            self.fake.count(self.host.hierarchy_of(controller).unwrap(), group, file, text).unwrap();
        }

        fn write(&self, controller: Controller, group: &str, file: &str, text: &str) {
            let at = self.host.hierarchy_of(controller).unwrap();
            self.host.kernel().write(at, group, file, text).unwrap();
        }
    }

    #[test]
    fn settings_of_the_group_and_those_above_are_read_on_v2() {
        let (world, pid) = World::new(Fake::v2(4, 2));
        world.write(Controller::Cpu, "db", "cpu.max", "20000 100000");
        world.write(Controller::Io, "db/oltp", "io.max", "254:0 riops=10");
        world.write(Controller::Pids, "db", "pids.max", "9");
        let stat = |time| {
            format!(
                "usage_usec 5\nuser_usec 0\nsystem_usec 0\nnr_periods 3\nnr_throttled 2\nthrottled_usec {time}"
            )
        };
        world.count(Controller::Cpu, "db", "cpu.stat", &stat(100));
        let facts = world.facts(|| world.count(Controller::Cpu, "db", "cpu.stat", &stat(900)));
        assert_eq!(facts.tasks, 1, "{pid} is in it");
        assert_eq!(
            facts.levels.iter().map(|level| level.group.as_str()).collect::<Vec<_>>(),
            ["db/oltp", "db"]
        );
        assert_eq!(facts.levels[1].quota, Some(Quota { quota: Limit::At(millis(20)), period: millis(100) }));
        assert_eq!(facts.levels[1].throttled, Duration::from_micros(800));
        assert_eq!(facts.levels[1].pids_max, Some(Limit::At(9)));
        let device = DeviceNumber { major: 254, minor: 0 };
        assert_eq!(facts.levels[0].io_max, [Throttle { device, key: "riops", limit: 10 }]);
        assert_eq!(facts.memory.version, Some(Version::V2));
        assert_eq!(facts.levels[0].realtime, None);
    }

    #[test]
    fn nodes_without_its_cpus_are_as_far_away_as_the_kernel_says() {
        let (world, _) = World::new(Fake::v1(4, 2));
        for (node, list, distance) in [(0, "0-1", "10 21"), (1, "2-3", "21 10")] {
            let path = |file| format!("/sys/devices/system/node/node{node}/{file}");
            world.fake.set_outside(path("cpulist"), list);
            world.fake.set_outside(path("distance"), distance);
        }
        world.fake.set_outside("/sys/devices/system/node/online", "0-1");
        let nodes = world.facts(|| ()).memory.nodes;
        let node = |node, distance| NodeFacts { node, bytes: 0, distance };
        assert_eq!(nodes, [node(0, 10), node(1, 21)]);
    }

    #[test]
    fn a_real_time_tasks_run_is_held_against_its_groups_budget_on_v1() {
        let (world, pid) = World::new(Fake::v1(4, 1));
        for (group, budget) in [("db", "500000"), ("db/oltp", "50000")] {
            world.write(Controller::Cpu, group, "cpu.rt_runtime_us", budget);
        }
        world.fake.set_policy(pid, 1).unwrap();
        let path = format!("/proc/{pid}/schedstat");
        world.fake.set_outside(&path, "1000000 5000000 1");
        let facts = world.facts(|| world.fake.set_outside(&path, "51000000 900000000 9"));
        let own = facts.realtime.clone().unwrap();
        assert_eq!((own.tasks, own.ran_most, own.waited), (1, millis(50), millis(895)));
        assert_eq!(facts.cpu.waited, Some(Duration::ZERO));
        assert_eq!(facts.levels[0].realtime, Some((Limit::At(millis(50)), millis(1000))));
        let facts = Facts { span: Duration::from_secs(1), ..facts };
        assert_eq!(why(&facts).causes[0].kind, Kind::RealtimeBudget);
    }

    #[test]
    fn a_group_that_is_not_there_is_refused_by_name() {
        let (world, _) = World::new(Fake::v1(2, 1));
        let group = GroupName::new("none").unwrap();
        let error = gather_while(&world.host, Anew(world.fake.clone()), &group, |_| None).unwrap_err();
        assert!(error.to_string().contains("none"), "{error}");
    }
}
