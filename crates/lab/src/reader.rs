//! The built-in direct reader of a block device: every thread reads its own stretch in order, past the page
//! cache, one read at a time. It reports at the end of its time, also while a limit holds reads back: those are
//! told as in flight. Never writes to the device.

use std::{
    ffi::OsString,
    fs::{File, OpenOptions},
    io::{self, Seek, SeekFrom},
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use hdrhistogram::Histogram;
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

use crate::{
    Error,
    options::Options,
    start::{Instant, die_with, process_cpu_time, report, wait_for_start},
    worker::{add_intervals, count_in_interval, ratio},
};

/// What direct reads are aligned to; no block device asks for more.
const ALIGNMENT: usize = 4096;

/// What a reader did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadReport {
    /// Reads that were finished within the time.
    pub reads: u64,
    /// Bytes of those reads.
    pub bytes: u64,
    /// The time, from the instant all began at.
    pub wall_ns: u64,
    /// CPU time of the process since its start.
    pub process_cpu_ns: u64,
    /// Threads, each with one read at a time.
    pub depth: u64,
    /// Reads that were not finished at the end. Their wait is in no percentile.
    pub in_flight: u64,
    /// How long the longest of them had waited.
    pub in_flight_ns: u64,
    /// Of the finished reads; `None` if there is none.
    pub latency: Option<Latency>,
    /// Reads finished in each interval of `interval_ms`. Empty if not asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reads_per_interval: Vec<u64>,
}

impl ReadReport {
    /// Reads per second.
    pub fn reads_per_second(&self) -> f64 {
        ratio(self.reads, self.wall_ns) * 1e9
    }
}

/// Latencies in nanoseconds, to three digits (an HDR histogram without an upper bound).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Latency {
    /// The shortest.
    pub min_ns: u64,
    /// The mean.
    pub mean_ns: u64,
    /// Half are not longer.
    pub p50_ns: u64,
    /// 99 of 100 are not longer.
    pub p99_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

impl Latency {
    fn of(histogram: &Histogram<u64>) -> Option<Latency> {
        (!histogram.is_empty()).then(|| Latency {
            min_ns: histogram.min(),
            mean_ns: histogram.mean().round() as u64,
            p50_ns: histogram.value_at_quantile(0.5),
            p99_ns: histogram.value_at_quantile(0.99),
            max_ns: histogram.max(),
        })
    }
}

/// What is read, how and for how long.
#[derive(Clone)]
struct Task {
    device: Arc<File>,
    path: PathBuf,
    blocks: u64,
    block: usize,
    depth: u64,
    time: Duration,
    interval: Duration,
}

/// What one thread has done so far; the main thread looks at it at the end of the time.
struct Progress {
    latencies: Histogram<u64>,
    intervals: Vec<u64>,
    waiting_since: Option<Instant>,
    failure: Option<io::Error>,
}

/// A reader's whole process: `--device PATH --seconds S [--block BYTES] [--depth THREADS] [--interval-ms I]
/// [--parent PID]`, the words after its hidden subcommand. Writes `ready`, waits for its start on standard
/// input, writes its report as one line of JSON. Threads that are held back by a limit are left behind: the
/// process must end after it.
///
/// # Errors
/// [`Error::Option`], [`Error::Device`], [`Error::TooSmall`], [`Error::System`].
pub fn main_read(words: impl IntoIterator<Item = OsString>) -> Result<(), Error> {
    let mut options = Options::new(words)?;
    let path = options.path("device")?;
    let time = options.seconds("seconds")?;
    let block = options.number("block", 512..=1 << 20, Some(8192))? as usize;
    let depth = options.number("depth", 1..=1024, Some(4))?;
    let interval = Duration::from_millis(options.number("interval-ms", 0..=60_000, Some(0))?);
    let parent = options.number("parent", 0..=u64::from(u32::MAX), Some(0))?;
    options.end()?;
    if !block.is_power_of_two() {
        let reason = format!("{block} is not a power of two");
        return Err(Error::Option { option: "--block".to_owned(), reason });
    }
    die_with(parent, c"rf-read")?;
    let (device, blocks) = open(&path, block)?;
    let task = Task { device: Arc::new(device), path, blocks, block, depth, time, interval };
    let done = read_together(&task, wait_for_start)?;
    let line = serde_json::to_string(&done);
    report(&line.map_err(|source| Error::Report { name: "reader".to_owned(), source })?)
}

fn open(path: &Path, block: usize) -> Result<(File, u64), Error> {
    let failed = |what| move |source| Error::Device { what, path: path.to_owned(), source };
    let direct = i32::try_from(OFlags::DIRECT.bits()).unwrap_or_default();
    let file = OpenOptions::new().read(true).custom_flags(direct).open(path);
    let mut file = file.map_err(failed("cannot open"))?;
    let size = file.seek(SeekFrom::End(0)).map_err(failed("cannot find the end of"))?;
    match size / block as u64 {
        0 => Err(Error::TooSmall { path: path.to_owned(), size, block }),
        blocks => Ok((file, blocks)),
    }
}

fn read_together(task: &Task, wait: impl FnOnce() -> Result<Instant, Error>) -> Result<ReadReport, Error> {
    let buffers: Vec<Vec<u8>> = (0..task.depth).map(|_| vec![0; task.block + ALIGNMENT]).collect();
    let all: Vec<Arc<Mutex<Progress>>> =
        (0..task.depth).map(|_| Progress::new().map(Mutex::new).map(Arc::new)).collect::<Result<_, _>>()?;
    let start = wait()?;
    for ((thread, progress), buffer) in (0..).zip(&all).zip(buffers) {
        let (task, progress) = (task.clone(), Arc::clone(progress));
        let builder = thread::Builder::new().stack_size(64 << 10);
        builder
            .spawn(move || read_stretch(&task, thread, start, &progress, buffer))
            .map_err(|source| Error::System { what: "cannot start a thread", source })?;
    }
    let end = start.after(task.time);
    end.sleep();
    summary(task, end, &all)
}

impl Progress {
    fn new() -> Result<Progress, Error> {
        let histogram = Histogram::new(3).map_err(|error| Error::System {
            what: "cannot make a histogram",
            source: io::Error::other(error.to_string()),
        })?;
        Ok(Progress { latencies: histogram, intervals: Vec::new(), waiting_since: None, failure: None })
    }
}

/// A thread that panicked has left whole numbers behind: each lock covers one update.
fn lock(progress: &Mutex<Progress>) -> MutexGuard<'_, Progress> {
    progress.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads from the thread's own place to the device's end and on from its beginning, until the time is over.
fn read_stretch(task: &Task, thread: u64, start: Instant, progress: &Mutex<Progress>, mut buffer: Vec<u8>) {
    let end = start.after(task.time);
    let mut place = thread * task.blocks / task.depth;
    let aligned = buffer.as_ptr().align_offset(ALIGNMENT);
    let Some(buffer) = buffer.get_mut(aligned..aligned + task.block) else { return };
    loop {
        let begun = Instant::now();
        if begun >= end {
            return;
        }
        lock(progress).waiting_since = Some(begun);
        let read = task.device.read_exact_at(buffer, place * task.block as u64);
        let done = Instant::now();
        let mut progress = lock(progress);
        if done > end {
            return; // it stays in flight
        }
        progress.waiting_since = None;
        if let Err(error) = read {
            progress.failure = Some(error);
            return;
        }
        // it resizes itself: no latency is too long for it
        let _ = progress.latencies.record(done.since(begun));
        count_in_interval(&mut progress.intervals, done.since(start), task.interval);
        place = (place + 1) % task.blocks;
    }
}

fn summary(task: &Task, end: Instant, all: &[Arc<Mutex<Progress>>]) -> Result<ReadReport, Error> {
    let mut sum = Progress::new()?;
    let (mut in_flight, mut in_flight_ns) = (0, 0);
    for progress in all {
        let mut progress = lock(progress);
        if let Some(source) = progress.failure.take() {
            return Err(Error::Device { what: "cannot read", path: task.path.clone(), source });
        }
        if let Some(since) = progress.waiting_since {
            in_flight += 1;
            in_flight_ns = end.since(since).max(in_flight_ns);
        }
        // both resize themselves, so adding never meets a value that is too large
        let _ = sum.latencies.add(&progress.latencies);
        add_intervals(&mut sum.intervals, &progress.intervals);
    }
    let reads = sum.latencies.len();
    Ok(ReadReport {
        reads,
        bytes: reads * task.block as u64,
        wall_ns: u64::try_from(task.time.as_nanos()).unwrap_or(u64::MAX),
        process_cpu_ns: process_cpu_time(),
        depth: task.depth,
        in_flight,
        in_flight_ns,
        latency: Latency::of(&sum.latencies),
        reads_per_interval: sum.intervals,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(path: &Path, block: usize, depth: u64, time: Duration) -> Result<ReadReport, Error> {
        let (device, blocks) = open(path, block)?;
        let (device, path) = (Arc::new(device), path.to_owned());
        let interval = Duration::from_millis(10);
        let task = Task { device, path, blocks, block, depth, time, interval };
        read_together(&task, || Ok(Instant::now()))
    }

    #[test]
    fn a_reader_counts_each_read_once_and_ends_on_time() {
        let directory = tempfile::tempdir_in("/var/tmp").unwrap();
        let path = directory.path().join("data");
        std::fs::write(&path, vec![7; 64 << 10]).unwrap();
        let begun = std::time::Instant::now();
        let done = read(&path, 4096, 3, Duration::from_millis(80)).unwrap();
        assert!(begun.elapsed() < Duration::from_secs(5));
        assert!(done.reads > 0 && done.bytes == done.reads * 4096, "{done:?}");
        assert_eq!(done.reads_per_interval.iter().sum::<u64>(), done.reads);
        let latency = done.latency.unwrap();
        assert!(latency.min_ns <= latency.p50_ns && latency.p50_ns <= latency.p99_ns, "{latency:?}");
        assert!(latency.p99_ns <= latency.max_ns && latency.min_ns <= latency.mean_ns, "{latency:?}");
    }

    #[test]
    fn a_device_that_is_missing_or_too_small_is_told_by_name() {
        let directory = tempfile::tempdir_in("/var/tmp").unwrap();
        let path = directory.path().join("data");
        let error = |path: &Path| read(path, 8192, 1, Duration::from_millis(1)).unwrap_err().to_string();
        assert!(error(&path).starts_with(&format!("cannot open {}: No such file", path.display())));
        std::fs::write(&path, [7; 4096]).unwrap();
        assert_eq!(error(&path), format!("{} holds 4096 bytes, too few for reads of 8192", path.display()));
    }
}
