//! Strict rules beside a bare C probe that does nothing but move and answer: how many programs are in their group when
//! their main() starts, and what that adds to each start. The same program is started by the same storm, in turns with
//! nothing that holds it, with the probe, and with the daemon; only one of them runs at a time.

use std::{
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use settings::Controller;

use crate::{
    followed::{Followed, Machine},
    groups::{GROUP, Groups},
    interrupt,
    probes::{Probes, Storm},
};

/// The largest ratio of the added times that we want.
pub const GOAL: f64 = 1.3;

/// Turns of each side, and starts of each turn.
const TURNS: usize = 40;
const EXECS: u32 = 250;
/// Of each turn, before anything counts.
const WARM_UP: u32 = 32;
/// How long a gate may take to hold.
const READY: Duration = Duration::from_secs(20);

/// What one side did, or nobody.
#[derive(Default)]
pub struct Done {
    pub execs: u32,
    /// Outside of the group at main().
    pub outside: u32,
    /// Of each turn, from the storm's start to its end, per start.
    pub times: Vec<Duration>,
}

/// A row: where the program goes, and how many start at a time.
#[derive(Clone, Copy)]
pub struct Start {
    pub controller: Controller,
    /// The controller, as rules name it.
    pub name: &'static str,
    pub width: u32,
}

/// Added to a start, in microseconds: the median of the turns' differences, and the middle half of them.
pub struct Added {
    pub median: f64,
    quarter: f64,
    three_quarters: f64,
}

/// What nobody, the probe and ours did.
pub struct Sides {
    pub free: Done,
    pub probe: Done,
    pub ours: Done,
}

struct Scene {
    // in the order of their ends
    machine: Machine,
    probes: Probes,
    _groups: Groups,
    line: String,
    tasks: PathBuf,
    gated: PathBuf,
    width: u32,
}

impl Start {
    pub fn all() -> Vec<Start> {
        let mut all = Vec::new();
        for (controller, name) in [(Controller::Pids, "pids"), (Controller::Cpuset, "cpuset")] {
            all.extend([16, 1].map(|width| Start { controller, name, width }));
        }
        all
    }

    pub fn name(&self) -> String {
        format!("strict, {}, {} at a time", self.name, self.width)
    }
}

pub fn measure(program: &Path, start: Start) -> Result<Sides, String> {
    let scene = Scene::new(start)?;
    let mut sides: [Done; 3] = Default::default();
    for turn in 0..TURNS {
        // each comes first, second and last
        for side in (0..3).map(|place| (place + turn) % 3) {
            scene.turn(program, side, &mut sides[side])?;
        }
    }
    let [free, probe, ours] = sides;
    if free.outside != free.execs {
        return Err("without a gate some were in the group too".to_owned());
    }
    Ok(Sides { free, probe, ours })
}

impl Sides {
    /// What the probe and ours add to a start.
    pub fn added(&self) -> [Added; 2] {
        [&self.probe, &self.ours].map(|side| {
            let micros = |time: &Duration| time.as_secs_f64() * 1e6;
            let turns = side.times.iter().zip(&self.free.times);
            let mut added: Vec<f64> = turns.map(|(gated, free)| micros(gated) - micros(free)).collect();
            added.sort_unstable_by(f64::total_cmp);
            let at = |part: usize| added[added.len() * part / 4];
            Added { quarter: at(1), median: at(2), three_quarters: at(3) }
        })
    }
}

impl Added {
    pub fn shown(&self) -> String {
        format!("+{:.0} ({:.0}-{:.0})", self.median, self.quarter, self.three_quarters)
    }
}

impl Scene {
    fn new(Start { controller, name, width }: Start) -> Result<Scene, String> {
        let (machine, probes, groups) = (Machine::new()?, Probes::compile()?, Groups::new()?);
        groups.make(GROUP, &[controller])?;
        if controller == Controller::Cpuset {
            groups.fill_cpuset(GROUP)?;
        }
        let place = groups.place(GROUP, controller)?;
        let gated = probes.unique("in_group")?;
        let rule = format!(
            "[[rules]]\nprocess = {:?}\nstrict = true\nto = [{{ group = \"{GROUP}\", controllers = [\"{name}\"] }}]\n",
            gated.display().to_string()
        );
        machine.write("etc/rules.toml", &rule)?;
        let (line, tasks) = (place.line, place.directory.join("cgroup.procs"));
        Ok(Scene { machine, probes, _groups: groups, line, tasks, gated, width })
    }

    fn turn(&self, program: &Path, side: usize, done: &mut Done) -> Result<(), String> {
        let mut gate = match side {
            0 => None,
            1 => {
                let mut probe = Command::new(self.probes.path("exec_gate"));
                Some(Followed::start(probe.arg(&self.gated).arg(&self.tasks))?)
            }
            _ => Some(self.machine.ours(program, "/etc/rules.toml")?),
        };
        match &mut gate {
            Some(gate) => self.ready(gate)?,
            None => _ = self.storm(WARM_UP)?,
        }
        let storm = self.storm(EXECS)?;
        if let Some(gate) = &mut gate {
            gate.check()?;
        }
        if side == 2 && storm.outside > 0 {
            eprintln!(
                "bench: {} outside at main(), the daemon's log:\n{}",
                storm.outside,
                self.machine.log()
            );
        }
        done.execs += storm.execs;
        done.outside += storm.outside;
        done.times.push(storm.total / storm.execs.max(1));
        Ok(())
    }

    fn storm(&self, execs: u32) -> Result<Storm, String> {
        self.probes.storm([execs, self.width], None, &self.gated, &[&self.line])
    }

    /// Waits until starts are gated.
    fn ready(&self, gate: &mut Followed) -> Result<(), String> {
        let deadline = Instant::now() + READY;
        // one alone may be in the group by luck
        while self.storm(WARM_UP)?.outside > 0 {
            gate.check()?;
            interrupt::check()?;
            if Instant::now() > deadline {
                return Err("no start is gated".to_owned());
            }
        }
        Ok(())
    }
}
