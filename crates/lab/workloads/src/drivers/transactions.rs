//! Clients that log every transaction in pgbench's format (`NAME_log.PID`, a file per thread), print their progress each
//! second on standard error and their number at the end, as pgbench does: started, watched, ended, and counted over
//! exactly a span.

use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead, BufReader},
    ops::Range,
    path::{Path, PathBuf},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use super::{
    process::{PATIENCE, Process, Tool},
    series,
    transaction_log::Tally,
};
use crate::{Error, Failure, Outcome, Span, files};

/// Clients at work. Ended when dropped.
pub(crate) struct Clients {
    name: &'static str,
    process: Process,
    clock: Clock,
    progress: Progress,
}

/// An instant in both of the clocks that are needed: pgbench's log has the time of day as it was when pgbench began,
/// counted on by the monotonic clock.
struct Clock {
    instant: Instant,
    microseconds: i64,
}

/// What pgbench says each second on standard error. Its log is written in pieces of 4 KB, which come too seldom
/// where transactions are slow.
struct Progress {
    lines: BufReader<fs::File>,
    unfinished: String,
    /// When its own clock began.
    begun: Option<Instant>,
    /// Seconds of its own clock, transactions until then, and their rate at last.
    at: f64,
    done: f64,
    rate: f64,
    reported: f64,
}

/// Where the logs are.
pub(crate) fn log_prefix(directory: &Path, name: &str) -> PathBuf {
    directory.join(format!("{name}_log"))
}

/// The logs of one process, or of all.
fn logs(directory: &Path, name: &str, pid: Option<u32>) -> Result<Vec<PathBuf>, Error> {
    let begin = pid.map_or(format!("{name}_log."), |pid| format!("{name}_log.{pid}"));
    let entries = fs::read_dir(directory).map_err(Failure::file("list", directory))?;
    let is_log = |name: &str| {
        name.strip_prefix(&begin)
            .is_some_and(|rest| pid.is_none() || rest.is_empty() || rest.starts_with('.'))
    };
    let named = entries.flatten().filter(|entry| entry.file_name().to_str().is_some_and(is_log));
    let mut logs: Vec<PathBuf> = named.map(|entry| entry.path()).collect();
    logs.sort();
    Ok(logs)
}

impl Clients {
    /// Starts them with the standard input that the command has; logs of an earlier run are removed.
    ///
    /// # Errors
    /// They can't be started, or a log can't be removed.
    pub fn start(command: Tool, name: &'static str, directory: &Path) -> Result<Clients, Error> {
        for old in logs(directory, name, None)? {
            fs::remove_file(&old).map_err(Failure::file("remove", &old))?;
        }
        let clock = Clock::now();
        let process = Process::start_with_input(command, name, directory)?;
        let progress = Progress::new(&process)?;
        Ok(Clients { name, process, clock, progress })
    }

    /// Waits for the first line of it, when all have been connected for a second.
    ///
    /// # Errors
    /// They end instead, or it takes too long.
    pub fn wait_until_they_work(&mut self) -> Result<(), Error> {
        let Clients { process, progress, .. } = self;
        process.wait_until(|_| progress.read())
    }

    /// Transactions so far.
    pub fn done(&mut self) -> f64 {
        self.progress.now()
    }

    /// Asks them to end by `ask`, and counts what they did in the span.
    ///
    /// # Errors
    /// They ended before, or badly, or not in time, or their log is not whole.
    pub fn stop(
        mut self,
        span: Span,
        with_lag: bool,
        request: impl FnOnce(&mut Process),
    ) -> Result<Counted, Error> {
        if let Some(status) = self.process.ended()? {
            return Err(self.process.failure(status));
        }
        request(&mut self.process);
        self.process.finish(PATIENCE)?;
        let directory = self.process.output().parent().unwrap_or(self.process.output());
        let logs = logs(directory, self.name, Some(self.process.pid()))?;
        let counted = self.clock.of(span.from)..self.clock.of(span.to);
        let tally = Tally::read(&logs, &counted, with_lag)?;
        agree(self.name, &self.process, tally.all)?;
        // so that anybody can count the log again
        let bounds = directory.join(format!("{}.span", self.name));
        let text = format!("{}\n{}\n", counted.start, counted.end);
        fs::write(&bounds, text).map_err(Failure::file("write", &bounds))?;
        let files = [self.process.output().to_owned(), bounds].into_iter().chain(logs).collect();
        Ok(Counted { all: tally.all, outcome: outcome(&tally, &counted, files), span: counted })
    }
}

/// What was counted.
pub(crate) struct Counted {
    /// Transactions since the start.
    pub all: u64,
    /// Those of the span.
    pub outcome: Outcome,
    /// The span, in microseconds since 1970.
    pub span: Range<i64>,
}

/// Its summary must count what its log holds.
fn agree(name: &str, clients: &Process, logged: u64) -> Result<(), Error> {
    let text = files::tool_text(clients.output()).map_err(Failure::file("read", clients.output()))?;
    let line = text.lines().find_map(|line| line.strip_prefix("number of transactions actually processed: "));
    let reported = line.and_then(|rest| rest.split('/').next()?.trim().parse::<u64>().ok());
    match reported {
        Some(reported) if reported == logged => Ok(()),
        Some(reported) => {
            let reason = format!("its summary has {reported} transactions, its log {logged}");
            Err(Failure::unreadable(name, reason).into())
        }
        None => {
            let [printed, said] =
                [clients.output(), clients.messages()].map(|file| files::last_lines(file, 2));
            let reason = format!(
                "its summary has no number of transactions (it printed \"{printed}\", and on standard error \"{said}\")"
            );
            Err(Failure::unreadable(name, reason).into())
        }
    }
}

fn outcome(tally: &Tally, counted: &Range<i64>, files: Vec<PathBuf>) -> Outcome {
    let seconds = (counted.end - counted.start) as f64 / 1e6;
    let transactions = tally.latency.count() as f64;
    let readings = [
        ("tps", transactions / seconds),
        ("transactions", transactions),
        ("failed", tally.failed as f64),
        ("skipped", tally.skipped as f64),
    ];
    let readings = readings.into_iter().map(|(name, figure)| (name.to_owned(), figure)).collect();
    let latency = tally.latency.latency(1e-6, tally.skipped);
    let lag = tally.lag.latency(1e-6, tally.skipped);
    let all = [("latency", latency), ("lag", lag)];
    let latencies: BTreeMap<_, _> =
        all.into_iter().filter_map(|(name, reported)| Some((name.to_owned(), reported?))).collect();
    let ends = tally.ends.iter().map(|microseconds| *microseconds as f64 / 1e6);
    let series = vec![series::rate("tps", ends, seconds)];
    Outcome { readings, latencies, series, files, ..Outcome::default() }
}

impl Clock {
    fn now() -> Clock {
        // the clocks are read right after one another; the time of day is after 1970 on a machine that keeps one
        let (instant, day) = (Instant::now(), SystemTime::now());
        let since = day.duration_since(UNIX_EPOCH).unwrap_or_default();
        Clock { instant, microseconds: i64::try_from(since.as_micros()).unwrap_or(i64::MAX) }
    }

    fn of(&self, instant: Instant) -> i64 {
        let micros = |time: Duration| i64::try_from(time.as_micros()).unwrap_or(i64::MAX);
        let after = micros(instant.saturating_duration_since(self.instant));
        let before = micros(self.instant.saturating_duration_since(instant));
        self.microseconds.saturating_add(after).saturating_sub(before)
    }
}

impl Progress {
    fn new(clients: &Process) -> Result<Progress, Error> {
        let path = clients.messages();
        let lines = BufReader::new(files::open(path).map_err(Failure::file("open", path))?);
        let unfinished = String::new();
        Ok(Progress { lines, unfinished, begun: None, at: 0.0, done: 0.0, rate: 0.0, reported: 0.0 })
    }

    /// Reads what is new; is there anything yet?
    fn read(&mut self) -> bool {
        while self.lines.read_line(&mut self.unfinished).is_ok_and(|read| read > 0) {
            if !self.unfinished.ends_with('\n') {
                break; // the rest comes with the next read
            }
            if let Some((at, rate)) = progress(&self.unfinished) {
                self.done += rate * (at - self.at).max(0.0);
                (self.at, self.rate) = (at, rate);
                let before = Duration::try_from_secs_f64(at).unwrap_or_default();
                self.begun = self.begun.or_else(|| Instant::now().checked_sub(before));
            }
            self.unfinished.clear();
        }
        self.begun.is_some()
    }

    /// Transactions so far: as last reported, and on at that rate for a second at most.
    fn now(&mut self) -> f64 {
        self.read();
        let since = self.begun.map_or(0.0, |begun| begun.elapsed().as_secs_f64()) - self.at;
        self.reported = self.reported.max(self.done + self.rate * since.clamp(0.0, 1.0));
        self.reported
    }
}

/// `progress: 3.0 s, 82981.8 tps, lat 0.046 ms stddev 0.153, 0 failed`: when, and the rate since the line before.
fn progress(line: &str) -> Option<(f64, f64)> {
    let (at, rest) = line.trim().strip_prefix("progress: ")?.split_once(" s, ")?;
    let (rate, _) = rest.split_once(" tps")?;
    Some((at.parse().ok()?, rate.parse().ok()?))
}
