//! Two suites can run beside each other on one machine: most of their tests wait most of the time. Those that concern every group of the
//! machine, or measure it, have it to themselves.

use std::{
    fs::File,
    io,
    path::Path,
    sync::{Mutex, PoisonError},
};

/// Names a file that suites lock which run at the same time.
const TURN: &str = "RF_TURN";

/// How the names of the tests begin that run beside none of another suite.
const ALONE: &[&str] = &[
    // cpu_exclusive: no group beside may have the CPU
    "real::exclusive_",
    "real::an_exclusive_",
    "real::a_cloned_v1_cpuset_",
    "refused: a cpuset is not exclusive",
    "refused: a cpuset can't take a CPU that a sibling has for itself",
    "swap::",
    "reference: cgset -r cpuset.cpu_exclusive",
    "real_time_groups_have_a_budget_and_cpus_of_their_own",
    // they show all groups of a hierarchy
    "reference: cgsnapshot ",
    // exclusive CPUs of this machine, planned only: of no group that is there
    "layout study: S4's ready layouts can be planned for this machine",
    // what is counted on each CPU of the machine
    "isolate: ",
];

/// Held while a test runs.
pub struct Turn {
    _file: File,
}

/// The machine, for the tests that need it alone: the suite runs them one after the other, and others wait once for all of them.
static MACHINE: Mutex<Option<Turn>> = Mutex::new(None);

/// Does it run beside no test of another suite?
pub fn is_alone(test: &str) -> bool {
    ALONE.iter().any(|beginning| test.starts_with(beginning))
}

/// Waits until this test may run: at once, where `RF_TURN` names no file. One that needs the machine alone has it until a test begins
/// that does not: a suite runs one test at a time then.
pub fn take(test: &str) -> Option<Turn> {
    let path = std::env::var_os(TURN)?;
    let turn = next(Path::new(&path), &MACHINE, is_alone(test));
    turn.unwrap_or_else(|error| panic!("{TURN}: {}: {error}", path.display()))
}

/// Do suites run beside each other?
pub fn are_taken() -> bool {
    std::env::var_os(TURN).is_some()
}

fn next(path: &Path, machine: &Mutex<Option<Turn>>, alone: bool) -> io::Result<Option<Turn>> {
    let mut machine = machine.lock().unwrap_or_else(PoisonError::into_inner);
    if !alone {
        drop(machine.take());
        return wait(path, false).map(Some);
    }
    if machine.is_none() {
        *machine = Some(wait(path, true)?);
    }
    Ok(None)
}

fn wait(path: &Path, alone: bool) -> io::Result<Turn> {
    let open = |path: &Path| File::options().append(true).create(true).open(path);
    // a test that waits for the machine holds back those that come after it
    let next = open(&path.with_extension("next"))?;
    next.lock()?;
    let file = open(path)?;
    if alone { file.lock() } else { file.lock_shared() }?;
    Ok(Turn { _file: file })
}

#[cfg(test)]
mod tests {
    use std::{
        sync::mpsc::{RecvTimeoutError, channel},
        thread,
        time::Duration,
    };

    use super::*;

    #[test]
    fn tests_run_beside_each_other_but_for_one_that_has_the_machine() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("turn");
        let (one, other) = (wait(&path, false).unwrap(), wait(&path, false).unwrap());
        let (send, sent) = channel();
        let in_thread = |alone| {
            let (path, send) = (path.clone(), send.clone());
            thread::spawn(move || {
                let turn = wait(&path, alone).unwrap();
                send.send(alone).unwrap();
                drop(turn);
            })
        };
        let waiting = in_thread(true);
        let next = File::open(path.with_extension("next")).unwrap();
        while next.try_lock().is_ok() {
            next.unlock().unwrap();
            thread::yield_now();
        }
        assert_eq!(sent.recv_timeout(Duration::from_millis(50)), Err(RecvTimeoutError::Timeout));
        let behind = in_thread(false);
        drop((one, other));
        assert_eq!((sent.recv(), sent.recv()), (Ok(true), Ok(false)));
        waiting.join().unwrap();
        behind.join().unwrap();
    }

    #[test]
    fn who_needs_the_machine_has_it_until_somebody_does_not() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("turn");
        let machine = Mutex::new(None);
        let is_free = || {
            let file = File::open(&path).unwrap();
            file.try_lock_shared().is_ok()
        };
        for _ in 0..2 {
            assert!(next(&path, &machine, true).unwrap().is_none());
            assert!(!is_free());
        }
        let turn = next(&path, &machine, false).unwrap();
        assert!(turn.is_some() && is_free());
    }
}
