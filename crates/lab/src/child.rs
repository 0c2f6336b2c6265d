//! Workloads as child processes: this program itself, re-executed by a hidden subcommand. They are started, put
//! into groups by the caller, begin together, and report one line. A child never outlives the thread that
//! started it, not even after SIGKILL.

use std::{
    ffi::{OsStr, OsString},
    io::{self, Read, Write},
    os::{fd::AsFd, unix::process::CommandExt},
    path::PathBuf,
    process::{Command, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::{Error, start};

/// How long the caller's flag may go unseen.
const POLL: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };

/// How long a workload may take to be ready, and to end after its time. Generous: a group's limits hold for its
/// start and its end, too.
const PATIENCE: Duration = Duration::from_secs(20);

/// All children have read their start before it comes.
const LEAD: Duration = Duration::from_millis(30);

/// How the workloads are started: a program and the words before `cpu` or `read`.
#[derive(Debug, Clone)]
pub struct Program {
    path: PathBuf,
    words: Vec<OsString>,
}

impl Program {
    /// The running program with a hidden subcommand. Also right if its file was replaced meanwhile.
    pub fn this(subcommand: &str) -> Program {
        Program { path: PathBuf::from("/proc/self/exe"), words: vec![subcommand.into()] }
    }
}

/// A workload's process. It is killed and waited for when this value is dropped.
#[derive(Debug)]
pub struct Child {
    name: String,
    process: std::process::Child,
    out: Stream,
    err: Stream,
}

/// What was read of a pipe so far.
#[derive(Debug, Default)]
struct Stream {
    text: Vec<u8>,
    ended: bool,
}

impl Child {
    /// Starts a workload (`cpu`, `read`) with its options. It does not work yet.
    ///
    /// # Errors
    /// [`Error::Start`].
    pub fn start<S: AsRef<OsStr>>(
        program: &Program,
        workload: &str,
        options: impl IntoIterator<Item = S>,
    ) -> Result<Child, Error> {
        let name = format!("{workload} workload");
        let process = Command::new(&program.path)
            .arg0("ringfence")
            .args(&program.words)
            .arg(workload)
            .args(options)
            .args(["--parent", &std::process::id().to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Ctrl-C is for us: we end our children ourselves
            .process_group(0)
            .spawn()
            .map_err(|source| Error::Start { name: name.clone(), source })?;
        Ok(Child { name, process, out: Stream::default(), err: Stream::default() })
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Has its process ended already?
    pub fn is_gone(&mut self) -> bool {
        matches!(self.process.try_wait(), Ok(Some(_)))
    }

    fn is_ready(&self) -> bool {
        self.out.text.contains(&b'\n') || self.out.ended
    }

    fn has_ended(&self) -> bool {
        self.out.ended && self.err.ended
    }

    /// The last line of what it reported, after `ready`.
    fn report(&self) -> String {
        String::from_utf8_lossy(&self.out.text).lines().skip(1).last().unwrap_or_default().to_owned()
    }

    fn message(&self) -> String {
        String::from_utf8_lossy(&self.err.text).trim().trim_start_matches("error: ").to_owned()
    }

    fn tell_start(&mut self, line: &str) {
        if let Some(mut pipe) = self.process.stdin.take() {
            // a child that is gone already tells why on its other pipes
            let _ = pipe.write_all(line.as_bytes());
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.process.kill(); // gone already is as good
        let _ = self.process.wait();
    }
}

/// Lets all children begin at one instant and returns what each reported, in their order. `time` is how long
/// they work; the call ends early, with the children still there, if `stop` is set.
///
/// # Errors
/// [`Error::Interrupted`], [`Error::Ended`], [`Error::Late`].
pub fn run_together(children: &mut [Child], time: Duration, stop: &AtomicBool) -> Result<Vec<String>, Error> {
    wait_until(children, Child::is_ready, PATIENCE, stop)?;
    let line = format!("{}\n", start::Instant::now().after(LEAD).0);
    children.iter_mut().for_each(|child| child.tell_start(&line));
    wait_until(children, Child::has_ended, time + PATIENCE, stop)?;
    let waited = Instant::now();
    children.iter_mut().map(|child| finish(child, waited, stop)).collect()
}

/// Reads what the children write until `done` holds of all.
fn wait_until(
    children: &mut [Child],
    done: impl Fn(&Child) -> bool,
    patience: Duration,
    stop: &AtomicBool,
) -> Result<(), Error> {
    let begun = Instant::now();
    while let Some(late) = children.iter().find(|child| !done(child)) {
        if stop.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        if begun.elapsed() > patience {
            return Err(Error::Late { name: late.name.clone(), seconds: patience.as_secs() });
        }
        read_some(children)?;
    }
    Ok(())
}

fn read_some(children: &mut [Child]) -> Result<(), Error> {
    let failed = |source: io::Error| Error::System { what: "cannot listen to a workload", source };
    let mut pipes: Vec<PollFd<'_>> = Vec::new();
    for child in children.iter() {
        let out = child.process.stdout.as_ref().filter(|_| !child.out.ended).map(AsFd::as_fd);
        let err = child.process.stderr.as_ref().filter(|_| !child.err.ended).map(AsFd::as_fd);
        pipes.extend([out, err].into_iter().flatten().map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
    }
    match poll(&mut pipes, Some(&POLL)) {
        Ok(_) => {}
        Err(rustix::io::Errno::INTR) => return Ok(()), // a signal: the caller's flag is looked at next
        Err(errno) => return Err(failed(errno.into())),
    }
    let mut told = pipes.iter().map(|pipe| !pipe.revents().is_empty()).collect::<Vec<_>>().into_iter();
    for child in children {
        // in the order in which they were listed above
        if !child.out.ended && told.next() == Some(true) {
            child.out.read(child.process.stdout.as_mut()).map_err(failed)?;
        }
        if !child.err.ended && told.next() == Some(true) {
            child.err.read(child.process.stderr.as_mut()).map_err(failed)?;
        }
    }
    Ok(())
}

impl Stream {
    /// One read, which does not wait after poll(2) said so.
    fn read(&mut self, pipe: Option<&mut impl Read>) -> io::Result<()> {
        let mut piece = [0; 4096];
        match pipe.map_or(Ok(0), |pipe| pipe.read(&mut piece)) {
            Ok(0) => self.ended = true,
            Ok(read) => self.text.extend(&piece[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

/// Waits for the child's end: reads that a limit holds back keep it for a moment after its report.
fn finish(child: &mut Child, waited: Instant, stop: &AtomicBool) -> Result<String, Error> {
    let failed = |source| Error::System { what: "cannot wait for a workload", source };
    let status = loop {
        if let Some(status) = child.process.try_wait().map_err(failed)? {
            break status;
        }
        if stop.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        if waited.elapsed() > PATIENCE {
            return Err(Error::Late { name: child.name.clone(), seconds: PATIENCE.as_secs() });
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    if !status.success() {
        let (name, status) = (child.name.clone(), status.to_string());
        return Err(Error::Ended { name, status, message: child.message() });
    }
    Ok(child.report())
}
