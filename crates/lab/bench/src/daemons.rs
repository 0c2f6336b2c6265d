//! The daemon beside `cgrulesengd` or an earlier build of ours, on the same rules: which share of short processes is in the group at their end, and
//! what a process costs the daemon. One of the two runs at a time, in turns.
//!
//! For a user's rule each process becomes that user by setuid(2) before its exec, as from a login or cron: the storm's own
//! process stays outside, or its children would be born in the group.

use std::{path::PathBuf, time::Duration};

use settings::Controller;

use crate::{
    Selection,
    followed::{Followed, Machine, USER},
    groups::{GROUP, Groups},
    measure::{Done, Numbers, in_turns, show, until},
    probes::{Probes, Storm},
};

/// The largest ratio of the daemons' CPU time per process that we want.
const GOAL: f64 = 0.6;

/// Turns of each side, and processes of each turn.
const TURNS: usize = 10;
const EXECS: u32 = 500;
/// Of each turn, before anything counts.
const WARM_UP: u32 = 32;
/// How long a daemon may take to follow its rules, and to have done all.
const READY: Duration = Duration::from_secs(20);
const DONE: Duration = Duration::from_secs(10);

/// Bursts that ours, and libcgroup's daemon, get through.
const BURSTS: [usize; 2] = [10, 2];
/// The processes of a burst, and the long-lived ones among them.
const BURST: u32 = 10_000;
const LONG: u32 = 300;

/// What one side did.
#[derive(Default)]
struct Moved {
    execs: u32,
    outside: u32,
    /// The daemon's CPU time per process, of each turn.
    cpu: Vec<Duration>,
}

/// All that the rows share.
struct Scene {
    // in the order of their ends
    machine: Machine,
    probes: Probes,
    _groups: Groups,
    line: String,
    destination: String,
    program: PathBuf,
    /// Our programs; `None` is libcgroup's daemon.
    daemons: [Option<PathBuf>; 2],
}

/// CPU time of the daemons per process: by what the rule looks at, how long the processes live, and how many start at a time.
pub fn rows(selection: &Selection) -> Done {
    let scene = Scene::new(selection)?;
    for (by, user) in [("process", None), ("user", Some(scene.machine.user))] {
        for (life, width) in [(0, 1), (0, 16), (1, 1), (1, 16), (20, 1), (20, 16)] {
            let name = format!("daemon, {by}, {life} ms, {width} at a time");
            if selection.wants(&name) {
                let [ours, peer] = scene.run(user, Duration::from_millis(life), width)?;
                let more = format!("  moved {:.1} % / {:.1} %", ours.percent(), peer.percent());
                let sides = [&Numbers::micros(&ours.cpu), &Numbers::micros(&peer.cpu)];
                show(&name, sides, 0, selection.goal(GOAL), &more);
            }
        }
    }
    Ok(())
}

/// How many long-lived processes, started in a burst of short ones, are outside 2 s after.
pub fn bursts(selection: &Selection) -> Done {
    let scene = Scene::new(selection)?;
    scene.follow(None)?;
    let mut left: [Vec<String>; 2] = Default::default();
    in_turns(BURSTS[0], 2, |run, side| {
        if run < BURSTS[side] {
            let mut daemon = scene.start(side)?;
            scene.ready(&mut daemon, None)?;
            let wait = Duration::from_secs(2);
            let outside = scene.probes.burst([BURST, LONG], wait, &scene.program, &scene.line)?;
            daemon.check()?;
            left[side].push(outside.to_string());
        }
        Ok(())
    })?;
    let [ours, peer] = left.map(|left| left.join(" "));
    println!("outside 2 s after a burst of {BURST}, of {LONG}: {ours} / {peer}, goal 0");
    Ok(())
}

impl Moved {
    /// The processes that were in the group at their end.
    fn percent(&self) -> f64 {
        100.0 * f64::from(self.execs - self.outside) / f64::from(self.execs.max(1))
    }
}

impl Scene {
    fn new(selection: &Selection) -> Done<Scene> {
        let (machine, probes, groups) = (Machine::new()?, Probes::compile()?, Groups::new()?);
        groups.make(GROUP, &[Controller::Pids])?;
        let place = groups.place(GROUP, Controller::Pids)?;
        let daemons = [Some(selection.program.clone()), selection.before.clone()];
        let program = probes.unique("late")?;
        let (line, destination) = (place.line, place.destination);
        Ok(Scene { machine, probes, _groups: groups, line, destination, program, daemons })
    }

    /// What ours and the peer did.
    fn run(&self, user: Option<u32>, life: Duration, width: u32) -> Done<[Moved; 2]> {
        self.follow(user)?;
        let life = life.as_micros().to_string();
        let words = [life.as_str(), &self.line];
        let storm = |execs| self.probes.storm([execs, width], user, &self.program, &words);
        let mut moved: [Moved; 2] = Default::default();
        in_turns(TURNS, 2, |_, side| {
            let mut daemon = self.start(side)?;
            self.ready(&mut daemon, user)?;
            storm(WARM_UP)?;
            daemon.rest(DONE)?;
            let before = daemon.cpu()?;
            let Storm { execs, outside, .. } = storm(EXECS)?;
            daemon.rest(DONE)?;
            moved[side].execs += execs;
            moved[side].outside += outside;
            moved[side].cpu.push(daemon.cpu()?.saturating_sub(before) / execs.max(1));
            Ok(())
        })?;
        Ok(moved)
    }

    fn start(&self, side: usize) -> Done<Followed> {
        match &self.daemons[side] {
            Some(program) => self.machine.ours(program, "/etc/cgrules.conf"),
            None => self.machine.peer(),
        }
    }

    /// The rule: of the user, or of the program.
    fn follow(&self, user: Option<u32>) -> Done {
        let name = self.program.file_name().unwrap_or_default().display();
        let who = user.map_or_else(|| format!("*:{name}"), |_| USER.to_owned());
        self.machine.write("etc/cgrules.conf", &format!("{who} pids {}\n", self.destination))
    }

    /// Waits until processes are moved.
    fn ready(&self, daemon: &mut Followed, user: Option<u32>) -> Done {
        let words = ["50000", self.line.as_str()];
        until(READY, Duration::ZERO, "process is moved", || {
            daemon.check()?;
            Ok(self.probes.storm([1, 1], user, &self.program, &words)?.outside == 0)
        })
    }
}
