//! Limits, swap, the machine's memory, remote nodes, kills.

use super::*;

#[test]
fn a_met_limit_of_memory_is_weighed_by_the_time_that_reclaim_took() {
    let mut facts = facts();
    facts.levels[0].memory_max = Some(Limit::At(1 << 30));
    (facts.levels[0].met_max, facts.memory.refaults_file) = (500, 30_000);
    facts.memory.pressure = Some(Duration::from_secs(4));
    let cause = only(&facts);
    assert_eq!((cause.kind, cause.lost.unwrap().known), (Kind::MemoryLimit, Certainty::Measured));
    assert_eq!(
        cause.sentence,
        "its memory.max (1.0 GiB) was met 500 times: its tasks had to make room, and 117 MiB of files that had been \
         dropped had to be read again"
    );
    assert_eq!(cause.hint.unwrap(), "ringfence set db/oltp memory.max=1536M");
}

#[test]
fn memory_high_is_named_where_it_was_the_one_that_was_met() {
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
    assert_eq!(cause.lost.unwrap().known, Certainty::AtMost);
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
    assert_eq!(only(&facts).lost, Some(Lost { seconds: 2.0, known: Certainty::AtMost }));
}

#[test]
fn what_was_swapped_is_distinguished_from_what_was_dropped() {
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
fn killed_processes_come_before_slowness() {
    let mut facts = facts();
    facts.levels[0].oom_kills = 2;
    facts.levels[1].memory_max = Some(Limit::At(1 << 30));
    facts.levels[1].met_max = 4;
    facts.memory.pressure = Some(Duration::from_secs(9));
    assert_eq!(kinds(&facts), [Kind::OutOfMemory, Kind::MemoryLimit]);
    let cause = why(&facts).causes[0].clone();
    assert_eq!(cause.sentence, "2 processes were killed as memory met the memory.max of db (1.0 GiB)");
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
fn memory_on_a_far_node_costs_at_most_its_distance() {
    let mut facts = facts();
    let node = |node, bytes, distance| NodeFacts { node, bytes, distance };
    facts.memory.nodes = vec![node(0, 1 << 30, 10), node(1, 3 << 30, 20)];
    let cause = only(&facts);
    assert_eq!(cause.kind, Kind::RemoteMemory);
    // three quarters of the memory at twice the distance: half of three quarters of 10 s
    assert_eq!(cause.lost, Some(Lost { seconds: 3.75, known: Certainty::AtMost }));
    assert!(cause.sentence.contains("75 % of its memory"), "{}", cause.sentence);
    assert_eq!(cause.hint.as_deref(), Some("ringfence set db/oltp cpuset.mems=0"));
    facts.memory.version = Some(Version::V1);
    let hint = "ringfence set db/oltp cpuset.memory_migrate=1 cpuset.mems=0";
    assert_eq!(only(&facts).hint.as_deref(), Some(hint));
    facts.memory.nodes[1].bytes = 1 << 25;
    assert_eq!(kinds(&facts), []);
}

/// Fault G4: it looked as a wait for a disk, and the limit was not named.
#[test]
fn tasks_that_stand_still_at_a_limit_of_memory_wait_for_no_device() {
    let mut facts = facts();
    facts.memory.version = Some(Version::V1);
    (facts.memory.pressure, facts.io.pressure) = (None, None);
    facts.io.blocked = Some(Duration::from_secs(10));
    facts.levels[0].memory_max = Some(Limit::At(100 << 20));
    facts.levels[0].memory = 100 << 20;
    let level = facts.levels[0].clone();
    facts.memory_stops = vec![MemoryStop { level, tasks: 1, stopped: (true, true) }];
    let cause = only(&facts);
    assert_eq!((cause.kind, cause.effect), (Kind::MemoryStop, Effect::Stopped));
    assert_eq!(cause.lost, Some(Lost { seconds: 10.0, known: Certainty::Sampled }));
    assert_eq!(
        cause.sentence,
        "its memory.max (100 MiB) is used up, and memory.oom_control keeps the kernel from killing: 1 task stood still all \
         the time"
    );
    assert_eq!(cause.hint.unwrap(), "ringfence set db/oltp memory.max=150M");
    // what was waited beside that is the device's
    facts.io.blocked = Some(Duration::from_secs(14));
    assert_eq!(kinds(&facts), [Kind::MemoryStop, Kind::Device]);
    // it goes on: nothing to raise
    facts.memory_stops[0].stopped = (true, false);
    assert_eq!(why(&facts).causes[0].hint, None);
}
