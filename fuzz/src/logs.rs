//! The recorder's log: files that anything may have happened to.

use std::{
    fs,
    path::Path,
    time::{Duration, SystemTime},
};

use monitor::{
    Log, Recorder, RecorderOptions, Sample, Torn,
    log::{MAGIC, RecordKind, put_record},
};

use crate::scratch::with_directory;

/// What a frame takes beside its record.
const HEAD: usize = 21;
/// Samples of more cells are not written again: that would only take time.
const CELLS: usize = 10_000;

/// A segment of any bytes.
pub fn log(data: &[u8]) {
    with_directory(|directory| holds(directory, data));
}

/// A segment of records of any bytes whose checksums are right. Before each record: its kind, when it was taken (1 byte
/// each), and its length (2).
pub fn log_records(data: &[u8]) {
    let mut segment = MAGIC.to_vec();
    let mut rest = data;
    while let [kind, at, low, high, after @ ..] = rest {
        let length = usize::from(u16::from_le_bytes([*low, *high])).min(after.len());
        let (record, behind) = after.split_at(length);
        let kind = if kind % 2 == 1 { RecordKind::Key } else { RecordKind::Change };
        if put_record(kind, 1_000_000_000 + 1000 * u64::from(*at), record, &mut segment).is_none() {
            unreachable!("64 KiB are not too long");
        }
        rest = behind;
    }
    with_directory(|directory| holds(directory, &segment));
}

/// By what samples differ.
type SampleKey = (Option<SystemTime>, Duration, u64, usize);

fn holds(directory: &Path, segment: &[u8]) {
    let log = directory.join("log");
    let written = fs::create_dir(&log).and_then(|()| fs::write(log.join("00001000000000.rflog"), segment));
    written.unwrap_or_else(|error| panic!("{error}"));
    let Some((known, torn, last)) = all(&log) else { return };
    assert!(known.len() <= segment.len() / HEAD, "{} samples of {} bytes", known.len(), segment.len());
    let mut before = 0;
    for torn in &torn {
        assert!(torn.at >= before, "{torn:?} begins before byte {before}");
        before = torn.at + torn.bytes;
        assert!(before <= segment.len() as u64, "{torn:?} ends behind the file");
        assert!(!torn.to_string().is_empty());
    }
    let (Ok(opened), moments) = (Log::open(&log), known.iter().filter_map(|(at, ..)| *at)) else {
        unreachable!("it was opened before")
    };
    for moment in moments.take(3) {
        let found = opened.at(moment).unwrap_or_else(|error| panic!("{error}")).0;
        if let Some(found) = found {
            let led = opened.leading_to(&found, Duration::from_secs(60));
            led.unwrap_or_else(|error| panic!("{error}"));
        }
    }
    // a recorder goes on behind it, and takes nothing away that can be read
    let recorder = Recorder::open(&log, RecorderOptions::default());
    let (mut recorder, _) = recorder.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(all(&log).map(|(known, ..)| known).unwrap_or_default(), known);
    if let Some(last) = last
        && recorder.append(&last).is_ok()
    {
        drop(recorder);
        let (after, _, again) = all(&log).unwrap_or_else(|| panic!("what was read before can't be read"));
        assert_eq!(after.len(), known.len() + 1);
        let Some(again) = again else { unreachable!("it is as small as the other") };
        assert_eq!((again.groups.rows(), again.machine.rows()), (last.groups.rows(), last.machine.rows()));
        assert_eq!(cells(&again), cells(&last));
    }
}

/// All samples of a log, what was damaged, and the last sample if it is small; `None`: it is no log.
fn all(log: &Path) -> Option<(Vec<SampleKey>, Vec<Torn>, Option<Sample>)> {
    let mut samples = Log::open(log).ok()?.since(SystemTime::UNIX_EPOCH);
    let mut known = Vec::new();
    let mut last = None;
    while let Some(sample) = samples.next_sample().ok()? {
        let cells = [&sample.groups, &sample.machine]
            .into_iter()
            .map(|table| table.rows().len() * table.columns().list().len());
        let cells = cells.sum();
        known.push((sample.at, sample.clock, sample.number, cells));
        last = (cells <= CELLS).then_some(sample);
    }
    Some((known, samples.torn().to_vec(), last))
}

fn cells(sample: &Sample) -> Vec<monitor::Reading> {
    let tables = [&sample.groups, &sample.machine].into_iter();
    let all = tables.flat_map(|table| {
        let width = table.columns().list().len();
        (0..table.rows().len()).flat_map(move |row| (0..width).map(move |column| table.reading(row, column)))
    });
    all.collect()
}
