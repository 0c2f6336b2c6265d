//! A day in miniature: programs start without a pause while the configuration is read anew, the layout changes and the
//! daemon is killed. Nobody who lives is left out, and the daemon does not grow.
//!
//! `RF_SOAK` says how many seconds that goes on:
//! `RF_SOAK=900 cargo test -p ringfence-daemon --test daemon -- a_storm --nocapture`.

use std::{
    collections::VecDeque,
    fs,
    path::Path,
    process::{Command, Stdio},
    sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    time::{Duration, Instant},
};

use rustix::process::Signal;

use crate::{
    Case,
    world::{Daemon, Running, World, eventually},
};

pub fn trials() -> Vec<Case> {
    vec![("a_storm_with_reloads_layout_changes_and_kills_loses_nobody", storm)]
}

/// Long-lived processes at a time.
const LONG: usize = 60;

fn seconds() -> Duration {
    Duration::from_secs(std::env::var("RF_SOAK").map_or(20, |seconds| seconds.parse().unwrap()))
}

/// What of a process may grow.
#[derive(Debug, Clone, Copy)]
struct Size {
    /// kB.
    resident: u64,
    descriptors: usize,
}

impl Size {
    /// The least of some looks: while it checks what is kept it has more files open than at rest.
    fn of(daemon: &Daemon) -> Size {
        let looks = std::iter::repeat_with(|| {
            std::thread::sleep(Duration::from_millis(20));
            Size::now(daemon)
        });
        let least = |one: Size, other: Size| Size {
            resident: one.resident.min(other.resident),
            descriptors: one.descriptors.min(other.descriptors),
        };
        looks.take(20).reduce(least).expect("there are twenty")
    }

    fn now(daemon: &Daemon) -> Size {
        let status = fs::read_to_string(format!("/proc/{}/status", daemon.pid())).unwrap();
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        Size {
            resident: resident.trim().trim_end_matches(" kB").parse().unwrap(),
            descriptors: fs::read_dir(format!("/proc/{}/fd", daemon.pid())).unwrap().count(),
        }
    }
}

/// Two groups and what belongs into each; what changes from layout to layout is a limit, and a third group that comes and
/// goes.
fn layout(groups: &[String; 3], programs: [&Path; 2], change: usize) -> String {
    let group = |index: usize| {
        let (group, program) = (&groups[index], programs[index].display());
        let limit = 5000 + change % 7;
        format!("[groups.{group}]\npids.max = {limit}\nmatch = [{{ process = \"{program}\" }}]\n")
    };
    let third = if change.is_multiple_of(2) {
        format!("[groups.{}]\npids.max = 9\n", groups[2])
    } else {
        String::new()
    };
    group(0) + &group(1) + &third
}

struct Traffic<'w> {
    short: &'w Path,
    long: &'w Path,
    started: AtomicUsize,
    over: AtomicBool,
}

impl Traffic<'_> {
    /// Short ones without a pause, some at a time; every now and then a long one, of which the oldest goes.
    fn run(&self) {
        let mut long: VecDeque<Running> = VecDeque::new();
        while !self.over.load(Relaxed) {
            let some: Vec<_> =
                (0..8).map(|_| Command::new(self.short).stdin(Stdio::null()).spawn().unwrap()).collect();
            some.into_iter().for_each(|mut one| _ = one.wait().unwrap());
            if self.started.fetch_add(8, Relaxed).is_multiple_of(64) {
                long.push_back(Running::start(self.long, &["3600"]));
            }
            if long.len() > LONG {
                long.pop_front();
            }
        }
    }
}

fn storm() {
    let mut world = World::new();
    let groups = ["short", "long", "third"].map(|last| world.group_name(last));
    let (short, long) = (world.copy("true", "short"), world.copy("sleep", "long"));
    let write = |change| world.write("layout.toml", &layout(&groups, [&short, &long], change));
    write(0);
    let traffic =
        Traffic { short: &short, long: &long, started: AtomicUsize::new(0), over: AtomicBool::new(false) };
    let end = Instant::now() + seconds();
    let (mut changes, mut kills) = (0, 0);
    let mut daemon = world.daemon(&["keep=repair", "every=500"]);
    // ends the traffic also where a check fails
    struct Over<'o>(&'o AtomicBool);
    impl Drop for Over<'_> {
        fn drop(&mut self) {
            self.0.store(true, Relaxed);
        }
    }
    std::thread::scope(|scope| {
        let _over = Over(&traffic.over);
        scope.spawn(|| traffic.run());
        let mut turn = |daemon: &Daemon| {
            for _ in 0..5 {
                changes += 1;
                write(changes);
                let reloads = daemon.log().matches("reloaded rules=").count();
                daemon.signal(Signal::HUP);
                daemon.wait_for_log("reloaded rules=", reloads + 1);
            }
            all_there(&world, &long, &groups[1]);
        };
        // in the first half it is killed again and again, in the second it has to last; a turn may take longer than a half
        // where the disk is slow, as every layout is on it before it is applied
        while kills == 0 || Instant::now() < end - seconds() / 2 {
            turn(&daemon);
            kills += 1;
            daemon.kill();
            fs::remove_file(world.directory.join("log")).unwrap();
            daemon = world.daemon(&["keep=repair", "every=500"]);
        }
        turn(&daemon);
        let early = Size::of(&daemon);
        turn(&daemon);
        while Instant::now() < end {
            turn(&daemon);
        }
        let late = Size::of(&daemon);
        eprintln!(
            "{} short ones, {changes} layouts, {kills} kills; {early:?} in the middle, {late:?} at the end",
            traffic.started.load(Relaxed)
        );
        assert!(late.descriptors <= early.descriptors + 2, "{early:?} {late:?}");
        assert!(late.resident <= early.resident + early.resident / 4 + 1024, "{early:?} {late:?}");
        all_there(&world, &long, &groups[1]);
        daemon.end();
    });
}

/// Whoever runs this is in the group, or soon is.
fn all_there(world: &World, program: &Path, group: &str) {
    let out = || {
        let place = |pid: &u32| world.place(*pid).is_some_and(|place| place != group);
        world.running(program).into_iter().filter(place).collect::<Vec<_>>()
    };
    // a process that starts while it is looked at is in nobody's way
    let mut last = out();
    eventually("each long one in its group", || {
        let now = out();
        last.retain(|pid| now.contains(pid));
        last.is_empty()
    });
}
