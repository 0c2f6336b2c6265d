//! Flipped bits and cuts in every file of the state directory, as the program meets them: an undo brings back what was
//! before or refuses, and what is said is so. The reader of lines is tried with every bit and every cut beside its code;
//! these are a sample, or 500 bits and every tenth cut with `RF_ALL=1`.

use std::{fs, path::Path, sync::Arc};

use fake::suite;
use libtest_mimic::Trial;

use crate::{
    tracer::{self, Fault, Rule},
    undoable::{Stage, all_of_them, is_emulated},
    world::{Need, World},
};

type Case = (&'static str, fn(&mut Stage));

const CASES: &[Case] = &[
    ("the record of a change in effect", record),
    ("the journal of an interrupted change", journal),
    ("a confirmation, the lock and set aside room", others),
];

pub fn trials(world: &Arc<World>) -> Vec<Trial> {
    let trial = |&(name, case): &Case| {
        let (lacks, world) = (world.lacks(&[Need::Usual]), world.clone());
        suite::trial(format!("damaged: {name}"), lacks, move || case(&mut Stage::new(&world, name)))
    };
    CASES.iter().map(trial).collect()
}

/// What is done to a file's bytes.
#[derive(Debug, Clone, Copy)]
enum Damage {
    Flip { bit: usize },
    Cut { at: usize },
}

impl Damage {
    fn done(self, bytes: &[u8]) -> Vec<u8> {
        match self {
            Damage::Flip { bit } => {
                let mut flipped = bytes.to_vec();
                flipped[bit / 8] ^= 1 << (bit % 8);
                flipped
            }
            Damage::Cut { at } => bytes[..at].to_vec(),
        }
    }

    /// Bits anywhere, and cuts before the end of what was written.
    fn all(bytes: &[u8]) -> Vec<Damage> {
        let used = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        let (flips, cuts) = match (all_of_them(), is_emulated()) {
            (true, _) => (250, used / 10),
            (false, true) => (6, 4),
            (false, false) => (25, 15),
        };
        // spread by a step that is prime to the number of bits, beginning anywhere
        let bit = |number: usize| (number * 7919 + 13) * 104_729 % (used * 8);
        let flips = (0..flips).map(|number| Damage::Flip { bit: bit(number) });
        // a newline at the end of a finished record says nothing
        let last = used.saturating_sub(1);
        flips.chain((0..last).step_by((last / cuts).max(1)).map(|at| Damage::Cut { at })).collect()
    }
}

/// How often what came.
#[derive(Debug, Default)]
struct Count {
    right: usize,
    refused: usize,
    in_part: usize,
}

fn record(stage: &mut Stage) {
    let file = stage.desk.path("state/generations/0001.jsonl");
    stage.desk.ends("apply {d}/l.toml {s}", 0);
    let requested = stage.picture();
    let bytes = fs::read(&file).unwrap();
    let mut history = stage.desk.ends("history {s}", 0);
    let mut count = Count::default();
    for damage in Damage::all(&bytes) {
        fs::write(&file, damage.done(&bytes)).unwrap();
        let (code, out, error) = stage.desk.run("undo {s}");
        let what = format!("{damage:?}: {code} {out}{error}");
        assert!(!error.contains("rolled back") && !error.contains("not confirmed"), "{what}");
        if code == 0 {
            assert_eq!(stage.differing(), None, "{what}");
            count.right += 1;
        } else {
            assert_eq!(code, 1, "{what}");
            assert_eq!(stage.picture(), requested, "{what}");
            named(stage, &file, &error, &history);
            count.refused += 1;
        }
        if code == 0 {
            fs::remove_dir_all(stage.desk.path("state")).unwrap();
            stage.desk.ends("apply {d}/l.toml {s}", 0);
            history = stage.desk.ends("history {s}", 0);
            assert_eq!(stage.picture(), requested);
        }
    }
    eprintln!("{} bytes: {count:?}", bytes.len());
    assert!(count.refused > 5 && count.refused > 10 * count.right, "{count:?}");
}

/// The damaged file, and what can be done; no other command says that all is well. Where the damage is in what `history`
/// does not read, it is as it was before.
fn named(stage: &Stage, file: &Path, error: &str, history: &str) {
    assert!(error.contains(file.to_str().unwrap()) && error.contains("damaged"), "{error}");
    assert!(error.contains("hint: ") && error.contains("mv "), "{error}");
    let (code, out, status) = stage.desk.run("status {s}");
    assert!(code != 0 && status.contains("damaged"), "{code}: {out}{status}");
    let (_, now, error) = stage.desk.run("history {s}");
    assert!(now.contains("damaged") || now == history, "{now}{error}");
}

fn journal(stage: &mut Stage) {
    let file = stage.desk.path("state/generations/0001.journal");
    let apply = |stage: &Stage, at: usize| {
        let _ = fs::remove_dir_all(stage.desk.path("state"));
        let counts = |call: &str| call == "pwrite64";
        let rule = Rule { word: "apply", is_child: false, counts, at, fault: Fault::Kill };
        let words = stage.words("apply {d}/l.toml {s}");
        tracer::run(words, &stage.desk.path("out"), rule).1.join().unwrap()
    };
    // the second half of its changes is missing
    let half = apply(stage, usize::MAX).calls.len() / 2;
    stage.desk.ends("undo {s}", 0);
    let interrupt = |stage: &Stage| {
        let seen = apply(stage, half);
        assert!(seen.hit.is_some() && stage.differing().is_some());
        fs::read(&file).unwrap()
    };
    let mut bytes = interrupt(stage);
    let mut history = stage.desk.ends("history {s}", 0);
    let half = stage.picture();
    let mut count = Count::default();
    for damage in Damage::all(&bytes) {
        fs::write(&file, damage.done(&bytes)).unwrap();
        let (code, out, error) = stage.desk.run("undo {s}");
        let what = format!("{damage:?}: {code} {out}{error}");
        let rest = stage.differing();
        if code != 1 {
            // the recovery is all that an undo does then
            let in_part = error.contains("rolled back in part, except: ");
            assert_eq!(code, if in_part { 3 } else { 0 }, "{what}");
            assert_eq!(out.contains("the last change is undone"), !in_part, "{what}");
            assert!(error.contains("generation 1 was interrupted and has been rolled back"), "{what}");
            assert!(rest.is_none() || in_part, "{what}: {rest:?}");
            *(if in_part { &mut count.in_part } else { &mut count.right }) += 1;
            bytes = interrupt(stage);
            history = stage.desk.ends("history {s}", 0);
            assert_eq!(stage.picture(), half);
        } else {
            assert_eq!(stage.picture(), half, "{what}");
            named(stage, &file, &error, &history);
            count.refused += 1;
        }
    }
    fs::write(&file, &bytes).unwrap();
    eprintln!("{} bytes: {count:?}", bytes.len());
    assert!(count.refused > 5, "{count:?}");
    stage.desk.run("undo {s}");
    assert_eq!(stage.differing(), None);
}

/// What these files contain decides nothing: that they are there does, and who has them open.
fn others(stage: &mut Stage) {
    for (name, text) in [("lock", "4194303\n"), ("lock", "\u{fffd}x"), ("generations/reserve", "x")] {
        stage.desk.ends("apply {d}/l.toml {s} --confirm 3600s", 0);
        fs::write(stage.desk.path("state").join(name), text).unwrap();
        let (code, out, error) = stage.desk.run("status {s}");
        assert!(code == 0 && out.contains("generation 1 will be undone in "), "{name}: {out}{error}");
        stage.desk.ends("undo {s}", 0);
        assert_eq!(stage.differing(), None, "{name}");
        stage.desk.kill_reverters();
        fs::remove_dir_all(stage.desk.path("state")).unwrap();
    }
    stage.desk.ends("apply {d}/l.toml {s} --confirm 2s", 0);
    stage.desk.ends("confirm {s}", 0);
    let confirmed = stage.desk.path("state/generations/0001.confirmed");
    for bytes in [&b"\0"[..], b"no", &[0xff; 70_000]] {
        fs::write(&confirmed, bytes).unwrap();
        let (code, out, error) = stage.desk.run("status {s}");
        assert!(code == 0 && !out.contains("unless you run"), "{out}{error}");
    }
    stage.desk.scene.until("the end of the process that reverts", || stage.desk.reverters().is_empty());
    assert!(stage.differing().is_some(), "it was confirmed");
    stage.desk.ends("undo {s}", 0);
    assert_eq!(stage.differing(), None);
}
