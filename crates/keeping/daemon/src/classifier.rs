//! From what happened to processes to where they are: events are gathered, each process judged once, and moved at once.
//! The decision is [`classify::Rules`]' and [`classify::settle`]'s; what is made on demand is [`classify::Placer`]'s.

use std::{
    collections::{HashMap, HashSet},
    rc::Rc,
    sync::{Arc, atomic::Ordering::Relaxed},
    time::{Duration, Instant},
};

use classify::{Decision, GoalError, Membership, Memberships, Memory, Placer, Present, settle};
use events::{Event, Kind};
use kernel::Host;
use rustix::{
    io::Errno,
    process::{WaitId, WaitIdOptions, waitid},
    time::{ClockId, clock_gettime},
};
use system::{NoProcess, Process, ProcessReader};
use tracing::{debug, info, warn};

use crate::{
    Counters,
    loaded_rules::{LoadedRules, RuleTarget},
    made::MadeGroups,
    memories::Memories,
    notify::Alive,
    put::{Place, Placement, put},
    stays::Stays,
    titles::Titles,
};

/// How long groups made on demand stay after the end of a process in one: long enough that the next one of a row of
/// short processes finds its group.
const SWEEP_AFTER: Duration = Duration::from_secs(2);
/// How long after a refusal it is tried again.
const RETRY_AFTER: Duration = Duration::from_secs(30);
/// The interval at which one rule's refusals are logged.
const REPORT_EVERY: Duration = Duration::from_secs(60);

/// Judges and moves processes.
pub(crate) struct Classifier {
    host: Host,
    ruling: LoadedRules,
    counters: Arc<Counters>,
    reader: ProcessReader,
    memberships: Memberships,
    memories: Memories,
    batch: Batch,
    /// Processes that could not be moved, and their children since.
    failed: HashSet<u32>,
    /// When that is tried again.
    retry_at: Option<Instant>,
    /// During the first look at all processes: where rules lead.
    led: HashSet<(usize, String)>,
    alive: Alive,
    stays: Stays,
    /// When a rule's refusals were last logged, and how many were suppressed since.
    logged: HashMap<usize, (Option<Instant>, u64)>,
    /// When groups made on demand are to be looked at.
    sweep_at: Option<Instant>,
    /// These groups.
    made: MadeGroups,
    titles: Titles,
}

/// What happened since the last round.
#[derive(Debug, Default)]
struct Batch {
    /// Who is to be judged, in the order of the events, with the time of the first; none twice.
    changed: Vec<(u32, Duration)>,
    known: HashSet<u32>,
    /// Parent, child, time.
    forks: Vec<(u32, u32, Duration)>,
}

/// Why all processes are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scan {
    /// Nothing is remembered: who is in a group that no rule leads him to was put there.
    Start,
    /// Events were lost.
    Overrun,
    /// The rules are others.
    Reload,
}

/// What became of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Done {
    Left,
    Moved,
    Failed,
}

impl Classifier {
    pub fn new(host: Host, ruling: LoadedRules, counters: Arc<Counters>, made: MadeGroups) -> Classifier {
        let mut titles = Titles::default();
        titles.switch(ruling.looks_again());
        Classifier {
            titles,
            host,
            ruling,
            counters,
            reader: ProcessReader::new(),
            memberships: Memberships::default(),
            memories: Memories::default(),
            batch: Batch::default(),
            failed: HashSet::new(),
            retry_at: None,
            led: HashSet::new(),
            alive: Alive::new(),
            stays: Stays::default(),
            logged: HashMap::new(),
            sweep_at: None,
            made,
        }
    }

    pub fn host(&self) -> &Host {
        &self.host
    }

    pub fn ruling(&self) -> &LoadedRules {
        &self.ruling
    }

    /// Closes the open files of groups: a hierarchy may be about to be unmounted.
    pub fn let_go(&mut self) {
        self.ruling.forget_ways();
    }

    /// Other rules from now on; [`Classifier::scan`] follows.
    pub fn follow(&mut self, ruling: LoadedRules) {
        self.titles.switch(ruling.looks_again());
        self.ruling = ruling;
        self.logged.clear();
        self.stays.forget();
    }

    /// The hierarchies may be others: mounts.
    pub fn look_again(&mut self, host: Host) {
        let other = host.hierarchies() != self.host.hierarchies();
        self.host = host;
        self.memberships = Memberships::default();
        self.ruling.forget_ways();
        if other {
            // what is remembered is by hierarchy
            self.scan_anew();
        }
    }

    /// Takes an event; what follows from it is done by [`Classifier::act`].
    pub fn take(&mut self, event: Event) {
        Counters::count(&self.counters.events);
        match event.kind {
            Kind::Exec { tgid, .. } | Kind::Uid { tgid, .. } | Kind::Gid { tgid, .. } => {
                self.batch.change(tgid, event.at);
                self.titles.runs(tgid, Instant::now());
            }
            Kind::Fork { parent_tgid, child_tgid, .. } => {
                self.memories.fork(parent_tgid, child_tgid, event.at);
                self.batch.forks.push((parent_tgid, child_tgid, event.at));
                self.titles.forked(child_tgid, Instant::now());
            }
            Kind::Exit { tgid, .. } => self.end(tgid),
            Kind::Sid { .. } | Kind::Comm { .. } => {}
        }
    }

    fn end(&mut self, pid: u32) {
        self.failed.remove(&pid);
        self.titles.ended(pid);
        // nobody is left to be moved
        self.batch.known.remove(&pid);
        let rule = self.memories.end(pid).and_then(|memory| memory.rule);
        if self.sweep_at.is_none() && rule.is_some_and(|rule| self.ruling.makes_group(rule)) {
            self.sweep_at = Some(Instant::now() + SWEEP_AFTER);
        }
    }

    /// Judges everybody to whom something happened.
    pub fn act(&mut self) {
        let mut batch = std::mem::take(&mut self.batch);
        // the newest first: of those that live shortly, more are still there then
        for (pid, at) in batch.changed.drain(..).rev() {
            // skip processes that exited meanwhile; the PID may have been reused
            if batch.known.remove(&pid) {
                self.judge_and_count(pid, Some(at), None);
            }
        }
        for (parent, child, at) in batch.forks.drain(..) {
            if self.memories.left_behind(parent, at) {
                self.judge_and_count(child, Some(at), None);
            }
            if self.failed.contains(&parent) {
                self.failed.insert(child);
            }
        }
        self.log_stays();
        batch.known.clear();
        batch.give_back();
        self.batch = batch;
    }

    /// Judges all processes there are.
    pub fn scan(&mut self, why: Scan) {
        Counters::count(&self.counters.scans);
        let living = match ProcessReader::all() {
            Ok(living) => living,
            Err(error) => {
                warn!("/proc can't be listed: {error}");
                return;
            }
        };
        self.memories.retain(&living);
        self.failed.clear();
        self.retry_at = None;
        let (mut moved, mut failed) = (0, 0);
        if why == Scan::Start {
            self.led = self.ruling.led(&self.host);
        }
        let now = Instant::now();
        for &pid in &living {
            self.titles.runs(pid, now);
            match self.judge_and_count(pid, None, Some(why)) {
                Done::Moved => moved += 1,
                Done::Failed => failed += 1,
                Done::Left => {}
            }
        }
        self.led = HashSet::new();
        let stay = self.log_stays();
        if self.ruling.makes_groups() || !self.made.is_empty() {
            self.sweep_at = Some(Instant::now() + SWEEP_AFTER);
        }
        let why = match why {
            Scan::Start => "at the start",
            Scan::Overrun => "after events were lost",
            Scan::Reload => "by the new rules",
        };
        info!(processes = living.len(), moved, failed, stay, "scanned all processes {why}");
    }

    /// Judges all processes as at the start, with nothing remembered.
    pub fn scan_anew(&mut self) {
        self.memories = Memories::default();
        self.scan(Scan::Start);
    }

    /// Tries again what could not be moved, if it is time.
    pub fn retry(&mut self) {
        if self.retry_at.is_none_or(|at| at > Instant::now()) {
            return;
        }
        self.retry_at = None;
        for pid in std::mem::take(&mut self.failed) {
            self.judge_and_count(pid, None, None);
        }
    }

    /// Judges those again that may have another title by now, if it is time.
    pub fn look_at_titles(&mut self) {
        let now = Instant::now();
        if self.titles.due().is_none_or(|due| due > now) {
            return;
        }
        for pid in self.titles.take(now) {
            self.judge_and_count(pid, None, None);
        }
        self.log_stays();
    }

    /// When something is to be done without an event.
    pub fn due(&self) -> Option<Instant> {
        [self.sweep_at, self.retry_at, self.alive.due(), self.titles.due()].into_iter().flatten().min()
    }

    /// A sign of life for the service manager, if it is time.
    pub fn sign(&mut self) {
        self.alive.sign();
    }

    /// Removes empty groups that were made on demand, if it is time.
    pub fn sweep(&mut self) {
        if self.sweep_at.is_none_or(|at| at > Instant::now()) {
            return;
        }
        self.sweep_at = None;
        let swept = self.made.sweep(&self.host);
        self.counters.swept.fetch_add(swept as u64, Relaxed);
    }

    fn judge_and_count(&mut self, pid: u32, since: Option<Duration>, scan: Option<Scan>) -> Done {
        // of thousands, one round may take longer than the service manager waits
        self.alive.sign();
        let mut judge = Judge {
            host: &self.host,
            ruling: &mut self.ruling,
            memberships: &mut self.memberships,
            memories: &mut self.memories,
            led: &self.led,
            made: &mut self.made,
            counters: &self.counters,
            stays: &mut self.stays,
            titles: &mut self.titles,
        };
        let judged = self.reader.process(pid).map_err(Trouble::from).and_then(|mut process| {
            Counters::count(&judge.counters.decisions);
            judge.judge(&mut process, scan)
        });
        match judged {
            Ok(Done::Moved) => {
                Counters::count(&self.counters.moved);
                if let Some(since) = since {
                    self.counters.took(now().saturating_sub(since));
                }
                Done::Moved
            }
            Ok(done) => done,
            Err(Trouble::NoProcess { taken }) => {
                if taken {
                    Counters::count(&self.counters.missed);
                }
                // the event of its end comes later; until then no child may inherit what it did not live to become
                self.memories.end(pid);
                self.titles.ended(pid);
                Done::Left
            }
            Err(Trouble::Refused { rule, error }) => {
                Counters::count(&self.counters.failed);
                self.failed.insert(pid);
                self.retry_at.get_or_insert_with(|| Instant::now() + RETRY_AFTER);
                self.log_refusal(rule, pid, &error);
                Done::Failed
            }
        }
    }

    /// Returns how many processes were left alone since the last time.
    fn log_stays(&mut self) -> usize {
        let Classifier { stays, ruling, .. } = self;
        stays.log(|rule| ruling.rules.origin(rule).map(|origin| format!("{origin}: ")).unwrap_or_default())
    }

    /// Limited: a rule that can't be followed would fill the log.
    fn log_refusal(&mut self, rule: usize, pid: u32, error: &classify::Error) {
        let now = Instant::now();
        let (last, suppressed) = self.logged.entry(rule).or_default();
        if last.is_some_and(|last| now.duration_since(last) < REPORT_EVERY) {
            *suppressed += 1;
            return;
        }
        let more = if *suppressed > 0 { format!(" ({suppressed} more before)") } else { String::new() };
        (*last, *suppressed) = (Some(now), 0);
        let place = self.ruling.rules.origin(rule).map(|origin| format!("{origin}: ")).unwrap_or_default();
        let hint = error.hint().map(|hint| format!("; hint: {hint}")).unwrap_or_default();
        warn!(pid, "{place}process {pid} could not be moved: {error}{hint}{more}");
    }
}

impl Batch {
    fn change(&mut self, pid: u32, at: Duration) {
        if self.known.insert(pid) {
            self.changed.push((pid, at));
        }
    }

    /// A burst must not hold its memory for good.
    fn give_back(&mut self) {
        self.changed.shrink_to(1024);
        self.forks.shrink_to(1024);
        self.known.shrink_to(1024);
    }
}

/// Time on CLOCK_MONOTONIC, as events have it.
fn now() -> Duration {
    let now = clock_gettime(ClockId::Monotonic);
    Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap_or(0))
}

/// Why a process was not put where it belongs.
enum Trouble {
    /// It ended; before a rule took it, or after.
    NoProcess {
        taken: bool,
    },
    Refused {
        rule: usize,
        error: classify::Error,
    },
}

impl From<NoProcess> for Trouble {
    fn from(_: NoProcess) -> Trouble {
        Trouble::NoProcess { taken: false }
    }
}

/// What is remembered of a process.
struct Remembered {
    memory: Memory,
    /// Of who was born before its parent was moved: what was remembered of the parent before that.
    before_move: Option<Memory>,
}

impl Remembered {
    /// What holds of a process that is here now, in these hierarchies.
    fn of_now(self, now: &Present, hierarchies: &[usize]) -> Memory {
        let only = |memory: Memory| Memory { present: memory.present.only(hierarchies), ..memory };
        let (memory, before) = (only(self.memory), self.before_move.map(only));
        match before {
            Some(before) if memory.present != *now && before.present == *now => before,
            _ => memory,
        }
    }
}

/// All that one judgement needs.
struct Judge<'j> {
    host: &'j Host,
    ruling: &'j mut LoadedRules,
    memberships: &'j mut Memberships,
    memories: &'j mut Memories,
    led: &'j HashSet<(usize, String)>,
    made: &'j mut MadeGroups,
    counters: &'j Counters,
    stays: &'j mut Stays,
    titles: &'j mut Titles,
}

impl Judge<'_> {
    fn judge(&mut self, process: &mut Process<'_>, scan: Option<Scan>) -> Result<Done, Trouble> {
        let pid = process.pid();
        let decision = self.ruling.rules.decide(process)?;
        let remembered = self.remembered(process, scan, decision)?;
        let Decision::To { rule } = decision else {
            self.note(process, decision, remembered)?;
            return Ok(Done::Left);
        };
        let way = self.way(rule, process)?;
        // a service that was started just now has no groups yet: it is looked at again
        if way.places.is_none() && self.ruling.is_in_unit(rule) {
            self.note(process, decision, remembered)?;
            return Ok(Done::Left);
        }
        let taken = |_| Trouble::NoProcess { taken: true };
        let now_at = now();
        let member = self.memberships.of(self.host, process.control_groups().map_err(taken)?);
        let strays = way.strays(&self.ruling.rules, self.host, &member);
        let holds = || way.places.as_ref().is_some_and(|places| Place::hold(places, &member));
        let there = strays.is_empty() && holds();
        let hierarchies = [way.hierarchies.as_slice(), &strays].concat();
        let present = member.ours();
        let now = present.only(&hierarchies);
        // only who is in a group that this rule does not lead to can have been put there
        let parent = if there || now.is_empty() { None } else { self.parent(process, &hierarchies)? };
        let before = match remembered {
            Some(remembered) => Some(remembered.of_now(&now, &hierarchies)),
            // a rule's doing, before we were started
            None if !now.is_empty() && now.groups().iter().all(|group| self.led.contains(group)) => {
                Some(Memory { present: now.clone(), ..Memory::default() })
            }
            None => None,
        };
        let (decision, memory) = settle(decision, &now, parent.as_ref(), before.as_ref(), there);
        self.memories.keep(pid, Memory { present: present.clone(), ..memory.clone() }, now_at);
        if there {
            Counters::count(&self.counters.there);
            return Ok(Done::Left);
        }
        if decision != (Decision::To { rule }) {
            Counters::count(&self.counters.by_hand);
            if let Some((at, path)) = now.groups().first()
                && let Some(at) = self.host.hierarchies().get(*at)
            {
                let group = units::printable(&self.host.named(at, path)).into_owned();
                self.stays.add(pid, rule, group);
            }
            return Ok(Done::Left);
        }
        if self.is_own(process)? {
            debug!(pid, "process {pid} is the daemon's own: it stays where it is");
            return Ok(Done::Left);
        }
        let is_stray = !strays.is_empty();
        let placed = self.move_into(&way, rule, (pid, is_stray), &member)?;
        let merged = self.host.hierarchies().iter().filter_map(|at| {
            let path = placed.iter().find(|(id, _)| *id == at.id).map(|(_, path)| path.as_str());
            let path = path.or_else(|| present.at(at.id).filter(|_| !strays.contains(&at.id)))?;
            (!path.is_empty()).then(|| (at.id, path.to_owned()))
        });
        self.memories.moved(pid, Memory { present: merged.collect(), ..memory }, self::now());
        Ok(Done::Moved)
    }

    /// This daemon, one of its children, or another daemon with its gate: in a group they could be slowed down, frozen or
    /// starved, and every start that waits for a gate with them.
    fn is_own(&self, process: &mut Process<'_>) -> Result<bool, NoProcess> {
        let (pid, own) = (process.pid(), std::process::id());
        Ok(pid == own
            // a gate that has not registered itself yet
            || (has_children() && process.status()?.parent == own)
            || kernel::protected(self.host.kernel(), pid).is_some())
    }

    /// What is remembered, or after lost events what its parent hands on.
    fn remembered(
        &self,
        process: &mut Process<'_>,
        scan: Option<Scan>,
        decision: Decision,
    ) -> Result<Option<Remembered>, NoProcess> {
        let own = process.pid();
        let whose = match self.memories.of(own) {
            Some(_) => own,
            None if scan == Some(Scan::Start) => return Ok(None),
            None => process.status()?.parent,
        };
        let Some(memory) = self.memories.of(whose) else { return Ok(None) };
        let before_move = if self.memories.was_moved(own) { None } else { self.memories.before_move(whose) };
        // a reload renumbers the rules: the one that fits now is the one that the manual move overruled
        let counted = |memory: Rc<Memory>| {
            let memory = (*memory).clone();
            if scan == Some(Scan::Reload) { Memory { rule: decision.rule(), ..memory } } else { memory }
        };
        Ok(Some(Remembered { memory: counted(memory), before_move: before_move.map(counted) }))
    }

    /// No rule takes it: it stays, and what it is now is remembered.
    fn note(
        &mut self,
        process: &mut Process<'_>,
        decision: Decision,
        remembered: Option<Remembered>,
    ) -> Result<(), NoProcess> {
        if decision == Decision::KernelThread {
            self.titles.ended(process.pid());
            return Ok(());
        }
        let memory = match remembered {
            // where it is counts only once a rule takes it
            Some(remembered) => Memory { rule: decision.rule(), ..remembered.memory },
            None => {
                let member = self.memberships.of(self.host, process.control_groups()?);
                settle(decision, member.ours(), None, None, false).1
            }
        };
        self.memories.keep(process.pid(), memory, now());
        Ok(())
    }

    fn way(&mut self, rule: usize, process: &mut Process<'_>) -> Result<Rc<RuleTarget>, Trouble> {
        if let Some(way) = self.ruling.fixed(rule, self.host) {
            return Ok(way);
        }
        let goals =
            self.ruling.rules.goals(rule, process, &self.ruling.accounts).map_err(|error| match error {
                GoalError::NoProcess(_) => Trouble::NoProcess { taken: true },
                error => Trouble::Refused { rule, error: error.into() },
            })?;
        let placer = Placer::new(self.host, &self.ruling.desired, &self.ruling.accounts);
        Ok(Rc::new(RuleTarget::new(goals, &placer, self.host, false)))
    }

    fn parent(
        &mut self,
        process: &mut Process<'_>,
        hierarchies: &[usize],
    ) -> Result<Option<Present>, NoProcess> {
        let parent = process.status()?.parent;
        let mut reader = ProcessReader::new();
        let Ok(mut parent) = reader.process(parent) else { return Ok(None) };
        let Ok(text) = parent.control_groups() else { return Ok(None) };
        Ok(Some(self.memberships.of(self.host, text).ours().only(hierarchies)))
    }

    /// Moves it; where it is then. `is_stray`: it leaves groups that other rules lead to, too.
    fn move_into(
        &mut self,
        way: &RuleTarget,
        rule: usize,
        (pid, is_stray): (u32, bool),
        from: &Membership,
    ) -> Result<Vec<(usize, String)>, Trouble> {
        // services of systemd stay where they are, which the long way looks at
        let is_long = is_stray || self.host.needs_unit();
        if let Some(places) = way.places.as_ref().filter(|_| !is_long) {
            match put(self.host, places, pid, from) {
                Placement::Done => {
                    return Ok(places.iter().map(|place| (place.at, place.path.clone())).collect());
                }
                Placement::NoProcess => return Err(Trouble::NoProcess { taken: true }),
                Placement::Refused => self.ruling.forget_places(rule),
            }
        }
        let placer = Placer::new(self.host, &self.ruling.desired, &self.ruling.accounts);
        let placed = placer.place_at(&self.ruling.rules, &way.goals, pid);
        let made = placer.take_made();
        let placed = placed.map_err(|error| match error.gone() {
            Some(_) => Trouble::NoProcess { taken: true },
            None => Trouble::Refused { rule, error },
        });
        self.made.add(made);
        let placed = placed?;
        let hierarchies = self.host.hierarchies().iter();
        Ok(hierarchies.filter_map(|at| Some((at.id, placed.present.at(at.id)?.to_owned()))).collect())
    }
}

/// Does this process have a child? One call answers, where `/proc/PID/status` costs as much as a move.
fn has_children() -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    !matches!(waitid(WaitId::All, options), Err(Errno::CHILD))
}
