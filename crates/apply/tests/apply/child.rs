//! What the test program does as another process.

use std::time::Duration;

use crate::{broken, devices, real, sampler};

/// Does what the words say; a process that works without end is ended from outside, or with the program that started it.
pub fn run(words: &str) {
    let words: Vec<&str> = words.split('|').collect();
    match words[0] {
        "idle" => until_orphaned(|| std::thread::sleep(Duration::from_millis(200))),
        "busy" => sampler::work(words[1].parse().unwrap()),
        "probe" => devices::probe(words[1]),
        "apply" => broken::child(&words),
        _ => real::child(&words),
    }
}

/// Goes on until the program that started this process is gone.
pub fn until_orphaned(mut each: impl FnMut()) {
    let parent = rustix::process::getppid();
    while rustix::process::getppid() == parent {
        each();
    }
}
