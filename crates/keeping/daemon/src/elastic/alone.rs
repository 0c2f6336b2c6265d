//! Resizes groups that no layout in effect has: an experiment's. What decides, samples and writes is what the daemon has;
//! nothing is recorded.

use std::{
    os::unix::net::UnixStream,
    rc::Rc,
    time::{Duration, Instant},
};

use apply::{Originals, Running, Target};
use kernel::{Host, Real};
use monitor::Cadence;
use policy::{Parameters, Scope};
use topology::Machine;
use units::CpuSet;

use super::{part::Start, pool::Pool, states::States};
use crate::worker::Worker;

/// A change of a group's CPUs.
#[derive(Debug, Clone)]
pub struct Resized {
    /// When it was written.
    pub at: Instant,
    /// Whose.
    pub group: String,
    /// What it had.
    pub from: CpuSet,
    /// What it got.
    pub to: CpuSet,
    /// Why it was not written after all.
    pub refused: Option<String>,
}

/// Resizes some groups, on a thread of its own. Dropped, it ends; the groups have what they had last.
#[derive(Debug)]
pub struct Resizer(Worker<Result<Vec<Resized>, String>>);

impl Resizer {
    /// Begins with the CPUs that the groups have, or with the static division if these are none that the policy makes.
    ///
    /// # Errors
    /// There is no thread or descriptor.
    pub fn start(scope: Scope) -> std::io::Result<Resizer> {
        Worker::start("elastic", move |stopped| run(&scope, stopped)).map(Resizer)
    }

    /// Ends it. All changes, in their order.
    ///
    /// # Errors
    /// In words, what prevented it from resizing.
    pub fn end(self) -> Result<Vec<Resized>, String> {
        self.0.end().unwrap_or_else(|| Err("its thread panicked".to_owned()))
    }
}

fn run(scope: &Scope, stopped: &UnixStream) -> Result<Vec<Resized>, String> {
    let host = Host::even_without_hierarchies(Box::new(Real::new())).map_err(|error| error.to_string())?;
    let machine = Machine::live().map_err(|error| error.to_string())?;
    let numbers = Parameters::default();
    let period = Duration::from_secs_f64(numbers.period);
    let running = Running::new();
    let target = Target { host: &host, system: &running };
    let originals = Rc::new(Originals::none());
    let mut start =
        Start { target, originals: originals.clone(), changes: Vec::new(), left_alone: Vec::new() };
    let pool = Pool::find(&mut start, &machine, scope, &numbers)?;
    let mut pool = pool.map_err(|error| error.to_string())?;
    if let Some(left) = start.left_alone.first() {
        return Err(left.to_string());
    }
    let mut states = States::new(&host, pool.groups.clone());
    let no_timer = |errno| format!("no timer: {}", kernel::describe(errno));
    let mut cadence = Cadence::new(period).map_err(no_timer)?;
    let (mut now, mut all) = (Duration::ZERO, Vec::new());
    while let Some(beat) = cadence.until(stopped).map_err(no_timer)? {
        now += period * (1 + u32::try_from(beat.missed).unwrap_or(u32::MAX));
        states.look(&host);
        for decision in pool.policy.tick(now, states.all()) {
            let refused = apply::resize(target, &originals, &pool.groups[decision.group], &decision.to).err();
            if refused.is_some() {
                pool.policy.refused(now, &decision);
            }
            let refused = refused.map(|error| error.to_string());
            let (group, at) = (decision.name, Instant::now());
            all.push(Resized { at, group, from: decision.from, to: decision.to, refused });
        }
    }
    Ok(all)
}
