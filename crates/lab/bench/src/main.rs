//! `make bench`: times commands and daemons against their peers. The sides of a row take turns, so that whatever else the
//! machine does hits both; medians and their ratio are printed, and decide nothing.
//!
//! `bench [PROGRAM] [--before PROGRAM] [WORD…]`. A word is a part, or text with which a word of a row's name begins:
//! `daemon "1 ms" "16 at"`. With `--before`, the peer of each row is an earlier build of Ringfence.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "prints its table")]

mod groups;
mod measure;

mod applies;
mod commands;
mod planning;

mod followed;
mod probes;

mod daemons;
mod elastic;
mod strict;

mod browsing;
mod lab;
mod sampled;
mod watching;

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use measure::{Done, Said, not_interrupted, watch_signals};

/// Rows that share their set-up, and whether an earlier build can be their peer.
type Part = (&'static str, bool, fn(&Selection) -> Done);

const PARTS: [Part; 10] = [
    ("commands", true, commands::rows),
    ("apply", true, applies::rows),
    ("plan", false, planning::plan),
    ("elastic", true, elastic::rows),
    ("daemon", true, daemons::rows),
    ("burst", false, daemons::bursts),
    ("strict", false, strict::rows),
    ("watch", true, watching::rows),
    ("lab", false, lab::samples),
    ("cyclic", false, lab::wake_ups),
];

/// What the arguments ask for.
struct Selection {
    program: PathBuf,
    /// An earlier build, which takes the peers' place.
    before: Option<PathBuf>,
    /// None: all.
    parts: Vec<&'static str>,
    /// Words of a row's name begin with each of them.
    texts: Vec<String>,
}

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some(elastic::WORK) {
        elastic::work();
    }
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Done<bool> {
    let selection = Selection::of(std::env::args().skip(1))?;
    watch_signals()?;
    println!("interleaved; medians in microseconds, and the middle half of the times\n");
    println!("{:40} {:>26} {:>26} {:>6} {:>5}", "row", "ours", "peer", "ratio", "goal");
    let mut good = true;
    for (_, _, rows) in PARTS.iter().filter(|part| selection.holds(part)) {
        if let Err(error) = rows(&selection) {
            eprintln!("bench: {error}");
            good = false;
        }
        if not_interrupted().is_err() {
            return Ok(false);
        }
    }
    Ok(good)
}

impl Selection {
    /// Of the words after the program's name. Refused are texts without a part, and `--before` with a part whose peer is
    /// no command.
    fn of(words: impl Iterator<Item = String>) -> Done<Selection> {
        let mut words = words.peekable();
        let named = |word: &str| PARTS.iter().find(|(name, ..)| *name == word);
        let program = words.next_if(|word| named(word).is_none() && word != "--before");
        let (mut parts, mut texts, mut before) = (Vec::new(), Vec::new(), None);
        while let Some(word) = words.next() {
            match named(&word) {
                Some((name, ..)) => parts.push(*name),
                None if word == "--before" => {
                    before = Some(words.next().ok_or("--before needs the path of a program")?);
                }
                None => texts.push(word),
            }
        }
        let names = PARTS.map(|(name, ..)| name);
        if let (true, Some(text)) = (parts.is_empty(), texts.first()) {
            let names = names.join(", ");
            return Err(format!("which part is meant?\nhint: name one of {names} before '{text}'"));
        }
        if before.is_some() {
            let unable = |part: &&&str| PARTS.iter().any(|(name, able, _)| name == *part && !able);
            if let Some(part) = parts.iter().find(unable) {
                return Err(format!("the rows of {part} have no earlier build as their peer"));
            }
            if parts.is_empty() {
                parts.extend(PARTS.iter().filter(|(_, able, _)| *able).map(|(name, ..)| *name));
            }
        }
        let absolute = |program: String| std::path::absolute(&program).said(&program);
        let program = absolute(program.unwrap_or_else(|| "target/release/ringfence".to_owned()))?;
        Ok(Selection { program, before: before.map(absolute).transpose()?, parts, texts })
    }

    fn holds(&self, (name, ..): &Part) -> bool {
        self.parts.is_empty() || self.parts.contains(name)
    }

    /// Whether a row of a part that it holds is wanted.
    fn wants(&self, row: &str) -> bool {
        let begins =
            |text: &String| row.match_indices(text).any(|(at, _)| at == 0 || row[..at].ends_with(' '));
        self.texts.iter().all(begins)
    }

    /// A goal, which is one beside the real peers only.
    fn goal(&self, goal: f64) -> Option<f64> {
        self.before.is_none().then_some(goal)
    }

    fn before(&self) -> Option<&Path> {
        self.before.as_deref()
    }
}
