//! Applies that are broken off on the machine's own kernel: each change refused, the process killed before and after
//! each change, at any moment, and while it puts back. Everything ends as it was or as it was requested, and the history
//! says which; groups that the layout does not name keep every byte.

use std::{path::Path, process::Stdio, time::Duration};

use apply::{Ending, Failure, Running, State, execute, history, recover, undo};
use kernel::{Host, Real};
use libtest_mimic::Trial;
use rustix::io::Errno;

use crate::{
    faulty::{Beside, Fault, Faults},
    groups::{Groups, differences, is_ours_alone, machine, start},
    pipeline,
    scenarios::Scenario,
    world::{Picture, host, meta, target},
};

const ERRNOS: [Errno; 5] = [Errno::INVAL, Errno::NOSPC, Errno::PERM, Errno::IO, Errno::NOMEM];

/// A test's name, and the test.
type Case = (&'static str, fn(&'static Scenario));

/// All of this for one scenario.
pub fn trials(scenario: &'static Scenario, lacks: Option<&str>) -> Vec<Trial> {
    let all: [Case; 5] = [
        ("each_change_refused_on_this_kernel_leaves_all_as_before_or_as_asked", each_change_refused),
        ("an_apply_killed_at_any_change_is_put_back_at_the_next_start", killed_at_each_change),
        ("an_apply_killed_while_it_puts_back_is_put_back_at_the_next_start", killed_while_it_puts_back),
        ("an_apply_killed_at_any_moment_ends_as_the_history_says", killed_at_any_moment),
        ("each_change_of_an_undo_refused_leaves_all_as_asked", each_change_of_an_undo_refused),
    ];
    let trial = |(name, test): Case| {
        let name = format!("{}::{name}", scenario.name);
        crate::where_there(&name, lacks, move || test(scenario))
    };
    all.into_iter().map(trial).collect()
}

/// The child process: applies a scenario's layout, with faults.
pub fn child(words: &[&str]) {
    let (state, scenario) = (State::open(words[1]).unwrap(), Scenario::called(words[3]));
    let faults: Vec<(usize, Fault)> = words[4].split(',').filter_map(fault).collect();
    let lock = state.lock(Duration::ZERO).unwrap();
    let (count, result) = apply(&lock, scenario, words[2], &faults);
    print!("{count} {}", result.is_ok());
}

fn fault(text: &str) -> Option<(usize, Fault)> {
    let (number, what) = text.split_once(':')?;
    let fault = match what {
        "before" => Fault::DieBefore,
        "after" => Fault::DieAfter,
        _ => Fault::Refuse(Errno::NOSPC),
    };
    Some((number.parse().unwrap(), fault))
}

fn apply(
    lock: &apply::Lock,
    scenario: &Scenario,
    prefix: &str,
    faults: &[(usize, Fault)],
) -> (usize, Result<apply::Outcome, Failure>) {
    let faults = Faults::at(faults);
    let (host, system) = (host(Real::new(), &faults), Beside::real(&faults));
    let plan = pipeline::plan(&(scenario.layout)(prefix), target(&host, &system));
    let least = scenario.least_steps;
    assert!(plan.steps.len() >= least, "{} steps are too few to tell anything", plan.steps.len());
    let result = execute(lock, target(&host, &system), &plan, &meta("broken"));
    (faults.count(), result)
}

/// A scenario on the machine, with how it looks before and after.
struct Stage {
    groups: Groups,
    scenario: &'static Scenario,
    before: Picture,
    requested: Picture,
    /// How many steps and changes it takes.
    steps: usize,
    changes: usize,
}

impl Stage {
    fn new(scenario: &'static Scenario) -> Stage {
        let mut groups = Groups::new(scenario.name);
        (scenario.settle)(&mut groups);
        let before = groups.picture();
        let directory = tempfile::tempdir().unwrap();
        let state = State::open(directory.path()).unwrap();
        let lock = state.lock(Duration::ZERO).unwrap();
        let (changes, done) = apply(&lock, scenario, &groups.prefix, &[]);
        let steps = done.expect("without a fault it works").steps;
        let stage = Stage { requested: groups.picture(), groups, scenario, before, steps, changes };
        assert!(stage.requested != stage.before);
        stage.bystanders_are_untouched(&stage.requested, "an apply");
        stage.undo(&lock);
        eprintln!("{}: {steps} steps, {changes} changes", scenario.name);
        stage
    }

    fn undo(&self, lock: &apply::Lock) {
        let (host, system) = (machine(), Running::new());
        let undone = undo(lock, target(&host, &system), None, &meta("undo")).unwrap();
        assert!(undone.left.is_empty(), "{:?}", undone.left);
        let rest = differences(&self.before, &self.groups.picture());
        assert!(rest.is_empty(), "undo brings everything back: {rest:#?}");
    }

    /// Every file that groups which the layout does not name had before has every byte of then. Only what v2 offers
    /// to all children of a directory may become more.
    fn bystanders_are_untouched(&self, now: &Picture, what: &str) {
        let live = self.before.iter().filter(|(key, _)| key.contains(&self.groups.name("live")));
        for (key, text) in live {
            if key.ends_with("/cgroup.controllers") {
                let offered: Vec<&str> = now[key].split_whitespace().collect();
                assert!(text.split_whitespace().all(|name| offered.contains(&name)), "{key} after {what}");
                continue;
            }
            assert_eq!(now.get(key), Some(text), "{key}, which the layout does not name, after {what}");
        }
    }

    /// What the history says is so. Leaves everything as it was before.
    fn judge(&self, lock: &apply::Lock, what: &str) -> Option<Ending> {
        let record = history(lock.state()).unwrap().pop();
        let end = record.and_then(|record| record.result);
        let now = self.groups.picture();
        self.bystanders_are_untouched(&now, what);
        let ending = end.map(|end| {
            assert!(end.left.is_empty(), "{what}: {:?}", end.left);
            assert_eq!(end.error.is_some(), end.ending != Ending::Done, "{what}: the history says why");
            end.ending
        });
        let expected = if ending == Some(Ending::Done) { &self.requested } else { &self.before };
        let wrong = differences(expected, &now);
        assert!(wrong.is_empty(), "after {what} the history says {ending:?}, but: {wrong:#?}");
        if ending == Some(Ending::Done) {
            self.undo(lock);
        }
        ending
    }

    /// A child process applies, and is over; its journal is brought to its end.
    fn recovered(&self, run: impl FnOnce(&Path)) -> Option<Ending> {
        let directory = tempfile::tempdir().unwrap();
        run(directory.path());
        let state = State::open(directory.path()).unwrap();
        let lock = state.lock(Duration::ZERO).expect("the lock is gone with its holder");
        let (host, system) = (machine(), Running::new());
        let recovered = recover(&lock, target(&host, &system)).unwrap();
        assert!(recovered.iter().all(|recovered| recovered.left.is_empty()), "{recovered:?}");
        assert!(recover(&lock, target(&host, &system)).unwrap().is_empty(), "twice");
        self.judge(&lock, "a kill")
    }

    fn words(&self, state: &Path, faults: &str) -> String {
        format!("apply|{}|{}|{}|{faults}", state.display(), self.groups.prefix, self.scenario.name)
    }

    /// Killed as the faults say; `None` if it came to its end before.
    fn killed(&self, faults: &str) -> Option<Ending> {
        self.recovered(|state| {
            start(&self.words(state, faults)).stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
        })
    }
}

/// v1 refuses a rule for all devices while a removed group still counts: such a write is tried so often again.
const ATTEMPTS: usize = 100;

fn each_change_refused(scenario: &'static Scenario) {
    let stage = Stage::new(scenario);
    let mut as_requested = 0;
    let refused = |position: usize, times: usize, errno: Errno| {
        let directory = tempfile::tempdir().unwrap();
        let state = State::open(directory.path()).unwrap();
        let lock = state.lock(Duration::ZERO).unwrap();
        let faults: Vec<(usize, Fault)> =
            (position..position + times).map(|change| (change, Fault::Refuse(errno))).collect();
        let (_, result) = apply(&lock, scenario, &stage.groups.prefix, &faults);
        let what = format!("change {position} was refused {times} times with {errno:?}");
        match (&result, stage.judge(&lock, &what)) {
            (Err(Failure::RolledBack { left, .. }), Some(Ending::RolledBack)) => {
                assert!(left.is_empty());
                Ending::RolledBack
            }
            (Ok(_), Some(Ending::Done)) => Ending::Done,
            (_, ending) => panic!("{what}: {result:?}, and the history says {ending:?}"),
        }
    };
    for position in 0..stage.changes {
        let errno = ERRNOS[position % ERRNOS.len()];
        if refused(position, 1, errno) == Ending::RolledBack {
            continue;
        }
        as_requested += 1;
        match errno {
            // what a user may not do, root then does itself
            Errno::PERM => {}
            Errno::INVAL if scenario.name == "devices" => {
                let again = refused(position, ATTEMPTS + 1, errno);
                assert_eq!(again, Ending::RolledBack, "change {position} was refused each time");
            }
            _ => panic!("change {position} was refused with {errno:?}, and all was done"),
        }
    }
    eprintln!(
        "{}: each of {} changes refused once: {as_requested} times as asked, else as before",
        scenario.name, stage.changes
    );
}

fn killed_at_each_change(scenario: &'static Scenario) {
    let stage = Stage::new(scenario);
    for position in 0..stage.changes {
        let both = ["before", "after"];
        // an emulated machine takes a second for each: there, before one and after the next
        let when = if is_ours_alone() { &both[position % 2..=position % 2] } else { &both[..] };
        for when in when {
            let ending = stage.killed(&format!("{position}:{when}"));
            assert_eq!(ending, Some(Ending::RolledBack), "{position} {when}");
        }
    }
    let when = if is_ours_alone() { "or" } else { "and" };
    eprintln!("{}: killed before {when} after each of {} changes", scenario.name, stage.changes);
}

fn killed_while_it_puts_back(scenario: &'static Scenario) {
    let stage = Stage::new(scenario);
    let refused = stage.changes - 1;
    let mut kills = 0;
    loop {
        // the change after the refused one is the first that puts back
        let directory = tempfile::tempdir().unwrap();
        let words =
            stage.words(directory.path(), &format!("{refused}:refuse,{}:before", refused + kills + 1));
        let status = start(&words).stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
        let ending = stage.recovered(|path| {
            std::fs::remove_dir(path).unwrap();
            std::fs::rename(directory.path(), path).unwrap();
        });
        assert_eq!(ending, Some(Ending::RolledBack));
        if status.success() {
            break; // it had put everything back by itself
        }
        kills += if is_ours_alone() { 3 } else { 1 };
    }
    assert!(kills > scenario.least_steps / 4, "{kills} kills are too few to tell anything");
    eprintln!(
        "{}: killed before {} of {kills} changes that put back",
        scenario.name,
        if is_ours_alone() { "every third" } else { "each" }
    );
}

/// From outside: at the latest when the journal has so many lines. Where exactly it hits is up to chance, never what is
/// found right.
fn killed_at_any_moment(scenario: &'static Scenario) {
    const KILLS: usize = 20;
    let stage = Stage::new(scenario);
    let mut endings: Vec<Option<Ending>> = vec![stage.killed("")];
    for number in 0..KILLS {
        let ending = stage.recovered(|state| {
            let mut child =
                start(&stage.words(state, "")).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            // before the first step: who asked, and every step with what was before
            let lines = 1 + stage.steps + stage.steps * number / KILLS;
            let journal = state.join("generations/0001.journal");
            let has_lines = || {
                let text = std::fs::read(&journal).unwrap_or_default();
                text.iter().filter(|byte| **byte == b'\n').count() >= lines
            };
            while !has_lines() && child.try_wait().unwrap().is_none() {
                std::hint::spin_loop();
            }
            let _ = child.kill(); // it may be over
            child.wait().unwrap();
        });
        endings.push(ending);
    }
    assert_eq!(endings[0], Some(Ending::Done));
    let count = |wanted: Option<Ending>| endings.iter().filter(|ending| **ending == wanted).count();
    eprintln!(
        "{}: killed {KILLS} times: {} done, {} put back, {} not begun, {} without a generation",
        scenario.name,
        count(Some(Ending::Done)) - 1,
        count(Some(Ending::RolledBack)),
        count(Some(Ending::NotBegun)),
        count(None)
    );
}

/// Every change of an undo is refused once: the rest is undone all the same, what was refused is named, and the next
/// undo brings it back.
fn each_change_of_an_undo_refused(scenario: &'static Scenario) {
    let stage = Stage::new(scenario);
    let directory = tempfile::tempdir().unwrap();
    let state = State::open(directory.path()).unwrap();
    let lock = state.lock(Duration::ZERO).unwrap();
    for position in 0.. {
        let what = format!("change {position} of an undo");
        apply(&lock, scenario, &stage.groups.prefix, &[]).1.unwrap();
        let faults = Faults::at(&[(position, Fault::Refuse(Errno::NOSPC))]);
        let (host, system): (Host, _) = (host(Real::new(), &faults), Beside::real(&faults));
        let to = target(&host, &system);
        let left = undo(&lock, to, None, &meta("undo")).unwrap().left;
        let rest = differences(&stage.before, &stage.groups.picture());
        if left.is_empty() {
            assert!(rest.is_empty(), "{what}: {rest:#?}");
        } else {
            undo(&lock, to, None, &meta("undo"))
                .unwrap_or_else(|failure| panic!("{what}: {failure} {left:?}"));
            let rest = differences(&stage.before, &stage.groups.picture());
            assert!(rest.is_empty(), "{what}, {left:?}, and then another undo: {rest:#?}");
        }
        if faults.count() <= position {
            eprintln!("{}: each of {position} changes of an undo refused once", scenario.name);
            return;
        }
    }
}
