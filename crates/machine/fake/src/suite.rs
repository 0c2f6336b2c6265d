//! Runs a suite's tests, but for those that this machine can't run or that passed elsewhere: what one machine has shown, a
//! virtual machine with the same hierarchies need not show again. Both are reported as ignored, with the reason, so that
//! `scripts/test` finds a test that no machine ran.
#![allow(clippy::panic, reason = "a suite that can't read its list must not pass")]

mod limit;
mod realtime;
mod turn;

use std::{collections::BTreeSet, ffi::OsStr, fs, path::Path};

use libtest_mimic::{Arguments, Completion, Conclusion, Failed, Trial};

/// Names a file with the names of tests that passed elsewhere, one a line.
const PASSED: &str = "RF_PASSED";

/// A test that fails by a panic. Where something is lacking it is ignored, with that as the reason.
pub fn trial(name: impl Into<String>, lacks: Option<String>, run: impl FnOnce() + Send + 'static) -> Trial {
    fallible(name, lacks, move || {
        run();
        Ok(())
    })
}

/// The same for a test that returns its failure.
pub fn fallible(
    name: impl Into<String>,
    lacks: Option<String>,
    run: impl FnOnce() -> Result<(), Failed> + Send + 'static,
) -> Trial {
    let trial = ignorable(name, move || run().map(|()| Completion::Completed));
    match lacks {
        Some(lacks) => trial.with_ignored_flag(true).with_kind(format!("needs {lacks}")),
        None => trial,
    }
}

/// The same for a test that finds out only while it runs whether something is lacking.
#[allow(clippy::disallowed_methods, reason = "here a test waits for its turn")]
pub fn ignorable(
    name: impl Into<String>,
    run: impl FnOnce() -> Result<Completion, Failed> + Send + 'static,
) -> Trial {
    let name = name.into();
    let of = name.clone();
    Trial::ignorable_test(name, move || {
        let _turn = turn::take(&of);
        let _limit = limit::Limit::of(of);
        run()
    })
}

/// Runs the tests as the arguments say, without those that the file named by `RF_PASSED` lists. First those that need the machine
/// alone.
pub fn run(arguments: &Arguments, mut trials: Vec<Trial>) -> Conclusion {
    realtime::leave_group_without_budget();
    trials.sort_by_key(|trial| !turn::is_alone(trial.name()));
    let mut arguments = arguments.clone();
    if turn::are_taken() {
        arguments.test_threads = Some(1);
    }
    let passed = passed(std::env::var_os(PASSED).as_deref());
    libtest_mimic::run(&arguments, without(trials, &passed))
}

fn passed(list: Option<&OsStr>) -> BTreeSet<String> {
    let read = |list| fs::read_to_string(list).unwrap_or_else(|error| panic!("{PASSED}: {list:?}: {error}"));
    list.map(|list| read(Path::new(list)).lines().map(str::to_owned).collect()).unwrap_or_default()
}

fn without(trials: Vec<Trial>, passed: &BTreeSet<String>) -> Vec<Trial> {
    let mark = |trial: Trial| match passed.contains(trial.name()) && !trial.has_ignored_flag() {
        true => trial.with_ignored_flag(true).with_kind("passed on the host"),
        false => trial,
    };
    trials.into_iter().map(mark).collect()
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn what_the_list_names_is_ignored_and_nothing_else() {
        let mut list = tempfile::NamedTempFile::new().unwrap();
        writeln!(list, "layout: a plan\ncase").unwrap();
        let test = |name| trial(name, None, || ());
        let trials = vec![test("layout: a plan"), test("layout: a plan of two"), test("case")];
        let marked = without(trials, &passed(Some(list.path().as_os_str())));
        assert_eq!(
            marked.iter().map(|trial| (trial.has_ignored_flag(), trial.kind())).collect::<Vec<_>>(),
            [(true, "passed on the host"), (false, ""), (true, "passed on the host")]
        );
    }

    #[test]
    fn what_a_machine_lacks_is_the_reason() {
        let lacking = trial("case", Some("2 nodes".to_owned()), || ());
        assert_eq!((lacking.has_ignored_flag(), lacking.kind()), (true, "needs 2 nodes"));
        assert!(!trial("case", None, || ()).has_ignored_flag());
    }

    #[test]
    fn a_machines_own_reason_stays() {
        let lacking = trial("case", Some("root".to_owned()), || ());
        let marked = without(vec![lacking], &BTreeSet::from(["case".to_owned()]));
        assert_eq!(marked[0].kind(), "needs root");
    }

    #[test]
    #[should_panic(expected = "RF_PASSED")]
    fn a_list_that_is_missing_is_a_failure() {
        passed(Some(OsStr::new("/nonexistent/list")));
    }

    #[test]
    fn without_a_list_all_run() {
        assert!(passed(None).is_empty());
    }
}
