//! The texts of `corpus/` and mutations of them, a bounded number from a fixed seed: the same ones every time. Each target
//! is a test.
#![allow(clippy::unwrap_used, reason = "a corpus that cannot be read fails the test")]

use std::{fs, path::Path};

use fastrand::Rng;
use libtest_mimic::{Arguments, Trial};

/// Mutations of each text; `RF_FUZZ` says another number.
const MUTATIONS: usize = 60;
/// Memory that this process may take, in KiB: no text may ask for much more than its own length.
const MEMORY: u64 = 1 << 20;

#[allow(clippy::disallowed_methods, reason = "a text makes no group: no suite beside it matters")]
fn main() {
    let trial = |(name, target): &'static (&str, fuzz::Target)| {
        Trial::test(*name, || {
            corpus(name, *target);
            Ok(())
        })
    };
    libtest_mimic::run(&Arguments::from_args(), fuzz::TARGETS.iter().map(trial).collect()).exit();
}

/// Texts found before and their mutations keep every promise.
fn corpus(name: &str, target: fuzz::Target) {
    let mutations = std::env::var("RF_FUZZ").ok().and_then(|number| number.parse().ok()).unwrap_or(MUTATIONS);
    let texts = texts(name);
    assert!(texts.len() >= 5, "the corpus of {name} has gone");
    let mut random = Rng::with_seed(20_261_121);
    for text in &texts {
        target(text);
        for _ in 0..mutations {
            target(&mutated(text, &texts, &mut random));
        }
    }
    assert!(most_memory() < MEMORY, "{} KiB of memory", most_memory());
}

/// The most memory that this process took so far, in KiB.
fn most_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let most = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    most.trim().trim_end_matches(" kB").parse().unwrap()
}

fn texts(name: &str) -> Vec<Vec<u8>> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name);
    let mut files: Vec<_> = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.iter().map(|file| fs::read(file).unwrap()).collect()
}

/// One to four changes: bytes replaced, removed, repeated, or a piece of another text put in.
fn mutated(text: &[u8], others: &[Vec<u8>], random: &mut Rng) -> Vec<u8> {
    let mut text = text.to_vec();
    for _ in 0..random.usize(1..=4) {
        let at = random.usize(0..=text.len());
        let end = (at + random.usize(0..=16)).min(text.len());
        match random.u8(0..5) {
            0 => drop(text.drain(at..end)),
            1 => text[at..end].iter_mut().for_each(|byte| *byte = random.u8(32..127)),
            2 => {
                let piece = text[at..end].to_vec();
                text.splice(at..at, piece.repeat(random.usize(1..=8)));
            }
            3 => text.insert(at, random.u8(..)),
            _ => {
                let other = &others[random.usize(0..others.len())];
                let from = random.usize(0..=other.len());
                let to = (from + random.usize(0..=64)).min(other.len());
                text.splice(at..at, other[from..to].iter().copied());
            }
        }
    }
    text
}
