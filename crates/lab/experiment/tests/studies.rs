//! The studies that come with the program: with `--quick` each can decide something and is over in three minutes.

#![allow(clippy::panic, clippy::unwrap_used, clippy::print_stdout)] // a test says what it found

use std::{fs, path::Path};

use experiment::{Experiment, Lengths, Plan};
use layout::Source;

fn studies() -> Vec<(String, Experiment)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../studies");
    let mut all: Vec<(String, Experiment)> = fs::read_dir(root)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "toml"))
        .map(|path| {
            let text = fs::read_to_string(&path).unwrap();
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            let read = experiment::read(&Source::new(&name, &text));
            (name, read.experiment.unwrap_or_else(|| panic!("{:?}", read.diagnostics)))
        })
        .collect();
    all.sort_by(|one, other| one.0.cmp(&other.0));
    all
}

/// newcomers A8: `--quick` of s4 took four minutes and could decide nothing; s5 took eight.
#[test]
fn every_study_can_decide_something_in_three_minutes_with_quick() {
    let mut wrong = Vec::new();
    for (name, experiment) in studies() {
        for quick in [true, false] {
            let lengths = Lengths::of(&experiment, quick);
            if let Some(why) = Plan::of(&experiment, lengths.repetitions).too_few() {
                wrong.push(format!("{name}{}: {why}", if quick { " --quick" } else { "" }));
            }
        }
        let quick = Lengths::of(&experiment, true);
        let seconds = experiment::planned_seconds(&experiment, &quick);
        if seconds > 180.0 {
            wrong.push(format!("{name} --quick takes {seconds:.0} s"));
        }
        println!("{name}: {seconds:.0} s of runs");
    }
    assert_eq!(wrong, [""; 0]);
}
