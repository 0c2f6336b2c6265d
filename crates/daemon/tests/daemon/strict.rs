//! Strict rules: a program is in its group before its first instruction, and no start waits for a daemon that is gone.

use std::{
    process::Command,
    time::{Duration, Instant},
};

use rustix::process::Signal;

use crate::{Case, world::World};

pub fn trials() -> Vec<Case> {
    vec![
        ("a_strict_program_is_in_its_group_when_it_starts", in_group),
        ("no_start_waits_for_a_daemon_that_was_killed_or_stopped", gone),
    ]
}

/// A program that tells where it is, as its first deed.
fn world() -> (World, String, std::path::PathBuf) {
    let mut world = World::new();
    let group = world.group_name("strict");
    let program = world.copy("/bin/cat", "cat");
    let text = format!(
        "[groups.{group}]\npids.max = 500\nmatch = [{{ process = \"{}\", strict = true }}]\n",
        program.display()
    );
    world.write("layout.toml", &text);
    (world, group, program)
}

/// Whether it was in the group, sixteen at a time.
fn share(program: &std::path::Path, group: &str, times: usize) -> usize {
    let wanted = format!(":pids:/{group}\n");
    let one = || {
        let told = Command::new(program).arg("/proc/self/cgroup").output().unwrap();
        usize::from(String::from_utf8_lossy(&told.stdout).contains(&wanted))
    };
    std::thread::scope(|scope| {
        let each = move || (0..times / 16).map(|_| one()).sum::<usize>();
        let threads: Vec<_> = (0..16).map(|_| scope.spawn(each)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    })
}

fn in_group() {
    let (world, group, program) = world();
    let daemon = world.daemon(&[]);
    assert_eq!(share(&program, &group, 1600), 1600, "{}", daemon.log());
    daemon.end();
    // nobody holds it any more
    assert_eq!(share(&program, &group, 16), 0);
}

fn gone() {
    let (world, group, program) = world();
    let daemon = world.daemon(&[]);
    assert_eq!(share(&program, &group, 16), 16);
    daemon.signal(Signal::STOP);
    let start = Instant::now();
    share(&program, &group, 16);
    daemon.signal(Signal::CONT);
    daemon.kill();
    share(&program, &group, 16);
    // far above the watchdog's limit, far below for ever
    assert!(start.elapsed() < Duration::from_secs(20));
}
