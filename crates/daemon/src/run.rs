//! The daemon's one loop: process events, signals, requests of other threads and times, each in its turn. It starts with
//! what is: the division, then every process that lives, and only then says that it is ready.

use std::{
    fs::{File, OpenOptions},
    os::unix::fs::OpenOptionsExt,
    sync::{
        Arc, PoisonError,
        mpsc::{Receiver, channel},
    },
    time::{Duration, Instant},
};

use apply::State;
use kernel::{Host, Real};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::FlockOperation,
    process::{getpriority_process, setpriority_process},
};
use tracing::{error, info, warn};

use crate::{
    Applied, Counters, Division, Error, Handle, Options, Refused, Reloaded, What,
    classifier::{Classifier, Scan},
    handle::Request,
    interface::{Interface, Shared},
    keeping::{Keeping, Why},
    listener::Listener,
    notify,
    ruling::Ruling,
    signals::Signals,
    socket,
    strict::Strict,
    uevents::Uevents,
    watching,
};

/// The nice value, unless it was started with another. Of processes that live for 1 ms, sixteen at a time, 72 % were moved
/// before their end instead of 65 %, at the same time of CPU for each; at -5 it was 80 %, at twice that time.
const NICE: i32 = -2;

/// The daemon, as requests find it.
pub struct Daemon {
    options: Options,
    classifier: Classifier,
    division: Option<Division>,
    keeping: Keeping,
    strict: Option<Strict>,
    counters: Arc<Counters>,
    handle: Handle,
    rights: Shared,
    /// What the recorder and the metrics see; `None`: there are none.
    watched: Option<Arc<watching::Shared>>,
    /// Why the last reload was refused, if it was.
    refused: Option<String>,
    end: bool,
}

/// Runs until it is told to end (SIGTERM, SIGINT), which leaves groups and processes as they are.
///
/// # Errors
/// [`Error`]: what it can't start without.
pub fn run(options: Options) -> Result<(), Error> {
    let mut signals = Signals::new()?;
    let (sender, requests) = channel();
    let counters = Arc::new(Counters::default());
    let handle = Handle::new(sender, signals.waker()?, Arc::clone(&counters));
    let _only = options.apply.then(|| only_one(&options)).transpose()?;

    let ruling = Ruling::read(&options.files)?;
    let mut host = host()?;
    if needs_unit(&host, &ruling, &options) {
        kernel::ensure_unit(&host)?;
        host = self::host()?;
    }
    // who puts processes into groups must not wait behind those that belong there
    if getpriority_process(None).is_ok_and(|nice| nice == 0) {
        let _ = setpriority_process(None, NICE);
    }
    let division = division(&options, &host)?;
    // before the machine is looked at: what changes after is told
    let mut uevents = options.apply.then(uevents).flatten();
    // from here on no process is missed: what the scan does not see is told by an event
    let mut listener = Listener::open(options.buffer)?;
    let mut daemon = Daemon {
        keeping: Keeping::new(options.keep, options.every),
        strict: options.strict.clone().map(|words| Strict::new(words, Arc::clone(&counters))),
        classifier: Classifier::new(host, ruling, Arc::clone(&counters)),
        division,
        watched: watched(&options, &counters),
        options,
        counters,
        handle,
        rights: Shared::default(),
        refused: None,
        end: false,
    };
    daemon.start()?;
    let socket = daemon.answer()?;
    let watching = daemon.watch();
    notify::tell("READY=1");
    info!(rules = daemon.classifier.ruling().read.len(), "ready");
    daemon.serve(&mut listener, &mut signals, &mut uevents, &requests)?;
    notify::tell("STOPPING=1");
    // who still waits for an answer is told that there will be none
    drop(requests);
    drop(socket);
    drop(watching);
    info!("ended; groups stay as they are");
    Ok(())
}

/// Below systemd our groups live in a unit, made when there is a group to live there.
fn needs_unit(host: &Host, ruling: &Ruling, options: &Options) -> bool {
    host.needs_unit() && (!ruling.read.is_empty() || options.files.layout().is_some())
}

/// Two daemons would undo each other's work.
fn only_one(options: &Options) -> Result<File, Error> {
    let state = State::open(&options.state)?;
    let path = state.directory().join("daemon.lock");
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

/// What comes and goes is told as far as the kernel lets us know; what is not is seen when the division is looked at.
fn uevents() -> Option<Uevents> {
    Uevents::open().inspect_err(|error| warn!("{error}; they are not followed")).ok()
}

/// The layout's keeper; what was broken off before is put back.
fn division(options: &Options, host: &Host) -> Result<Option<Division>, Error> {
    if !options.apply {
        return Ok(None);
    }
    let state = State::open(&options.state)?;
    for told in Division::recover(&state, host)? {
        warn!("{told}");
    }
    Ok(options.files.layout().map(|layout| Division::read(state, layout)).transpose()?)
}

impl Daemon {
    /// The division, strict rules, then every process that lives.
    fn start(&mut self) -> Result<(), Error> {
        // a machine that can't be divided now still has its processes classified
        let host = self.classifier.host();
        match self.division.as_mut().map(|division| division.apply(host)).transpose() {
            Ok(applied) => self.tell(applied.as_ref()),
            Err(refused) => error!("the layout is not applied: {refused}\n{}", refused.details.trim_end()),
        }
        if let Some(strict) = &mut self.strict {
            strict.follow(self.classifier.ruling(), &self.options.files, self.handle.clone())?;
        }
        self.share();
        self.classifier.scan(Scan::Start);
        Ok(())
    }

    /// Opens the socket.
    fn answer(&mut self) -> Result<Option<socket::Handle>, Error> {
        let Some(path) = &self.options.socket else { return Ok(None) };
        let interface = Interface::new(self.handle.clone(), Arc::clone(&self.rights));
        let service = Arc::new(socket::Live::new(interface, &self.options.state));
        Ok(Some(socket::serve(path, service)?))
    }

    /// Starts the recorder and the metrics, as far as they are asked for.
    fn watch(&self) -> Option<watching::Running> {
        let started = self.options.watching.start(self.watched.as_ref()?);
        started.inspect_err(|error| error!("nothing is recorded or shown: {error}")).ok()
    }

    /// The rules in force, for who shows what they lead to.
    fn share(&self) {
        self.share_rights();
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

    fn hold(&mut self, ruling: &Ruling) -> Result<(), Refused> {
        let Some(strict) = &mut self.strict else { return Ok(()) };
        let followed = strict.follow(ruling, &self.options.files, self.handle.clone());
        followed.map_err(|error| Refused { summary: error.to_string(), details: String::new() })
    }

    fn tell(&mut self, applied: Option<&Applied>) {
        let Some(applied) = applied else { return };
        applied.told.iter().for_each(|told| warn!("{told}"));
        if applied.steps > 0 {
            info!(generation = applied.generation, steps = applied.steps, "the layout is applied");
            self.look_again();
        }
    }

    /// Mounts may have changed.
    fn look_again(&mut self) {
        match host() {
            Ok(host) => self.classifier.look_again(host),
            Err(error) => error!("{error}"),
        }
        if let Some(shared) = &self.watched {
            shared.look_again();
        }
    }

    fn serve(
        &mut self,
        listener: &mut Listener,
        signals: &mut Signals,
        uevents: &mut Option<Uevents>,
        requests: &Receiver<Request>,
    ) -> Result<(), Error> {
        while !self.end {
            let due = [listener.due(), self.classifier.due(), self.keeping.due()];
            let due = due.into_iter().flatten().min();
            let Woken { event, woken, machine } = waited(listener, signals, uevents.as_ref(), due)?;
            if machine && uevents.as_mut().is_some_and(Uevents::take) {
                self.keeping.machine_changed();
            }
            if event || listener.is_due() {
                self.events(listener)?;
            }
            if woken {
                self.signals(signals);
                requests.try_iter().for_each(|request| request(self));
            }
            self.classifier.sweep();
            self.classifier.retry();
            if let Some(why) = self.keeping.is_time() {
                self.keep(why);
            }
            self.classifier.sign();
        }
        Ok(())
    }

    fn events(&mut self, listener: &mut Listener) -> Result<(), Error> {
        let received = listener.recv(|event| self.classifier.take(event))?;
        self.classifier.act();
        if received.overrun {
            Counters::count(&self.counters.overruns);
            self.classifier.scan(Scan::Overrun);
        }
        Ok(())
    }

    fn signals(&mut self, signals: &mut Signals) {
        let asked = signals.asked();
        self.end |= asked.end;
        let what = match asked {
            _ if asked.all => What::All,
            _ if asked.rules => What::Rules,
            _ if asked.templates => What::Templates,
            _ => return,
        };
        if let Err(refused) = self.reload(what) {
            error!("not reloaded, what was in force stays: {refused}\n{}", refused.details.trim_end());
        }
    }

    fn keep(&mut self, why: Why) {
        if let Some(division) = &mut self.division
            && self.keeping.look(division, why, self.classifier.host(), &self.counters)
        {
            self.look_again();
        }
    }

    /// Reads the configuration anew; what was in force stays if the new one has errors or can't be applied.
    ///
    /// # Errors
    /// [`Refused`] with every error.
    pub fn reload(&mut self, what: What) -> Result<Reloaded, Refused> {
        notify::tell("RELOADING=1");
        let reloaded = self.reloaded(what);
        let counter = if reloaded.is_ok() { &self.counters.reloads } else { &self.counters.refused };
        Counters::count(counter);
        self.refused = reloaded.as_ref().err().map(ToString::to_string);
        notify::tell("READY=1");
        reloaded
    }

    fn reloaded(&mut self, what: What) -> Result<Reloaded, Refused> {
        let files = &self.options.files;
        let ruling = match what {
            What::All | What::Rules => Ruling::read(files)?,
            What::Templates => self.classifier.ruling().with_templates_of(files)?,
        };
        if needs_unit(self.classifier.host(), &ruling, &self.options) {
            kernel::ensure_unit(self.classifier.host())?;
            self.look_again();
        }
        let applied = if what == What::All && self.options.apply { self.redivide()? } else { None };
        if what != What::Templates {
            self.hold(&ruling)?;
        }
        let (rules, templates) = (ruling.read.len(), ruling.desired.templates.len());
        self.classifier.follow(ruling);
        self.share();
        if what != What::Templates {
            self.classifier.scan(Scan::Reload);
        }
        info!(rules, templates, "reloaded");
        Ok(Reloaded { rules, templates, applied })
    }

    /// Applies the layout as it is now; where that can't be, the one before stays the one that is kept.
    fn redivide(&mut self) -> Result<Option<Applied>, Refused> {
        let state = State::open(&self.options.state)
            .map_err(|failure| Refused { summary: failure.to_string(), details: String::new() })?;
        let layout = self.options.files.layout();
        self.classifier.let_go();
        let mut new = layout.map(|layout| Division::read(state, layout)).transpose()?;
        let host = self.classifier.host();
        let applied = new.as_mut().map(|division| division.apply(host)).transpose()?;
        self.division = new;
        self.tell(applied.as_ref());
        Ok(applied)
    }

    /// The host as the daemon sees it.
    pub fn host(&self) -> &Host {
        self.classifier.host()
    }

    /// The rules in force, with the configuration that they are of.
    pub fn rules(&self) -> (&classify::Rules, &layout::Desired) {
        (&self.classifier.ruling().rules, &self.classifier.ruling().desired)
    }

    pub(crate) fn ruling(&self) -> &Ruling {
        self.classifier.ruling()
    }

    /// What is wrong now: a refused reload, a division that is not as applied.
    pub fn troubles(&self) -> Vec<String> {
        self.refused.iter().cloned().chain(self.keeping.troubles()).collect()
    }

    /// How many processes it remembers.
    pub fn remembered(&self) -> usize {
        self.classifier.remembered()
    }

    /// What it was asked to do.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Lets it end after this round.
    pub fn end(&mut self) {
        self.end = true;
    }
}

/// Why the loop woke.
struct Woken {
    /// Of processes.
    event: bool,
    /// A signal or a request.
    woken: bool,
    /// Of CPUs, memory or devices.
    machine: bool,
}

/// Waits until something is to be done: an event, a wake, or nothing but the time.
fn waited(
    listener: &Listener,
    signals: &Signals,
    uevents: Option<&Uevents>,
    due: Option<Instant>,
) -> Result<Woken, Error> {
    let left = due.map(|due| due.saturating_duration_since(Instant::now()));
    // never before the time
    let left = left.map(|left| timespec(left + Duration::from_millis(1)));
    let (urgent, others) = listener.fds();
    // one that is not there stands for the first, and is the same
    let fds = [urgent, others.unwrap_or(urgent), signals.fd(), uevents.map_or(signals.fd(), Uevents::fd)];
    let mut all = fds.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
    match poll(&mut all, left.as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(errno) => return Err(Error::of("poll")(errno.into())),
    }
    let [urgent, others, woken, machine] = all.map(|one| !one.revents().is_empty());
    Ok(Woken { event: urgent || others, woken, machine })
}

fn timespec(time: Duration) -> Timespec {
    Timespec { tv_sec: time.as_secs().try_into().unwrap_or(i64::MAX), tv_nsec: time.subsec_nanos().into() }
}
