//! Freezing, thawing and killing, until it is really so.

use std::{
    cell::Cell,
    fs,
    process::{Child, Command},
    time::{Duration, Instant},
};

use kernel::{Error, GroupName, Program, Real, State, What, kill, set_frozen, signal};
use rustix::io::Errno;
use settings::Controller::{Core, Cpu, Freezer};
use units::hint;

use super::{
    Case, case,
    groups::any,
    world::{Done, World},
};

const SOON: Duration = Duration::from_secs(5);
const AT_ONCE: Duration = Duration::from_millis(50);

pub fn cases() -> Vec<Case> {
    let always = |_: &World| true;
    vec![
        case("a_group_is_frozen_with_all_below_it_and_thawed", freezes, frozen),
        case("a_group_below_a_frozen_one_does_not_thaw", freezes, held_from_above),
        case("a_task_moved_into_a_frozen_group_freezes", freezes, moved_in),
        case("the_state_shows_how_a_task_is_frozen", freezes, task_state),
        case("a_task_that_waits_for_the_disk_keeps_a_group_from_freezing", freezes, stuck).in_memory_alone(),
        case("a_freeze_reaches_tasks_that_are_in_the_group_elsewhere", apart, brought),
        case("a_task_that_the_freezer_has_in_another_group_makes_a_freeze_fail", apart, out_of_reach),
        case("no_program_is_started_in_a_frozen_group", freezes, refused_run),
        case("a_signal_reaches_each_process_once", freezes, signalled),
        case(
            "a_signal_never_reaches_a_later_process_of_the_same_number",
            |world| world.fake().is_none(),
            reused,
        ),
        case("all_tasks_of_a_group_and_below_it_are_killed", always, killed),
        case("a_frozen_group_is_killed", freezes, killed_frozen),
        case("a_group_without_tasks_is_killed_at_once", always, killed_empty),
        case("the_root_group_is_neither_frozen_nor_killed", always, root_stays),
    ]
}

/// The freezer's files are there: its own v1 hierarchy, or v2's core.
fn freezes(world: &World) -> bool {
    world.host.hierarchy_of(Freezer).is_some()
}

/// The freezer is a hierarchy beside that of another controller.
fn apart(world: &World) -> bool {
    world.on_v1(Freezer) && world.on_v1(Cpu)
}

/// In the group where cpu is, and nowhere else.
fn start_under_cpu(world: &World, group: &GroupName) -> u32 {
    let pid = world.start();
    let seat = world.seat(group, Cpu);
    world.kernel().write(seat.at, &seat.path, "cgroup.procs", &pid.to_string()).expect("a move");
    pid
}

/// Finding A5 of the newcomers' review: the freezer's directory was empty, and freeze said that all was frozen.
fn brought(world: &World) {
    let (group, below) = (world.create("a", &[Cpu, Freezer]), world.create("a/b", &[Cpu, Freezer]));
    let lone = world.create("a/c", &[Cpu]);
    let pids = [&group, &below, &lone].map(|group| start_under_cpu(world, group));
    assert_eq!(set(world, &group, true), State::Frozen);
    let at = world.host.hierarchy_of(Freezer).expect("a freezer");
    for (pid, place) in pids.into_iter().zip([&group, &below, &group]) {
        assert_eq!(world.kernel().group_of(at, pid), Ok(format!("/{}", world.seat(place, Freezer).path)));
        assert_eq!(world.kernel().process(pid).expect("it is there").state, 'D', "{pid} runs");
    }
    set(world, &group, false);
}

/// Finding A5 again.
fn out_of_reach(world: &World) {
    let (group, other) = (world.create("a", &[Cpu, Freezer]), world.create("b", &[Freezer]));
    let pids = [start_under_cpu(world, &group), start_under_cpu(world, &group)];
    world.host.move_tasks(&other, &pids[..1], What::Process).done();
    let error = set_frozen(&world.host, &group, true, SOON).expect_err("one process would run on");
    let text = error.to_string();
    assert!(text.starts_with("1 process of group"), "{text}");
    assert_eq!(error.hint(), Some(format!("ringfence move {} {}", hint::group(&group), pids[0])));
    assert!(!is_frozen(world, &group));
    let at = world.host.hierarchy_of(Freezer).expect("a freezer");
    let now = world.kernel().group_of(at, pids[1]);
    assert_ne!(now, Ok(format!("/{}", world.seat(&group, Freezer).path)), "nothing was changed");
}

/// Finding A5: the program joined the frozen group and hung for ever without a word.
fn refused_run(world: &World) {
    let (group, below) = (world.create("a", &[home(world)]), world.create("a/b", &[home(world)]));
    let program = Program::new(["true".into()]).expect("a program");
    set(world, &group, true);
    for into in [&group, &below] {
        let error = world.host.run(&Real::new(), into, &program).expect_err("it is frozen");
        assert!(error.to_string().contains("is frozen"), "{error}");
        assert_eq!(error.hint(), Some(format!("ringfence thaw {}", hint::group(&group))));
    }
    set(world, &group, false);
}

/// Attack finding 30: signals went to numbers, which may be other processes' by then.
fn signalled(world: &World) {
    let (group, below) = (world.create("a", &[home(world)]), world.create("a/b", &[home(world)]));
    let pids = [start_in(world, &group), start_in(world, &below)];
    let bystander = world.start();
    // only members get it, though the number was read before
    let failed = world.kernel().signal_those(&[bystander], 9, &|| pids.into());
    assert_eq!((failed, world.kernel().process(bystander).is_ok()), (Vec::new(), true));
    assert_eq!(signal(&world.host, &group, 9).done(), 2);
    for pid in pids {
        let started = Instant::now();
        while !world.has_ended(pid) && started.elapsed() < SOON {
            std::thread::sleep(AT_ONCE);
        }
        assert!(world.has_ended(pid), "{pid} still runs");
    }
}

/// Attack finding 30: between the look at a group and the signal its process ends, and another one gets its number.
fn reused(world: &World) {
    const LAST: &str = "/proc/sys/kernel/ns_last_pid";
    let sleep = || Command::new("sleep").arg("60").spawn().expect("sleep");
    let end = |mut child: Child| {
        child.kill().expect("a child of ours");
        child.wait().expect("its end");
    };
    let first = sleep();
    let pid = first.id();
    if fs::write(LAST, (pid - 1).to_string()).is_err() {
        eprintln!("nobody may choose a process's number here");
        return end(first);
    }
    let (first, second) = (Cell::new(Some(first)), Cell::new(None));
    let members = || {
        first.take().map(end);
        for _ in 0..1000 {
            fs::write(LAST, (pid - 1).to_string()).expect("written before");
            let next = sleep();
            if next.id() == pid {
                second.set(Some(next));
                break;
            }
            end(next); // others start processes too
        }
        [pid].into()
    };
    let failed = world.kernel().signal_those(&[pid], 9, &members);
    let mut second = second.take().expect("a process of the same number");
    let lives = second.try_wait().expect("a child of ours").is_none();
    end(second);
    assert_eq!((failed, lives), (vec![(pid, Errno::SRCH)], true));
}

fn home(world: &World) -> settings::Controller {
    if world.on_v1(Freezer) { Freezer } else { Core }
}

fn set(world: &World, group: &GroupName, frozen: bool) -> State {
    set_frozen(&world.host, group, frozen, SOON).done()
}

fn start_in(world: &World, group: &GroupName) -> u32 {
    let pid = world.start();
    world.host.move_tasks(group, &[pid], What::Process).done();
    pid
}

fn is_frozen(world: &World, group: &GroupName) -> bool {
    if world.on_v1(Freezer) {
        world.read(group, Freezer, "freezer.state") == "FROZEN"
    } else {
        world.read(group, Core, "cgroup.events").ends_with("frozen 1")
    }
}

fn frozen(world: &World) {
    let (group, below) = (world.create("a", &[home(world)]), world.create("a/b", &[home(world)]));
    start_in(world, &below);
    assert_eq!(set(world, &group, true), State::Frozen);
    assert!(is_frozen(world, &group) && is_frozen(world, &below));
    assert_eq!(set(world, &group, true), State::Frozen, "again is no error");
    assert_eq!(set(world, &group, false), State::Thawed);
    assert!(!is_frozen(world, &group) && !is_frozen(world, &below));
    assert_eq!(set(world, &group, false), State::Thawed);
}

fn held_from_above(world: &World) {
    let (group, below) = (world.create("a", &[home(world)]), world.create("a/b", &[home(world)]));
    start_in(world, &below);
    set(world, &group, true);
    let result = set_frozen(&world.host, &below, false, AT_ONCE);
    let Err(Error::Timeout { left, .. }) = &result else { panic!("{result:?}") };
    assert!(left.contains(group.path()), "the one that holds it is named: {left}");
    set(world, &below, true);
    set(world, &group, false);
    assert!(!is_frozen(world, &group) && is_frozen(world, &below), "its own wish outlasts the parent's");
    set(world, &below, false);
}

fn moved_in(world: &World) {
    let group = world.create("a", &[home(world)]);
    set(world, &group, true);
    let pid = start_in(world, &group);
    assert_eq!(set(world, &group, true), State::Frozen);
    let seat = world.seat(&group, home(world));
    world
        .kernel()
        .write(seat.at, "", "cgroup.procs", &pid.to_string())
        .expect("a frozen task can be moved out");
    set(world, &group, false);
}

fn task_state(world: &World) {
    let group = world.create("a", &[home(world)]);
    let pid = start_in(world, &group);
    set(world, &group, true);
    let state = world.kernel().process(pid).expect("the process is there").state;
    assert_eq!(state, if world.on_v1(Freezer) { 'D' } else { 'S' });
    set(world, &group, false);
}

fn stuck(world: &World) {
    let group = world.create("a", &[home(world)]);
    let pid = start_in(world, &group);
    let fake = world.fake().expect("a fake");
    fake.set_stuck(pid, true);
    let result = set_frozen(&world.host, &group, true, AT_ONCE);
    let Err(Error::Timeout { left, .. }) = &result else { panic!("{result:?}") };
    assert!(left.contains(&pid.to_string()), "{left}");
    fake.set_stuck(pid, false);
    assert!(!is_frozen(world, &group), "what did not freeze in time is let go");
    set(world, &group, true);
}

fn killed(world: &World) {
    let (group, below) = (world.create("a", &[home(world)]), world.create("a/b", &[home(world)]));
    let pids = [start_in(world, &group), start_in(world, &below), start_in(world, &below)];
    let count = kill(&world.host, &group, SOON).done();
    assert_eq!(count, 3);
    for pid in pids {
        assert!(world.has_ended(pid), "{pid} still runs");
    }
    world.host.delete(&group, true).done();
}

fn killed_frozen(world: &World) {
    let group = world.create("a", &[home(world)]);
    let pid = start_in(world, &group);
    set(world, &group, true);
    let count = kill(&world.host, &group, SOON).done();
    assert_eq!(count, 1);
    assert!(world.has_ended(pid));
}

fn killed_empty(world: &World) {
    let group = world.create("a", &[any(world)]);
    assert_eq!(kill(&world.host, &group, SOON).done(), 0);
    assert!(matches!(kill(&world.host, &world.group("b"), SOON), Err(Error::NoGroup { .. })));
}

fn root_stays(world: &World) {
    let root = GroupName::root();
    assert!(matches!(kill(&world.host, &root, SOON), Err(Error::RootGroup { .. })));
    assert!(matches!(set_frozen(&world.host, &root, true, SOON), Err(Error::RootGroup { .. })));
    let at = world.host.hierarchy_of(Freezer).or_else(|| world.host.hierarchy_of(Core)).expect("a hierarchy");
    let file = if at.version == settings::Version::V1 { "freezer.state" } else { "cgroup.freeze" };
    assert_eq!(
        world.kernel().write(at, "", file, "1"),
        Err(Errno::NOENT),
        "the kernel's root has no such file"
    );
}
