//! The layout's schedules: which changes are in force now, and when to look again. Each change is a generation of the
//! layout; what is in force is written down before it is applied, so that who goes on after a kill goes on with the same.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use apply::{Lock, Running, State, System};
use jiff::Timestamp;
use kernel::Host;
use layout::schedule::{Event, InForce, Last, Look, Memory, Moment, Turn, When};
use system::TimeZones;
use tracing::{error, info, warn};

use crate::{
    Applied, ConfigurationError, Division, alarm::Alarm, handle::Handle, running_programs::RunningPrograms,
    unit_states::UnitStates,
};

/// While another change has the lock, it is tried again after this time.
const LOCKED: Duration = Duration::from_secs(1);

/// The schedules of the layout in force.
pub(crate) struct Schedules {
    memory: Memory,
    seen: Seen,
    /// `None`: nothing changes by itself.
    alarm: Option<Alarm>,
    /// Has something happened that may mean a change?
    pending: bool,
    /// When the lock is tried again.
    again: Option<Instant>,
    failed: Option<String>,
}

/// What events depend on.
#[derive(Default)]
struct Seen {
    programs: RunningPrograms,
    units: BTreeMap<String, bool>,
    /// Looks at the units as long as it is there.
    _watch: Option<UnitStates>,
}

/// A schedule with its change that is due.
type Due = (String, Turn);

impl Schedules {
    pub fn new(alarm: Option<Alarm>) -> Schedules {
        Schedules {
            memory: Memory::default(),
            seen: Seen::default(),
            alarm,
            pending: false,
            again: None,
            failed: None,
        }
    }

    /// What is wrong with them now.
    pub fn trouble(&self) -> Option<String> {
        self.failed.clone()
    }

    /// When to look although nothing wakes.
    pub fn due(&self) -> Option<Instant> {
        self.again
    }

    /// The alarm woke: it is time, or the clock was set.
    pub fn woke(&mut self) {
        self.alarm.iter().for_each(Alarm::take);
        self.pending = true;
    }

    /// A process started or ended.
    pub fn take(&mut self, event: &events::Event) {
        self.pending |= self.seen.programs.take(event);
    }

    /// Events of processes were lost.
    pub fn look_again(&mut self) {
        self.seen.programs.look_again();
        self.pending = true;
    }

    /// Units became active, or no longer are.
    pub fn units(&mut self, states: BTreeMap<String, bool>) {
        self.seen.units = states;
        self.pending = true;
    }

    /// Applies a layout that was just read, or is applied once more, as its schedules have it now.
    ///
    /// # Errors
    /// [`ConfigurationError`]; a schedule alone is no reason: the layout is applied without it then.
    pub fn apply(
        &mut self,
        division: &mut Division,
        lock: &Lock,
        (host, handle): (&Host, &Handle),
    ) -> Result<Applied, ConfigurationError> {
        self.failed = None;
        if division.schedules().is_empty() && self.memory == Memory::default() {
            self.forget(division.state());
            return division.apply(lock, host);
        }
        let before = (std::mem::take(&mut self.memory), std::mem::take(&mut self.seen));
        self.begin(division, handle);
        division.unschedulable(host).iter().for_each(|wrong| warn!("{wrong}"));
        let due = self.turns(division);
        // what was over before is no change of this layout
        let changes = self.decide(&due);
        self.remember(division.state());
        division.follow_schedules(&self.memory.names(), None);
        let applied = division.apply(lock, host).or_else(|refused| {
            if self.memory.in_force.is_empty() {
                return Err(refused);
            }
            let names = self.memory.names().join(", ");
            division.follow_schedules(&[], None);
            let applied = division.apply(lock, host)?;
            self.fail(format!(
                "the layout is applied without schedule {names}: {refused}\n{}",
                refused.details
            ));
            self.memory.in_force.clear();
            Ok(applied)
        });
        match &applied {
            Ok(applied) => {
                self.done(&changes, applied.generation);
                let new =
                    |one: &&mut InForce| one.generation.is_none() || one.generation == applied.generation;
                for one in self.memory.in_force.iter_mut().filter(new) {
                    (one.generation, one.with_layout) = (applied.generation, applied.generation.is_some());
                }
            }
            // the layout before stays active, with what it had in force
            Err(_) if before.0 != Memory::default() => (self.memory, self.seen) = before,
            // none was active: this one may be once the machine has changed
            Err(_) => division.follow_schedules(&self.memory.names(), None),
        }
        self.remember(division.state());
        self.arm(division);
        applied
    }

    /// Goes on where this daemon or an earlier one was.
    fn begin(&mut self, division: &Division, handle: &Handle) {
        let read = apply::scheduled(division.state());
        let mut memory = match read {
            Ok(memory) => memory.unwrap_or_default(),
            Err(failure) => {
                warn!("{failure}; schedules begin from the start");
                Memory::default()
            }
        };
        let (layout, checksum) = division.identity();
        let system = Running::new();
        let schedules: Vec<(&str, &When)> =
            division.schedules().iter().map(|one| (one.name.as_str(), &one.when.value)).collect();
        let uptime = Duration::from_millis(system.uptime());
        memory.follow((&layout, checksum), (&system.boot(), uptime), &schedules);
        if let Ok(undone) = apply::drop_undone(division.state(), &mut memory) {
            undone.iter().for_each(|name| warn!("schedule {name} is not in force: its change was undone"));
        }
        let programs = schedules.iter().filter_map(|(_, when)| match when {
            When::On(Event::Process { program, .. }) => Some(program.clone()),
            _ => None,
        });
        let units = schedules.iter().filter_map(|(_, when)| match when {
            When::On(Event::Unit { name, .. }) => Some(name.clone()),
            _ => None,
        });
        let watch = UnitStates::of(units.collect(), handle.clone());
        self.seen = Seen { _watch: watch, ..Seen::default() };
        self.seen.programs.look(programs);
        self.memory = memory;
    }

    /// This moment, on both clocks.
    fn now(&self) -> Moment {
        let uptime = Duration::from_millis(Running::new().uptime());
        Moment { wall: Timestamp::now(), elapsed: uptime.saturating_sub(self.memory.applied) }
    }

    /// The changes that are due, in the order of their moments; what ends goes before what begins.
    fn turns(&mut self, division: &Division) -> Vec<Due> {
        let now = self.now();
        let look = Look { seen: self.memory.seen, now, zones: &TimeZones };
        let mut due = Vec::new();
        for schedule in division.schedules() {
            let when = &schedule.when.value;
            let level = match when {
                When::On(Event::Process { program, .. }) => self.seen.programs.runs(program),
                When::On(Event::Unit { name, .. }) => self.seen.units.get(name).copied(),
                _ => None,
            };
            let turn = match level {
                Some(level) => {
                    let before = self.memory.levels.insert(schedule.name.clone(), level);
                    when.turn_of_event(before, level, now.wall)
                }
                None => when.turn(&look),
            };
            due.extend(turn.map(|turn| (schedule.name.clone(), turn)));
        }
        due.sort_by_key(|(_, turn)| (turn.at, turn.on));
        self.memory.seen = Some(now);
        due
    }

    /// Has them in force or not; keeps those that mean a change.
    fn decide(&mut self, due: &[Due]) -> Vec<Due> {
        let changes = due.iter().filter(|(name, turn)| self.memory.turn(name, turn.on, turn.at));
        changes.cloned().collect()
    }

    fn done(&mut self, due: &[Due], generation: Option<u32>) {
        for (name, turn) in due {
            let last = Last { at: turn.at, on: turn.on, generation, failure: None };
            self.memory.last.insert(name.clone(), last);
            let mut in_force = self.memory.in_force.iter_mut();
            if let Some(one) = in_force.find(|one| one.name == *name) {
                one.generation = generation;
            }
        }
    }

    /// Makes the changes that are due. True if something was written: the hierarchies may be others then.
    pub fn tick(&mut self, division: &mut Division, host: &Host) -> bool {
        let again = self.again.is_some_and(|again| again <= Instant::now());
        if !(self.pending || again) || !division.is_applied() || self.memory == Memory::default() {
            return false;
        }
        (self.pending, self.again) = (false, None);
        self.forget_undone(division);
        let before = self.memory.clone();
        let due = self.turns(division);
        let changes = self.decide(&due);
        if changes.is_empty() {
            // a clock that was set back shows the same moments again
            if before.seen.is_some_and(|seen| self.memory.seen.is_some_and(|now| now.wall < seen.wall)) {
                self.remember(division.state());
            }
            self.arm(division);
            return false;
        }
        let lock = match division.try_lock() {
            Ok(Some(lock)) => lock,
            other => {
                if let Err(failure) = other {
                    self.fail(format!("schedules wait: {failure}"));
                }
                self.memory = before;
                self.again = Some(Instant::now() + LOCKED);
                return false;
            }
        };
        self.change(division, (&lock, host), &changes, before)
    }

    fn change(
        &mut self,
        division: &mut Division,
        (lock, host): (&Lock, &Host),
        changes: &[Due],
        before: Memory,
    ) -> bool {
        self.remember(division.state());
        let cause: Vec<String> = changes
            .iter()
            .map(|(name, turn)| format!("schedule {name} {}", if turn.on { "begins" } else { "ends" }))
            .collect();
        let cause = cause.join(", ");
        division.follow_schedules(&self.memory.names(), Some(cause.clone()));
        let applied = match changes {
            // the history must not grow for good where changes alternate
            [(name, Turn { on: false, .. })] => division.take_back(lock, host, generation_of(&before, name)),
            _ => division.apply(lock, host),
        };
        let wrote = match applied {
            Ok(applied) => {
                self.failed = None;
                self.done(changes, applied.generation);
                applied.warnings.iter().for_each(|warning| warn!("{warning}"));
                info!(generation = applied.generation, steps = applied.steps, "{cause}");
                applied.steps > 0
            }
            Err(refused) => {
                self.memory.in_force = before.in_force;
                for (name, turn) in changes {
                    let failure = Some(refused.summary.clone());
                    let last = Last { at: turn.at, on: turn.on, generation: None, failure };
                    self.memory.last.insert(name.clone(), last);
                }
                division.follow_schedules(&self.memory.names(), None);
                self.fail(format!("{cause}, but is refused: {refused}\n{}", refused.details.trim_end()));
                false
            }
        };
        self.remember(division.state());
        self.arm(division);
        wrote
    }

    /// What somebody undid is not in force until it is due again: a repair must not bring it back.
    pub fn forget_undone(&mut self, division: &mut Division) {
        let undone = match apply::drop_undone(division.state(), &mut self.memory) {
            Ok(undone) if !undone.is_empty() => undone,
            _ => return,
        };
        undone.iter().for_each(|name| warn!("schedule {name} is not in force: its change was undone"));
        self.remember(division.state());
        division.follow_schedules(&self.memory.names(), None);
    }

    /// Sets the alarm for the change that comes next after the last look: what has come since then wakes at once.
    fn arm(&mut self, division: &Division) {
        let Some(alarm) = &self.alarm else { return };
        let now = self.memory.seen.unwrap_or_else(|| self.now());
        let look = Look { seen: None, now, zones: &TimeZones };
        let next = division.schedules().iter().filter_map(|schedule| {
            let on = self.memory.is_in_force(&schedule.name);
            Some(schedule.when.value.next(on, &look)?.at)
        });
        match alarm.set(next.min()) {
            Ok(true) => {}
            Ok(false) => self.again = Some(Instant::now()),
            Err(error) => error!("schedules wait for a clock that does not wake: {error}"),
        }
    }

    /// Another layout without schedules leaves nothing in force.
    fn forget(&self, state: &State) {
        if matches!(apply::scheduled(state), Ok(None)) {
            return;
        }
        self.remember(state);
    }

    fn remember(&self, state: &State) {
        if let Err(failure) = apply::record_schedules(state, &self.memory) {
            error!("what schedules have in force is not remembered: {failure}");
        }
    }

    fn fail(&mut self, text: String) {
        error!("{text}");
        self.failed = Some(text.lines().next().unwrap_or_default().to_owned());
    }
}

/// The generation that made a change and nothing else.
fn generation_of(memory: &Memory, name: &str) -> Option<u32> {
    memory.in_force.iter().find(|one| one.name == name && !one.with_layout)?.generation
}
