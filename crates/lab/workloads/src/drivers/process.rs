//! A tool while it runs. It writes into files of its own, so that it never waits for a reader; it does not outlive
//! the thread that started it, not even after SIGKILL, nor the value that stands for it.

use std::{
    ops::{Deref, DerefMut},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, poll},
    fd::OwnedFd,
    process::{
        Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, pidfd_open, waitid,
    },
    time::Timespec,
};

use super::{
    bounded_log::BoundedLog,
    programs,
    reaped::{self, Used},
};
use crate::{Error, Failure, Launch, Stop, files};

/// How often a state is looked at that nobody says.
pub(crate) const POLL: Duration = Duration::from_millis(5);

/// How long a tool may take to begin, or to end after its signal. Generous: a group's limits hold for it, too.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Once a stop was requested, a tool that was sent its signal has this long.
const AFTER_STOP: Duration = Duration::from_secs(1);

/// How often a wait looks whether a stop was requested.
const LOOK: Duration = Duration::from_millis(100);

/// A tool's command, with what ends the wait for it.
pub struct Tool {
    command: Command,
    stop: Stop,
}

impl Tool {
    /// Of a program that [`Launch`] starts.
    pub fn new(command: Command, stop: Stop) -> Tool {
        Tool { command, stop }
    }

    /// What ends the wait for it.
    pub fn stop(&self) -> Stop {
        self.stop.clone()
    }
}

impl Deref for Tool {
    type Target = Command;

    fn deref(&self) -> &Command {
        &self.command
    }
}

impl DerefMut for Tool {
    fn deref_mut(&mut self) -> &mut Command {
        &mut self.command
    }
}

/// A command whose program begins in a group, as another user if need be, and is sent `at_end` if we die.
pub(crate) fn command(
    launch: &dyn Launch,
    group: Option<&str>,
    program: &Path,
    user: Option<&str>,
    at_end: &str,
) -> Tool {
    Tool::new(plain_command(launch, group, program, user, at_end), launch.stop())
}

fn plain_command(
    launch: &dyn Launch,
    group: Option<&str>,
    program: &Path,
    user: Option<&str>,
    at_end: &str,
) -> Command {
    // setpriv(1) sets both after it has changed the user, which would clear the signal
    let Some(setpriv) = programs::on_path("setpriv") else {
        return launch.command(group, program.as_os_str());
    };
    let mut command = launch.command(group, setpriv.as_os_str());
    command.arg("--pdeathsig").arg(at_end);
    if let Some(user) = user {
        command.args([format!("--reuid={user}"), format!("--regid={user}"), "--clear-groups".to_owned()]);
    }
    command.arg("--").arg(program);
    command
}

/// A tool's process with whatever it starts in its process group.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    /// Its end wakes the wait for it; `None`: it is polled.
    descriptor: Option<OwnedFd>,
    /// Of the child, once it was waited for: its number may then be another's.
    status: Option<ExitStatus>,
    /// What it used, from then on.
    used: Option<Used>,
    output: PathBuf,
    messages: PathBuf,
    /// Not written to its end yet.
    logs: Vec<BoundedLog>,
    stop: Stop,
}

impl Process {
    /// Starts it. What it prints goes to `NAME.out` and `NAME.err` in the directory.
    ///
    /// # Errors
    /// The files can't be made, or the program can't be started.
    pub fn start(mut command: Tool, name: &str, directory: &Path) -> Result<Process, Error> {
        command.stdin(Stdio::null());
        Process::start_with_input(command, name, directory)
    }

    /// Starts a program that goes on until [`Process::end_input`] (its standard input is what the command has).
    ///
    /// # Errors
    /// As [`Process::start`].
    pub fn start_with_input(mut command: Tool, name: &str, directory: &Path) -> Result<Process, Error> {
        let path = |end: &str| directory.join(format!("{name}.{end}"));
        let log = |path: &Path| BoundedLog::begin(path).map_err(Failure::file("create", path));
        let (output, messages) = (path("out"), path("err"));
        let ((out, out_log), (err, err_log)) = (log(&output)?, log(&messages)?);
        let child = command
            .current_dir(directory)
            .stdout(out)
            .stderr(err)
            // Ctrl-C is for us: we end our children ourselves
            .process_group(0)
            .spawn()
            .map_err(|source| Error::Start { name: name.to_owned(), source })?;
        let stop = command.stop();
        drop(command); // its ends of the pipes are the child's alone
        let descriptor = pid_of(child.id()).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        let logs = vec![out_log, err_log];
        Ok(Process {
            name: name.to_owned(),
            child,
            descriptor,
            status: None,
            used: None,
            output,
            messages,
            logs,
            stop,
        })
    }

    /// What it used, once it has ended.
    pub(crate) fn used(&self) -> Option<Used> {
        self.used
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it printed.
    pub fn output(&self) -> &Path {
        &self.output
    }

    /// What it said on standard error.
    pub fn messages(&self) -> &Path {
        &self.messages
    }

    /// How it ended, if it did. What it left behind in its process group ends with it.
    ///
    /// # Errors
    /// It can't be waited for.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>, Error> {
        let failed = |source| Error::System { what: "cannot wait for a tool", source };
        if let (None, Some(pid)) = (self.status, pid_of(self.pid())) {
            let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
            if waitid(WaitId::Pid(pid), look).map_err(|errno| failed(errno.into()))?.is_some() {
                let _ = kill_process_group(pid, Signal::KILL);
                let (status, used) = reaped::reap(&self.child).map_err(failed)?;
                (self.status, self.used) = (Some(status), Some(used));
                self.logs.drain(..).for_each(BoundedLog::end);
            }
        }
        Ok(self.status)
    }

    /// The end of its standard input, if that was a pipe.
    pub fn end_input(&mut self) {
        drop(self.child.stdin.take());
    }

    /// Sends a signal to the tool itself; nothing happens if it has ended.
    pub fn signal(&self, signal: Signal) {
        if let (None, Some(pid)) = (self.status, pid_of(self.pid())) {
            let _ = kill_process(pid, signal);
        }
    }

    /// Waits until it works, as `works` finds.
    ///
    /// # Errors
    /// It ended before, or takes too long; [`Error::Interrupted`].
    pub fn wait_until(&mut self, mut works: impl FnMut(&Process) -> bool) -> Result<(), Error> {
        let begun = Instant::now();
        while !works(self) {
            if let Some(status) = self.ended()? {
                return Err(self.failure(status));
            }
            if begun.elapsed() > PATIENCE {
                return Err(self.late(PATIENCE));
            }
            self.stop.check()?;
            std::thread::sleep(POLL);
        }
        Ok(())
    }

    /// Waits for its end, which must be a good one.
    ///
    /// # Errors
    /// It ended badly, or not in time; [`Error::Interrupted`] as soon as a stop is requested.
    pub fn finish(&mut self, patience: Duration) -> Result<(), Error> {
        match self.wait(patience, Duration::ZERO)? {
            Some(status) if status.success() => Ok(()),
            Some(status) => Err(self.failure(status)),
            None => Err(self.late(patience)),
        }
    }

    /// Its end after a signal that it was sent, if it comes in time.
    ///
    /// # Errors
    /// It can't be waited for; [`Error::Interrupted`] soon after a stop is requested.
    pub fn end_within(&mut self, patience: Duration) -> Result<Option<ExitStatus>, Error> {
        self.wait(patience, AFTER_STOP)
    }

    fn wait(&mut self, patience: Duration, after_stop: Duration) -> Result<Option<ExitStatus>, Error> {
        let until = Instant::now() + patience;
        let mut stopped: Option<Instant> = None;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let ended = self.ended()?;
            if ended.is_some() || left.is_zero() {
                return Ok(ended);
            }
            if self.stop.is_set() && stopped.get_or_insert_with(Instant::now).elapsed() >= after_stop {
                return Err(Error::Interrupted);
            }
            let Some(descriptor) = &self.descriptor else {
                std::thread::sleep(POLL);
                continue;
            };
            let left = left.min(LOOK);
            let left = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
            match poll(&mut [PollFd::new(descriptor, PollFlags::IN)], Some(&left)) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(errno) => {
                    return Err(Error::System { what: "cannot wait for a tool", source: errno.into() });
                }
            }
        }
    }

    /// That it ended, with the last lines that it said.
    pub fn failure(&self, status: ExitStatus) -> Error {
        let last = |path: &Path| files::last_lines(path, 4);
        let said = Some(last(&self.messages)).filter(|said| !said.is_empty());
        let message = said.unwrap_or_else(|| last(&self.output));
        Error::Ended { name: self.name.clone(), status: status.to_string(), message }
    }

    fn late(&self, patience: Duration) -> Error {
        Error::Late { name: self.name.clone(), seconds: patience.as_secs() }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let (None, Some(pid)) = (self.status, pid_of(self.pid())) {
            let _ = kill_process_group(pid, Signal::KILL);
            let _ = self.child.wait();
        }
    }
}

fn pid_of(pid: u32) -> Option<Pid> {
    i32::try_from(pid).ok().and_then(Pid::from_raw)
}

/// Runs a tool to its end.
///
/// # Errors
/// It can't be started, ends badly, or not within `patience`.
pub fn run(command: Tool, name: &str, directory: &Path, patience: Duration) -> Result<Process, Error> {
    let mut process = Process::start(command, name, directory)?;
    process.finish(patience)?;
    Ok(process)
}
