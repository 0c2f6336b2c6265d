//! From what happened to processes to where they are: events are gathered, each process judged once, and moved at once.
//! The decision is [`classify::Rules`]' and [`classify::settle`]'s; what is made on demand is [`classify::Placer`]'s.

mod judge;

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

use judge::{Judge, Trouble};

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
            self.titles.seen(pid, now);
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
