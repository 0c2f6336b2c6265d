//! Strict rules: the gate's own process, which holds the start of their programs until these are in their groups, and
//! the daemon's side of it, which keeps a gate running ([`events::Watchdog`]).
//!
//! In the gate, a strict rule goes before a hand that placed the process: what it promises holds for every start. What
//! can't be decided or moved is let go, and the daemon sees it after its exec like any other.

use std::{
    borrow::Cow,
    ffi::OsString,
    fs::File,
    io::stdout,
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd},
        unix::{ffi::OsStrExt, process::CommandExt},
    },
    path::{Path, PathBuf},
    process::Command,
    sync::{Arc, mpsc::channel},
    time::{Duration, Instant},
};

use classify::{Decision, Facts, Membership, Placer, Relative};
use events::{Control, ExecGate, Notice, Watchdog};
use kernel::{Host, Protection, Real};
use rustix::process::getppid;
use settings::{Controller, Version};
use system::{NoProcess, Process, ProcessReader, Program, Status};
use tracing::{error, info, warn};

use crate::{
    Counters, Error, Gate, Handle, RuleFiles,
    loaded_rules::LoadedRules,
    put::{Place, Placement, put},
    tally::{Outcome, Tallies, Tally},
};

/// How long a reload waits until the new gate holds, before the old one goes.
const CHANGE: Duration = Duration::from_secs(5);

/// The name by which a gate is started (its `argv[0]`).
pub const GATE: &str = "ringfenced-gate";

/// The word before how long the kernel lets a gate live that does not answer, in milliseconds.
const WITHIN: &str = "--within";

/// The word before the half of the tallies that a gate has, whose standard output they are then.
const COUNTS: &str = "--counts";

/// The gate, as the daemon has it.
pub(crate) struct Strict {
    gate: Gate,
    counters: Arc<Counters>,
    /// `None` without strict rules.
    running: Option<Watchdog>,
    /// Whose half of the tallies the next gate has.
    second: bool,
}

impl Strict {
    pub fn new(gate: Gate, counters: Arc<Counters>) -> Strict {
        Strict { gate, counters, running: None, second: false }
    }

    /// Gates the starts of these rules' programs. A gate that ran before ends once the new one serves. `wake` is notified
    /// whenever a gate begins to serve, as no earlier start was gated.
    ///
    /// # Errors
    /// The watchdog's thread cannot be started. [`Error::NoGate`]: the gate before stays.
    pub fn follow(&mut self, ruling: &LoadedRules, files: &RuleFiles, wake: Handle) -> Result<(), Error> {
        let programs = ruling.gated_programs();
        if programs.is_empty() {
            self.running = None;
            return Ok(());
        }
        info!("gating the starts of {}", shown(&programs));
        let tallies = self.counters.tallies();
        let (command, counters) = (self.command(files, tallies.is_some()), Arc::clone(&self.counters));
        self.second = !self.second;
        let (serving, served) = channel();
        let gate = move || made(&command, tallies.as_deref());
        let notice = move |notice: Notice| {
            match notice {
                Notice::Serving(pid) => {
                    Counters::count(&counters.gates);
                    info!(pid, "strict rules are in force");
                    let _ = serving.send(());
                }
                Notice::Late(pid) => {
                    Counters::count(&counters.gates_late);
                    error!(pid, "the exec gate timed out and was killed");
                }
                Notice::Ended(pid, status) => {
                    Protection::forget(pid);
                    warn!(pid, "the exec gate ended: {status}");
                }
                Notice::Stopped(pid) => Protection::forget(pid),
                Notice::NotStarted(problem) => error!("the exec gate cannot be started: {problem}"),
            }
            wake.wake();
        };
        let new = Watchdog::start(self.gate.limits, gate, notice)?;
        let holds = served.recv_timeout(CHANGE).is_ok();
        if !holds && self.running.is_some() {
            return Err(Error::NoGate);
        }
        if !holds {
            warn!("strict rules are not in force yet: the exec gate does not answer");
        }
        self.running = Some(new);
        Ok(())
    }

    fn command(&self, files: &RuleFiles, counts: bool) -> Vec<OsString> {
        let mut words = self.gate.words.clone();
        let within = self.gate.limits.unwatched().as_millis().to_string();
        words.extend([WITHIN.to_owned(), within].map(OsString::from));
        if counts {
            words.extend([COUNTS, if self.second { "second" } else { "first" }].map(OsString::from));
        }
        let mut path =
            |name: &str, path: &PathBuf| words.extend([name.into(), path.clone().into_os_string()]);
        match files {
            RuleFiles::Below(etc) => path("--etc", etc),
            RuleFiles::Libcgroup(etc) => path("--libcgroup", etc),
            RuleFiles::These { layout, rules, templates } => {
                layout.iter().for_each(|layout| path("--layout", layout));
                rules.iter().for_each(|file| path("--rules", file));
                templates.iter().for_each(|file| path("--templates", file));
            }
        }
        words
    }
}

/// This program, also if its file was replaced meanwhile.
fn made(words: &[OsString], tallies: Option<&Tallies>) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.arg0(GATE).args(words);
    if let Some(file) = tallies.and_then(|tallies| tallies.file().ok()) {
        command.stdout(file);
    }
    command
}

fn shown(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}

/// The gate's process: `words` are what [`crate::Options::strict`]'s were followed by. Returns when it is no longer
/// wanted.
///
/// # Errors
/// It can't hold starts, or the rules can't be read; starts go on then.
pub fn gate(words: impl IntoIterator<Item = OsString>) -> Result<(), Error> {
    let mut words = words.into_iter().peekable();
    let within = words.next_if(|word| word == WITHIN).and_then(|_| words.next()?.to_str()?.parse().ok());
    let default = events::Limits::default().unwatched();
    let control = Control::of_gate(within.map_or(default, Duration::from_millis))?;
    // before the first start waits: moving or freezing this process would block them all
    let _protection = Protection::of_this_process("the exec gate of ringfenced")
        .inspect_err(|error| warn!("{}: {error}; freezing the exec gate is not refused", kernel::PROTECTED));
    let mut tally = words.next_if(|word| word == COUNTS).and_then(|_| {
        let second = words.next().is_some_and(|half| half == "second");
        Some(Tally::new(File::from(stdout().as_fd().try_clone_to_owned().ok()?), second))
    });
    let files = files(words);
    // all that may call another process or wait is done before the first start waits
    let mut ruling = LoadedRules::read(&files)?;
    let host = Host::new(Box::new(Real::new()))?;
    leave_frozen_groups(&host);
    for rule in 0..ruling.read.len() {
        let _ = ruling.fixed(rule, &host);
    }
    let programs = ruling.gated_programs();
    let mut reader = ProcessReader::new();
    let own = std::fs::read_link("/proc/self/exe").unwrap_or_default();
    let gate = ExecGate::open(control, programs)?;
    for problem in gate.not_gated() {
        warn!("{problem}; other programs are still gated");
    }
    gate.serve(|pid, file| {
        // the daemon sees and reports failures after the exec
        let since = Instant::now();
        let outcome = admit(&mut ruling, &host, &mut reader, (pid, file), &own);
        if let Some(tally) = &mut tally {
            tally.count(outcome.unwrap_or(Outcome::LeftAsItWas), since.elapsed());
        }
    })?;
    Ok(())
}

/// The kernel can't end a process that cgroup v1's freezer froze, which the timer of an unwatched gate is for: the gate
/// goes where that freezer can't reach it. No other group is touched.
fn leave_frozen_groups(host: &Host) {
    let v1 = host.hierarchies().iter().filter(|at| at.version == Version::V1);
    for at in v1.filter(|at| at.controllers.contains(&Controller::Freezer)) {
        let group = host.kernel().group_of(at, std::process::id()).ok();
        if group.and_then(|path| at.below_mount(&path)).is_none_or(|group| group.is_empty()) {
            continue;
        }
        if let Err(errno) = host.kernel().write(at, "", "cgroup.procs", &std::process::id().to_string()) {
            warn!("the exec gate could not leave its freezer group: {errno}");
        }
    }
}

fn files(words: impl IntoIterator<Item = OsString>) -> RuleFiles {
    let mut words = words.into_iter();
    let (mut layout, mut rules, mut templates) = (None, Vec::new(), Vec::new());
    while let (Some(name), Some(path)) = (words.next(), words.next()) {
        let path = PathBuf::from(path);
        match name.to_str() {
            Some("--etc") => return RuleFiles::Below(path),
            Some("--libcgroup") => return RuleFiles::Libcgroup(path),
            Some("--layout") => layout = Some(path),
            Some("--rules") => rules.push(path),
            _ => templates.push(path),
        }
    }
    RuleFiles::These { layout, rules, templates }
}

/// Puts a process that waits for its start where the first rule leads that fits what it will be.
fn admit(
    ruling: &mut LoadedRules,
    host: &Host,
    reader: &mut ProcessReader,
    (pid, file): (u32, BorrowedFd<'_>),
    own: &Path,
) -> Result<Outcome, NoProcess> {
    // a process outside of our PID namespace has no number here
    if pid == 0 {
        return Ok(Outcome::LetGo);
    }
    let link = rustix::fs::readlink(format!("/proc/self/fd/{}", file.as_raw_fd()), Vec::new());
    let Ok(program) = link else { return Ok(Outcome::LetGo) };
    let program = Cow::from(program.as_bytes().to_vec());
    let is_own = program.as_ref() == own.as_os_str().as_bytes();
    let mut starting = Starting { process: reader.process_at_gate(pid), program };
    let Decision::To { rule } = ruling.rules.decide(&mut starting)? else { return Ok(Outcome::LeftAsItWas) };
    // the next gate, which has not registered itself yet
    let daemon = getppid().map_or(0, |parent| parent.as_raw_pid().unsigned_abs());
    if is_own && starting.process.status()?.parent == daemon {
        return Ok(Outcome::LeftAsItWas);
    }
    // a group that is to be made, or was not there when the rules were read, is the daemon's to see to
    let Some(way) = ruling.fixed(rule, host) else { return Ok(Outcome::LetGo) };
    let Some(places) = &way.places else { return Ok(Outcome::LetGo) };
    // one write is mostly sooner done than it is seen whether it has to be, and has nothing to take back
    let from = match places.as_slice() {
        [_] => Membership::default(),
        _ => Membership::of(host, starting.control_groups()?),
    };
    if Place::hold(places, &from) {
        return Ok(Outcome::LeftAsItWas);
    }
    if host.needs_unit() {
        // systemd's services stay where they are, which the long way looks at
        let goals = way.goals.clone();
        let placer = Placer::new(host, &ruling.desired, &ruling.accounts);
        let placed = placer.place_at(&ruling.rules, &goals, pid);
        return Ok(if placed.is_ok() { Outcome::Moved } else { Outcome::LetGo });
    }
    Ok(match put(host, places, pid, &from) {
        Placement::Done => Outcome::Moved,
        Placement::NoProcess => Outcome::LeftAsItWas,
        Placement::Refused => {
            ruling.forget_places(rule);
            Outcome::LetGo
        }
    })
}

/// A process as it will be once its exec goes on. What would wait for that exec, or belongs to another program until then,
/// is not read.
struct Starting<'p> {
    process: Process<'p>,
    program: Cow<'p, [u8]>,
}

impl Facts for Starting<'_> {
    fn pid(&self) -> u32 {
        self.process.pid()
    }

    fn status(&mut self) -> Result<Status, NoProcess> {
        self.process.status()
    }

    fn owner(&mut self) -> Result<(u32, u32), NoProcess> {
        self.process.owner()
    }

    fn kernel_thread(&mut self) -> Result<bool, NoProcess> {
        // a thread of the kernel's own that executes a program is one no more
        Ok(false)
    }

    fn groups(&mut self) -> Result<&[u32], NoProcess> {
        self.process.groups()
    }

    fn program(&mut self) -> Result<Program<'_>, NoProcess> {
        Ok(Program { executable: &self.program, claimed: None })
    }

    fn realtime(&mut self) -> Result<bool, NoProcess> {
        Ok(self.process.stat()?.realtime)
    }

    fn command(&mut self) -> Result<&[u8], NoProcess> {
        Ok(b"")
    }

    fn environment(&mut self) -> Result<Option<&[u8]>, NoProcess> {
        Ok(None)
    }

    fn control_groups(&mut self) -> Result<&[u8], NoProcess> {
        self.process.control_groups()
    }

    fn session(&mut self) -> Result<u32, NoProcess> {
        Ok(self.process.stat()?.session)
    }

    fn relative(&mut self, pid: u32) -> Result<Relative, NoProcess> {
        Facts::relative(&mut self.process, pid)
    }
}
