//! The daemon beside `cgrulesengd` or an earlier build of ours, on the same rules: which share of short processes is in the group at their end, and
//! what a process costs the daemon. One of the two runs at a time, in turns.
//!
//! For a user's rule each process becomes that user by setuid(2) before its exec, as from a login or cron: the storm's own
//! process stays outside, or its children would be born in the group.

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use settings::Controller;

use crate::{
    followed::{Followed, Machine, USER},
    groups::{GROUP, Groups},
    interrupt,
    measure::Times,
    probes::{Probes, Storm},
};

/// The largest ratio of the daemons' CPU time per process that we want.
pub const GOAL: f64 = 0.6;

/// Turns of each side, and processes of each turn.
const TURNS: usize = 10;
const EXECS: u32 = 500;
/// Of each turn, before anything counts.
const WARM_UP: u32 = 32;
/// How long a daemon may take to follow its rules, and to have done all.
const READY: Duration = Duration::from_secs(20);
const DONE: Duration = Duration::from_secs(10);

/// What the rule looks at.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum By {
    Process,
    User,
}

/// A row: what is done while the daemons run.
#[derive(Clone, Copy)]
pub struct Load {
    pub by: By,
    pub life: Duration,
    pub width: u32,
}

/// What one side did.
#[derive(Default)]
pub struct Done {
    execs: u32,
    outside: u32,
    /// Of a turn's process.
    cpu: Vec<Duration>,
}

/// All that the rows share.
pub struct Scene {
    // in the order of their ends
    machine: Machine,
    probes: Probes,
    _groups: Groups,
    line: String,
    destination: String,
    program: PathBuf,
    daemons: [Daemon; 2],
}

/// One side.
enum Daemon {
    Ours(PathBuf),
    Libcgroup,
}

impl Load {
    pub fn all() -> Vec<Load> {
        let mut all = Vec::new();
        for by in [By::Process, By::User] {
            for life in [0, 1, 20] {
                let life = Duration::from_millis(life);
                all.extend([1, 16].map(|width| Load { by, life, width }));
            }
        }
        all
    }

    pub fn name(&self) -> String {
        let by = if self.by == By::Process { "process" } else { "user" };
        format!("daemon, {by}, {} ms, {} at a time", self.life.as_millis(), self.width)
    }
}

impl Done {
    fn add(&mut self, storm: &Storm, cpu: Duration) {
        self.execs += storm.execs;
        self.outside += storm.outside;
        self.cpu.push(cpu / storm.execs.max(1));
    }

    /// The processes that were in the group at their end, in percent.
    pub fn moved(&self) -> f64 {
        100.0 * f64::from(self.execs - self.outside) / f64::from(self.execs.max(1))
    }

    /// The daemon's CPU time per process.
    pub fn cpu(self) -> Times {
        Times::of(self.cpu)
    }
}

impl Scene {
    /// With `before`, that program's daemon is the peer.
    pub fn new(program: PathBuf, before: Option<PathBuf>) -> Result<Scene, String> {
        let (machine, probes, groups) = (Machine::new()?, Probes::compile()?, Groups::new()?);
        groups.make(GROUP, &[Controller::Pids])?;
        let place = groups.place(GROUP, Controller::Pids)?;
        let daemons = [Daemon::Ours(program), before.map_or(Daemon::Libcgroup, Daemon::Ours)];
        let program = probes.unique("late")?;
        let (line, destination) = (place.line, place.destination);
        Ok(Scene { machine, probes, _groups: groups, line, destination, program, daemons })
    }

    /// What ours and the peer did.
    pub fn run(&self, load: Load) -> Result<[Done; 2], String> {
        self.follow(load.by)?;
        let mut done: [Done; 2] = Default::default();
        for turn in 0..TURNS {
            for side in [turn % 2, 1 - turn % 2] {
                let (storm, cpu) = self.turn(self.start(side)?, load)?;
                done[side].add(&storm, cpu);
            }
        }
        Ok(done)
    }

    fn turn(&self, mut daemon: Followed, load: Load) -> Result<(Storm, Duration), String> {
        let user = (load.by == By::User).then_some(self.machine.user);
        self.ready(&mut daemon, user)?;
        let life = load.life.as_micros().to_string();
        let words = [life.as_str(), &self.line];
        let storm = |execs| self.probes.storm([execs, load.width], user, &self.program, &words);
        storm(WARM_UP)?;
        daemon.rest(DONE)?;
        let before = daemon.cpu()?;
        let storm = storm(EXECS)?;
        daemon.rest(DONE)?;
        Ok((storm, daemon.cpu()?.saturating_sub(before)))
    }

    /// How many long-lived processes, started in a burst of short ones, are outside 2 s after.
    pub fn left_out(&self, side: usize) -> Result<u64, String> {
        self.follow(By::Process)?;
        let mut daemon = self.start(side)?;
        self.ready(&mut daemon, None)?;
        let wait = Duration::from_secs(2);
        let left = self.probes.burst([BURST, LONG], wait, &self.program, &self.line)?;
        daemon.check()?;
        Ok(left)
    }

    fn start(&self, side: usize) -> Result<Followed, String> {
        match &self.daemons[side] {
            Daemon::Ours(program) => self.machine.ours(program, "/etc/cgrules.conf"),
            Daemon::Libcgroup => self.machine.peer(),
        }
    }

    fn follow(&self, by: By) -> Result<(), String> {
        let name = self.program.file_name().unwrap_or_default().display();
        let who = match by {
            By::Process => format!("*:{name}"),
            By::User => USER.to_owned(),
        };
        self.machine.write("etc/cgrules.conf", &format!("{who} pids {}\n", self.destination))
    }

    /// Waits until processes are moved.
    fn ready(&self, daemon: &mut Followed, user: Option<u32>) -> Result<(), String> {
        let deadline = Instant::now() + READY;
        loop {
            let words = ["50000", self.line.as_str()];
            if self.probes.storm([1, 1], user, &self.program, &words)?.outside == 0 {
                return Ok(());
            }
            daemon.check()?;
            interrupt::check()?;
            if Instant::now() > deadline {
                return Err("the daemon moves no process".to_owned());
            }
        }
    }
}

/// The processes of a burst.
pub const BURST: u32 = 10_000;
/// The long-lived ones among them.
pub const LONG: u32 = 300;
