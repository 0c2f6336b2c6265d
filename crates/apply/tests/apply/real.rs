//! On this host's own v1 hierarchies, in groups `rf-test-apply-*`, which are removed whatever happens.

use std::{
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use apply::{Drift, Ending, Failure, Running, State, Verdict, execute, history, recover, status, undo};
use kernel::{Host, Kernel, Real};
use plan::Plan;
use settings::Controller::{self, Cpu, Cpuset, Memory, Pids};

use crate::world::{Beside, Fault, Faults, Maker, Picture, die, host, meta, picture, target};

const ALL: [Controller; 4] = [Cpu, Memory, Cpuset, Pids];

/// A test's groups: all begin with its prefix.
struct Cleared {
    prefix: String,
}

impl Cleared {
    fn new(test: &str) -> Cleared {
        let cleared = Cleared { prefix: format!("rf-test-apply-{test}-") };
        cleared.clear();
        cleared
    }

    fn clear(&self) {
        let kernel = Real::new();
        for at in kernel.hierarchies().unwrap() {
            let mut groups = kernel.descendants(&at, "").unwrap_or_default();
            groups.retain(|group| group.starts_with(&self.prefix));
            for group in groups.iter().rev() {
                let deadline = Instant::now() + Duration::from_secs(5);
                while kernel.rmdir(&at, group) == Err(rustix::io::Errno::BUSY) && Instant::now() < deadline {
                    std::thread::sleep(Duration::from_millis(10));
                }
            }
        }
    }

    fn name(&self, group: &str) -> String {
        format!("{}{group}", self.prefix)
    }

    fn picture(&self) -> Picture {
        picture(&Real::new(), &|group| group.starts_with(&self.prefix))
    }
}

impl Drop for Cleared {
    fn drop(&mut self) {
        self.clear();
    }
}

fn settle(groups: &Cleared) {
    let kernel = Real::new();
    let host = Host::new(Box::new(Real::new())).unwrap();
    for controller in ALL {
        let at = host.hierarchy_of(controller).unwrap();
        for group in [groups.name("old"), groups.name("live")] {
            kernel.mkdir(at, &group).unwrap();
            for (file, text) in [
                ("cpu.shares", "2048"),
                ("memory.limit_in_bytes", "67108864"),
                ("cpuset.mems", "0"),
                ("cpuset.cpus", "0-1"),
                ("pids.max", "100"),
            ] {
                let _ = kernel.write(at, &group, file, text); // where that controller lives
            }
        }
    }
}

fn plan(host: &Host, groups: &Cleared) -> Plan {
    let mut maker = Maker::new(host);
    let (a, below, c, old) = (groups.name("a"), groups.name("a/b"), groups.name("c"), groups.name("old"));
    for group in [&a, &below, &c] {
        for controller in ALL {
            maker.create(controller, group).own(controller, group, 1000, 1001);
        }
    }
    maker.write(Cpuset, &old, "cpuset.cpus", "0").write(Cpuset, &old, "cpuset.cpus", "1");
    for group in [&a, &below, &c] {
        maker
            .write(Cpuset, group, "cpuset.mems", "0")
            .write(Cpuset, group, "cpuset.cpus", "0")
            .write(Memory, group, "memory.limit_in_bytes", "134217728")
            .write(Cpu, group, "cpu.shares", "512")
            .write(Pids, group, "pids.max", "50");
    }
    maker
        .write(Cpu, &old, "cpu.shares", "300")
        .write(Memory, &old, "memory.limit_in_bytes", "33554432")
        .write(Pids, &old, "pids.max", "max")
        .own(Pids, &old, 7, 8)
        .plan()
}

/// What a child process of the tests does; the test binary starts itself with this.
pub fn child(words: &str) {
    let words: Vec<&str> = words.split('|').collect();
    let state = State::open(words[1]).unwrap();
    match words[0] {
        "apply" => {
            let groups = std::mem::ManuallyDrop::new(Cleared { prefix: words[2].to_owned() });
            let faults = words[3].split(',').filter_map(fault).collect::<Vec<_>>();
            let faults = Faults::at(&faults);
            let host = host(Real::new(), &faults);
            let system = Beside::real(&faults);
            let lock = state.lock(Duration::ZERO).unwrap();
            let result = execute(&lock, target(&host, &system), &plan(&host, &groups), &meta("killed"));
            print!("{} {}", faults.count(), result.is_ok());
        }
        "confirm" => {
            let groups = std::mem::ManuallyDrop::new(Cleared { prefix: words[2].to_owned() });
            let (host, system) = (Host::new(Box::new(Real::new())).unwrap(), Running::new());
            let seconds: u64 = words[3].parse().unwrap();
            let lock = state.lock(Duration::ZERO).unwrap();
            let plan = Maker::new(&host).create(Cpu, &groups.name("a")).plan();
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
            let (host, system) = (Host::new(Box::new(Real::new())).unwrap(), Running::new());
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

fn fault(text: &str) -> Option<(usize, Fault)> {
    let (number, what) = text.split_once(':')?;
    let fault = match what {
        "before" => Fault::DieBefore,
        "after" => Fault::DieAfter,
        _ => Fault::Refuse(rustix::io::Errno::NOSPC),
    };
    Some((number.parse().unwrap(), fault))
}

fn start(words: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.env("RF_APPLY_CHILD", words).stdin(Stdio::null());
    command
}

/// Runs an apply that dies as said; then everything must be as before.
fn broken_off(groups: &Cleared, faults: &str) -> Option<Ending> {
    let directory = tempfile::tempdir().unwrap();
    let state = State::open(directory.path()).unwrap();
    let before = groups.picture();
    let words = format!("apply|{}|{}|{faults}", directory.path().display(), groups.prefix);
    start(&words).stdout(Stdio::null()).status().unwrap();
    let (host, system) = (Host::new(Box::new(Real::new())).unwrap(), Running::new());
    let lock = state.lock(Duration::ZERO).expect("the lock is gone with its holder");
    let recovered = recover(&lock, target(&host, &system)).unwrap();
    let after = groups.picture();
    for (key, text) in &before {
        assert_eq!(after.get(key), Some(text), "{key} after {faults}");
    }
    assert_eq!(before.len(), after.len(), "groups are left after {faults}");
    assert!(recovered.iter().all(|recovered| recovered.left.is_empty()), "{faults}: {recovered:?}");
    let record = history(&state).unwrap().pop().unwrap();
    assert!(recover(&lock, target(&host, &system)).unwrap().is_empty(), "twice");
    let end = record.result.unwrap();
    assert!(recovered.is_empty() || end.error.unwrap().contains("ended before"), "the record says why");
    recovered.first().map(|recovered| recovered.ending)
}

pub fn an_apply_killed_at_any_change_is_put_back_at_the_next_start() {
    let groups = Cleared::new("kill");
    settle(&groups);
    let directory = tempfile::tempdir().unwrap();
    let words = format!("apply|{}|{}|", directory.path().display(), groups.prefix);
    let whole = start(&words).output().unwrap();
    let told = String::from_utf8(whole.stdout).unwrap();
    let (count, done) = told.split_once(' ').unwrap();
    assert_eq!(done, "true");
    let count: usize = count.parse().unwrap();
    assert!(count >= 30, "{count} changes are too few");
    groups.clear();
    settle(&groups);
    for position in 0..count {
        for when in ["before", "after"] {
            let ending = broken_off(&groups, &format!("{position}:{when}"));
            assert_eq!(ending, Some(Ending::RolledBack), "{position} {when}");
        }
    }
    eprintln!("killed before and after each of {count} changes");
    // and while it puts back: the change after the refused one is the roll-back's first
    let refused = count - 5;
    for more in 1.. {
        match broken_off(&groups, &format!("{refused}:refuse,{}:before", refused + more)) {
            Some(ending) => assert_eq!(ending, Ending::RolledBack),
            None if more > 20 => break, // it had put everything back by itself
            None => panic!("nothing was broken off at {more}"),
        }
    }
}

fn values(host: &Host, groups: &Cleared, shares: &str, pids: &str) -> Plan {
    let old = groups.name("old");
    Maker::new(host).write(Cpu, &old, "cpu.shares", shares).write(Pids, &old, "pids.max", pids).plan()
}

pub fn undo_returns_to_every_earlier_generation_and_spares_tasks() {
    let groups = Cleared::new("undo");
    settle(&groups);
    let directory = tempfile::tempdir().unwrap();
    let state = State::open(directory.path()).unwrap();
    let (host, system) = (Host::new(Box::new(Real::new())).unwrap(), Running::new());
    let to = target(&host, &system);
    let lock = state.lock(Duration::ZERO).unwrap();
    let mut pictures = vec![groups.picture()];
    execute(&lock, to, &plan(&host, &groups), &meta("first")).unwrap();
    pictures.push(groups.picture());
    for (shares, pids) in [("700", "70"), ("800", "80")] {
        execute(&lock, to, &values(&host, &groups, shares, pids), &meta("more")).unwrap();
        pictures.push(groups.picture());
    }
    let seen = |state: usize| {
        let now = groups.picture();
        let differs = |key: &&String| now.get(*key) != pictures[state].get(*key);
        let differing: Vec<&String> = now.keys().chain(pictures[state].keys()).filter(differs).collect();
        assert!(differing.is_empty(), "not as after generation {state}: {differing:?}");
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
    let mut again = groups.picture();
    again.retain(|key, text| pictures[1].get(key) != Some(text));
    assert!(again.is_empty(), "{again:?}");

    // somebody works in one group, and somebody removed another one
    let mut sleeper = Command::new("sleep").arg("60").spawn().unwrap();
    let pids = host.hierarchy_of(Pids).unwrap();
    let put = host.kernel().write(pids, &groups.name("c"), "cgroup.procs", &sleeper.id().to_string());
    let removed = host.kernel().rmdir(host.hierarchy_of(Cpu).unwrap(), &groups.name("c"));
    let seen = status(&state, to).unwrap();
    let outcome = undo(&lock, to, None, &meta("undo"));
    let alive = sleeper.try_wait().unwrap().is_none();
    let stays = host.kernel().exists(pids, &groups.name("c"));
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    put.unwrap();
    removed.unwrap();
    let c = seen.iter().find(|group| group.group == groups.name("c")).unwrap();
    assert!(c.drift.iter().any(|drift| matches!(drift, Drift::Gone { .. })) && c.tasks.len() == 1, "{c:?}");
    let left = outcome.unwrap().left;
    assert!(alive && stays);
    assert!(left.iter().any(|left| left.contains("stays: 1 task in")), "{left:?}");
    assert!(left.iter().any(|left| left.contains("is gone already")), "{left:?}");
    let kinds: Vec<bool> = history(&state).unwrap().iter().map(apply::Record::is_done).collect();
    assert_eq!(kinds, [true; 9]);
}

pub fn status_tells_what_somebody_changed() {
    let groups = Cleared::new("status");
    settle(&groups);
    let directory = tempfile::tempdir().unwrap();
    let state = State::open(directory.path()).unwrap();
    let (host, system) = (Host::new(Box::new(Real::new())).unwrap(), Running::new());
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
    host.kernel().write(host.hierarchy_of(Cpu).unwrap(), &old, "cpu.shares", "900").unwrap();
    let after = status(&state, to).unwrap();
    let [Drift::Changed { asked, held, .. }] = &after[0].drift[..] else { panic!("{after:?}") };
    assert_eq!((asked.as_str(), held.as_deref()), ("700", Some("900")));
    // a plan that was made before that is refused, and nothing is changed
    let stale = Maker::new(&host).write(Cpu, &old, "cpu.shares", "1000").plan();
    host.kernel().write(host.hierarchy_of(Cpu).unwrap(), &old, "cpu.shares", "901").unwrap();
    assert!(matches!(execute(&lock, to, &stale, &meta("stale")), Err(Failure::Stale { .. })));
}

pub fn tasks_leave_cpus_of_others_and_come_back_by_undo() {
    let groups = Cleared::new("away");
    settle(&groups);
    let directory = tempfile::tempdir().unwrap();
    let state = State::open(directory.path()).unwrap();
    let (host, system) = (Host::new(Box::new(Real::new())).unwrap(), Running::new());
    let to = target(&host, &system);
    let lock = state.lock(Duration::ZERO).unwrap();
    let old = groups.name("old");
    let mut sleeper = Command::new("sleep").arg("60").spawn().unwrap();
    let cpuset = host.hierarchy_of(Cpuset).unwrap();
    let put = host.kernel().write(cpuset, &old, "cgroup.procs", &sleeper.id().to_string());
    let cpus = || apply::System::affinity(&system, sleeper.id()).unwrap().to_string();
    let before = cpus();
    let plan = Maker::new(&host).away(&old, "1", "0").plan();
    let done = execute(&lock, to, &plan, &meta("away"));
    let during = cpus();
    let undone = undo(&lock, to, None, &meta("undo"));
    let after = cpus();
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    put.unwrap();
    done.unwrap();
    undone.unwrap();
    assert_eq!((before.as_str(), during.as_str(), after.as_str()), ("0-1", "0", "0-1"));
}

pub fn the_second_of_two_applies_waits_or_says_who_holds_the_lock() {
    let directory = tempfile::tempdir().unwrap();
    let state = State::open(directory.path()).unwrap();
    let lock = state.lock(Duration::ZERO).unwrap();
    let own = std::process::id();
    match state.lock(Duration::from_millis(50)) {
        Err(Failure::Locked { pid, command, .. }) => {
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

fn wait_for(what: &str, is: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !is() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

pub fn an_unconfirmed_apply_is_undone_although_its_process_was_killed() {
    let groups = Cleared::new("confirm");
    let (host, system) = (Host::new(Box::new(Real::new())).unwrap(), Running::new());
    let to = target(&host, &system);
    let at = host.hierarchy_of(Cpu).unwrap();
    let there = || host.kernel().exists(at, &groups.name("a"));
    let run = |seconds: u64, reverter: &str| {
        let directory = tempfile::tempdir().unwrap();
        let words = format!("confirm|{}|{}|{seconds}|{reverter}", directory.path().display(), groups.prefix);
        let status = start(&words).stdout(Stdio::null()).status().unwrap();
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
