//! Undo, status, confirmation and the lock on the machine's own kernel, in groups that are removed whatever happens.

use std::{
    collections::BTreeSet, os::unix::process::CommandExt, path::Path, process::Command, time::Duration,
};

use apply::{Drift, Failure, Running, State, Verdict, execute, history, recover, status, undo};
use kernel::{GroupName, Host};
use plan::Plan;
use rustix::process::{Pid, Signal, kill_process_group};
use settings::Controller::{Cpu, Cpuset, Memory, Pids};

use crate::{
    faulty::die,
    groups::{Groups, differences, machine, start, wait_for},
    maker::Maker,
    pipeline, scenarios,
    world::{meta, target},
};

/// What a child process of these tests does.
pub fn child(words: &[&str]) {
    let state = State::open(words[1]).unwrap();
    match words[0] {
        "confirm" => {
            let (host, system) = (machine(), Running::new());
            let seconds: u64 = words[3].parse().unwrap();
            let lock = state.lock(Duration::ZERO).unwrap();
            let plan = Maker::new(&host).create(Cpu, &format!("{}a", words[2])).plan();
            let reverter = |generation: u32| match words[4] {
                // ready, and dead at once
                "dead" => {
                    let mut command = Command::new("echo");
                    command.arg("ready");
                    command
                }
                _ => start(&format!("revert|{}|{generation}|{seconds}", words[1])),
            };
            apply::execute_unless_reverted(
                &lock,
                target(&host, &system),
                &plan,
                &meta("c"),
                seconds,
                &reverter,
            )
            .unwrap();
            die();
        }
        "revert" => {
            let (host, system) = (machine(), Running::new());
            let (generation, seconds) = (words[2].parse().unwrap(), words[3].parse().unwrap());
            let verdict = apply::revert_unless_confirmed(&state, target(&host, &system), generation, seconds);
            let text = format!("{:?} {}", verdict, own_session());
            std::fs::write(Path::new(words[1]).join("verdict"), text).unwrap();
        }
        other => panic!("no such child: {other}"),
    }
}

fn own_session() -> bool {
    rustix::process::getsid(None).unwrap() == rustix::process::getpid()
}

fn values(host: &Host, groups: &Groups, shares: &str, pids: &str) -> Plan {
    let old = groups.name("old");
    Maker::new(host).write(Cpu, &old, "cpu.shares", shares).write(Pids, &old, "pids.max", pids).plan()
}

pub fn undo_returns_to_every_earlier_generation_and_spares_tasks() {
    let mut groups = Groups::new("undo");
    scenarios::settle_sets(&mut groups);
    let directory = tempfile::tempdir().unwrap();
    let state = State::open(directory.path()).unwrap();
    let (host, system) = (machine(), Running::new());
    let to = target(&host, &system);
    let lock = state.lock(Duration::ZERO).unwrap();
    let mut pictures = vec![groups.picture()];
    let plan = pipeline::plan(&scenarios::sets(&groups.prefix), to);
    execute(&lock, to, &plan, &meta("first")).unwrap();
    pictures.push(groups.picture());
    for (shares, pids) in [("700", "70"), ("800", "80")] {
        execute(&lock, to, &values(&host, &groups, shares, pids), &meta("more")).unwrap();
        pictures.push(groups.picture());
    }
    let seen = |state: usize| {
        let differing = differences(&pictures[state], &groups.picture());
        assert!(differing.is_empty(), "not as after generation {state}: {differing:#?}");
    };
    let back = |generation| undo(&lock, to, generation, &meta("undo")).unwrap();
    back(None); // 4
    seen(2);
    back(None); // 5
    seen(1);
    back(Some(3)); // 6: both again
    seen(3);
    back(Some(0)); // 7
    seen(0);
    assert!(matches!(undo(&lock, to, None, &meta("undo")), Err(Failure::NothingToUndo)));
    assert!(matches!(undo(&lock, to, Some(99), &meta("undo")), Err(Failure::NoGeneration { last: 7, .. })));
    back(Some(1)); // 8: the groups are made again
    seen(1);

    // somebody works in one group, and somebody removed another one
    let worker = groups.start("idle");
    let pids = host.hierarchy_of(Pids).unwrap();
    let c = GroupName::new(&groups.name("c")).unwrap();
    host.write(&host.seat_in(pids, &c), &c, "cgroup.procs", &worker.to_string()).unwrap();
    let d = host.seat_in(host.hierarchy_of(Cpu).unwrap(), &GroupName::new(&groups.name("d")).unwrap());
    host.kernel().rmdir(d.at, &d.path).unwrap();
    let seen = status(&state, to).unwrap();
    let of = |group: &str| seen.iter().find(|seen| seen.group == groups.name(group)).unwrap();
    assert!(of("d").drift.iter().any(|drift| matches!(drift, Drift::Gone { .. })), "{:?}", of("d"));
    // it is in one of the group's directories only, and so not under the limits of the others, if there are any
    let others = of("c").directories.len() - 1;
    let hierarchies = |drift: &Drift| match drift {
        Drift::Outside { .. } => 1,
        // in the group that the tests run in
        Drift::InOther { controllers, .. } => controllers.len(),
        other => panic!("{other}"),
    };
    assert_eq!(of("c").drift.iter().map(hierarchies).sum::<usize>(), others, "{:?}", of("c"));
    assert_eq!(of("c").tasks.len(), 1, "{:?}", of("c"));
    let left = undo(&lock, to, None, &meta("undo")).unwrap().left;
    assert!(host.kernel().exists(pids, &host.seat_in(pids, &c).path));
    assert!(Path::new(&format!("/proc/{worker}/stat")).exists(), "undo ends nobody");
    assert!(left.iter().any(|left| left.contains("stays: 1 process in")), "{left:?}");
    assert!(left.iter().any(|left| left.contains("is gone already")), "{left:?}");
    let kinds: Vec<bool> = history(&state).unwrap().iter().map(apply::Record::is_done).collect();
    assert_eq!(kinds, [true; 9]);
}

/// Each process only starts the next one and ends: nobody is there for long enough to be looked at and moved. All of them
/// come along with a controller that is added, or the apply fails and says why. Then the group is gone there, or it is
/// named, has no limit, and goes with the next undo.
pub fn what_forks_faster_than_it_is_moved_comes_along_or_is_named() {
    for count in [1, 8] {
        let groups = Groups::new("relay");
        let directory = tempfile::tempdir().unwrap();
        let go = directory.path().join("go");
        groups.make("a", &[Pids]);
        let mut child = start(&format!("relays|{}|{count}", go.display())).process_group(0).spawn().unwrap();
        let leader = child.id();
        let free = || {
            // the groups that the tests run in are somebody's choice, and nobody is taken out of them
            for at in groups.host.hierarchies() {
                let _ = groups.host.kernel().write(at, "", "cgroup.procs", &leader.to_string());
            }
        };
        free();
        groups.put(leader, "a");
        std::fs::create_dir(&go).unwrap();
        let (host, system) = (machine(), Running::new());
        let to = target(&host, &system);
        let group = GroupName::new(&groups.name("a")).unwrap();
        let tasks = |controller| -> BTreeSet<u32> {
            let text = host.kernel().read(
                host.hierarchy_of(controller).unwrap(),
                &host.seat_in(host.hierarchy_of(controller).unwrap(), &group).path,
                "cgroup.procs",
            );
            text.unwrap_or_default().lines().map(|pid| pid.parse().unwrap()).collect()
        };
        wait_for("the relay runs", || tasks(Pids).last().is_some_and(|last| *last > leader + 50));
        free();
        let state = State::open(directory.path().join("state")).unwrap();
        let lock = state.lock(Duration::ZERO).unwrap();
        let text = format!("[groups.\"{group}\"]\npids.max = 200\nmemory.max = \"256M\"\n");
        let plan = pipeline::whole(&("l.toml", text), to);
        let done = execute(&lock, to, &plan, &meta("added"));
        let all = Pid::from_raw(leader.cast_signed()).unwrap();
        kill_process_group(all, Signal::STOP).unwrap();
        std::thread::sleep(Duration::from_millis(100)); // those on their way to their end
        let mut both = (tasks(Pids), tasks(Memory));
        // on a slow machine that takes longer, and one may end between the two looks; one that was missed is stopped
        for _ in 0..100 {
            if both.0 == both.1 || done.is_err() {
                break;
            }
            std::thread::sleep(Duration::from_millis(50));
            both = (tasks(Pids), tasks(Memory));
        }
        let (before, added) = both;
        let memory = host.seat_in(host.hierarchy_of(Memory).unwrap(), &group);
        let exists = || host.kernel().exists(memory.at, &memory.path);
        let limit = |path: &str| host.kernel().read(memory.at, path, "memory.limit_in_bytes").unwrap();
        let limits = exists().then(|| (limit(&memory.path), limit("")));
        std::fs::remove_dir(&go).unwrap();
        kill_process_group(all, Signal::KILL).unwrap();
        child.wait().unwrap();
        match done {
            Ok(_) => assert_eq!(before, added, "{count}"),
            Err(Failure::RolledBack { error, left, .. }) => {
                println!("{count}: {error}; left: {left:?}");
                assert!(error.to_string().contains("fork faster than they can be moved"), "{error}");
                let Some((own, none)) = limits else {
                    assert_eq!(left, [""; 0]);
                    continue;
                };
                let [left] = &left[..] else { panic!("{left:?}") };
                let named = left.starts_with(&format!("group '{group}' stays: "));
                assert!(named && left.contains("kill -STOP"), "{left}");
                assert_eq!(own, none, "{left}");
                wait_for("they end", || tasks(Memory).is_empty());
                assert_eq!(undo(&lock, to, None, &meta("undo")).unwrap().left, [""; 0]);
                assert!(!exists());
            }
            Err(other) => panic!("{other}"),
        }
    }
}

/// Somebody who removes a group and makes it again owns the new one (finding 15).
pub fn a_group_that_somebody_made_again_is_theirs() {
    let groups = Groups::new("again");
    let directory = tempfile::tempdir().unwrap();
    let state = State::open(directory.path()).unwrap();
    let (host, system) = (machine(), Running::new());
    let to = target(&host, &system);
    let lock = state.lock(Duration::ZERO).unwrap();
    let seat = |group: &str| {
        host.seat_in(host.hierarchy_of(Cpu).unwrap(), &GroupName::new(&groups.name(group)).unwrap())
    };
    let exists = |group: &str| host.kernel().exists(seat(group).at, &seat(group).path);
    let make = || {
        let plan = Maker::new(&host).create(Cpu, &groups.name("a")).create(Cpu, &groups.name("b")).plan();
        execute(&lock, to, &plan, &meta("make")).unwrap();
    };
    let make_again = || {
        host.kernel().rmdir(seat("a").at, &seat("a").path).unwrap();
        host.kernel().mkdir(seat("a").at, &seat("a").path).unwrap();
    };
    make();
    make_again();
    assert_eq!(apply::made(&state, to).unwrap().len(), 1, "cgclear removes what is ours");
    let left = undo(&lock, to, None, &meta("undo")).unwrap().left;
    assert!(left.len() == 1 && left[0].contains("removed and made again since"), "{left:?}");
    assert!(exists("a") && !exists("b"));
    assert!(matches!(undo(&lock, to, None, &meta("undo")), Err(Failure::NothingToUndo)));
    // one that an undo made again is the generation's
    host.kernel().rmdir(seat("a").at, &seat("a").path).unwrap();
    make();
    let generation = history(&state).unwrap().len() as u32;
    undo(&lock, to, None, &meta("undo")).unwrap();
    undo(&lock, to, Some(generation), &meta("undo")).unwrap();
    assert!(exists("a") && exists("b"));
    assert_eq!(undo(&lock, to, None, &meta("undo")).unwrap().left, [""; 0]);
    assert!(!exists("a") && !exists("b"));
}

/// An undo takes back what generations did: a group of one that stays, which somebody removed, is named.
pub fn a_group_that_somebody_removed_is_named_by_an_undo_to_its_generation() {
    let groups = Groups::new("removed");
    let directory = tempfile::tempdir().unwrap();
    let state = State::open(directory.path()).unwrap();
    let (host, system) = (machine(), Running::new());
    let to = target(&host, &system);
    let lock = state.lock(Duration::ZERO).unwrap();
    let make = |group: &str| {
        let plan = Maker::new(&host).create(Cpu, &groups.name(group)).plan();
        execute(&lock, to, &plan, &meta("make")).unwrap();
    };
    ["a", "b", "c"].into_iter().for_each(make);
    let seat = host.seat_in(host.hierarchy_of(Cpu).unwrap(), &GroupName::new(&groups.name("a")).unwrap());
    host.kernel().rmdir(seat.at, &seat.path).unwrap();
    for generation in [None, Some(1)] {
        let left = undo(&lock, to, generation, &meta("undo")).unwrap().left;
        let is_named = |left: &String| left.contains(&groups.name("a")) && left.contains("ringfence apply");
        assert!(left.len() == 1 && is_named(&left[0]), "{left:?}");
    }
    assert!(!host.kernel().exists(seat.at, &seat.path), "what others did stays");
}

pub fn status_tells_what_somebody_changed() {
    let mut groups = Groups::new("status");
    scenarios::settle_sets(&mut groups);
    groups.make("old", &[Memory]);
    let directory = tempfile::tempdir().unwrap();
    let state = State::open(directory.path()).unwrap();
    let (host, system) = (machine(), Running::new());
    let to = target(&host, &system);
    let lock = state.lock(Duration::ZERO).unwrap();
    let old = groups.name("old");
    let plan = Maker::new(&host)
        .write(Cpu, &old, "cpu.shares", "700")
        .write(Memory, &old, "memory.limit_in_bytes", "33554433") // rounded to pages
        .plan();
    let outcome = execute(&lock, to, &plan, &meta("first")).unwrap();
    assert_eq!(outcome.differences.len(), 1, "{outcome:?}");
    let before = status(&state, to).unwrap();
    assert!(before.len() == 1 && before[0].drift.is_empty() && before[0].memory.is_some(), "{before:?}");
    groups.write(Cpu, "old", "cpu.shares", "900");
    let after = status(&state, to).unwrap();
    let [Drift::Changed { requested, actual, .. }] = &after[0].drift[..] else { panic!("{after:?}") };
    assert_eq!((requested.as_str(), actual.as_deref()), ("700", Some("900")));
    // a plan that was made before that is refused, and nothing is changed
    let stale = Maker::new(&host).write(Cpu, &old, "cpu.shares", "1000").plan();
    groups.write(Cpu, "old", "cpu.shares", "901");
    assert!(matches!(execute(&lock, to, &stale, &meta("stale")), Err(Failure::Stale { .. })));
}

pub fn tasks_leave_cpus_of_others_and_come_back_by_undo() {
    let mut groups = Groups::new("away");
    groups.make("old", &[Cpuset]);
    groups.write(Cpuset, "old", "cpuset.mems", "0");
    groups.write(Cpuset, "old", "cpuset.cpus", "0-1");
    let task = groups.start("idle");
    groups.put(task, "old");
    let directory = tempfile::tempdir().unwrap();
    let state = State::open(directory.path()).unwrap();
    let (host, system) = (machine(), Running::new());
    let to = target(&host, &system);
    let lock = state.lock(Duration::ZERO).unwrap();
    let cpus = || apply::System::affinity(&system, task).unwrap().to_string();
    let before = cpus();
    let plan = Maker::new(&host).away(&groups.name("old"), "1", "0").plan();
    execute(&lock, to, &plan, &meta("away")).unwrap();
    let during = cpus();
    undo(&lock, to, None, &meta("undo")).unwrap();
    assert_eq!((before.as_str(), during.as_str(), cpus().as_str()), ("0-1", "0", "0-1"));
}

/// A process has its maker's CPUs: one that was started while others had less of them has to get back what those get (5b).
pub fn tasks_that_came_since_get_the_cpus_back_that_their_makers_had() {
    let mut groups = Groups::new("since");
    groups.make("old", &[Cpuset]);
    groups.write(Cpuset, "old", "cpuset.mems", "0");
    groups.write(Cpuset, "old", "cpuset.cpus", "0-1");
    let directory = tempfile::tempdir().unwrap();
    let files = directory.path().join("files");
    std::fs::create_dir(&files).unwrap();
    let makers = ["stays", "goes"].map(|file| groups.start(&format!("starts|{}|{file}", files.display())));
    let own = groups.start("idle");
    for task in makers.into_iter().chain([own]) {
        groups.put(task, "old");
    }
    let state = State::open(directory.path().join("state")).unwrap();
    let (host, system) = (machine(), Running::new());
    let to = target(&host, &system);
    let lock = state.lock(Duration::ZERO).unwrap();
    let cpus = |task: u32| apply::System::affinity(&system, task).unwrap().to_string();
    // somebody chose this one's CPU
    apply::System::set_affinity(&system, own, &"0".parse().unwrap()).unwrap();
    std::thread::sleep(Duration::from_millis(20)); // the kernel counts starts in ticks of 10 ms
    execute(&lock, to, &Maker::new(&host).away(&groups.name("old"), "1", "0").plan(), &meta("away")).unwrap();
    let started = |file: &str, text: &str| -> u32 {
        std::fs::write(files.join("text"), text).unwrap();
        std::fs::rename(files.join("text"), files.join(file)).unwrap();
        let number = files.join(format!("{file}.started"));
        wait_for("it starts another", || number.exists());
        std::fs::read_to_string(number).unwrap().parse().unwrap()
    };
    let (child, orphan) = (started("stays", ""), started("goes", "end"));
    groups.end_process(makers[1]);
    let all = [makers[0], child, orphan, own];
    let during = all.map(cpus);
    undo(&lock, to, None, &meta("undo")).unwrap();
    let after = all.map(cpus);
    std::fs::remove_dir_all(&files).unwrap();
    assert_eq!(
        (during, after.each_ref().map(String::as_str)),
        (["0", "0", "0", "0"].map(str::to_owned), ["0-1", "0-1", "0-1", "0"])
    );
}

pub fn the_second_of_two_applies_waits_or_says_who_holds_the_lock() {
    let directory = tempfile::tempdir().unwrap();
    let state = State::open(directory.path()).unwrap();
    let lock = state.lock(Duration::ZERO).unwrap();
    let own = std::process::id();
    match state.lock(Duration::from_millis(50)) {
        Err(Failure::Locked { pid: Some(pid), command, .. }) => {
            assert_eq!(pid, own);
            assert!(command.contains("apply"), "{command}");
        }
        other => panic!("{other:?}"),
    }
    let waiting = std::thread::spawn(move || state.lock(Duration::from_secs(60)).is_ok());
    std::thread::sleep(Duration::from_millis(50));
    drop(lock);
    assert!(waiting.join().unwrap());
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    assert!(matches!(State::open(directory.path()), Err(Failure::State { what: "trust", .. })));
}

pub fn an_unconfirmed_apply_is_undone_although_its_process_was_killed() {
    let groups = Groups::new("confirm");
    let (host, system) = (machine(), Running::new());
    let to = target(&host, &system);
    let name = GroupName::new(&groups.name("a")).unwrap();
    let there = || !host.seats(&name).is_empty();
    let run = |seconds: u64, reverter: &str| {
        let directory = tempfile::tempdir().unwrap();
        let words = format!("confirm|{}|{}|{seconds}|{reverter}", directory.path().display(), groups.prefix);
        let status = start(&words).stdout(std::process::Stdio::null()).status().unwrap();
        assert!(!status.success(), "it kills itself");
        assert!(there());
        directory
    };
    // nobody confirms
    let directory = run(1, "alive");
    let verdict = |directory: &tempfile::TempDir| {
        let path = directory.path().join("verdict");
        wait_for("the reverting process ends", || path.exists());
        wait_for("it has said all", || std::fs::read_to_string(&path).is_ok_and(|text| text.contains(' ')));
        std::fs::read_to_string(&path).unwrap()
    };
    assert_eq!(verdict(&directory), format!("{:?} true", Ok::<_, Failure>(Verdict::Reverted)));
    assert!(!there());
    assert_eq!(history(&State::peek(directory.path())).unwrap().len(), 2);

    // somebody does; until then nothing else may be applied
    let directory = run(3600, "alive");
    let state = State::open(directory.path()).unwrap();
    let lock = state.lock(Duration::from_secs(60)).unwrap();
    let more = Maker::new(&host).create(Cpu, &groups.name("b")).plan();
    assert!(matches!(execute(&lock, to, &more, &meta("b")), Err(Failure::Unconfirmed { generation: 1, .. })));
    assert_eq!(apply::confirm(&lock, to, None), Ok(1));
    assert!(matches!(apply::confirm(&lock, to, Some(1)), Err(Failure::NotWaiting { .. })));
    drop(lock);
    assert_eq!(verdict(&directory), format!("{:?} true", Ok::<_, Failure>(Verdict::Confirmed)));
    assert!(there());
    groups.clear();

    // the reverting process died too: the next command undoes
    let directory = run(1, "dead");
    let state = State::open(directory.path()).unwrap();
    let lock = state.lock(Duration::ZERO).unwrap();
    wait_for("its time is over", || !recover(&lock, to).unwrap().is_empty());
    assert!(!there());
}
