//! The elastic groups of one layout: who has which CPUs, and each change of it, written and recorded.

use std::{
    os::unix::net::UnixStream,
    sync::atomic::Ordering::Relaxed,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use apply::{Controller as Said, Resize, Resizes, Resizing, Running, State, Target};
use kernel::{GroupName, Host};
use monitor::Cadence;
use policy::{Decision, Division as _, Elastic, Parameters, Policy, Scope, Units};
use topology::Machine;
use tracing::{info, warn};
use units::CpuSet;

use super::states::States;
use crate::{Counters, division::try_lock};

/// Why a controller is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// The daemon ends.
    Stopped,
    /// Another layout may be in effect, or somebody else changed a group's CPUs.
    Changed,
    /// No layout in effect has elastic groups.
    Nothing,
    /// Another change is under way, or was interrupted.
    Later,
}

/// The number of samples after which the groups are compared with what the policy knows: systemd and others write, too.
const LOOK: u64 = 10;

/// One pool with its groups.
pub(super) struct Part {
    pub policy: Policy,
    names: Vec<String>,
    pub groups: Vec<GroupName>,
    stopped: bool,
    /// Units that do not run have no group.
    missing: Vec<GroupName>,
}

/// All elastic groups of a layout.
pub(super) struct Controller<'h> {
    state: &'h State,
    host: &'h Host,
    resizes: Resizes,
    generation: u32,
    /// The history's, as long as nobody changes anything.
    stamp: Option<(i64, i64)>,
    parts: Vec<Part>,
    states: States,
    period: Duration,
}

impl<'h> Controller<'h> {
    /// For the layout in effect, from the CPUs that its groups have; or why there is nothing to do now.
    ///
    /// # Errors
    /// In words: the history or the machine can't be read, or the machine can't give what the layout guarantees.
    pub fn find(state: &'h State, host: &'h Host) -> Result<Result<Controller<'h>, End>, String> {
        let running = Running::new();
        let target = Target { host, system: &running };
        let failed = |failure: apply::Failure| failure.to_string();
        let stamp = state.stamp();
        // a change under way, or an interrupted one: what it leaves is looked at after it
        let Some(_lock) = try_lock(state).map_err(failed)? else { return Ok(Err(End::Later)) };
        if apply::unfinished(state, target).map_err(failed)?.is_some() {
            return Ok(Err(End::Later));
        }
        let head = apply::layout_in_effect(state, target).map_err(failed)?;
        let Some(head) = head.filter(|head| !head.elastic.is_empty()) else { return Ok(Err(End::Nothing)) };
        let machine = Machine::live().map_err(|error| error.to_string())?;
        let numbers = Parameters::default();
        let period = Duration::from_secs_f64(numbers.period);
        let parts = head.elastic.iter().map(|scope| part(host, &machine, scope, &numbers));
        let parts = parts.collect::<Result<Vec<Part>, String>>()?;
        let groups = parts.iter().flat_map(|part| part.groups.iter().cloned());
        let states = States::new(host, groups.collect());
        let (generation, resizes) = (head.generation, Resizes::of(state));
        Ok(Ok(Controller { state, host, resizes, generation, stamp, parts, states, period }))
    }

    /// The generation of the layout.
    pub fn generation(&self) -> u32 {
        self.generation
    }

    /// The groups, for the log.
    pub fn names(&self) -> String {
        let names: Vec<&str> = self.parts.iter().flat_map(|part| &part.names).map(String::as_str).collect();
        names.join(", ")
    }

    /// Resizes until something ends it.
    ///
    /// # Errors
    /// In words, what prevents it.
    pub fn run(
        &mut self,
        counters: &Counters,
        stopped: &UnixStream,
        resizing: &mut Resizing,
    ) -> Result<End, String> {
        let mut said = Said { pid: std::process::id(), generation: Some(self.generation), stopped: None };
        resizing.say(&said);
        let no_timer = |errno| format!("no timer: {}", kernel::describe(errno));
        let mut cadence = Cadence::new(self.period).map_err(no_timer)?;
        let (mut is_paused, resumed) = (false, self.resizes.resumed());
        let (mut now, mut samples) = (Duration::ZERO, 0);
        while let Some(beat) = cadence.until(stopped).map_err(no_timer)? {
            now += self.period * (1 + u32::try_from(beat.missed).unwrap_or(u32::MAX));
            if self.state.stamp() != self.stamp {
                return Ok(End::Changed);
            }
            let was_paused = std::mem::replace(&mut is_paused, self.resizes.is_paused());
            if is_paused != was_paused {
                info!("{}", if is_paused { "resizing is paused" } else { "resizing goes on after a pause" });
            }
            if is_paused {
                continue;
            }
            if was_paused || self.resizes.resumed() != resumed {
                return Ok(End::Changed);
            }
            samples += 1;
            if samples % LOOK == 0 && self.is_changed()? {
                return Ok(End::Changed);
            }
            self.states.look(self.host, beat).map_err(|error| error.to_string())?;
            let mut first = 0;
            for index in 0..self.parts.len() {
                let part = &mut self.parts[index];
                let states = &self.states.all()[first..first + part.groups.len()];
                first += part.groups.len();
                let decisions = part.policy.tick(now, states);
                if !decisions.is_empty() && !self.carry_out(index, &decisions, counters, now)? {
                    return Ok(End::Changed);
                }
                let part = &mut self.parts[index];
                if part.policy.has_stopped() && !std::mem::replace(&mut part.stopped, true) {
                    Counters::count(&counters.given_up);
                    let why = "too many changes were refused or did harm within a minute".to_owned();
                    warn!(
                        "resizing has ended, and the static shares return: {why}; ringfence resume starts it again"
                    );
                    said.stopped = Some(why);
                    resizing.say(&said);
                }
            }
        }
        Ok(End::Stopped)
    }

    /// Has a group other CPUs than the policy knows?
    fn is_changed(&self) -> Result<bool, String> {
        for part in &self.parts {
            for (index, group) in part.groups.iter().enumerate() {
                let cpus = cpus_of(self.host, group)?;
                if cpus.as_ref() != Some(&part.policy.cpus(index)) {
                    let now = cpus.map_or("it is gone".to_owned(), |cpus| {
                        format!("somebody else gave it the CPUs {cpus}")
                    });
                    info!("{}: {now}", part.names[index]);
                    return Ok(true);
                }
            }
            for group in &part.missing {
                if cpus_of(self.host, group)?.is_some() {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// False if the groups are no longer as the policy knows them.
    fn carry_out(
        &mut self,
        part: usize,
        decisions: &[Decision],
        counters: &Counters,
        now: Duration,
    ) -> Result<bool, String> {
        // an apply or undo is under way: what it makes of the groups is looked at after it
        let Some(_lock) = try_lock(self.state).map_err(|failure| failure.to_string())? else {
            let part = &mut self.parts[part];
            decisions.iter().rev().for_each(|decision| part.policy.withdraw(decision));
            return Ok(true);
        };
        if self.state.stamp() != self.stamp {
            return Ok(false);
        }
        let running = Running::new();
        let target = Target { host: self.host, system: &running };
        for decision in decisions {
            let part = &mut self.parts[part];
            let group = &part.groups[decision.group];
            if cpus_of(self.host, group)?.as_ref() != Some(&decision.from) {
                return Ok(false);
            }
            let refused = apply::resize(target, group, &decision.to).err().map(|error| error.to_string());
            match &refused {
                None => {
                    counters.resizes.fetch_add(1, Relaxed);
                    info!("{decision}");
                }
                Some(why) => {
                    counters.resizes_refused.fetch_add(1, Relaxed);
                    warn!("{decision}: {why}");
                    part.policy.refused(now, decision);
                }
            }
            let resize = resize(self.generation, decision, refused);
            if let Err(failure) = self.resizes.add(&resize) {
                warn!("{failure}");
            }
        }
        Ok(true)
    }
}

/// `None`: there is no such group.
fn cpus_of(host: &Host, group: &GroupName) -> Result<Option<CpuSet>, String> {
    match apply::cpus_of(host, group) {
        Ok(cpus) => Ok(Some(cpus)),
        Err(_) if host.seats(group).is_empty() => Ok(None),
        Err(error) => Err(error.to_string()),
    }
}

fn resize(generation: u32, decision: &Decision, refused: Option<String>) -> Resize {
    let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Resize {
        at: u64::try_from(at.as_millis()).unwrap_or(u64::MAX),
        generation,
        group: decision.name.clone(),
        from: decision.from.clone(),
        to: decision.to.clone(),
        why: decision.reason.to_string(),
        numbers: serde_json::to_value(decision.reason).unwrap_or_default(),
        refused,
    }
}

/// Starts with what the groups have. What is not made of whole cores, or overlaps, as a plan or a user may have left it,
/// becomes the static division first.
pub(super) fn part(
    host: &Host,
    machine: &Machine,
    scope: &Scope,
    numbers: &Parameters,
) -> Result<Part, String> {
    let units = Units::of(machine, &scope.pool).map_err(|error| error.to_string())?;
    let (mut elastic, mut groups, mut sets, mut missing) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for one in &scope.groups {
        let group = GroupName::new(scope.directory(one)).map_err(|error| error.to_string())?;
        match cpus_of(host, &group)? {
            Some(cpus) => {
                elastic.push(one.clone());
                groups.push(group);
                sets.push(cpus);
            }
            None => missing.push(group),
        }
    }
    let policy = match Policy::with_sets(&elastic, units.clone(), numbers.clone(), &sets) {
        Ok(policy) => policy,
        Err(why) => {
            info!("the static shares first: {why}");
            let policy = Policy::new(&elastic, units, numbers.clone()).map_err(|error| error.to_string())?;
            let shares = (0..groups.len()).map(|index| policy.cpus(index));
            give(host, &groups, &sets, &shares.collect::<Vec<CpuSet>>())?;
            policy
        }
    };
    let names = elastic.into_iter().map(|group: Elastic| group.name).collect();
    Ok(Part { policy, names, groups, stopped: false, missing })
}

/// Gives groups other sets, each by one that has both: no group is ever without CPUs.
fn give(host: &Host, groups: &[GroupName], from: &[CpuSet], to: &[CpuSet]) -> Result<(), String> {
    let running = Running::new();
    for ((group, from), to) in groups.iter().zip(from).zip(to).filter(|((_, from), to)| from != to) {
        for step in [&from.union(to), to] {
            let resized = apply::resize(Target { host, system: &running }, group, step);
            resized.map_err(|error| error.to_string())?;
        }
    }
    Ok(())
}
