//! Strict rules: a program is in its group before its first instruction, and no start waits for a daemon that is gone.
//!
//! `RF_STARTS` says how many starts are looked at. Ten thousand, on this machine and on cgroup v2:
//!
//! ```text
//! RF_STARTS=10000 cargo test -p ringfence-daemon --test daemon -- strict_program --nocapture
//! tests/vm/vm --timeout 3600 v2 target/debug/deps/daemon-… /bin/cat -- \
//!     'RF_STARTS=10000 ./daemon-… strict_program --nocapture'
//! ```

use std::{
    fs,
    process::Command,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    time::{Duration, Instant},
};

use rustix::process::Signal;

use crate::{Case, world::World};

pub fn trials() -> Vec<Case> {
    vec![
        ("a_strict_program_is_in_its_group_when_it_starts", in_group),
        ("the_gate_alone_puts_a_strict_program_into_its_group", alone),
        ("a_strict_rule_for_a_shell_is_named_in_the_log_and_its_bounds_in_the_documentation", shells),
        ("no_start_waits_for_a_daemon_that_was_killed_or_stopped", gone),
    ]
}

/// That the gate's watchdog is strict is shown elsewhere: here it must not end a gate that lacks only the CPU.
const PATIENT: &str = "patience=120";

/// A program that tells where it is, as its first deed.
fn world() -> (World, String, std::path::PathBuf) {
    let mut world = World::new();
    let group = world.group_name("strict");
    let program = world.copy("cat", "cat");
    let text = format!(
        "[groups.{group}]\npids.max = 500\nmatch = [{{ process = \"{}\", strict = true }}]\n",
        program.display()
    );
    world.write("layout.toml", &text);
    (world, group, program)
}

/// How many were in the group, sixteen at a time.
fn share(program: &std::path::Path, group: &str, times: usize) -> usize {
    // below systemd the group is in the unit of ours
    let (end, of_pids) =
        (format!("/{group}"), |line: &str| line.contains(":pids:") || line.starts_with("0::"));
    let one = || {
        let told = Command::new(program).arg("/proc/self/cgroup").output().unwrap();
        let told = String::from_utf8_lossy(&told.stdout);
        usize::from(told.lines().any(|line| of_pids(line) && line.ends_with(&end)))
    };
    let left = AtomicUsize::new(times);
    let next = || left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok();
    let each = || std::iter::from_fn(|| next().then(one)).sum::<usize>();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..16).map(|_| scope.spawn(each)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    })
}

fn starts() -> usize {
    std::env::var("RF_STARTS").map_or(1600, |starts| starts.parse().unwrap())
}

fn in_group() {
    let (world, group, program) = world();
    let daemon = world.daemon(&[PATIENT]);
    daemon.wait_for_log("strict rules are in force", 1);
    let starts = starts();
    let there = share(&program, &group, starts);
    eprintln!("{there} of {starts} starts in the group");
    assert_eq!(there, starts, "{}", daemon.log());
    daemon.end();
    // nobody holds it any more
    assert_eq!(share(&program, &group, 16), 0);
}

/// While the daemon is stopped nobody but the gate moves it: it can't have come there a moment after its start.
fn alone() {
    let (world, group, program) = world();
    let daemon = world.daemon(&[PATIENT]);
    daemon.wait_for_log("strict rules are in force", 1);
    daemon.signal(Signal::STOP);
    let stopped = || {
        let stat = fs::read_to_string(format!("/proc/{}/stat", daemon.pid())).unwrap();
        stat.rsplit_once(") ").unwrap().1.starts_with('T')
    };
    crate::world::eventually("it is stopped", stopped);
    let starts = starts() / 10;
    let there = share(&program, &group, starts);
    daemon.signal(Signal::CONT);
    eprintln!("{there} of {starts} starts in the group by the gate alone");
    assert_eq!(there, starts, "{}", daemon.log());
    daemon.end();
}

/// The kernel leaves no way to bound a start while root keeps the gate frozen on v1: who makes such a rule gets a warning.
fn shells() {
    let mut world = World::new();
    let (group, program) = (world.group_name("strict"), world.directory.join("bash"));
    fs::copy("/bin/sh", &program).unwrap();
    let text = format!(
        "[groups.{group}]\npids.max = 500\nmatch = [{{ process = \"{}\", strict = true }}]\n",
        program.display()
    );
    world.write("layout.toml", &text);
    let daemon = world.daemon(&[PATIENT]);
    daemon.wait_for_log(classify::STRICT_SHELL, 1);
    assert!(daemon.log().contains("layout.toml:3"), "{}", daemon.log());
    daemon.end();
    let limits = events::Limits::default();
    let watched = (limits.period + limits.answer).as_secs_f64();
    let unwatched = (limits.unwatched() * 2).as_secs_f64();
    let documented = include_str!("../../../../../docs/rules.md");
    for row in [
        format!("| the gate is killed, stopped, frozen on cgroup v2, or hangs | {watched} s:"),
        format!("| daemon and gate are both stopped (SIGSTOP), or frozen on cgroup v2 | {unwatched} s:"),
        "| root moves the gate into a freezer group of cgroup v1 by hand and freezes it | until it is thawed |"
            .to_owned(),
    ] {
        assert!(documented.contains(&row), "{row}");
    }
    assert!(classify::STRICT_SHELL.contains(&format!("up to {unwatched} s")));
    assert!(
        classify::STRICT_SHELL
            .contains("without limit while root keeps the gate in a frozen v1 freezer group")
    );
}

fn gone() {
    let (world, group, program) = world();
    let daemon = world.daemon(&[]);
    daemon.wait_for_log("strict rules are in force", 1);
    assert_ne!(share(&program, &group, 16), 0);
    daemon.signal(Signal::STOP);
    let start = Instant::now();
    share(&program, &group, 16);
    daemon.signal(Signal::CONT);
    daemon.kill();
    share(&program, &group, 16);
    // far above the watchdog's limit, far below for ever
    assert!(start.elapsed() < Duration::from_secs(60));
}
