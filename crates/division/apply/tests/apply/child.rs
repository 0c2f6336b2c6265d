//! What the test program does as another process.

use std::{path::Path, time::Duration};

use crate::{broken, devices, groups, real, sampler};

/// Does what the words say; a process that works without end is ended from outside, or with the program that started it.
pub fn run(words: &str) {
    let words: Vec<&str> = words.split('|').collect();
    match words[0] {
        "idle" => until_orphaned(|| std::thread::sleep(Duration::from_millis(200))),
        "starts" => start_and_wait(Path::new(words[1]), words[2]),
        "relays" => relays(Path::new(words[1]), words[2].parse().unwrap()),
        "relay" => hand_on(Path::new(words[1])),
        "lingers" => linger(Path::new(words[1])),
        "busy" => sampler::work(words[1].parse().unwrap()),
        "probe" => devices::probe(words[1]),
        "apply" => broken::child(&words),
        _ => real::child(&words),
    }
}

/// Starts another process once a file is there, and goes on, or ends at once, as the file says.
#[expect(clippy::zombie_processes, reason = "this process is ended before the one that it starts")]
fn start_and_wait(directory: &Path, file: &str) {
    groups::wait_for(file, || directory.join(file).exists());
    let ends = std::fs::read(directory.join(file)).unwrap() == b"end";
    let child = groups::start(&format!("lingers|{}", directory.display())).spawn().unwrap();
    std::fs::write(directory.join("number"), child.id().to_string()).unwrap();
    std::fs::rename(directory.join("number"), directory.join(format!("{file}.started"))).unwrap();
    if !ends {
        linger(directory);
    }
}

/// Starts that number of processes once the directory is there, each of which only starts the next one, and goes on.
fn relays(directory: &Path, count: usize) {
    groups::wait_for("the directory", || directory.exists());
    (0..count).for_each(|_| hand_on(directory));
    loop {
        std::thread::sleep(Duration::from_secs(1));
    }
}

fn hand_on(directory: &Path) {
    if directory.exists() {
        let _ = groups::start(&format!("relay|{}", directory.display())).spawn(); // the group may be full
    }
}

/// Goes on until the directory is gone.
fn linger(directory: &Path) {
    while directory.exists() {
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Goes on until the program that started this process is gone.
pub fn until_orphaned(mut each: impl FnMut()) {
    let parent = rustix::process::getppid();
    while rustix::process::getppid() == parent {
        each();
    }
}
