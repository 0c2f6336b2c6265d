//! The daemon's one loop: process events, signals, requests of other threads and times, each in its turn. It starts with
//! what is: the division, then every process that lives, and only then says that it is ready.

mod later_units;

use std::{
    fs::{File, OpenOptions},
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    sync::{
        Arc, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
        mpsc::channel,
    },
    thread::Builder,
};

use answers::socket::Classification;
use apply::{Lock, State};
use classify::{ClassifyOptions, Placer};
use kernel::{Host, Protection, Real};
use rustix::{
    fs::FlockOperation,
    process::{getpriority_process, setpriority_process},
};
use system::ProcessReader;
use tracing::{error, info, warn};

use later_units::LaterUnits;

use crate::{
    Applied, ConfigurationError, Counters, Division, Error, Handle, Options, ReloadResult, ReloadScope,
    alarm::Alarm,
    classifier::{Classifier, Scan},
    division,
    drift_monitor::{DriftMonitor, Why},
    elastic,
    handle::{Command, LoopStatus},
    interface::{Interface, Shared},
    kills,
    listener::Listener,
    loaded_rules::LoadedRules,
    made::MadeGroups,
    notify,
    schedules::Schedules,
    services,
    signals::Signals,
    socket,
    sources::{Event, Sources},
    strict::Strict,
    takeover::Takeover,
    uevents::Uevents,
    watching,
    worker::Worker,
};

/// The nice value, unless it was started with another. Of processes that live for 1 ms, sixteen at a time, 72 % were moved
/// before their end instead of 65 %, at the same time of CPU for each; at -5 it was 80 %, at twice that time.
const NICE: i32 = -2;

/// The loop with what it works on.
struct Daemon {
    options: Options,
    classifier: Classifier,
    division: Option<Division>,
    drift: DriftMonitor,
    schedules: Schedules,
    strict: Option<Strict>,
    counters: Arc<Counters>,
    handle: Handle,
    rights: Shared,
    /// What the recorder and the metrics see; `None`: there are none.
    watched: Option<Arc<watching::Shared>>,
    /// Why the last reload was refused, if it was.
    refused: Option<String>,
    /// The history of changes; `None`: it is not ours to change.
    state: Option<State>,
    /// Is a reload waiting for another change to end? Shared with the thread that waits.
    waiting: Arc<AtomicBool>,
    /// Why the layout is not applied since the start, if it is not.
    not_applied: Option<String>,
    /// Ends what others left behind in the history.
    takeover: Option<Takeover>,
    /// Resizes elastic groups.
    elastic: Option<Worker<()>>,
    later_units: LaterUnits,
    /// Writes down who is killed for want of memory.
    kills: Option<Worker<()>>,
    /// Divides services that start.
    services: Option<Worker<()>>,
    end: bool,
}

/// Runs until a signal ends it (SIGTERM, SIGINT), which leaves groups and processes as they are.
///
/// # Errors
/// [`Error`]: what it can't start without.
pub fn run(options: Options) -> Result<(), Error> {
    let signals = Signals::new()?;
    let (sender, commands) = channel();
    let counters = Arc::new(Counters::default());
    let _protection = Protection::of_this_process("ringfenced")
        .inspect_err(|error| warn!("{}: {error}; freezing the daemon is not refused", kernel::PROTECTED));
    let _only = options.apply.then(|| only_one(&options)).transpose()?;
    // before the machine is changed
    if let Some(path) = &options.socket {
        socket::check(path)?;
    }

    let ruling = LoadedRules::read(&options.files)?;
    let mut host = host()?;
    if needs_unit(&host, &ruling) {
        systemd::ensure_unit(&host)?;
        host = self::host()?;
    }
    // who puts processes into groups must not wait behind those that belong there
    if getpriority_process(None).is_ok_and(|nice| nice == 0) {
        let _ = setpriority_process(None, NICE);
    }
    let state = options.apply.then(|| State::open(&options.state)).transpose()?;
    let handle = Handle::new(sender, signals.waker()?, Arc::clone(&counters), state.clone());
    let division = division(&options, state.as_ref())?;
    let alarm = options.apply.then(Alarm::new).transpose().map_err(Error::of("the alarm of schedules"))?;
    // before the machine is read: an event reports what changes after
    let uevents = options.apply.then(uevents).flatten();
    // from here on no process is missed: an event reports what the scan does not see
    let listener = Listener::open(options.buffer)?;
    let mut daemon = Daemon {
        drift: DriftMonitor::new(options.keep, options.every),
        schedules: Schedules::new(alarm.clone()),
        strict: options.strict.clone().map(|words| Strict::new(words, Arc::clone(&counters))),
        classifier: Classifier::new(host, ruling, Arc::clone(&counters), MadeGroups::read(&options.state)),
        division,
        watched: watched(&options, &counters),
        options,
        counters,
        handle,
        rights: Shared::default(),
        refused: None,
        state,
        waiting: Arc::default(),
        not_applied: None,
        takeover: None,
        elastic: None,
        kills: None,
        services: None,
        later_units: LaterUnits::default(),
        end: false,
    };
    daemon.start()?;
    let socket = daemon.answer()?;
    let watching = daemon.watch();
    notify::send_state("READY=1");
    info!(rules = daemon.classifier.ruling().read.len(), "ready");
    let mut sources = Sources { listener, signals, uevents, alarm, commands };
    daemon.serve(&mut sources)?;
    notify::send_state("STOPPING=1");
    // a thread that still waits for an answer gets none
    drop(sources);
    drop(daemon.takeover.take());
    drop(daemon.elastic.take());
    drop(daemon.kills.take());
    drop(daemon.services.take());
    drop(socket);
    drop(watching);
    info!("stopped; groups stay as they are");
    Ok(())
}

/// Below systemd our groups live in a unit, made when there is a group to live there.
fn needs_unit(host: &Host, ruling: &LoadedRules) -> bool {
    host.needs_unit() && (ruling.leads_to_own_groups() || ruling.desired.has_own_groups())
}

/// Locked in the state directory by the daemon that keeps it.
const LOCK: &str = "daemon.lock";

/// Does a daemon keep this state directory? As `/proc/locks` says: a try to lock it could stop one that starts.
pub fn is_running(state: &Path) -> bool {
    let inode = std::fs::symlink_metadata(state.join(LOCK)).map(|about| about.ino());
    let (Ok(inode), Ok(locks)) = (inode, std::fs::read_to_string("/proc/locks")) else { return false };
    // `1: FLOCK  ADVISORY  WRITE 705 08:01:1234 0 EOF`
    let is_it = |line: &str| {
        let mut words = line.split_whitespace().skip(1);
        let file = words.clone().nth(4).and_then(|file| file.rsplit(':').next());
        words.next() == Some("FLOCK") && file.and_then(|file| file.parse().ok()) == Some(inode)
    };
    locks.lines().any(is_it)
}

/// Two daemons would undo each other's work.
fn only_one(options: &Options) -> Result<File, Error> {
    let state = State::open(&options.state)?;
    let path = state.directory().join(LOCK);
    let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path);
    let file = file.map_err(Error::of("the daemon's lock"))?;
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(Error::Second { path }),
        Err(errno) => Err(Error::of("the daemon's lock")(errno.into())),
    }
}

fn host() -> Result<Host, Error> {
    Ok(Host::new(Box::new(Real::new()))?)
}

/// What is shared with the recorder and the metrics, if somebody wants either.
fn watched(options: &Options, counters: &Arc<Counters>) -> Option<Arc<watching::Shared>> {
    let state = options.apply.then(|| options.state.clone());
    options.watching.is_any().then(|| Arc::new(watching::Shared::new(Arc::clone(counters), state)))
}

/// The kernel's events of devices, CPUs and memory; without them, changes are seen at the next drift check.
fn uevents() -> Option<Uevents> {
    Uevents::open()
        .inspect_err(|error| warn!("{error}; CPU and memory hotplug will not be noticed at once"))
        .ok()
}

/// The layout's keeper.
fn division(options: &Options, state: Option<&State>) -> Result<Option<Division>, Error> {
    let (Some(state), Some(layout)) = (state, options.files.layout()) else { return Ok(None) };
    Ok(Some(Division::read(state.clone(), layout)?))
}

impl Daemon {
    /// The division, strict rules, then every process that lives.
    fn start(&mut self) -> Result<(), Error> {
        // a machine that can't be divided now still has its processes classified
        if let Some(state) = self.state.clone() {
            match division::try_lock(&state) {
                Ok(Some(lock)) => self.apply_layout(&lock),
                Ok(None) => self.apply_layout_later(state.clone(), "another change has ended"),
                Err(failure) => self.not_applied(&failure.to_string(), ""),
            }
            self.kills = Some(kills::start(state.clone(), Arc::clone(&self.counters))?);
            self.services = Some(services::start(state.clone())?);
            self.elastic = Some(elastic::start(state.clone(), Arc::clone(&self.counters))?);
            self.takeover = Some(Takeover::start(state, self.handle.clone(), Arc::clone(&self.counters))?);
        }
        if let Some(strict) = &mut self.strict {
            strict.follow(self.classifier.ruling(), &self.options.files, self.handle.clone())?;
        }
        self.share();
        self.classifier.scan(Scan::Start);
        Ok(())
    }

    /// Rolls back what was interrupted before, and applies the layout.
    fn apply_layout(&mut self, lock: &Lock) {
        match Division::recover(lock, self.classifier.host()) {
            Ok(recovered) => {
                recovered.iter().for_each(|one| warn!("{one}"));
                if !recovered.is_empty() {
                    self.reread_hierarchies();
                }
            }
            Err(failure) => error!("an interrupted change cannot be rolled back: {failure}"),
        }
        let host = self.classifier.host();
        if let Ok(Some(generation)) = Division::unconfirmed(lock.state(), host) {
            let when = format!("generation {generation} is confirmed or undone");
            return self.apply_layout_later(lock.state().clone(), &when);
        }
        let with = (host, &self.handle);
        match self.division.as_mut().map(|division| self.schedules.apply(division, lock, with)).transpose() {
            Ok(applied) => {
                self.not_applied = None;
                self.report(applied.as_ref());
            }
            Err(refused) => self.not_applied(&refused.summary, refused.details.trim_end()),
        }
    }

    fn not_applied(&mut self, why: &str, details: &str) {
        error!("the layout is not applied: {why}\n{details}");
        self.not_applied = Some(format!("the layout is not applied: {why}"));
    }

    /// The same once no other change is under way or waits to be confirmed: the loop does not wait for it.
    fn apply_layout_later(&mut self, state: State, when: &str) {
        let why = format!("the layout is applied when {when}");
        warn!("{why}");
        self.not_applied = Some(why);
        let handle = self.handle.clone();
        let wait = move || match division::lock_between_changes(&state) {
            Ok(lock) => handle.send(Command::ApplyLayout(lock)),
            Err(why) => handle.send(Command::LayoutNotApplied(why)),
        };
        if let Err(error) = Builder::new().name("state-lock".to_owned()).spawn(wait) {
            self.not_applied(&error.to_string(), "");
        }
    }

    /// Opens the socket.
    fn answer(&mut self) -> Result<Option<socket::Handle>, Error> {
        let Some(path) = &self.options.socket else { return Ok(None) };
        let interface = Interface::new(self.handle.clone(), Arc::clone(&self.rights));
        let service = Arc::new(socket::Live::new(interface, &self.options.state));
        Ok(Some(socket::serve(path, service)?))
    }

    /// Starts the recorder and the metrics, as far as they are requested.
    fn watch(&self) -> Option<watching::Running> {
        let started = self.options.watching.start(self.watched.as_ref()?);
        started.inspect_err(|error| error!("recorder and metrics are off: {error}")).ok()
    }

    /// The rules in force, for who shows what they lead to.
    fn share(&mut self) {
        self.share_rights();
        self.watch_units();
        if let Some(shared) = &self.watched {
            shared.follow(self.ruling());
        }
    }

    /// Who may ask for what: from the layout in force.
    fn share_rights(&self) {
        if self.options.socket.is_some() {
            let ruling = self.ruling();
            let rights = Arc::new(socket::Rights::of(&ruling.desired, &ruling.accounts));
            *self.rights.lock().unwrap_or_else(PoisonError::into_inner) = rights;
        }
    }

    fn follow_strict(&mut self, ruling: &LoadedRules) -> Result<(), ConfigurationError> {
        let Some(strict) = &mut self.strict else { return Ok(()) };
        let followed = strict.follow(ruling, &self.options.files, self.handle.clone());
        followed.map_err(|error| ConfigurationError { summary: error.to_string(), details: String::new() })
    }

    fn report(&mut self, applied: Option<&Applied>) {
        let Some(applied) = applied else { return };
        applied.warnings.iter().for_each(|warning| warn!("{warning}"));
        if applied.steps > 0 {
            info!(generation = applied.generation, steps = applied.steps, "the layout is applied");
            self.reread_hierarchies();
        }
    }

    /// Mounts may have changed.
    fn reread_hierarchies(&mut self) {
        match host() {
            Ok(host) => self.classifier.look_again(host),
            Err(error) => error!("{error}"),
        }
        if let Some(shared) = &self.watched {
            shared.look_again();
        }
    }

    fn serve(&mut self, sources: &mut Sources) -> Result<(), Error> {
        let mut events = Vec::new();
        while !self.end {
            let due = [self.classifier.due(), self.drift.due(), self.schedules.due()];
            sources.wait(due.into_iter().flatten().min(), &mut events)?;
            events.drain(..).try_for_each(|event| self.handle(event, &mut sources.listener))?;
        }
        Ok(())
    }

    fn handle(&mut self, event: Event, listener: &mut Listener) -> Result<(), Error> {
        match event {
            Event::Machine => self.drift.machine_changed(),
            Event::Alarm => self.schedules.woke(),
            Event::Processes => self.processes(listener)?,
            Event::End => self.end = true,
            Event::Reload(scope) => self.reload_by_signal(scope),
            Event::Command(command) => self.command(command),
            Event::Tick => self.tick(),
        }
        Ok(())
    }

    /// A defect in one command does not end the loop: who waits for its answer gets none.
    fn command(&mut self, command: Command) {
        if catch_unwind(AssertUnwindSafe(|| self.carry_out(command))).is_err() {
            error!("a request failed by a defect of ringfenced; please report it");
        }
    }

    fn carry_out(&mut self, command: Command) {
        // an answer that can't be sent is one that no thread waits for any more
        match command {
            Command::Reload { scope, lock, answer } => _ = answer.send(self.reload(scope, lock)),
            Command::Status(answer) => _ = answer.send(self.status()),
            Command::Classify { pid, answer } => _ = answer.send(self.classify(pid)),
            Command::ApplyLayout(lock) => {
                self.apply_layout(&lock);
                // what was concluded while groups were missing counts no more
                self.classifier.scan_anew();
            }
            Command::LayoutNotApplied(why) => self.not_applied(&why, ""),
            Command::UnitStates(states) => self.schedules.units(states),
            Command::UnitsCame => self.bind_units(),
            Command::RereadHierarchies => self.reread_hierarchies(),
        }
    }

    fn tick(&mut self) {
        self.classifier.sweep();
        self.classifier.retry();
        self.classifier.look_at_titles();
        if let Some(division) = &mut self.division
            && self.schedules.tick(division, self.classifier.host())
        {
            self.watch_units();
            self.reread_hierarchies();
        }
        if let Some(why) = self.drift.is_time() {
            self.keep(why);
        }
        self.classifier.sign();
    }

    fn status(&self) -> LoopStatus {
        let ruling = self.ruling();
        LoopStatus {
            files: self.options.files.files().map(|files| files.rules).unwrap_or_default(),
            groups: ruling.desired.groups.len(),
            rules: ruling.rules.len(),
            not_in_effect: self.not_in_effect(),
            troubles: self.troubles(),
        }
    }

    fn classify(&self, pid: u32) -> Result<Classification, answers::Problem> {
        let ruling = self.ruling();
        let placer = Placer::new(self.classifier.host(), &ruling.desired, &ruling.accounts);
        let mut reader = ProcessReader::new();
        let mut process = reader.process(pid)?;
        let placed = placer.classify(
            &ruling.rules,
            &mut process,
            ClassifyOptions { dry_run: true, respect_manual_moves: true },
        )?;
        Ok(Classification::of(&placed, &ruling.rules))
    }

    fn processes(&mut self, listener: &mut Listener) -> Result<(), Error> {
        let received = listener.recv(|event| {
            self.schedules.take(&event);
            self.classifier.take(event);
        })?;
        self.classifier.act();
        if received.overrun {
            Counters::count(&self.counters.overruns);
            self.schedules.look_again();
            self.classifier.scan(Scan::Overrun);
        }
        Ok(())
    }

    fn reload_by_signal(&mut self, scope: ReloadScope) {
        match self.handle.state_of(scope).map(division::try_lock) {
            None => reported(self.reload(scope, Ok(None)).map(drop)),
            Some(Ok(Some(lock))) => reported(self.reload(scope, Ok(Some(lock))).map(drop)),
            Some(Ok(None)) => self.reload_later(scope),
            Some(Err(failure)) => reported(self.reload(scope, Err(division::failed(failure))).map(drop)),
        }
    }

    /// Reloads once another change has ended: the loop does not wait for it.
    fn reload_later(&self, scope: ReloadScope) {
        if self.waiting.swap(true, Relaxed) {
            return; // that one reads what is there by then
        }
        let (handle, waiting) = (self.handle.clone(), Arc::clone(&self.waiting));
        let wait = move || {
            let reloaded = handle.reload(scope).map(drop);
            waiting.store(false, Relaxed);
            reported(reloaded);
        };
        if let Err(error) = Builder::new().name("reload".to_owned()).spawn(wait) {
            self.waiting.store(false, Relaxed);
            error!("reload failed, still using the old configuration: {error}");
        }
    }

    fn keep(&mut self, why: Why) {
        if let Some(division) = &mut self.division {
            division.begin_look();
            self.schedules.forget_undone(division);
        }
        if let Some(division) = &mut self.division
            && self.drift.look(division, why, self.classifier.host(), &self.counters)
        {
            self.reread_hierarchies();
        }
        if let Some(takeover) = &self.takeover {
            takeover.look();
        }
    }

    /// Reads the configuration again; the old one stays in force if the new one has errors or can't be applied. `lock`: of
    /// the state ([`Handle::state_of`]), or why there is none.
    ///
    /// # Errors
    /// [`ConfigurationError`] with every error.
    fn reload(
        &mut self,
        scope: ReloadScope,
        lock: Result<Option<Lock>, ConfigurationError>,
    ) -> Result<ReloadResult, ConfigurationError> {
        notify::send_state("RELOADING=1");
        let reloaded = lock.and_then(|lock| self.reloaded(scope, lock.as_ref()));
        let counter = if reloaded.is_ok() { &self.counters.reloads } else { &self.counters.refused };
        Counters::count(counter);
        self.refused = reloaded.as_ref().err().map(ToString::to_string);
        notify::send_state("READY=1");
        reloaded
    }

    fn reloaded(
        &mut self,
        scope: ReloadScope,
        lock: Option<&Lock>,
    ) -> Result<ReloadResult, ConfigurationError> {
        let files = &self.options.files;
        let ruling = match scope {
            ReloadScope::All | ReloadScope::Rules => LoadedRules::read(files)?,
            ReloadScope::Templates => self.classifier.ruling().with_templates_of(files)?,
        };
        if needs_unit(self.classifier.host(), &ruling) {
            systemd::ensure_unit(self.classifier.host())?;
            self.reread_hierarchies();
        }
        let applied = lock.map_or(Ok(None), |lock| self.reapply_layout(lock))?;
        if scope != ReloadScope::Templates {
            self.follow_strict(&ruling)?;
        }
        let (rules, templates) = (ruling.read.len(), ruling.desired.templates.len());
        self.classifier.follow(ruling);
        self.share();
        if scope != ReloadScope::Templates {
            self.classifier.scan(Scan::Reload);
        }
        info!(rules, templates, "reloaded");
        Ok(ReloadResult { rules, templates, applied })
    }

    /// Applies the layout as it is now; on an error the layout before stays active.
    fn reapply_layout(&mut self, lock: &Lock) -> Result<Option<Applied>, ConfigurationError> {
        let layout = self.options.files.layout();
        self.classifier.let_go();
        let mut new = layout.map(|layout| Division::read(lock.state().clone(), layout)).transpose()?;
        let host = self.classifier.host();
        let with = (host, &self.handle);
        let applied = new.as_mut().map(|division| self.schedules.apply(division, lock, with)).transpose()?;
        self.division = new;
        self.not_applied = None;
        self.report(applied.as_ref());
        Ok(applied)
    }

    fn ruling(&self) -> &LoadedRules {
        self.classifier.ruling()
    }

    /// What is wrong now: a refused reload, a division that is not as applied.
    fn troubles(&self) -> Vec<String> {
        let troubles = self.not_in_effect().into_iter().chain(self.drift.troubles());
        troubles.chain(self.schedules.trouble()).chain(self.later_units.trouble()).collect()
    }

    fn not_in_effect(&self) -> Vec<String> {
        self.refused.iter().chain(&self.not_applied).cloned().collect()
    }
}

/// What came of a reload that nobody waits for.
fn reported(reloaded: Result<(), ConfigurationError>) {
    if let Err(refused) = reloaded {
        let details = refused.details.trim_end();
        error!("reload failed, still using the old configuration: {refused}\n{details}");
    }
}
