//! A workload's process, seen from its driver: started in its group, listened to, requested its report, and never left
//! behind. What the report says is the driver's matter.

use std::{
    ffi::{OsStr, OsString},
    io::{BufRead, BufReader, Read, Write},
    os::unix::process::CommandExt,
    process::{Child, ChildStdin, Stdio},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, RecvTimeoutError, channel},
    },
    thread,
    time::{Duration, Instant},
};

use serde::de::DeserializeOwned;

use crate::{Error, Program, Site, Span, Stop, start, urgent};

/// How long it may take to begin and to report. Generous: a group's limits hold for both, also for the touching of
/// gigabytes.
const PATIENCE: Duration = Duration::from_secs(120);

/// How much of what it says on standard error is shown.
const MESSAGES: u64 = 16 << 10;

/// How often a wait looks whether a stop was requested.
const LOOK: Duration = Duration::from_millis(100);

/// A workload while it works. It is killed and waited for when this value is dropped.
#[derive(Debug)]
pub(super) struct Process {
    name: &'static str,
    child: Child,
    input: Option<ChildStdin>,
    /// What it writes beside counts: `ready` and its report.
    lines: Receiver<String>,
    done: Arc<AtomicU64>,
    said: Option<thread::JoinHandle<String>>,
    stop: Stop,
}

impl Process {
    /// Starts a workload in the site's group; returns once it works.
    ///
    /// # Errors
    /// [`Error::Start`], [`Error::Late`], [`Error::Ended`].
    pub fn start(
        name: &'static str,
        program: &Program,
        workload: &str,
        options: Vec<OsString>,
        site: &Site<'_>,
    ) -> Result<Process, Error> {
        let failed = |source| Error::Start { name: name.to_owned(), source };
        let mut command = site.launch.command(site.group, OsStr::new("/proc/self/exe"));
        if site.group.is_none() {
            command.arg0("ringfence");
        }
        command.args(program.words()).arg(workload).args(options);
        command.arg("--parent").arg(std::process::id().to_string());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.process_group(0).spawn().map_err(failed)?; // Ctrl-C is for us
        let (input, output, errors) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let done = Arc::<AtomicU64>::default();
        let counted = Arc::clone(&done);
        let (sender, lines) = channel();
        urgent::spawn("workload-output", move || {
            for line in output.into_iter().flat_map(|output| BufReader::new(output).lines()) {
                let Ok(line) = line else { return };
                match line.parse() {
                    Ok(count) => counted.store(count, Ordering::Relaxed),
                    Err(_) if sender.send(line).is_err() => return,
                    Err(_) => {}
                }
            }
        })
        .map_err(failed)?;
        let said = urgent::spawn("workload-errors", move || {
            let mut text = String::new();
            // what can't be read is not reported
            let _ = errors.map(|errors| errors.take(MESSAGES).read_to_string(&mut text));
            text
        })
        .map_err(failed)?;
        let mut process =
            Process { name, child, input, lines, done, said: Some(said), stop: site.launch.stop() };
        process.line()?;
        Ok(process)
    }

    /// What it last said that it has done since its start.
    pub fn done(&self) -> f64 {
        self.done.load(Ordering::Relaxed) as f64
    }

    /// Asks for the report of a span: its line, and what it says. It has ended after it.
    ///
    /// # Errors
    /// [`Error::Late`], [`Error::Ended`], [`Error::Report`].
    pub fn request<R: DeserializeOwned>(mut self, span: Span) -> Result<(String, R), Error> {
        if let Some(mut input) = self.input.take() {
            // one that is gone says why below
            let _ =
                input.write_all(format!("stop {} {}\n", monotonic(span.from), monotonic(span.to)).as_bytes());
        }
        let line = self.line()?;
        let report = serde_json::from_str(&line)
            .map_err(|source| Error::Report { name: self.name.to_owned(), source })?;
        let _ = self.child.wait(); // it has reported: how it ends says nothing more
        Ok((line, report))
    }

    /// Waits for a line, or for a stop; if there is none, its end says why.
    fn line(&mut self) -> Result<String, Error> {
        let name = self.name.to_owned();
        let begun = Instant::now();
        let line = loop {
            match self.lines.recv_timeout(LOOK) {
                Err(RecvTimeoutError::Timeout) if begun.elapsed() < PATIENCE => self.stop.check()?,
                ended => break ended,
            }
        };
        match line {
            Ok(line) => Ok(line),
            Err(RecvTimeoutError::Timeout) => Err(Error::Late { name, seconds: PATIENCE.as_secs() }),
            Err(RecvTimeoutError::Disconnected) => {
                let status = self.child.wait();
                let status = status.map_or_else(|error| error.to_string(), |status| status.to_string());
                let message = self.said.take().and_then(|said| said.join().ok()).unwrap_or_default();
                let message = message.trim().trim_start_matches("ringfence: ").trim_start_matches("error: ");
                Err(Error::Ended { name, status, message: message.to_owned() })
            }
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill(); // gone already is as good
        let _ = self.child.wait();
    }
}

/// The instant on CLOCK_MONOTONIC, in nanoseconds.
fn monotonic(at: Instant) -> u64 {
    let (now, on_clock) = (Instant::now(), start::Instant::now());
    match now.checked_duration_since(at) {
        Some(ago) => on_clock.0.saturating_sub(u64::try_from(ago.as_nanos()).unwrap_or(u64::MAX)),
        None => on_clock.after(at.duration_since(now)).0,
    }
}
