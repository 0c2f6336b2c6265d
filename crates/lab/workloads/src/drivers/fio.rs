//! fio on a device of the experiment's. Its figures are the sums of what it says of each job: a job's time runs from
//! the end of one operation to the end of another, so that a limit of few operations a second is measured whole. It
//! never writes to a device that is not the lab's own.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::{FileTypeExt, MetadataExt},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use experiment::{drivers::FIO, file, results::Latency};
use serde::Deserialize;

use super::{
    distribution::{Bins, from_bins},
    process::{PATIENCE, Process, Tool, command, run},
    programs, series,
};
use crate::{Driver, Error, Failure, Outcome, Site, Span, Timing, files};

/// Of its logs of bandwidth.
const LOG_MILLISECONDS: f64 = 200.0;

/// Size of the file that is worked on where the device is a file system's directory.
const FILE_SIZE: &str = "64m";

/// Which ways only read.
const READS: [&str; 2] = ["read", "randread"];

/// Which write.
const WRITES: [&str; 6] = ["write", "randwrite", "rw", "readwrite", "randrw", "trim"];

/// Major number of loop devices (Linux's devices.txt).
const LOOP_MAJOR: u32 = 7;

pub(crate) struct Fio {
    options: file::Fio,
    run: Option<Run>,
}

struct Run {
    process: Process,
    report: PathBuf,
    ends_by: Instant,
}

/// What of its report (`--output-format=json+`) is read.
#[derive(Deserialize)]
struct Report {
    jobs: Vec<Job>,
}

#[derive(Deserialize)]
struct Job {
    error: i32,
    #[serde(default)]
    read: Way,
    #[serde(default)]
    write: Way,
    #[serde(default)]
    trim: Way,
}

/// What a job did in one direction.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Way {
    io_bytes: u64,
    total_ios: u64,
    /// Milliseconds.
    runtime: u64,
    lat_ns: Latencies,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Latencies {
    min: u64,
    max: u64,
    mean: f64,
    #[serde(rename = "N")]
    count: u64,
    /// The middle of a bin → how many.
    bins: BTreeMap<String, u64>,
}

impl Fio {
    pub fn new(options: &file::Fio) -> Result<Fio, Error> {
        let wrong = |option, value: &str, reason: &str| Failure::Option {
            option,
            value: value.to_owned(),
            reason: reason.to_owned(),
        };
        let rw = options.rw.as_str();
        if !READS.contains(&rw) && !WRITES.contains(&rw) {
            let reason = format!("it is one of {}", [&READS[..], &WRITES].concat().join(", "));
            return Err(wrong("rw", rw, &reason).into());
        }
        if options.device.is_empty() {
            return Err(wrong("device", "", "a device is needed").into());
        }
        if options.jobs == 0 || options.depth == 0 {
            return Err(wrong("jobs", "0", "jobs and depth are at least 1").into());
        }
        Ok(Fio { options: options.clone(), run: None })
    }

    fn only_reads(&self) -> bool {
        READS.contains(&self.options.rw.as_str())
    }

    /// What it works on: a block device, or a file of its own in a directory.
    fn target(&self, site: &Site<'_>) -> Result<Target, Error> {
        let named = site.devices.get(&self.options.device);
        let path = named.cloned().unwrap_or_else(|| PathBuf::from(&self.options.device));
        let found = fs::metadata(&path).map_err(|source| Error::Device {
            what: "cannot open",
            path: path.clone(),
            source,
        })?;
        let is_loop = found.file_type().is_block_device() && rustix::fs::major(found.rdev()) == LOOP_MAJOR;
        if !self.only_reads() && !(named.is_some() && (is_loop || found.is_dir())) {
            let text = format!("{} is not the lab's own: nothing is written to it", path.display());
            let hint = "name a loop device of the experiment, or rw = \"read\"".to_owned();
            return Err(Failure::Unfit { text, hint }.into());
        }
        Ok(if found.is_dir() { Target::File(path.join("ringfence-fio")) } else { Target::Device(path) })
    }

    fn command(&self, site: &Site<'_>) -> Result<Tool, Error> {
        let target = self.target(site)?;
        let mut fio = command(site.launch, site.group, &programs::find(&FIO)?, None, "KILL");
        let options = &self.options;
        // as threads they end with their process
        fio.args(["--name=ringfence", "--thread", "--direct=1"]);
        fio.arg(format!("--filename={}", target.escaped()?));
        fio.arg(format!("--rw={}", options.rw));
        fio.arg(format!("--bs={}", options.block));
        fio.arg(format!("--numjobs={}", options.jobs));
        fio.arg(format!("--iodepth={}", options.depth));
        fio.arg(format!("--ioengine={}", options.engine));
        if let Target::File(_) = target {
            fio.arg(format!("--size={FILE_SIZE}"));
        }
        Ok(fio)
    }
}

/// What fio works on.
enum Target {
    Device(PathBuf),
    File(PathBuf),
}

impl Target {
    /// As fio's options want it: a colon separates names.
    fn escaped(&self) -> Result<String, Failure> {
        let (Target::Device(path) | Target::File(path)) = self;
        let text = path.to_str().ok_or_else(|| Failure::Option {
            option: "device",
            value: path.display().to_string(),
            reason: "its name is no text".to_owned(),
        })?;
        Ok(text.replace('\\', "\\\\").replace(':', "\\:"))
    }
}

impl Driver for Fio {
    fn versions(&self) -> Result<Vec<(String, String)>, Error> {
        Ok(vec![("fio".to_owned(), programs::version(&programs::find(&FIO)?))])
    }

    fn prepare(&mut self, site: &Site<'_>) -> Result<(), Error> {
        if let Target::Device(_) = self.target(site)? {
            return Ok(());
        }
        let mut fio = self.command(site)?;
        fio.arg("--create_only=1");
        run(fio, "fio-create", site.directory, Duration::from_secs(600)).map(drop)
    }

    fn start(&mut self, site: &Site<'_>, timing: Timing) -> Result<(), Error> {
        for old in logs(site.directory)? {
            fs::remove_file(&old).map_err(Failure::file("remove", &old))?;
        }
        let report = site.directory.join("fio.json");
        let mut fio = self.command(site)?;
        if self.only_reads() {
            fio.arg("--readonly");
        }
        let milliseconds = |time: Duration| time.as_millis().max(1);
        fio.args(["--time_based", "--output-format=json+", "--lat_percentiles=1", "--clat_percentiles=0"]);
        fio.arg(format!("--ramp_time={}ms", milliseconds(timing.warm_up)));
        fio.arg(format!("--runtime={}ms", milliseconds(timing.duration)));
        fio.arg(format!("--output={}", report.display()));
        fio.arg(format!("--log_avg_msec={LOG_MILLISECONDS}"));
        fio.arg(format!("--write_bw_log={}", site.directory.join("fio").display()));
        let process = Process::start(fio, "fio", site.directory)?;
        let ends_by = Instant::now() + timing.warm_up + timing.duration + PATIENCE;
        self.run = Some(Run { process, report, ends_by });
        Ok(())
    }

    fn done(&mut self) -> Option<f64> {
        None
    }

    fn stop(&mut self, span: Span) -> Result<Outcome, Error> {
        let Some(Run { mut process, report, ends_by }) = self.run.take() else {
            return Err(Failure::unreadable("fio", "it was not started").into());
        };
        process.finish(ends_by.saturating_duration_since(Instant::now()))?;
        let text = files::tool_text(&report).map_err(Failure::file("read", &report))?;
        let directory = report.parent().unwrap_or(&report).to_owned();
        let seconds = span.to.saturating_duration_since(span.from).as_secs_f64();
        let report_read = read(&text)?;
        let mut outcome = outcome(&report_read);
        outcome.series = over_time(&logs(&directory)?, report_read.block(), seconds)?;
        outcome.files = vec![report];
        Ok(outcome)
    }

    fn clean_up(&mut self) {
        self.run = None;
    }
}

impl Report {
    fn ways(&self) -> impl Iterator<Item = &Way> {
        self.jobs.iter().flat_map(|job| [&job.read, &job.write, &job.trim])
    }

    /// Bytes of one operation, on average.
    fn block(&self) -> f64 {
        let (bytes, operations) =
            self.ways().fold((0, 0), |sum, way| (sum.0 + way.io_bytes, sum.1 + way.total_ios));
        bytes as f64 / operations.max(1) as f64
    }
}

/// Its report; notes may stand before it.
fn read(text: &str) -> Result<Report, Error> {
    let unreadable = |reason: String| Failure::unreadable("fio", reason);
    let begin = if text.starts_with('{') { Some(0) } else { text.find("\n{").map(|place| place + 1) };
    let json = begin.map(|begin| &text[begin..]).ok_or_else(|| unreadable("it is no JSON".to_owned()))?;
    let report: Report = serde_json::from_str(json).map_err(|error| unreadable(error.to_string()))?;
    match report.jobs.iter().find(|job| job.error != 0) {
        Some(job) => {
            let error = std::io::Error::from_raw_os_error(job.error);
            Err(unreadable(format!("a job ended with an error: {error}")).into())
        }
        None => Ok(report),
    }
}

fn outcome(report: &Report) -> Outcome {
    let per_second = |of: fn(&Way) -> u64| -> f64 {
        let of = |way: &Way| of(way) as f64 * 1000.0 / way.runtime as f64;
        report.ways().filter(|way| way.runtime > 0).map(of).sum()
    };
    let operations: u64 = report.ways().map(|way| way.total_ios).sum();
    let readings = [
        ("operations", operations as f64),
        ("iops", per_second(|way| way.total_ios)),
        ("bytes-per-second", per_second(|way| way.io_bytes)),
    ];
    let all: Vec<&Latencies> =
        report.ways().map(|way| &way.lat_ns).filter(|latencies| latencies.count > 0).collect();
    Outcome {
        readings: readings.into_iter().map(|(name, figure)| (name.to_owned(), figure)).collect(),
        latencies: latency(&all).map(|latency| ("latency".to_owned(), latency)).into_iter().collect(),
        ..Outcome::default()
    }
}

/// From submission to completion, of all jobs.
fn latency(all: &[&Latencies]) -> Option<Latency> {
    let count: u64 = all.iter().map(|latencies| latencies.count).sum();
    let sum: f64 = all.iter().map(|latencies| latencies.mean * latencies.count as f64).sum();
    let min = all.iter().map(|latencies| latencies.min).min()?;
    let max = all.iter().map(|latencies| latencies.max).max()?;
    let mut bins: BTreeMap<u64, u64> = BTreeMap::new();
    let mut beyond = 0;
    for (middle, count) in all.iter().flat_map(|latencies| &latencies.bins) {
        match upper_end(middle.parse().ok()?) {
            Some(end) => *bins.entry(end).or_default() += count,
            None => beyond += count,
        }
    }
    let bins: Vec<(f64, u64)> = bins.into_iter().map(|(end, count)| (end as f64 * 1e-9, count)).collect();
    let (mean, min, max) = (sum / count.max(1) as f64 * 1e-9, min as f64 * 1e-9, max as f64 * 1e-9);
    from_bins(Bins { bins: &bins, beyond, mean, min, max, missed: 0 })
}

/// The upper end of a bin in nanoseconds. fio has 64 bins for each doubling and names them by their middle (stat.c,
/// `plat_idx_to_val`). The last holds whatever is longer than 17 s, and has none.
fn upper_end(middle: u64) -> Option<u64> {
    const BITS: u32 = 6;
    const END_OF_LAST: u64 = 1 << 34;
    let doubling = middle.checked_ilog2().unwrap_or(0);
    if doubling <= BITS {
        return Some(middle);
    }
    let end = middle.saturating_add(1 << (doubling - BITS - 1));
    (end < END_OF_LAST).then_some(end)
}

/// Its logs of bandwidth, one for each job.
fn logs(directory: &Path) -> Result<Vec<PathBuf>, Error> {
    let entries = fs::read_dir(directory).map_err(Failure::file("list", directory))?;
    let is_log = |name: &str| name.starts_with("fio_bw.") && name.ends_with(".log");
    let named = entries.flatten().filter(|entry| entry.file_name().to_str().is_some_and(is_log));
    Ok(named.map(|entry| entry.path()).collect())
}

/// Rates of all jobs. fio's log of operations rounds a rate down to a whole number, which at few a second is most of
/// it: they are reported from bytes and the size of a block.
fn over_time(logs: &[PathBuf], block: f64, seconds: f64) -> Result<Vec<experiment::results::Series>, Error> {
    let (mut bytes, mut operations) = (Vec::new(), Vec::new());
    for log in logs {
        let text = files::tool_text(log).map_err(Failure::file("read", log))?;
        for line in text.lines() {
            let (end, amount) =
                logged(line).ok_or_else(|| Failure::unreadable("fio", format!("'{line}' in its log")))?;
            let middle = (end - LOG_MILLISECONDS / 2.0) / 1000.0;
            bytes.push((middle, amount));
            operations.push((middle, if block > 0.0 { amount / block } else { 0.0 }));
        }
    }
    let all: f64 = operations.iter().map(|(_, operations)| operations).sum();
    let interval = Some(series::interval(all / seconds));
    Ok(vec![
        series::weighted("iops", "1/s", operations, seconds, interval),
        series::weighted("bytes-per-second", "bytes/s", bytes, seconds, interval),
    ])
}

/// `milliseconds, KiB/s, …`: the end of an interval, and the bytes of it.
fn logged(line: &str) -> Option<(f64, f64)> {
    let mut fields = line.split(',').map(|field| field.trim().parse::<f64>());
    let (end, rate) = (fields.next()?.ok()?, fields.next()?.ok()?);
    Some((end, rate * 1024.0 * LOG_MILLISECONDS / 1000.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(runtime: u64, operations: u64, bins: &str, max: u64) -> String {
        format!(
            r#"{{"error": 0, "read": {{"io_bytes": {}, "total_ios": {operations}, "runtime": {runtime},
            "lat_ns": {{"min": 100, "max": {max}, "mean": 2e9, "N": {operations}, "bins": {bins}}}}}}}"#,
            operations * 8192
        )
    }

    #[test]
    fn each_jobs_operations_are_divided_by_its_own_time() {
        let jobs =
            [job(10_000, 25, r#"{"325058560": 25}"#, 327_000_000), job(5_000, 25, r#"{"100": 25}"#, 100)];
        let text = format!("fio: a note about {{engines}}\n{{\"jobs\": [{}, {}]}}", jobs[0], jobs[1]);
        let outcome = outcome(&read(&text).unwrap());
        assert_eq!(outcome.readings["operations"], 50.0);
        assert!((outcome.readings["iops"] - 7.5).abs() < 1e-9, "{:?}", outcome.readings);
        assert!((outcome.readings["bytes-per-second"] - 7.5 * 8192.0).abs() < 1e-6);
        let latency = &outcome.latencies["latency"];
        assert_eq!((latency.count, latency.mean, latency.p99), (50, 2.0, 0.327));
        assert!((latency.p50 - 100e-9).abs() < 1e-15, "{latency:?}");
    }

    #[test]
    fn quantiles_are_not_told_where_fios_last_bin_holds_them() {
        // 77.5 * 2^22: the bin from 77 to 78
        assert_eq!(upper_end(325_058_560), Some(78 << 22));
        assert_eq!(upper_end(127), Some(127));
        // fio 3.33 says 30 s as 17112760320
        assert_eq!(upper_end(17_112_760_320), None);
        let slow = job(60_000, 4, r#"{"17112760320": 4}"#, 30_000_000_000);
        let outcome = outcome(&read(&format!("{{\"jobs\": [{slow}]}}")).unwrap());
        assert!(outcome.latencies.is_empty() && outcome.readings["operations"] == 4.0, "{outcome:?}");
    }

    #[test]
    fn a_job_that_failed_is_reported() {
        let error = read("{\"jobs\": [{\"error\": 5}]}").err().unwrap().to_string();
        assert_eq!(
            error,
            "what fio printed can't be read: a job ended with an error: Input/output error (os error 5)"
        );
        assert!(read("fio: no such option").is_err());
    }
}
