//! Strict rules beside a bare C probe that does nothing but move and answer: how many programs are in their group when
//! their main() starts, and what that adds to each start. The same program is started by the same storm, in turns with
//! nothing that holds it, with the probe, and with the daemon; only one of them runs at a time.

use std::{
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use settings::Controller;

use crate::{
    Selection,
    followed::{Followed, Machine},
    groups::{GROUP, Groups},
    measure::{Done, Numbers, in_turns, until},
    probes::{Probes, Storm},
};

/// The largest ratio of the added times that we want.
const GOAL: f64 = 1.3;

/// Turns of each side, and starts of each turn.
const TURNS: usize = 40;
const EXECS: u32 = 250;
/// Of each turn, before anything counts.
const WARM_UP: u32 = 32;
/// How long a gate may take to hold.
const READY: Duration = Duration::from_secs(20);

/// What one side did, or nobody.
#[derive(Default)]
struct Gated {
    execs: u32,
    /// Outside of the group at main().
    outside: u32,
    /// Of each turn, from the storm's start to its end, per start.
    times: Vec<Duration>,
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

pub fn rows(selection: &Selection) -> Done {
    for (controller, name) in [(Controller::Pids, "pids"), (Controller::Cpuset, "cpuset")] {
        for width in [16, 1] {
            let row = format!("strict, {name}, {width} at a time");
            if selection.wants(&row) {
                show_added(&row, &measure(&selection.program, controller, name, width)?);
            }
        }
    }
    Ok(())
}

/// What nobody, the probe and ours did.
fn measure(program: &Path, controller: Controller, name: &str, width: u32) -> Done<[Gated; 3]> {
    let scene = Scene::new(controller, name, width)?;
    let mut sides: [Gated; 3] = Default::default();
    in_turns(TURNS, 3, |_, side| scene.turn(program, side, &mut sides[side]))?;
    match sides[0].outside == sides[0].execs {
        true => Ok(sides),
        false => Err("without a gate some were in the group too".to_owned()),
    }
}

/// What the probe and ours add to a start, in microseconds.
fn show_added(row: &str, [free, probe, ours]: &[Gated; 3]) {
    let at_main = |side: &Gated| format!("{}/{}", side.execs - side.outside, side.execs);
    let added = |side: &Gated| {
        let micros = |time: &Duration| time.as_secs_f64() * 1e6;
        let turns = side.times.iter().zip(&free.times);
        Numbers::of(turns.map(|(gated, free)| micros(gated) - micros(free)).collect())
    };
    let (of_ours, of_probe) = (added(ours), added(probe));
    let more = format!(
        "  at main() {} / {}, without {}",
        at_main(ours),
        at_main(probe),
        Numbers::micros(&free.times).shown(0)
    );
    let ratio = of_ours.median / of_probe.median;
    let [ours, probe] = [of_ours, of_probe].map(|added| format!("+{}", added.shown(0)));
    println!("{row:40} {ours:>26} {probe:>26} {ratio:>6.2} {GOAL:>5.2}{more}");
}

impl Scene {
    fn new(controller: Controller, name: &str, width: u32) -> Done<Scene> {
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

    fn turn(&self, program: &Path, side: usize, done: &mut Gated) -> Done {
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

    fn storm(&self, execs: u32) -> Done<Storm> {
        self.probes.storm([execs, self.width], None, &self.gated, &[&self.line])
    }

    /// Waits until starts are gated.
    fn ready(&self, gate: &mut Followed) -> Done {
        // one alone may be in the group by luck
        until(READY, Duration::ZERO, "start is gated", || {
            gate.check()?;
            Ok(self.storm(WARM_UP)?.outside == 0)
        })
    }
}
