//! Direct reads of a block device, as a process of its own: every thread reads its own stretch in order, past the page
//! cache, one read at a time. It reports when it is requested to, also while a limit holds reads back. It never writes to the
//! device.

use std::{
    ffi::OsString,
    fs::{File, OpenOptions},
    io::{self, Seek, SeekFrom},
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

use experiment::results::{Latency, Series};
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

use super::{
    built_in::{Workload, by, readings},
    latency::of_sorted,
    stop_request::{Clock, StopRequest, print_report, series, until_stopped},
};
use crate::{
    Error, Outcome, Site, Timing,
    options::Options,
    start::{Instant, die_with},
};

/// What it is called.
const NAME: &str = "reader";

/// What direct reads are aligned to; no block device requests more.
const ALIGNMENT: usize = 4096;

/// What was read within a span.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ReadReport {
    /// The span's length in seconds.
    pub seconds: f64,
    /// Reads that were finished.
    pub reads: u64,
    /// Bytes of those reads.
    pub bytes: u64,
    /// Of those reads; `None` without any.
    pub latency: Option<Latency>,
    /// Seconds since the span's beginning, and reads per second up to then.
    pub series: Vec<(f64, f64)>,
}

/// The reader's whole process. Options: `--device PATH [--block BYTES]` (8192) `[--depth THREADS]` (4), and how it is
/// requested: `[--parent PID] [--time-ms T [--warm-up-ms W]]`. Writes `ready`, counts of reads, and its report as one line of
/// JSON. Threads that a limit stops are left behind: the process must end after it.
///
/// # Errors
/// [`Error::Option`], [`Error::Device`], [`Error::TooSmall`], [`Error::System`].
pub fn main_read(words: impl IntoIterator<Item = OsString>) -> Result<(), Error> {
    let mut options = Options::new(words)?;
    let clock = Clock::of(&mut options)?;
    let path = options.path("device")?;
    let block = options.number("block", 512..=1 << 20, Some(8192))? as usize;
    let depth = options.number("depth", 1..=1024, Some(4))?;
    options.end()?;
    if !block.is_power_of_two() {
        let reason = format!("{block} is not a power of two");
        return Err(Error::Option { option: "--block".to_owned(), reason });
    }
    die_with(clock.parent, c"rf-read")?;
    let (device, blocks) = open(&path, block)?;
    let (count, failure) = (AtomicU64::new(0), Mutex::new(None));
    let reading = Arc::new(Reading { device, path, blocks, block, depth, count, failure });
    let mut all = Vec::new();
    for thread in 0..depth {
        let finished: Arc<Mutex<Vec<Finished>>> = Arc::default();
        all.push(Arc::clone(&finished));
        let reading = Arc::clone(&reading);
        thread::Builder::new()
            .stack_size(64 << 10)
            .spawn(move || reading.stretch(thread, &finished))
            .map_err(|source| Error::System { what: "cannot start a thread", source })?;
    }
    let requested = until_stopped(clock, || reading.count.load(Ordering::Relaxed))?;
    if let Some(source) = lock(&reading.failure).take() {
        return Err(Error::Device { what: "cannot read", path: reading.path.clone(), source });
    }
    let Some(requested) = requested else { return Ok(()) };
    let finished = all.iter().flat_map(|one| lock(one).clone()).collect();
    print_report(NAME, &of(finished, block, requested))
}

/// The device, and how many whole blocks it holds: one at least.
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

/// One finished read.
#[derive(Debug, Clone, Copy)]
struct Finished {
    at: Instant,
    /// In nanoseconds.
    took: u64,
}

struct Reading {
    device: File,
    path: PathBuf,
    blocks: u64,
    block: usize,
    depth: u64,
    count: AtomicU64,
    failure: Mutex<Option<io::Error>>,
}

/// A thread that panicked has left whole values behind: each lock covers one update.
fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Reading {
    /// Reads from the thread's own place to the device's end and on from its beginning, as long as the process lives.
    fn stretch(&self, thread: u64, finished: &Mutex<Vec<Finished>>) {
        let mut buffer = vec![0; self.block + ALIGNMENT];
        let aligned = buffer.as_ptr().align_offset(ALIGNMENT);
        let Some(buffer) = buffer.get_mut(aligned..aligned + self.block) else { return };
        let mut place = thread * self.blocks / self.depth;
        loop {
            let begun = Instant::now();
            if let Err(error) = self.device.read_exact_at(buffer, place * self.block as u64) {
                *lock(&self.failure) = Some(error);
                return;
            }
            let at = Instant::now();
            lock(finished).push(Finished { at, took: at.since(begun) });
            self.count.fetch_add(1, Ordering::Relaxed);
            place = (place + 1) % self.blocks;
        }
    }
}

fn of(mut finished: Vec<Finished>, block: usize, requested: StopRequest) -> ReadReport {
    finished.retain(|read| requested.holds(read.at));
    finished.sort_unstable_by_key(|read| read.at);
    let up_to = |end: Instant| finished.partition_point(|read| read.at <= end);
    let reads = finished.len() as u64;
    ReadReport {
        seconds: requested.seconds(),
        reads,
        bytes: reads * block as u64,
        latency: distribution(finished.iter().map(|read| read.took as f64 / 1e9).collect()),
        series: series(requested, |from, to| (up_to(to) - up_to(from)) as f64),
    }
}

/// The distribution of latencies in seconds; `None` without any. Bins have the width of a fiftieth of a decade.
fn distribution(mut seconds: Vec<f64>) -> Option<Latency> {
    seconds.sort_unstable_by(f64::total_cmp);
    let mut bins: Vec<(f64, u64)> = Vec::new();
    for value in &seconds {
        let end = 10_f64.powf((value.max(1e-9).log10() * 50.0).ceil() / 50.0);
        match bins.last_mut() {
            Some((last, count)) if end <= *last * (1.0 + 1e-9) => *count += 1,
            _ => bins.push((end, 1)),
        }
    }
    of_sorted(&seconds, bins, 0)
}

/// Direct reads of a device of the experiment, or of a path.
pub struct Reader {
    /// The device's name in the experiment, or a path.
    pub device: String,
    /// Bytes of a read, a power of two.
    pub block: u64,
    /// Threads, each with one read at a time.
    pub depth: u64,
}

impl Workload for Reader {
    type Report = ReadReport;
    const SUBCOMMAND: &'static str = "read";

    fn name(&self) -> &'static str {
        NAME
    }

    fn words(&mut self, site: &Site<'_>, _: Timing) -> Result<Vec<OsString>, Error> {
        let device = site.devices.get(&self.device).cloned().unwrap_or_else(|| PathBuf::from(&self.device));
        let mut words: Vec<OsString> = vec!["--device".into(), device.into()];
        words.extend(["--block".into(), self.block.to_string().into()]);
        words.extend(["--depth".into(), self.depth.to_string().into()]);
        Ok(words)
    }

    fn outcome(&self, report: ReadReport) -> Outcome {
        let ReadReport { seconds, reads, bytes, latency, series } = report;
        let readings = readings([
            ("iops", by(reads as f64, seconds)),
            ("operations", Some(reads as f64)),
            ("bytes-per-second", by(bytes as f64, seconds)),
        ]);
        let series = Series { name: "iops".to_owned(), unit: "1/s".to_owned(), points: series };
        let latencies = latency.map(|latency| ("latency".to_owned(), latency)).into_iter().collect();
        Outcome { readings, latencies, series: vec![series], ..Outcome::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_count_if_they_were_finished_within_the_span() {
        let read = |at, took| Finished { at: Instant(at), took };
        let reads = [read(100, 5), read(101, 7), read(600_000_000, 9), read(1_000_000_101, 11)];
        let found = of(reads.into(), 4096, StopRequest { from: Instant(100), to: Instant(1_000_000_100) });
        assert_eq!((found.reads, found.bytes), (2, 8192));
        let latency = found.latency.unwrap();
        assert_eq!((latency.count, latency.min, latency.max), (2, 7e-9, 9e-9));
        assert_eq!(latency.p999, None);
        let counted: f64 = found.series.iter().map(|(_, rate)| rate * 0.2).sum();
        assert!((counted - 2.0).abs() < 1e-9);
    }

    #[test]
    fn quantiles_are_values_that_were_seen() {
        let found = distribution((1..=2000).map(|ms| f64::from(ms) / 1000.0).collect()).unwrap();
        assert_eq!((found.p50, found.p95, found.p99), (1.0, 1.9, 1.98));
        assert_eq!(found.p999, Some(1.998));
        assert_eq!(found.bins.iter().map(|(_, count)| count).sum::<u64>(), 2000);
        assert!(found.bins.is_sorted_by(|one, other| one.0 < other.0));
        assert_eq!(distribution(Vec::new()), None);
    }

    #[test]
    fn a_device_that_is_missing_or_too_small_is_told_by_name() {
        let directory = tempfile::tempdir_in("/var/tmp").unwrap();
        let path = directory.path().join("data");
        let error = |path: &Path| open(path, 8192).unwrap_err().to_string();
        assert!(error(&path).starts_with(&format!("cannot open {}: No such file", path.display())));
        std::fs::write(&path, [7; 4096]).unwrap();
        assert_eq!(error(&path), format!("{} holds 4096 bytes, too few for reads of 8192", path.display()));
    }
}
