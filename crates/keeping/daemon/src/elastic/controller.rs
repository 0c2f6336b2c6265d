//! The elastic groups of one layout: a loop over its parts, and each change of them, written and recorded.

use std::{
    collections::{BTreeMap, BTreeSet},
    os::unix::net::UnixStream,
    rc::Rc,
    time::Duration,
};

use apply::{
    Again, Controller as Said, Ended, Followed, Frequencies, Head, LeftAlone, Originals, Resize, Resizes,
    Resizing, Running, State, Target,
};
use kernel::{GroupName, Host};
use layout::{BURST, Latency, QUOTA};
use monitor::Cadence;
use policy::{GroupState, Parameters, Scope};
use topology::Machine;
use tracing::{info, warn};
use units::CpuSet;

use super::{
    latencies::Latencies,
    memory::Memory,
    online::Online,
    part::{Outcome, Part, Start},
    pool::Pool,
    quotas::Quotas,
    states::States,
    undivided::Undivided,
};
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

/// How long the end waits for a change that is under way.
const PATIENCE: Duration = Duration::from_secs(2);

/// All elastic groups of a layout.
pub(super) struct Controller<'h> {
    state: &'h State,
    host: &'h Host,
    resizes: Resizes,
    generation: u32,
    /// The history's, as long as nobody changes anything.
    stamp: Option<(i64, i64)>,
    parts: Vec<Placed>,
    /// What the parts divide, if they are any CPUs.
    online: Option<Online>,
    states: States,
    period: Duration,
    scopes: Vec<Scope>,
    latencies: BTreeMap<String, Latency>,
    /// The places in `states` of groups with a latency, with their names in the layout.
    measured: Vec<(usize, String)>,
    frequencies: Frequencies,
    originals: Rc<Originals>,
    /// Groups that are left as they are.
    left_alone: Vec<LeftAlone>,
    /// What a user does about that.
    again: Again,
    is_paused: bool,
}

/// A part with the places of its groups in the states.
struct Placed {
    part: Box<dyn Part>,
    places: Vec<usize>,
}

/// Each group has one place, though it may be in several parts.
fn placed(parts: Vec<Box<dyn Part>>) -> (Vec<Placed>, Vec<GroupName>) {
    let mut groups: Vec<GroupName> = Vec::new();
    let mut place = |group: &GroupName| {
        let known = groups.iter().position(|known| known == group);
        known.unwrap_or_else(|| {
            groups.push(group.clone());
            groups.len() - 1
        })
    };
    let parts = parts.into_iter().map(|part| {
        let places = part.groups().iter().map(&mut place).collect();
        Placed { part, places }
    });
    (parts.collect(), groups)
}

/// The places of groups with a latency, with their names in the layout.
fn measured(head: &Head, groups: &[GroupName]) -> Vec<(usize, String)> {
    let all = head.upkeep.elastic.iter().flat_map(|scope| scope.groups.iter().map(move |one| (scope, one)));
    let measured = all.filter(|(_, one)| head.upkeep.latencies.contains_key(&one.name));
    let measured = measured.filter_map(|(scope, one)| {
        let group = GroupName::new(scope.directory(one)).ok()?;
        Some((groups.iter().position(|known| *known == group)?, one.name.clone()))
    });
    measured.collect()
}

impl<'h> Controller<'h> {
    /// For the layout in effect, from the CPUs that its groups have; or why there is nothing to do now. Nothing is written
    /// without the right to resize, nor during a pause.
    ///
    /// # Errors
    /// In words: the history or the machine can't be read, or another process resizes.
    pub fn find(
        state: &'h State,
        host: &'h Host,
        counters: &Counters,
        resizing: &mut Option<Resizing>,
    ) -> Result<Result<Controller<'h>, End>, String> {
        let running = Running::new();
        let target = Target { host, system: &running };
        let failed = |failure: apply::Failure| failure.to_string();
        let stamp = state.stamp();
        // a change under way, or an interrupted one: what it leaves is looked at after it
        let Some(lock) = try_lock(state).map_err(failed)? else { return Ok(Err(End::Later)) };
        if apply::unfinished(state, target).map_err(failed)?.is_some() {
            return Ok(Err(End::Later));
        }
        let head = apply::layout_in_effect(state, target).map_err(failed)?;
        let saves = head.iter().flat_map(|head| &head.upkeep.elastic).any(|scope| scope.frequency);
        let mut frequencies = Frequencies::of(state);
        if !saves {
            // a layout before it may have had some
            follow(&mut frequencies, target, &CpuSet::new());
        }
        let follows = |head: &Head| !head.upkeep.elastic.is_empty() || !head.upkeep.ranges.is_empty();
        let Some(head) = head.filter(follows) else { return Ok(Err(End::Nothing)) };
        let resizes = Resizes::of(state);
        if resizing.is_none() {
            *resizing = resizes.begin().map_err(failed)?;
        }
        if resizing.is_none() {
            return Err("another process resizes them".to_owned());
        }
        let is_paused = resizes.is_paused();
        let numbers = Parameters::default();
        let period = Duration::from_secs_f64(numbers.period);
        let originals = Rc::new(Originals::open(&lock, target, &head).map_err(failed)?);
        let (changes, left_alone) = Default::default();
        let mut start = Start { target, originals: originals.clone(), changes, left_alone };
        let divides = !is_paused && !head.upkeep.elastic.is_empty();
        let online = divides.then(Online::note).transpose()?;
        let parts = if is_paused { Ok(Vec::new()) } else { parts(&mut start, &head, &numbers) };
        let Start { changes, left_alone, .. } = start;
        for change in changes {
            let change = Resize { generation: head.generation, ..change };
            record(&resizes, counters, &change);
        }
        let (parts, groups) = placed(parts?);
        let measured = measured(&head, &groups);
        let states = States::new(host, groups);
        let generation = head.generation;
        let mut controller = Controller {
            state,
            host,
            resizes,
            generation,
            stamp,
            parts,
            online,
            states,
            period,
            scopes: head.upkeep.elastic,
            latencies: head.upkeep.latencies,
            measured,
            frequencies,
            originals,
            left_alone,
            again: Again::of(state, host, head.file),
            is_paused,
        };
        // what a daemon before this one left
        if !is_paused {
            controller.follow_frequencies();
        }
        Ok(Ok(controller))
    }

    /// The generation of the layout.
    pub fn generation(&self) -> u32 {
        self.generation
    }

    /// The groups, for the log.
    pub fn names(&self) -> String {
        let mut names: Vec<&str> = Vec::new();
        for name in self.parts.iter().flat_map(|placed| placed.part.names()) {
            // one whose CPUs and quota follow its load is in two parts
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names.join(", ")
    }

    /// Groups of the layout that are left as they are.
    pub fn left_alone(&self) -> &[LeftAlone] {
        &self.left_alone
    }

    /// What a user does about that.
    pub fn again(&self) -> &Again {
        &self.again
    }

    /// The latencies of its groups.
    pub fn latencies(&self) -> &BTreeMap<String, Latency> {
        &self.latencies
    }

    /// Does a user want nothing to be resized?
    pub fn is_paused(&self) -> bool {
        self.is_paused
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
        latencies: &Latencies,
    ) -> Result<End, String> {
        let mut said = Said {
            pid: std::process::id(),
            generation: Some(self.generation),
            latencies: latencies.measured(),
            left_alone: self.left_alone.clone(),
            ..Said::default()
        };
        resizing.say(&said);
        let no_timer = |errno| format!("no timer: {}", kernel::describe(errno));
        let mut cadence = Cadence::new(self.period).map_err(no_timer)?;
        let resumed = self.resizes.resumed();
        let (mut now, mut samples) = (Duration::ZERO, 0);
        let mut states: Vec<GroupState> = Vec::new();
        while let Some(beat) = cadence.until(stopped).map_err(no_timer)? {
            now += self.period * (1 + u32::try_from(beat.missed).unwrap_or(u32::MAX));
            if self.state.stamp() != self.stamp {
                return Ok(End::Changed);
            }
            let was_paused = std::mem::replace(&mut self.is_paused, self.resizes.is_paused());
            if self.is_paused {
                if !was_paused {
                    info!("resizing is paused");
                }
                continue;
            }
            if was_paused || self.resizes.resumed() != resumed {
                info!("resizing goes on");
                return Ok(End::Changed);
            }
            samples += 1;
            if samples % LOOK == 0 {
                if self.is_changed()? {
                    return Ok(End::Changed);
                }
                let measured = latencies.measured();
                if measured != said.latencies {
                    said.latencies = measured;
                    resizing.say(&said);
                }
            }
            self.states.look(self.host);
            for index in 0..self.parts.len() {
                let Placed { part, places } = &mut self.parts[index];
                states.clear();
                states.extend(places.iter().map(|place| self.states.all()[*place]));
                for (state, place) in states.iter_mut().zip(places.iter()) {
                    let measured = self.measured.iter().find(|(measured, _)| measured == place);
                    state.slack = measured.and_then(|(_, group)| latencies.slack(group));
                }
                let changes = part.tick(self.host, now, &states)?;
                if !changes.is_empty() && !self.carry_out(index, changes, counters, now)? {
                    return Ok(End::Changed);
                }
                let ended = self.parts[index].part.end();
                if !ended.is_empty() {
                    self.say_end(ended, counters, &mut said);
                    resizing.say(&said);
                }
            }
        }
        self.end_saving();
        Ok(End::Stopped)
    }

    /// What power saving took comes back with the daemon's end: nobody would give it back under load.
    fn end_saving(&mut self) {
        if self.scopes.iter().all(|scope| scope.saving.is_none()) {
            return;
        }
        let running = Running::new();
        let target = Target { host: self.host, system: &running };
        let online = Machine::live().map(|machine| machine.online()).map_err(|error| error.to_string());
        let ended = online.and_then(|online| {
            let _lock = self.state.lock(PATIENCE).map_err(|failure| failure.to_string())?;
            let ended = apply::end_saving(target, &self.originals, &self.scopes, &online);
            follow(&mut self.frequencies, target, &CpuSet::new());
            ended.map_err(|error| error.to_string())
        });
        match ended {
            Ok(groups) if groups.is_empty() => {}
            Ok(groups) => info!("all CPUs are back that power saving took: {}", groups.join(", ")),
            Err(why) => warn!("general groups have fewer CPUs than before power saving: {why}"),
        }
    }

    /// Has a group something else than its rule knows, or are other CPUs online?
    fn is_changed(&mut self) -> Result<bool, String> {
        if let Some(online) = &mut self.online
            && online.is_changed()?
        {
            return Ok(true);
        }
        for placed in &mut self.parts {
            if placed.part.is_changed(self.host)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// False if the groups are no longer as the rule knows them.
    fn carry_out(
        &mut self,
        part: usize,
        changes: Vec<Resize>,
        counters: &Counters,
        now: Duration,
    ) -> Result<bool, String> {
        let part = &mut self.parts[part].part;
        // an apply or undo is under way: what it makes of the groups is looked at after it
        let Some(_lock) = try_lock(self.state).map_err(|failure| failure.to_string())? else {
            part.withdraw();
            return Ok(true);
        };
        if self.state.stamp() != self.stamp {
            return Ok(false);
        }
        let running = Running::new();
        let target = Target { host: self.host, system: &running };
        for (index, change) in changes.into_iter().enumerate() {
            let why = match part.write(target, now, index)? {
                Outcome::Written => None,
                Outcome::Refused(why) => Some(why),
                Outcome::Unexpected => return Ok(false),
            };
            let change = Resize { generation: self.generation, refused: why, ..change };
            record(&self.resizes, counters, &change);
        }
        self.follow_frequencies();
        Ok(true)
    }

    /// The history is locked.
    fn follow_frequencies(&mut self) {
        if self.scopes.iter().any(|scope| scope.frequency) {
            let running = Running::new();
            let target = Target { host: self.host, system: &running };
            let idle = apply::idle_cpus(target, &self.scopes);
            follow(&mut self.frequencies, target, &idle);
        }
    }

    /// Logs and counts what has ended by itself.
    fn say_end(&self, ended: Vec<Ended>, counters: &Counters, said: &mut Said) {
        let goes_on: BTreeSet<&str> = self.parts.iter().filter_map(|placed| placed.part.goes_on()).collect();
        let goes_on: Vec<String> = goes_on.into_iter().map(str::to_owned).collect();
        for one in ended {
            Counters::count(&counters.given_up);
            let now = Said { ended: vec![one.clone()], goes_on: goes_on.clone(), ..Said::default() };
            now.end(&self.again).into_iter().for_each(|line| warn!("{line}"));
            said.ended.push(one);
        }
        said.goes_on = goes_on;
    }
}

/// Lets the frequencies of CPUs follow, and logs what became of that.
fn follow(frequencies: &mut Frequencies, target: Target<'_>, idle: &CpuSet) {
    match frequencies.follow(target.system.knobs(), &target.system.boot(), idle) {
        Ok(Followed { saving, restored, left }) => {
            if !saving.is_empty() {
                info!("CPUs {saving} save energy: governor powersave, energy preference power");
            }
            if !restored.is_empty() {
                info!("CPUs {restored} have the governor and energy preference of before");
            }
            left.iter().for_each(|left| warn!("{left}"));
        }
        Err(failure) => warn!("frequencies of CPUs do not follow power saving: {failure}"),
    }
}

/// Writes a change down, in the log, too.
fn record(resizes: &Resizes, counters: &Counters, change: &Resize) {
    let [written, refused] = match change.setting.as_str() {
        plan::CPUS => [&counters.resizes, &counters.resizes_refused],
        QUOTA | BURST => [&counters.quota_resizes, &counters.quota_resizes_refused],
        _ => [&counters.memory_resizes, &counters.memory_resizes_refused],
    };
    if change.refused.is_none() {
        Counters::count(written);
        info!("{change}");
    } else {
        Counters::count(refused);
        warn!("{change}");
    }
    if let Err(failure) = resizes.add(change) {
        warn!("{failure}");
    }
}

/// What changes with its load in the layout in effect.
fn parts(start: &mut Start<'_>, head: &Head, numbers: &Parameters) -> Result<Vec<Box<dyn Part>>, String> {
    let mut parts: Vec<Box<dyn Part>> = Vec::new();
    if !head.upkeep.elastic.is_empty() {
        let machine = Machine::live().map_err(|error| error.to_string())?;
        for scope in &head.upkeep.elastic {
            parts.push(match Pool::find(start, &machine, scope, numbers)? {
                Ok(pool) => Box::new(pool),
                Err(why) => Box::new(Undivided::new(start, scope, &why)),
            });
        }
    }
    if let Some(quotas) = Quotas::find(start, &head.upkeep.ranges, numbers)? {
        parts.push(Box::new(quotas));
    }
    if let Some(memory) = Memory::find(start, &head.upkeep.ranges)? {
        parts.push(Box::new(memory));
    }
    Ok(parts)
}
