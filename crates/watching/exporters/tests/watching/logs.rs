//! The log: what was appended is read back, by time, also where it was cut off.

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use fake::Fake;
use kernel::{Host, Kernel};
use libtest_mimic::Trial;
use monitor::{Beat, Groups, Log, LogError, Options, Recorder, RecorderOptions, Sample, Sampler, Uncached};
use units::Bytes;

use crate::trial;

pub fn trials() -> Vec<Trial> {
    vec![
        trial("samples are read back as they were, also over key records and new groups", round_trip),
        trial("a log is read from a moment on", by_time),
        trial("a log cut off at any byte loses its last record alone, and says so", torn),
        trial(
            "of a log with a flipped bit all is read but the damaged record, and nothing valid is removed",
            flipped,
        ),
        trial("a recorder goes on behind any cut, and removes what was cut off alone", cut_and_recorded),
        trial("times are found after the clock was set back", set_back),
        trial("a FIFO or a device with a segment's name is refused", irregular),
        trial("a recorder's lock is a file that others can't open", locked_by_others),
        trial("a log keeps its bound", bound),
        trial("a recorder goes on where a killed one stopped", goes_on),
        trial("a file that is no log is reported", foreign),
        trial("a log has one recorder at a time", busy),
        trial("a thousand idle groups cost a few bytes each", small),
    ]
}

/// A machine whose groups' figures change from sample to sample.
struct Source {
    fake: Fake,
    host: Host,
    sampler: Sampler<Uncached<Fake>>,
    time: SystemTime,
}

impl Source {
    fn new(groups: usize) -> Source {
        let fake = Fake::v1(2, 1);
        let host = Host::new(Box::new(fake.clone())).unwrap();
        let sampler = Sampler::new(
            &host,
            Uncached(fake.clone()),
            Options { groups: Groups::Ours, slow_every: 3 },
            false,
        );
        let source =
            Source { fake, host, sampler, time: SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000) };
        (0..groups).for_each(|number| source.make(&format!("g{number:04}")));
        source
    }

    fn make(&self, group: &str) {
        self.host.hierarchies().iter().for_each(|at| self.fake.mkdir(at, group).unwrap());
    }

    /// One more sample, a second later.
    fn next(&mut self) -> Sample {
        let pid = self.fake.spawn(1).unwrap();
        let at = self.host.hierarchies().iter().find(|at| at.label() == "pids").unwrap();
        self.fake.write(at, "g0000", "cgroup.procs", &pid.to_string()).unwrap();
        self.fake.set_outside("/proc/stat", &format!("cpu0 {pid} 0 0 0 0 0 0 0 0 0\nctxt {}\n", pid * 1000));
        let mut sample = self
            .sampler
            .tick(&self.host, Beat { late: Duration::from_micros(7), missed: 1 })
            .unwrap()
            .clone();
        self.time += Duration::from_secs(1);
        sample.at = Some(self.time);
        sample
    }
}

struct Directory(tempfile::TempDir);

impl Directory {
    fn new() -> Directory {
        Directory(tempfile::tempdir().unwrap())
    }
    fn log(&self) -> PathBuf {
        self.0.path().join("log")
    }
}

fn recorder(directory: &Path, key_every: u64) -> Recorder {
    let (recorder, torn) =
        Recorder::open(directory, RecorderOptions { key_every, ..RecorderOptions::default() }).unwrap();
    assert_eq!(torn, []);
    recorder
}

#[track_caller]
fn same(read: &Sample, written: &Sample) {
    assert_eq!((read.at, read.clock, read.number), (written.at, written.clock, written.number));
    assert_eq!((read.late, read.missed), (written.late, written.missed));
    for (read, written) in [(&read.groups, &written.groups), (&read.machine, &written.machine)] {
        assert_eq!(read.rows(), written.rows());
        let columns = written.columns().list();
        assert_eq!(read.columns().list(), columns);
        for row in 0..written.rows().len() {
            for (column, about) in columns.iter().enumerate() {
                assert_eq!(read.reading(row, column), written.reading(row, column), "{}", about.field.name);
            }
            let close = |a: Duration, b: Duration| a.abs_diff(b) < Duration::from_millis(2);
            let (read, written) = (read.times(row), written.times(row));
            assert!(close(read.tick, written.tick) && close(read.slow, written.slow), "{read:?} {written:?}");
        }
    }
}

fn all(log: &Path) -> Vec<Sample> {
    Log::open(log).unwrap().since(SystemTime::UNIX_EPOCH).collect::<Result<_, _>>().unwrap()
}

/// A log of this number of samples, and they.
fn written(directory: &Path, count: usize, key_every: u64) -> Vec<Sample> {
    let mut source = Source::new(3);
    let mut recorder = recorder(directory, key_every);
    let samples: Vec<Sample> = (0..count).map(|_| source.next()).collect();
    samples.iter().for_each(|sample| recorder.append(sample).unwrap());
    samples
}

fn round_trip() {
    let directory = Directory::new();
    let mut source = Source::new(3);
    let mut recorder = recorder(&directory.log(), 5);
    let mut samples = Vec::new();
    for number in 0..20 {
        if number == 12 {
            source.make("new");
        }
        samples.push(source.next());
        recorder.append(&samples[number]).unwrap();
    }
    let read = all(&directory.log());
    assert_eq!(read.len(), 20);
    read.iter().zip(&samples).for_each(|(read, written)| same(read, written));
    assert_eq!(read[19].groups.rows().len(), 5);
    assert!(
        read[19].groups.get("g0000", "pids.current").at() > read[0].groups.get("g0000", "pids.current").at()
    );
}

fn by_time() {
    let directory = Directory::new();
    let samples = written(&directory.log(), 20, 4);
    let log = Log::open(&directory.log()).unwrap();
    assert_eq!(log.begins(), samples[0].at);
    for (number, sample) in samples.iter().enumerate() {
        let moment = sample.at.unwrap();
        let read: Vec<Sample> = log.since(moment).map(Result::unwrap).collect();
        assert_eq!(read.len(), 20 - number);
        same(&read[0], sample);
        let (found, torn) = log.at(moment + Duration::from_millis(900)).unwrap();
        same(&found.unwrap(), sample);
        assert!(torn.is_empty());
    }
    assert_eq!(log.at(samples[0].at.unwrap() - Duration::from_secs(1)).unwrap().0, None);
    assert_eq!(log.since(samples[19].at.unwrap() + Duration::from_secs(1)).count(), 0);
}

fn only_segment(log: &Path) -> PathBuf {
    let segments = segments(log);
    assert_eq!(segments.len(), 1);
    segments[0].clone()
}

fn segments(log: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = fs::read_dir(log).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "rflog"));
    paths.sort();
    paths
}

fn torn() {
    let directory = Directory::new();
    let samples = written(&directory.log(), 4, 2);
    let path = only_segment(&directory.log());
    let bytes = fs::read(&path).unwrap();
    let mut whole = 0; // of the records before the cut
    for cut in 0..bytes.len() {
        fs::write(&path, &bytes[..cut]).unwrap();
        let mut reader = Log::open(&directory.log()).unwrap().since(SystemTime::UNIX_EPOCH);
        let mut read = 0;
        while let Some(sample) = reader.next_sample().unwrap() {
            same(&sample, &samples[read]);
            read += 1;
        }
        assert!(read == whole || read == whole + 1, "cut at {cut}: {read} records after {whole}");
        whole = read;
        // between two records nothing is missing that could be reported
        assert!(reader.torn().len() <= 1);
        if let Some(torn) = reader.torn().first() {
            assert_eq!(torn.at + torn.bytes, cut as u64);
        }
    }
    assert_eq!(whole, 3);
    let torn = Recorder::open(&directory.log(), RecorderOptions::default()).unwrap().1;
    let [torn] = torn.as_slice() else { panic!("{torn:?}") };
    assert!(torn.to_string().contains("cut off"), "{torn}");
    assert_eq!(fs::metadata(&path).unwrap().len(), torn.at);
    assert_eq!(all(&directory.log()).len(), 3);
}

/// Where the records of a segment begin, and where the last ends.
fn boundaries(bytes: &[u8]) -> Vec<usize> {
    let mut at = b"ringfence log 1\n".len();
    let mut found = vec![at];
    while at < bytes.len() {
        at += 8 + u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
        found.push(at);
    }
    found
}

/// The samples that are read, which must be those that were written.
fn read_back(log: &Path, written: &[Sample]) -> Result<Vec<u64>, LogError> {
    let mut reader = Log::open(log).unwrap().since(SystemTime::UNIX_EPOCH);
    let mut read = Vec::new();
    while let Some(sample) = reader.next_sample()? {
        same(&sample, written.iter().find(|written| written.number == sample.number).unwrap());
        read.push(sample.number);
    }
    Ok(read)
}

/// Samples of this machine.
fn real(directory: &Path, count: usize, key_every: u64) -> Vec<Sample> {
    let host = Host::new(Box::new(kernel::Real::new())).unwrap();
    let options = Options { groups: Groups::All, slow_every: 3 };
    let mut sampler = Sampler::new(&host, monitor::Descriptors::new(), options, false);
    let mut recorder = recorder(directory, key_every);
    let sample = |_| sampler.tick(&host, Beat::default()).unwrap().clone();
    let samples: Vec<Sample> = (0..count).map(sample).collect();
    samples.iter().for_each(|sample| recorder.append(sample).unwrap());
    samples
}

/// Attack finding 9: 500 flipped bits in a log of this machine. A damaged record costs itself and the changes that depend on
/// it, for any reader; a recorder that opens the log removes nothing but a damaged end.
fn flipped() {
    let directory = Directory::new();
    let samples = real(&directory.log(), 12, 4);
    let path = only_segment(&directory.log());
    let bytes = fs::read(&path).unwrap();
    let records = boundaries(&bytes);
    let numbers: Vec<u64> = samples.iter().map(|sample| sample.number).collect();
    let keys: Vec<usize> = (0..12).filter(|at| bytes[records[*at] + 8] == 1).collect();
    assert!(keys.starts_with(&[0, 4]) || keys.len() > 3, "{keys:?}");
    let mut foreign = 0;
    for flip in 0..500 {
        let place = if flip < 16 { flip } else { flip * (bytes.len() - 1) / 499 };
        let mut broken = bytes.clone();
        broken[place] ^= 1 << (flip % 8);
        fs::write(&path, &broken).unwrap();
        let damaged = records.iter().rposition(|at| *at <= place);
        let expected: Vec<u64> = match damaged {
            None => numbers.clone(),
            Some(damaged) => {
                let next = keys.iter().copied().find(|key| *key > damaged).unwrap_or(12);
                numbers[..damaged].iter().chain(&numbers[next..]).copied().collect()
            }
        };
        match read_back(&directory.log(), &samples) {
            Ok(read) => assert_eq!(read, expected, "byte {place}"),
            // the number of the format
            Err(LogError::Foreign { .. }) => {
                foreign += 1;
                continue;
            }
            Err(other) => panic!("byte {place}: {other}"),
        }
        let (recorder, torn) = Recorder::open(&directory.log(), RecorderOptions::default()).unwrap();
        drop(recorder);
        assert_eq!(torn.len(), 1, "byte {place}: {torn:?}");
        let left = fs::read(&path).unwrap();
        match damaged {
            Some(11) => assert!(!torn[0].goes_on && left == broken[..records[11]], "byte {place}"),
            _ => assert!(torn[0].goes_on && left == broken, "byte {place}: {torn:?}"),
        }
        assert_eq!(read_back(&directory.log(), &samples).unwrap(), expected, "byte {place}");
    }
    assert!(foreign <= 1, "{foreign}");
    // what the reader says of a damaged key record
    let mut broken = bytes.clone();
    broken[records[4] + 30] ^= 1;
    fs::write(&path, &broken).unwrap();
    let mut reader = Log::open(&directory.log()).unwrap().since(SystemTime::UNIX_EPOCH);
    while reader.next_sample().unwrap().is_some() {}
    let lost = keys.iter().find(|key| **key > 4).unwrap() - 5;
    assert_eq!((reader.torn().len(), reader.torn()[0].passed_over), (1, lost as u64));
    assert_eq!(reader.torn()[0].at, records[4] as u64);
}

/// Every cut of a log: a recorder goes on behind the last whole record.
fn cut_and_recorded() {
    let directory = Directory::new();
    let samples = written(&directory.log(), 3, 2);
    let path = only_segment(&directory.log());
    let bytes = fs::read(&path).unwrap();
    let records = boundaries(&bytes);
    for cut in (0..bytes.len()).step_by(7).chain(records.iter().copied()) {
        fs::write(&path, &bytes[..cut]).unwrap();
        let (mut recorder, torn) = Recorder::open(&directory.log(), RecorderOptions::default()).unwrap();
        let whole = records.iter().filter(|end| **end <= cut).count().saturating_sub(1);
        assert_eq!(torn.is_empty(), records.contains(&cut), "cut at {cut}: {torn:?}");
        recorder.append(&samples[2]).unwrap();
        drop(recorder);
        let mut expected: Vec<u64> = samples[..whole].iter().map(|sample| sample.number).collect();
        expected.push(samples[2].number);
        assert_eq!(read_back(&directory.log(), &samples).unwrap(), expected, "cut at {cut}");
        segments(&directory.log()).iter().for_each(|path| fs::remove_file(path).unwrap());
    }
}

/// Attack finding 16: ten samples by a clock that is an hour ahead, then it is set back.
fn set_back() {
    let directory = Directory::new();
    let mut source = Source::new(2);
    let mut recorder = recorder(&directory.log(), 4);
    let mut samples = Vec::new();
    let real = source.time;
    for number in 0..20 {
        if number == 0 {
            source.time += Duration::from_secs(3600);
        } else if number == 10 {
            source.time = real + Duration::from_secs(10);
        }
        samples.push(source.next());
        recorder.append(&samples[number]).unwrap();
    }
    let log = Log::open(&directory.log()).unwrap();
    for sample in &samples {
        let at = sample.at.unwrap();
        let (found, torn) = log.at(at + Duration::from_millis(900)).unwrap();
        assert!(torn.is_empty());
        same(&found.unwrap(), sample);
        let (times, mut leading) = log.leading_to(sample, Duration::from_secs(5)).unwrap();
        assert!(times.windows(2).all(|pair| pair[0] < pair[1]) && times.len() <= 6, "{times:?}");
        let led: Vec<Sample> = times.iter().map(|_| leading.next_sample().unwrap().unwrap()).collect();
        same(led.last().unwrap(), sample);
    }
    let numbers = |since: SystemTime, until| -> Vec<u64> {
        log.between(since, until).map(|sample| sample.unwrap().number).collect()
    };
    let of = |samples: &[Sample]| -> Vec<u64> { samples.iter().map(|sample| sample.number).collect() };
    assert_eq!(numbers(real, samples[19].at), of(&samples[10..]));
    assert_eq!(numbers(real, samples[14].at), of(&samples[10..15]));
    assert_eq!(numbers(samples[0].at.unwrap(), None), of(&samples[..10]));
    assert_eq!(numbers(SystemTime::UNIX_EPOCH, None), of(&samples));
    assert_eq!(log.at(real).unwrap().0, None);
}

/// Attack finding 21.
fn irregular() {
    use rustix::fs::{FileType, Mode};
    let directory = Directory::new();
    fs::create_dir(directory.log()).unwrap();
    let path = directory.log().join("00000000000001.rflog");
    let mode = Mode::from_raw_mode(0o644);
    rustix::fs::mknodat(rustix::fs::CWD, &path, FileType::Fifo, mode, 0).unwrap();
    let refused = |log: &Path| {
        let mut samples = Log::open(log).unwrap().since(SystemTime::UNIX_EPOCH);
        let read = samples.next_sample().unwrap_err();
        let recorded = Recorder::open(log, RecorderOptions::default()).unwrap_err();
        for error in [read, recorded] {
            assert!(error.to_string().ends_with("is not a regular file"), "{error}");
            assert!(error.hint().unwrap().starts_with("rm "), "{:?}", error.hint());
        }
    };
    refused(&directory.log());
    fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
    refused(&directory.log());
}

/// Attack finding 2: a user who may read the directory may lock it, and so must not keep a recorder out.
fn locked_by_others() {
    use std::os::unix::fs::PermissionsExt;
    let directory = Directory::new();
    fs::create_dir(directory.log()).unwrap();
    let open = fs::File::open(directory.log()).unwrap();
    rustix::fs::flock(&open, rustix::fs::FlockOperation::NonBlockingLockExclusive).unwrap();
    fs::write(directory.log().join("lock"), "").unwrap();
    let _recorder = recorder(&directory.log(), 10);
    let mode = fs::metadata(directory.log().join("lock")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

fn bound() {
    let directory = Directory::new();
    let mut source = Source::new(300);
    let options = RecorderOptions { size: Bytes(1 << 20), key_every: 1 };
    let (mut recorder, _) = Recorder::open(&directory.log(), options).unwrap();
    let mut sample = source.next();
    let mut count = 0u64;
    while recorder.written() < 3 << 20 {
        source.time += Duration::from_secs(1);
        sample.at = Some(source.time);
        recorder.append(&sample).unwrap();
        count += 1;
    }
    let entries = segments(&directory.log());
    let size: u64 = entries.iter().map(|path| fs::metadata(path).unwrap().len()).sum();
    assert!((1 << 19..(1 << 20) + (64 << 10)).contains(&size), "{size} bytes in {entries:?}");
    let read = all(&directory.log());
    assert!((read.len() as u64) < count);
    assert_eq!(read.last().unwrap().at, sample.at);
    assert_eq!(Log::open(&directory.log()).unwrap().begins(), read[0].at);
}

fn goes_on() {
    let directory = Directory::new();
    let mut source = Source::new(2);
    let mut samples: Vec<Sample> = (0..3).map(|_| source.next()).collect();
    let mut first = recorder(&directory.log(), 10);
    samples.iter().for_each(|sample| first.append(sample).unwrap());
    drop(first);
    // the last record was not written to its end
    let path = only_segment(&directory.log());
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
    let (mut second, torn) = Recorder::open(&directory.log(), RecorderOptions::default()).unwrap();
    assert!(torn.len() == 1 && !torn[0].goes_on, "{torn:?}");
    // the clock was set back meanwhile
    source.time -= Duration::from_secs(100);
    samples[2] = source.next();
    second.append(&samples[2]).unwrap();
    let read = all(&directory.log());
    assert_eq!(read.len(), 3);
    read.iter().zip(&samples).for_each(|(read, written)| same(read, written));
}

fn busy() {
    let directory = Directory::new();
    let first = recorder(&directory.log(), 10);
    let refused = Recorder::open(&directory.log(), RecorderOptions::default());
    assert!(matches!(refused, Err(LogError::Busy { .. })), "{refused:?}");
    drop(first);
    recorder(&directory.log(), 10);
}

fn foreign() {
    let directory = Directory::new();
    fs::create_dir(directory.log()).unwrap();
    fs::write(directory.log().join("notes.txt"), "mine").unwrap();
    assert_eq!(all(&directory.log()).len(), 0);
    fs::write(directory.log().join("00000000000001.rflog"), "ringfence log 9\nx").unwrap();
    let error =
        Log::open(&directory.log()).unwrap().since(SystemTime::UNIX_EPOCH).next().unwrap().unwrap_err();
    assert!(error.hint().unwrap().contains("move it away"), "{error}");
    assert!(Recorder::open(&directory.log(), RecorderOptions::default()).is_err());
    assert_eq!(fs::read(directory.log().join("notes.txt")).unwrap(), b"mine");
    let error = Recorder::open(&directory.log().join("a/b"), RecorderOptions::default()).unwrap_err();
    assert!(error.to_string().starts_with("cannot make "), "{error}");
}

fn small() {
    let directory = Directory::new();
    let mut source = Source::new(1000);
    let mut recorder = recorder(&directory.log(), 300);
    let sample = source.next();
    recorder.append(&sample).unwrap();
    let start = recorder.written();
    (0..10).for_each(|_| recorder.append(&source.next()).unwrap());
    let per_group = (recorder.written() - start) as f64 / 10.0 / 1000.0;
    assert!(per_group < 6.0, "{per_group} bytes per group and sample");
    assert!(start < 60_000, "the first record: {start} bytes for 1,000 groups");
}
