//! Limits, neighbours and devices of I/O.

use super::*;

#[test]
fn io_at_a_limit_is_the_limits_and_otherwise_the_devices_or_its_neighbours() {
    let mut facts = facts();
    facts.io.pressure = Some(Duration::from_secs(8));
    facts.io.devices = vec![device(95, 900)];
    facts.levels[1].io_max = vec![Throttle { device: LOOP, key: "riops", limit: 10, done: 95 }];
    let cause = only(&facts);
    assert!((cause.lost.unwrap().seconds - 7.905).abs() < 1e-9, "all but 95 times a millisecond: {cause:?}");
    assert_eq!((cause.kind, cause.at.as_str()), (Kind::IoLimit, "db"));
    assert!(cause.sentence.contains("db read 9.5 operations/s on /dev/loop0"), "{}", cause.sentence);
    assert_eq!(cause.hint.unwrap(), "ringfence set db 'io.max=7:0 riops=20'");
    facts.levels[1].io_max[0].limit = 1000;
    assert_eq!(kinds(&facts), [Kind::IoNeighbours, Kind::Device]);
    let hint = why(&facts).causes[0].hint.clone().unwrap();
    assert_eq!(hint, "ringfence set batch 'io.max=7:0 riops=45 wiops=45'");
    // what its own answer advises the other; and a choice for equals (issue R, point 5)
    facts.io.devices = vec![device(900, 95)];
    assert_eq!(kinds(&facts), [Kind::Device, Kind::IoNeighbours]);
    let cause = why(&facts).causes[1].clone();
    assert_eq!((cause.hint, cause.choices), (None, vec![]));
    assert!(cause.sentence.ends_with("; it did more itself than batch did"), "{}", cause.sentence);
    facts.io.devices = vec![device(95, 90)];
    let cause = why(&facts).causes.into_iter().find(|cause| cause.kind == Kind::IoNeighbours).unwrap();
    let commands: Vec<&str> = cause.choices.iter().map(|choice| choice.command.as_str()).collect();
    let other = "ringfence set batch 'io.max=7:0 riops=5 wiops=5'";
    assert_eq!((cause.hint, commands), (None, vec![other, "ringfence set db 'io.max=7:0 riops=5 wiops=5'"]));
    facts.io.devices = vec![device(95, 0)];
    assert_eq!(kinds(&facts), [Kind::Device]);
}

/// As v1 of Linux 6.1 is without limits.
#[test]
fn a_wait_for_a_device_that_is_not_counted_by_group_is_named_all_the_same() {
    let mut facts = facts();
    (facts.io.pressure, facts.io.blocked) = (None, Some(Duration::from_secs(5)));
    facts.io.busiest = Some(Busiest { name: "sda".to_owned(), operations: 4711 });
    let cause = only(&facts);
    assert_eq!((cause.kind, cause.hint), (Kind::Device, None));
    let ending = "for which device; the busiest device meanwhile was /dev/sda (4711 operations)";
    assert!(cause.sentence.ends_with(ending), "{}", cause.sentence);
    facts.io.busiest = None;
    assert!(only(&facts).sentence.ends_with("for which device"));
}

#[test]
fn a_slow_device_is_named_though_a_limit_is_near() {
    let mut facts = facts();
    facts.io.pressure = Some(Duration::from_secs(8));
    facts.io.devices = vec![DeviceFacts { service: Some(millis(60)), ..device(100, 0) }];
    facts.levels[0].io_max = vec![Throttle { device: LOOP, key: "riops", limit: 40, done: 100 }];
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
    // what the kernel forgot comes again as what it did not forget
    (facts.memory.refaults_file, facts.memory.forgotten) = (480, 10_000);
    assert_eq!(kinds(&facts), [Kind::MachineMemory, Kind::Device]);
    let first = why(&facts).causes[0].lost.unwrap();
    assert!((first.seconds - 7.68).abs() < 1e-9, "{first:?}");
    (facts.memory.refaults_file, facts.memory.forgotten) = (750, 0);
    // where tasks reclaim for longer than they read, that is more
    facts.memory.pressure = Some(Duration::from_secs(7));
    assert_eq!(why(&facts).causes[0].lost.unwrap().seconds, 7.0);
}

#[test]
fn states_that_were_sampled_stand_for_pressure_that_is_not_counted() {
    let mut facts = facts();
    (facts.io.pressure, facts.io.blocked) = (None, Some(Duration::from_secs(5)));
    facts.io.devices = vec![device(10, 0)];
    assert_eq!(only(&facts).lost, Some(Lost { seconds: 5.0, known: Certainty::Sampled }));
}

/// Newcomers' finding A6: tasks that read asynchronously sleep for no disk, and CPUs are contended for as well.
#[test]
fn a_limit_that_was_met_is_found_by_what_it_let_through() {
    let mut facts = facts();
    facts.cpu.used = millis(100);
    (facts.io.pressure, facts.io.blocked) = (None, Some(millis(10)));
    facts.cpu.waited = Some(millis(400));
    facts.cpu.foreign = Duration::from_secs(6);
    facts.io.devices = vec![device(1000, 0)];
    facts.levels[0].io_max = vec![
        Throttle { device: LOOP, key: "riops", limit: 100, done: 1000 },
        Throttle { device: LOOP, key: "rbps", limit: 1_000_000, done: 4_096_000 },
    ];
    assert_eq!(kinds(&facts), [Kind::IoLimit, Kind::Neighbours]);
    let cause = &why(&facts).causes[0];
    assert_eq!(cause.lost, Some(Lost { seconds: 10.0, known: Certainty::AtMost }));
    assert_eq!(cause.hint.as_deref(), Some("ringfence set db/oltp 'io.max=7:0 riops=200'"));
    assert!(cause.sentence.contains("(asynchronous I/O)"), "{}", cause.sentence);
    // room left: no cause without a wait
    facts.levels[0].io_max[0].done = 750;
    assert_eq!(kinds(&facts), [Kind::Neighbours]);
    // tasks that were on a CPU all the time lost nothing by it
    facts.levels[0].io_max[0].done = 1000;
    facts.cpu.used = Duration::from_secs(30);
    assert_eq!(kinds(&facts), [Kind::Neighbours]);
    // a single operation meets a limit of one in ten seconds by chance
    facts.cpu.used = millis(100);
    facts.levels[0].io_max = vec![Throttle { device: LOOP, key: "riops", limit: 1, done: 1 }];
    facts.span = Duration::from_secs(1);
    facts.cpu.waited = Some(Duration::ZERO);
    assert_eq!(kinds(&facts), []);
}
