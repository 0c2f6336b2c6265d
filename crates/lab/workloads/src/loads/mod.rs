//! Study S4's disturbances, as a process of its own: threads that never sleep, threads that sleep for a microsecond
//! each round, threads that write and sync a file each round, and threads that keep CPUs from sleeping. They count their
//! rounds and judge nothing.

mod driver;

use std::{
    ffi::OsString,
    fs,
    hint::black_box,
    io,
    io::Write,
    num::NonZeroU64,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
};

use kernel::threads::set_idle;
use rustix::{
    thread::{ClockId, clock_nanosleep_relative, set_current_timer_slack},
    time::Timespec,
};
use serde::{Deserialize, Serialize};

pub use driver::Load;

use super::stop_request::{Clock, StopRequest, fairness, grown, print_report, until_stopped};
use crate::{
    Error,
    options::Options,
    start::{Instant, die_with, process_cpu_time},
};

/// What is written in a round.
const PIECE: [u8; 4096] = [7; 4096];

/// The sleep of a round.
const NAP: Timespec = Timespec { tv_sec: 0, tv_nsec: 1000 };

/// A round of a thread that never sleeps: some 10 us of an optimised build.
const SPINS: u64 = 10_000;

/// What threads do in a round.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    Busy,
    Sleepers,
    /// In this directory, which is the load's own.
    Writers(PathBuf),
    IdlePoll,
}

/// What a load did within a span.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct LoadReport {
    /// `busy`, `sleepers`, `writers`, `idle-poll`.
    pub kind: String,
    /// The span's length in seconds.
    pub seconds: f64,
    /// Threads.
    pub threads: usize,
    /// Rounds of all threads.
    pub rounds: f64,
    /// CPU time of the process, in seconds.
    pub cpu_seconds: f64,
    /// Rounds of the thread with the fewest by those of the one with the most.
    pub fairness: Option<f64>,
}

/// A load's whole process. Options: `--kind busy|sleepers|writers|idle-poll [--threads N]` (1) `[--directory PATH]` (of
/// writers: they make one of their own in it, and remove it at their end), and how it is ended: `[--parent PID]`
/// `[--time-ms T [--warm-up-ms W]]`. Writes `ready`, counts of rounds, and its report as one line of JSON.
///
/// # Errors
/// [`Error::Option`], [`Error::System`].
pub fn main_load(words: impl IntoIterator<Item = OsString>) -> Result<(), Error> {
    let mut options = Options::new(words)?;
    let clock = Clock::of(&mut options)?;
    let name = options.text("kind")?.unwrap_or_default();
    let threads = options.number("threads", 1..=8192, Some(1))?;
    let kind = match name.as_str() {
        "busy" => Kind::Busy,
        "sleepers" => Kind::Sleepers,
        "writers" => {
            let own = format!("rf-writers-{}", std::process::id());
            Kind::Writers(options.path("directory")?.join(own))
        }
        "idle-poll" => Kind::IdlePoll,
        other => {
            let reason = format!("'{}' is none of busy, sleepers, writers, idle-poll", other.escape_debug());
            return Err(Error::Option { option: "--kind".to_owned(), reason });
        }
    };
    options.end()?;
    die_with(clock.parent, c"rf-load")?;
    let mut crew = Crew::start(kind, threads)?;
    let requested = until_stopped(clock, || crew.look())?;
    let looks = crew.stop()?;
    let Some(requested) = requested else { return Ok(()) };
    print_report("load", &of(&name, &looks, requested))
}

/// Counters at an instant.
#[derive(Debug, Clone)]
struct Look {
    at: Instant,
    rounds: Vec<u64>,
    cpu_ns: u64,
}

/// Rounds of one thread, on a cache line of their own.
#[derive(Default)]
#[repr(align(128))]
struct Rounds(AtomicU64);

struct Shared {
    kind: Kind,
    rounds: Vec<Rounds>,
    stop: AtomicBool,
    failure: Mutex<Option<io::Error>>,
}

/// A load while it works. Its threads end, and its directory goes, when this value is dropped.
struct Crew {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    looks: Vec<Look>,
}

impl Crew {
    fn start(kind: Kind, threads: u64) -> Result<Crew, Error> {
        if let Kind::Writers(directory) = &kind {
            fs::create_dir(directory)
                .map_err(|source| Error::System { what: "cannot make the writers' directory", source })?;
        }
        let rounds = (0..threads).map(|_| Rounds::default()).collect();
        let (stop, failure) = (AtomicBool::new(false), Mutex::new(None));
        let shared = Arc::new(Shared { kind, rounds, stop, failure });
        let mut crew = Crew { shared, threads: Vec::new(), looks: Vec::new() };
        crew.look();
        for number in 0..crew.shared.rounds.len() {
            let shared = Arc::clone(&crew.shared);
            let started = thread::Builder::new().stack_size(64 << 10).spawn(move || shared.work(number));
            let thread = started.map_err(|source| Error::System { what: "cannot start a thread", source })?;
            crew.threads.push(thread);
        }
        Ok(crew)
    }

    fn look(&mut self) -> u64 {
        let rounds: Vec<u64> =
            self.shared.rounds.iter().map(|rounds| rounds.0.load(Ordering::Relaxed)).collect();
        let sum = rounds.iter().sum();
        self.looks.push(Look { at: Instant::now(), rounds, cpu_ns: process_cpu_time() });
        sum
    }

    /// Ends the threads; what was seen of them.
    fn stop(mut self) -> Result<Vec<Look>, Error> {
        self.look();
        let mut failure = self.shared.failure.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(source) = failure.take() {
            return Err(Error::System {
                what: match self.shared.kind {
                    Kind::IdlePoll => "cannot have SCHED_IDLE",
                    _ => "cannot write",
                },
                source,
            });
        }
        drop(failure);
        Ok(std::mem::take(&mut self.looks))
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join(); // one that panicked has said so
        }
        if let Kind::Writers(directory) = &self.shared.kind {
            let _ = fs::remove_dir_all(directory); // the driver tries again
        }
    }
}

impl Shared {
    fn work(&self, number: usize) {
        let Some(rounds) = self.rounds.get(number) else { return };
        // a sleep of a microsecond would be one of 51 else; without it the load is the same, only less of it
        let _ = set_current_timer_slack(NonZeroU64::new(1));
        // with another policy it would take time from others
        if self.kind == Kind::IdlePoll
            && let Err(error) = set_idle()
        {
            return self.fail(error);
        }
        while !self.stop.load(Ordering::Relaxed) {
            if let Err(error) = self.round(number) {
                return self.fail(error);
            }
            rounds.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn fail(&self, error: io::Error) {
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
    }

    fn round(&self, number: usize) -> io::Result<()> {
        match &self.kind {
            Kind::Busy | Kind::IdlePoll => {
                black_box((0..SPINS).fold(number as u64, |state, _| black_box(state.wrapping_mul(3))));
                return Ok(());
            }
            Kind::Sleepers => {}
            Kind::Writers(directory) => write(&directory.join(number.to_string()))?,
        }
        let _ = clock_nanosleep_relative(ClockId::Monotonic, &NAP); // cut short by a signal is as good
        Ok(())
    }
}

fn write(path: &Path) -> io::Result<()> {
    let mut file = fs::File::create(path)?;
    file.write_all(&PIECE)?;
    file.sync_all()
}

fn of(kind: &str, looks: &[Look], requested: StopRequest) -> LoadReport {
    let threads = looks.first().map_or(0, |look| look.rounds.len());
    let grown =
        |number: &dyn Fn(&Look) -> f64| grown(looks, |look| look.at, number, requested.from, requested.to);
    let of_thread = |thread| grown(&|look| look.rounds.get(thread).copied().unwrap_or(0) as f64);
    let each: Vec<f64> = (0..threads).map(of_thread).collect();
    LoadReport {
        kind: kind.to_owned(),
        seconds: requested.seconds(),
        threads,
        rounds: each.iter().sum(),
        cpu_seconds: grown(&|look| look.cpu_ns as f64) / 1e9,
        fairness: fairness(each),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn until_all_worked(crew: &mut Crew) {
        let begun = std::time::Instant::now();
        while crew.look() == 0 || crew.looks.last().is_some_and(|look| look.rounds.contains(&0)) {
            assert!(begun.elapsed() < Duration::from_secs(60), "a thread does nothing");
            thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn every_thread_of_each_kind_works() {
        for kind in [Kind::Busy, Kind::Sleepers, Kind::IdlePoll] {
            let mut crew = Crew::start(kind, 3).unwrap();
            let from = crew.looks[0].at;
            until_all_worked(&mut crew);
            let looks = crew.stop().unwrap();
            let reported = of("busy", &looks, StopRequest { from, to: Instant::now() });
            assert!(
                reported.rounds >= 3.0 && reported.threads == 3 && reported.cpu_seconds > 0.0,
                "{reported:?}"
            );
            assert!(reported.fairness.is_some_and(|share| (0.0..=1.0).contains(&share)), "{reported:?}");
        }
    }

    #[test]
    fn writers_write_in_a_directory_of_their_own_and_leave_nothing() {
        let parent = tempfile::tempdir_in("/var/tmp").unwrap();
        let own = parent.path().join("own");
        let mut crew = Crew::start(Kind::Writers(own.clone()), 3).unwrap();
        until_all_worked(&mut crew);
        assert_eq!(fs::metadata(own.join("2")).map(|file| file.is_file()).ok(), Some(true));
        crew.stop().unwrap();
        assert!(!own.exists());
        assert!(Crew::start(Kind::Writers(parent.path().join("no/way")), 1).is_err());
    }

    #[test]
    fn a_write_that_fails_is_reported() {
        let parent = tempfile::tempdir_in("/var/tmp").unwrap();
        let own = parent.path().join("own");
        let mut crew = Crew::start(Kind::Writers(own.clone()), 1).unwrap();
        until_all_worked(&mut crew);
        // a removal would race with the writer's next file
        fs::rename(&own, parent.path().join("elsewhere")).unwrap();
        while !crew.threads[0].is_finished() {
            thread::sleep(Duration::from_millis(1));
        }
        assert!(crew.stop().unwrap_err().to_string().starts_with("cannot write: "));
    }

    #[test]
    fn rounds_of_a_span_lie_between_the_looks_around_it() {
        let look =
            |at, one, other| Look { at: Instant(at), rounds: vec![one, other], cpu_ns: (one + other) * 1000 };
        let looks = [look(0, 0, 0), look(100, 10, 20), look(300, 30, 60)];
        let reported = of("busy", &looks, StopRequest { from: Instant(50), to: Instant(200) });
        assert_eq!((reported.rounds, reported.fairness), (45.0, Some(0.5)));
        assert!((reported.cpu_seconds - 45e-6).abs() < 1e-12);
    }
}
