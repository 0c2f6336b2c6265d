//! Every change of an apply is refused once: everything must be as before, and the history must say so.

use apply::{Ending, Failure, State, execute, history, undo};
use fake::Fake;
use kernel::{GroupName, Host, Kernel};
use plan::{Plan, SettingRequest};
use rustix::io::Errno;
use settings::Controller::{Cpu, Cpuset, Io, Memory, Pids};
use std::time::Duration;

use crate::{
    faulty::{Beside, Fault, Faults},
    maker::Maker,
    world::{host, meta, picture, target},
};

const ERRNOS: [Errno; 5] = [Errno::INVAL, Errno::NOSPC, Errno::PERM, Errno::IO, Errno::NOMEM];

/// Groups that are there before: `old`, which the plan changes, and `live`, which it does not.
fn settle_v1(kernel: &dyn Kernel) {
    let at = kernel.hierarchies().unwrap();
    for at in at.iter().filter(|at| at.name.is_none()) {
        for group in ["old", "live", "live/below"] {
            kernel.mkdir(at, group).unwrap();
        }
        for (file, text) in [
            ("cpu.shares", "2048"),
            ("cpu.cfs_quota_us", "50000"),
            ("memory.limit_in_bytes", "67108864"),
            ("cpuset.mems", "0"),
            ("cpuset.cpus", "0-3"),
            ("pids.max", "100"),
            ("blkio.throttle.read_bps_device", "254:0 1048576"),
        ] {
            for group in ["old", "live"] {
                let _ = kernel.write(at, group, file, text); // where that controller lives
            }
        }
    }
}

fn plan_v1(host: &Host) -> Plan {
    let mut maker = Maker::new(host);
    for group in ["a", "a/b", "c"] {
        for controller in [Cpu, Memory, Cpuset, Pids] {
            maker.create(controller, group).own(controller, group, 1000, 1001);
        }
    }
    // CPUs go from one to the other, so that each is written twice
    maker.write(Cpuset, "old", "cpuset.cpus", "0-1").write(Cpuset, "old", "cpuset.cpus", "1");
    for group in ["a", "a/b", "c"] {
        maker
            .write(Cpuset, group, "cpuset.mems", "0")
            .write(Cpuset, group, "cpuset.cpus", if group == "c" { "0" } else { "2-3" })
            .write(Memory, group, "memory.limit_in_bytes", "134217728")
            .write(Cpu, group, "cpu.shares", "512")
            .write(Pids, group, "pids.max", "50");
    }
    maker
        .write(Cpu, "old", "cpu.shares", "300")
        .write(Cpu, "old", "cpu.cfs_quota_us", "-1")
        .write(Cpu, "old", "cpu.cfs_period_us", "50000")
        .write(Memory, "old", "memory.limit_in_bytes", "33554432")
        .write(Io, "old", "blkio.throttle.read_bps_device", "254:0 2097152")
        .write(Io, "old", "blkio.throttle.write_iops_device", "254:0 10")
        .write(Pids, "old", "pids.max", "max")
        .own(Memory, "old", 7, 8)
        .away("old", "0", "1")
        .plan()
}

fn settle_v2(kernel: &dyn Kernel) {
    let at = &kernel.hierarchies().unwrap()[0];
    kernel.write(at, "", "cgroup.subtree_control", "+cpu +memory").unwrap();
    for group in ["old", "live", "live/below"] {
        kernel.mkdir(at, group).unwrap();
    }
    for group in ["old", "live"] {
        kernel.write(at, group, "cpu.weight", "321").unwrap();
        kernel.write(at, group, "cpu.max", "20000 50000").unwrap();
        kernel.write(at, group, "memory.max", "67108864").unwrap();
    }
}

fn plan_v2(host: &Host) -> Plan {
    let mut maker = Maker::new(host);
    maker.enable("", &["io", "cpuset", "pids"]);
    for group in ["a", "a/b", "c"] {
        maker.create(Cpu, group).own(Cpu, group, 1000, 1001);
        if group == "a" {
            maker.enable("a", &["cpuset", "cpu", "memory"]);
        }
    }
    for group in ["a", "a/b", "c"] {
        maker
            .write(Cpuset, group, "cpuset.mems", "0")
            .write(Cpuset, group, "cpuset.cpus", if group == "c" { "0" } else { "2-3" })
            .write(Memory, group, "memory.max", "134217728")
            .write(Cpu, group, "cpu.weight", "50")
            .write(Cpu, group, "cpu.max", "10000 100000");
    }
    maker
        .write(Cpu, "old", "cpu.idle", "1")
        .write(Cpu, "old", "cpu.max", "max 100000")
        .write(Memory, "old", "memory.max", "33554432")
        .write(Memory, "old", "memory.high", "30000000")
        .write(Cpuset, "old", "cpuset.cpus", "0-1")
        .write(Cpuset, "old", "cpuset.cpus", "1")
        .write(Cpuset, "old", "cpuset.cpus.partition", "root")
        .write(Pids, "old", "pids.max", "10")
        .own(Cpu, "old", 7, 8)
        .plan()
}

struct World {
    fake: fn(usize, usize) -> Fake,
    settle: fn(&dyn Kernel),
    plan: fn(&Host) -> Plan,
}

const V1: World = World { fake: Fake::v1, settle: settle_v1, plan: plan_v1 };
const V2: World = World { fake: Fake::v2, settle: settle_v2, plan: plan_v2 };

/// Runs the plan with a fault; everything that there is before and after comes back, and how many changes there were.
fn run(world: &World, fault: Option<(usize, Fault)>, check: &dyn Fn(&Ran<'_>)) -> usize {
    let fake = (world.fake)(4, 1);
    (world.settle)(&fake);
    let task = fake.spawn(1).unwrap();
    let faults = Faults::at(fault.as_slice());
    let system = Beside::fake(&fake, &faults);
    if let Some(at) = fake.hierarchies().unwrap().iter().find(|at| at.label() == "cpuset") {
        fake.write(at, "old", "cgroup.procs", &task.to_string()).unwrap();
        system.give(task, "0-1");
    }
    let host = host(fake.clone(), &faults);
    let directory = tempfile::tempdir().unwrap();
    let state = State::open(directory.path().join("state")).unwrap();
    let lock = state.lock(Duration::ZERO).unwrap();
    let look = || {
        let picture = picture(&fake, &|_| true);
        let owners = system.owners(&picture);
        (picture, owners, system.affinities())
    };
    let before = look();
    let plan = (world.plan)(&host);
    let result = execute(&lock, target(&host, &system), &plan, &meta("a test"));
    let count = faults.count();
    let after = look();
    let same = before == after;
    if !same && fault.is_some() {
        for (key, text) in &before.0 {
            assert_eq!(after.0.get(key), Some(text), "{key} after {fault:?}");
        }
        assert_eq!(before.1, after.1, "owners after {fault:?}");
        assert_eq!(before.2, after.2, "CPUs of threads after {fault:?}");
        assert_eq!(before.0.len(), after.0.len(), "groups are left after {fault:?}");
    }
    let live = |picture: &crate::world::Picture| {
        let own = picture.iter().filter(|(key, _)| key.contains(":live"));
        own.map(|(key, text)| (key.clone(), text.clone())).collect::<Vec<_>>()
    };
    // on v2, files come with a controller that is enabled for the group beside it
    if fake.hierarchies().unwrap().len() > 1 || fault.is_some() {
        assert_eq!(live(&before.0), live(&after.0), "a group that the plan does not name was changed");
    }
    let records = history(&state).unwrap();
    check(&Ran { steps: plan.steps.len(), same, result: result.as_ref(), records: &records });
    if result.is_ok() {
        undo(&lock, target(&host, &system), None, &meta("undo")).unwrap();
        let undone = look();
        assert_eq!(before.0, undone.0, "undo brings everything back");
        assert_eq!((before.1, before.2), (undone.1, undone.2), "undo brings owners and CPUs back");
    }
    count
}

struct Ran<'r> {
    steps: usize,
    same: bool,
    result: Result<&'r apply::Outcome, &'r Failure>,
    records: &'r [apply::Record],
}

fn every_change_refused_once(world: &World) {
    let count = run(world, None, &|ran| {
        let outcome = ran.result.expect("without a fault it works");
        assert!(ran.steps >= 30, "{} steps are too few to tell anything", ran.steps);
        assert_eq!(outcome.steps, ran.steps);
        assert!(!ran.same);
        assert_eq!(ran.records[0].result.as_ref().unwrap().ending, Ending::Done);
    });
    for position in 0..count {
        let fault = (position, Fault::Refuse(ERRNOS[position % ERRNOS.len()]));
        run(world, Some(fault), &|ran| {
            let Err(Failure::RolledBack { left, step, .. }) = ran.result else {
                panic!("{fault:?}: {:?}", ran.result);
            };
            assert!(left.is_empty(), "{fault:?}: {left:?}");
            assert!(ran.same, "{fault:?}");
            let end = ran.records[0].result.as_ref().unwrap();
            assert_eq!((end.ending, end.step), (Ending::RolledBack, Some(*step)));
            assert!(end.error.is_some());
        });
    }
}

pub fn any_change_refused_leaves_v1_as_before() {
    every_change_refused_once(&V1);
}

pub fn any_change_refused_leaves_v2_as_before() {
    every_change_refused_once(&V2);
}

/// A machine with a group `own` that has CPUs 2 and 3 for itself, which the plan relies on and does not write. What the
/// kernel says of `own` afterwards.
fn beside_a_partition(lists: &[&str], check: impl Fn(Result<apply::Outcome, Failure>, bool)) -> String {
    let fake = Fake::v2(4, 1);
    settle_v2(&fake);
    let at = &fake.hierarchies().unwrap()[0];
    fake.write(at, "", "cgroup.subtree_control", "+cpuset").unwrap();
    fake.mkdir(at, "own").unwrap();
    for (file, text) in [("cpuset.cpus", "2-3"), ("cpuset.cpus.partition", "root")] {
        fake.write(at, "own", file, text).unwrap();
    }
    let faults = Faults::at(&[]);
    let (host, system) = (host(fake.clone(), &faults), Beside::fake(&fake, &faults));
    let directory = tempfile::tempdir().unwrap();
    let state = State::open(directory.path().join("state")).unwrap();
    let lock = state.lock(Duration::ZERO).unwrap();
    let before = picture(&fake, &|_| true);
    let standing = Maker::new(&host).write(Cpuset, "own", "cpuset.cpus.partition", "root").plan().steps;
    let mut maker = Maker::new(&host);
    for list in lists {
        maker.write(Cpuset, "old", "cpuset.cpus", list);
    }
    // the last step goes back, too
    maker.create(Cpuset, "last");
    let plan = Plan { partitions: standing, ..maker.plan() };
    let result = execute(&lock, target(&host, &system), &plan, &meta("a test"));
    check(result, picture(&fake, &|_| true) == before);
    fake.read(at, "own", "cpuset.cpus.partition").unwrap().trim().to_owned()
}

/// `apply` ended with 0 while the partition of a group that it did not write was invalid, and tasks ran on its CPUs.
pub fn a_partition_that_no_step_writes_is_read_at_the_end() {
    let after = beside_a_partition(&["3"], |result, same| {
        let failure = result.expect_err("CPU 3 is not own's alone");
        assert!(failure.to_string().contains("group 'old' has CPUs 3 too"), "{failure}");
        assert!(failure.to_string().ends_with("all is as before"), "{failure}");
        assert!(failure.hint().is_some_and(|hint| hint.contains("cpuset.cpus")), "{failure}");
        assert!(same);
    });
    assert_eq!(after, "root");
}

pub fn a_partition_that_is_invalid_for_a_moment_is_made_again() {
    let after = beside_a_partition(&["3", "0"], |result, _| assert_eq!(result.unwrap().steps, 3));
    assert_eq!(after, "root");
}

pub fn only_what_a_planner_needs_is_observed() {
    let fake = Fake::v1(4, 1);
    settle_v1(&fake);
    let task = fake.spawn(1).unwrap();
    let faults = Faults::at(&[]);
    let (host, system) = (host(fake.clone(), &faults), Beside::fake(&fake, &faults));
    let maker = Maker::new(&host);
    let (root, live, gone) = (maker.place(Cpu, ""), maker.place(Cpu, "live"), maker.place(Cpu, "gone"));
    let at = &host.hierarchies()[live.hierarchy];
    fake.write(at, "live/below", "cgroup.procs", &task.to_string()).unwrap();
    let files = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let need = |place: &plan::Place, own: &[&str], owners, children: &[&str]| plan::Need {
        place: place.clone(),
        files: files(own),
        unless: Vec::new(),
        tasks: true,
        owners,
        devices: false,
        children: files(children),
        below: Vec::new(),
    };
    let needs = [
        need(&root, &[], false, &["cpu.shares"]),
        need(&live, &["cpu.cfs_quota_us", "cpu.none"], true, &[]),
        need(&gone, &["cpu.shares"], true, &[]),
    ];
    let observed = apply::observe(target(&host, &system), &needs, []);
    let groups = &observed.hierarchies[live.hierarchy].groups;
    assert_eq!(groups.keys().map(String::as_str).collect::<Vec<_>>(), ["", "live", "old"]);
    assert_eq!(observed.file(&maker.place(Cpu, "old"), "cpu.shares"), Some("2048"));
    let seen = observed.group(&live).unwrap();
    // its own file, and what is needed of all groups in the root
    assert_eq!(seen.files.keys().map(String::as_str).collect::<Vec<_>>(), ["cpu.cfs_quota_us", "cpu.shares"]);
    assert_eq!((seen.tasks, seen.populated_below), (0, true));
    assert!(seen.directory.is_some() && seen.owners.contains_key("cgroup.procs"));
    let others = observed.hierarchies.iter().enumerate().filter(|(id, _)| *id != live.hierarchy);
    assert!(others.map(|(_, at)| at.groups.len()).all(|count| count == 0), "nothing else was looked at");
}

pub fn old_generations_go_but_for_those_that_undo_needs() {
    let fake = Fake::v1(4, 1);
    settle_v1(&fake);
    let faults = Faults::at(&[]);
    let (host, system) = (host(fake.clone(), &faults), Beside::fake(&fake, &faults));
    let to = target(&host, &system);
    let directory = tempfile::tempdir().unwrap();
    let state = State::open(directory.path()).unwrap();
    let lock = state.lock(Duration::ZERO).unwrap();
    let before = picture(&fake, &|_| true);
    let apply = |shares: usize| {
        let plan = Maker::new(&host).write(Cpu, "old", "cpu.shares", &shares.to_string()).plan();
        execute(&lock, to, &plan, &meta("a test")).unwrap();
    };
    apply(700);
    for shares in 1000..1000 + apply::UNDOABLE {
        apply(shares);
        undo(&lock, to, None, &meta("undo")).unwrap();
    }
    let kept: Vec<u32> = history(&state).unwrap().iter().map(|record| record.head.generation).collect();
    let last = u32::try_from(2 * apply::UNDOABLE + 1).unwrap();
    let mut expected: Vec<u32> = (last - 99..=last).collect();
    expected.insert(0, 1); // in effect all the time
    assert_eq!(kept, expected);
    assert!(matches!(
        undo(&lock, to, Some(5), &meta("gone")),
        Err(Failure::NoGeneration { requested: 5, .. })
    ));
    // the state after an apply that is undone, but still known
    undo(&lock, to, Some(last - 1), &meta("again")).unwrap();
    let shares = fake.read(host.hierarchy_of(Cpu).unwrap(), "old", "cpu.shares").unwrap();
    assert_eq!(shares.trim().parse(), Ok(999 + apply::UNDOABLE));
    undo(&lock, to, Some(0), &meta("all")).unwrap();
    assert_eq!(picture(&fake, &|_| true), before);
}

/// A script that sets values all the time keeps the last ones in the history, and an undo of all names the rest.
pub fn old_generations_of_set_settle() {
    let fake = Fake::v1(4, 1);
    settle_v1(&fake);
    let faults = Faults::at(&[]);
    let (host, system) = (host(fake.clone(), &faults), Beside::fake(&fake, &faults));
    let to = target(&host, &system);
    let directory = tempfile::tempdir().unwrap();
    let state = State::open(directory.path()).unwrap();
    let lock = state.lock(Duration::ZERO).unwrap();
    let plan = Maker::new(&host).write(Cpu, "old", "cpu.shares", "700").plan();
    execute(&lock, to, &plan, &meta("a test")).unwrap();
    let group = GroupName::new("old").unwrap();
    let set = |shares: usize| {
        let requests = ["cpu.shares", "cpu.cfs_quota_us"].map(|name| {
            let found = settings::find(name).unwrap();
            let value = found.parse(&(1000 + shares).to_string(), &settings::NoMachine).unwrap();
            SettingRequest {
                place: apply::place(&host, &group, &found).unwrap(),
                group: group.clone(),
                found,
                value,
            }
        });
        apply::set_recorded(&lock, to, &requests, &meta("set")).unwrap();
    };
    let many = 3 * apply::UNDOABLE;
    (0..many).for_each(set);
    let kept = history(&state).unwrap();
    assert!(kept.len() <= 2 * apply::UNDOABLE + 1, "{}", kept.len());
    assert_eq!(kept[0].head.generation, 1, "a layout stays");
    let last = kept.last().unwrap();
    assert_eq!(last.in_effect().len() + last.head.settled as usize, many + 1);
    undo(&lock, to, None, &meta("undo")).unwrap();
    let shares = || fake.read(host.hierarchy_of(Cpu).unwrap(), "old", "cpu.shares").unwrap();
    assert_eq!(shares().trim().parse(), Ok(1000 + many - 2));
    let left = undo(&lock, to, Some(0), &meta("all")).unwrap().left;
    assert!(left.iter().any(|left| left.contains("older `ringfence set`")), "{left:?}");
}

/// A value that somebody set between the end of a killed `set` and the recovery was gone without a word.
pub fn a_roll_back_names_what_was_set_since() {
    for is_set_since in [false, true] {
        let fake = Fake::v1(4, 1);
        settle_v1(&fake);
        let before = picture(&fake, &|_| true);
        let directory = tempfile::tempdir().unwrap();
        let [all, killed] = ["all", "killed"].map(|name| directory.path().join(name));
        let state = State::open(&all).unwrap();
        // as it is after the first write
        let generations = State::open(&killed).unwrap().directory().join("generations");
        let journal = all.join("generations/0001.journal");
        let faults = Faults::looking(move || {
            let copy = generations.join("0001.journal");
            if !copy.exists() {
                std::fs::copy(&journal, copy).unwrap();
            }
        });
        let (host, system) = (host(fake.clone(), &faults), Beside::fake(&fake, &faults));
        let to = target(&host, &system);
        let group = GroupName::new("old").unwrap();
        let request = |(name, value): (&str, &str)| {
            let found = settings::find(name).unwrap();
            let value = found.parse(value, &settings::NoMachine).unwrap();
            SettingRequest {
                place: apply::place(&host, &group, &found).unwrap(),
                group: group.clone(),
                found,
                value,
            }
        };
        let requests = [("cpu.shares", "300"), ("cpu.cfs_quota_us", "7000")].map(request);
        apply::set_recorded(&state.lock(Duration::ZERO).unwrap(), to, &requests, &meta("set")).unwrap();
        if is_set_since {
            fake.write(host.hierarchy_of(Cpu).unwrap(), "old", "cpu.shares", "444").unwrap();
        }
        let state = State::open(&killed).unwrap();
        let lock = state.lock(Duration::ZERO).unwrap();
        let recovered = apply::recover(&lock, to).unwrap().pop().unwrap();
        assert!(recovered.left.is_empty(), "{recovered}");
        let shares = fake.read(host.hierarchy_of(Cpu).unwrap(), "old", "cpu.shares").unwrap();
        let key = |key: &&String| key.contains(":old") && key.ends_with("cpu.shares");
        let then = &before[before.keys().find(key).unwrap()];
        assert_eq!(shares.trim(), then.trim());
        let replaced = history(&state).unwrap().remove(0).result.unwrap().replaced;
        assert_eq!(replaced, recovered.replaced);
        assert_eq!(replaced.len(), usize::from(is_set_since), "{replaced:?}");
        let named = "/old/cpu.shares: 444 is gone: the file was changed to it after the interrupted change";
        assert!(replaced.iter().all(|replaced| replaced.ends_with(named)), "{replaced:?}");
    }
}

/// Once old records were pruned, an undo removed a group that somebody had removed and made again.
pub fn a_group_made_again_is_left_however_many_generations_there_were() {
    for is_removed_and_back in [false, true] {
        let fake = Fake::v1(4, 1);
        settle_v1(&fake);
        let faults = Faults::at(&[]);
        let (host, system) = (host(fake.clone(), &faults), Beside::fake(&fake, &faults));
        let to = target(&host, &system);
        let directory = tempfile::tempdir().unwrap();
        let state = State::open(directory.path()).unwrap();
        let lock = state.lock(Duration::ZERO).unwrap();
        let apply = |plan: &Plan| execute(&lock, to, plan, &meta("a test")).unwrap();
        apply(&Maker::new(&host).create(Cpu, "ours").plan());
        let at = host.hierarchy_of(Cpu).unwrap();
        if is_removed_and_back {
            // the undo's directory is another, and ours as well
            apply(&Maker::new(&host).remove(Cpu, "ours").plan());
            undo(&lock, to, None, &meta("undo")).unwrap();
        }
        for shares in 1000..1010 + apply::UNDOABLE / 2 {
            apply(&Maker::new(&host).write(Cpu, "old", "cpu.shares", &shares.to_string()).plan());
            undo(&lock, to, None, &meta("undo")).unwrap();
        }
        assert!(history(&state).unwrap().len() <= apply::UNDOABLE + 2, "none was pruned");
        if is_removed_and_back {
            assert_eq!(undo(&lock, to, Some(0), &meta("all")).unwrap().left, Vec::<String>::new());
            assert!(!fake.exists(at, "ours"));
            continue;
        }
        fake.rmdir(at, "ours").unwrap();
        fake.mkdir(at, "ours").unwrap();
        let left = undo(&lock, to, Some(0), &meta("all")).unwrap().left;
        assert!(fake.exists(at, "ours"), "it is somebody else's");
        assert!(left.iter().any(|left| left.contains("it was removed and made again")), "{left:?}");
    }
}
