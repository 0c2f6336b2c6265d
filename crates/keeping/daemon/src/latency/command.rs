//! A program that prints a latency. It has a process group of its own, of which nothing is left when a look ends.

use std::{
    io::Read,
    os::{fd::AsFd, unix::process::CommandExt},
    process::{Child, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

use layout::LatencyUnit;
use rustix::{
    event::PollFlags,
    fs::OFlags,
    process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open},
};
use system::files;

use crate::latency::{Answer, Error, amount::seconds, answer::words_of, wait::Wait};

/// How long a killed program is waited for.
const PATIENCE: Duration = Duration::from_secs(1);
/// More of what it prints is not read.
const MOST: usize = 64 << 10;

/// Runs it once. `None` of an empty output: it measured nothing.
pub(crate) fn look(words: &[String], unit: LatencyUnit, wait: &Wait<'_>) -> Result<Answer, Error> {
    let (program, arguments) =
        words.split_first().ok_or_else(|| Error::Says("the command is empty".to_owned()))?;
    if rustix::process::geteuid().is_root() {
        files::trusted_program(program.as_ref()).map_err(refused)?;
    }
    let mut command = Command::new(program);
    command
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0);
    let child =
        command.spawn().map_err(|error| Error::Says(format!("it does not start: {}", words_of(&error))))?;
    let mut running = Running(child);
    let text = running.output(wait)?;
    let status = running.end().map_err(Error::failed)?;
    if !status.success() {
        return Err(Error::Says(format!("it ended with {status}")));
    }
    match text.lines().next().map(str::trim).filter(|line| !line.is_empty()) {
        None => Ok(Answer::Nothing),
        Some(line) => seconds(line, unit).map(Answer::P99).ok_or_else(|| {
            let line: String = line.chars().filter(|letter| !letter.is_control()).take(40).collect();
            Error::Says(format!("it printed '{line}', which is no latency such as 4.2ms"))
        }),
    }
}

/// Root runs no program that another user can change.
fn refused(why: files::Untrusted) -> Error {
    match &why {
        files::Untrusted::Failed { errno, .. } => {
            Error::Says(format!("it does not start: {}", words_of(&(*errno).into())))
        }
        _ => Error::Says(format!("it is not run as root: {why}")),
    }
}

/// A program with all that it started.
struct Running(Child);

impl Running {
    /// What it prints until it ends. What it leaves in the background is not waited for.
    fn output(&mut self, wait: &Wait<'_>) -> Result<String, Error> {
        let Some(mut output) = self.0.stdout.take() else { return Ok(String::new()) };
        let flags = rustix::fs::fcntl_getfl(&output).map_err(|errno| Error::failed(errno.into()))?;
        rustix::fs::fcntl_setfl(&output, flags | OFlags::NONBLOCK)
            .map_err(|errno| Error::failed(errno.into()))?;
        let pid = Pid::from_child(&self.0);
        let process = pidfd_open(pid, PidfdFlags::empty()).map_err(|errno| Error::failed(errno.into()))?;
        let (mut text, mut is_open) = (Vec::new(), true);
        loop {
            let has_ended = match is_open {
                true => {
                    let both = [(output.as_fd(), PollFlags::IN), (process.as_fd(), PollFlags::IN)];
                    let [_, has_ended] = wait.ready(both)?;
                    has_ended
                }
                false => wait.ready([(process.as_fd(), PollFlags::IN)])?[0],
            };
            is_open = is_open && read(&mut output, &mut text, wait)?;
            if has_ended {
                return Ok(String::from_utf8_lossy(&text).into_owned());
            }
        }
    }

    fn end(mut self) -> std::io::Result<std::process::ExitStatus> {
        self.kill();
        self.0.wait()
    }

    /// The group is its own as long as nobody waited for the program, also when it has ended.
    fn kill(&self) {
        let _ = kill_process_group(Pid::from_child(&self.0), Signal::KILL); // all of it may have ended
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if matches!(self.0.try_wait(), Ok(None)) {
            self.kill();
            // one that hangs in the kernel (a file system of another user) must not hold up the end of the daemon
            let end = Instant::now() + PATIENCE;
            while matches!(self.0.try_wait(), Ok(None)) && Instant::now() < end {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }
}

/// All that is there. False: the other end is closed.
fn read(output: &mut ChildStdout, text: &mut Vec<u8>, wait: &Wait<'_>) -> Result<bool, Error> {
    let mut part = [0; 16 << 10];
    loop {
        match output.read(&mut part) {
            Ok(0) => return Ok(false),
            Ok(count) => {
                let room = MOST.saturating_sub(text.len());
                text.extend_from_slice(&part[..count.min(room)]);
                // one that prints fast enough never lets us wait
                wait.go_on()?;
            }
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return Ok(true),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Error::failed(error)),
        }
    }
}
