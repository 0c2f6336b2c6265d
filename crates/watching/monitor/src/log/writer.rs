//! Appends samples to a log, one write per record, and keeps the whole below its bound. Never reads what it wrote
//! and never syncs: a crash of the machine costs what the kernel had not written yet, one of this process nothing.

use std::{
    fs::{File, OpenOptions},
    io::{self, Write},
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
    time::SystemTime,
};

use rustix::fs::OFlags;
use units::Bytes;

use super::{
    ENDING, LogError, MAGIC, Torn, frame, milliseconds, record,
    segment::{self, failed},
    segments,
};
use crate::sample::Sample;

/// How a log is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecorderOptions {
    /// At most this on disk, but for the segment that is being written; at least 1 MiB.
    pub size: Bytes,
    /// A key record each time after this number of samples: the most that a reader goes through to find one.
    pub key_every: u64,
}

impl Default for RecorderOptions {
    fn default() -> Self {
        RecorderOptions { size: Bytes(1 << 30), key_every: 300 }
    }
}

/// A log that is written.
#[derive(Debug)]
pub struct Recorder {
    directory: PathBuf,
    /// Locked as long as this is open.
    _lock: File,
    options: RecorderOptions,
    segment: Option<Segment>,
    /// Closed segments with their sizes, oldest first.
    closed: Vec<(PathBuf, u64)>,
    before: Option<Sample>,
    /// The time of that sample, in milliseconds.
    last: u64,
    since_key: u64,
    record: Vec<u8>,
    framed: Vec<u8>,
    written: u64,
}

#[derive(Debug)]
struct Segment {
    file: File,
    path: PathBuf,
    size: u64,
}

/// A bound is precise to an eighth of it.
const SEGMENTS: u64 = 8;

/// Locked by the recorder. Its mode keeps others from opening it, and so from locking it: they may open the directory.
const LOCK: &str = "lock";

fn lock(directory: &Path) -> Result<File, LogError> {
    let path = directory.join(LOCK);
    let flags = OFlags::NOFOLLOW.bits() as i32;
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600).custom_flags(flags);
    let lock = options.open(&path).map_err(failed("open", &path))?;
    // its maker may have had another mask or mode
    let mode = std::fs::Permissions::from_mode(0o600);
    lock.set_permissions(mode).map_err(failed("close to others", &path))?;
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::NonBlockingLockExclusive)
        .map_err(|_| LogError::Busy { directory: directory.to_owned() })?;
    Ok(lock)
}

/// Removes a record that was cut off, or a segment without any.
fn cut(torn: &Torn) -> Result<(), LogError> {
    if torn.at == 0 {
        return std::fs::remove_file(&torn.path).map_err(failed("remove", &torn.path));
    }
    let mut options = OpenOptions::new();
    let options = options.write(true).custom_flags(OFlags::NOFOLLOW.bits() as i32);
    let file = options.open(&torn.path).map_err(failed("open", &torn.path))?;
    file.set_len(torn.at).map_err(failed("shorten", &torn.path))
}

impl Recorder {
    /// Opens or begins the log in `directory`, which is made if it is not there (but not its parents). A record that was cut
    /// off at its end is removed; damaged ones before valid records stay. Both are returned.
    ///
    /// # Errors
    /// [`LogError::File`], [`LogError::Busy`], [`LogError::Irregular`].
    pub fn open(directory: &Path, options: RecorderOptions) -> Result<(Recorder, Vec<Torn>), LogError> {
        match std::fs::create_dir(directory) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(failed("make", directory)(error));
            }
            _ => {}
        }
        // what looks cut off may be what another one is writing
        let lock = lock(directory)?;
        let mut paths = segments(directory)?;
        let torn = match paths.last() {
            Some(last) => segment::torn(last)?,
            None => Vec::new(),
        };
        if let Some(torn) = torn.last().filter(|torn| !torn.goes_on) {
            cut(torn)?;
            if torn.at == 0 {
                paths.pop();
            }
        }
        let mut closed = Vec::new();
        for path in paths {
            let size = std::fs::metadata(&path).map_err(failed("look at", &path))?.len();
            closed.push((path, size));
        }
        let recorder = Recorder {
            directory: directory.to_owned(),
            _lock: lock,
            options: RecorderOptions { size: options.size.max(Bytes(1 << 20)), ..options },
            segment: None,
            closed,
            before: None,
            last: 0,
            since_key: 0,
            record: Vec::new(),
            framed: Vec::new(),
            written: 0,
        };
        Ok((recorder, torn))
    }

    /// Appends a sample. After an error (a full disk) the log is as it was before, and later samples may be tried.
    ///
    /// # Errors
    /// [`LogError::File`], [`LogError::TooLarge`].
    pub fn append(&mut self, sample: &Sample) -> Result<(), LogError> {
        let at = sample.at.and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok());
        let milliseconds = at.map_or(0, |at| at.as_millis() as u64);
        let is_full = |segment: &Segment| segment.size >= self.options.size.0 / SEGMENTS;
        // readers find a time by the segments, in which times rise
        let is_set_back = milliseconds < self.last;
        if is_set_back || self.segment.as_ref().is_none_or(is_full) {
            self.begin(milliseconds)?;
        }
        let is_key_due = self.since_key >= self.options.key_every;
        let before = self.before.as_ref().filter(|_| !is_key_due);
        self.record.clear();
        self.framed.clear();
        let kind = record::encode(sample, before, &mut self.record);
        frame::put(kind, milliseconds, &self.record, &mut self.framed)
            .ok_or(LogError::TooLarge { bytes: self.record.len() })?;
        if record::footprint(sample) > record::allowance(self.framed.len()) {
            return Err(LogError::TooLarge { bytes: self.record.len() });
        }
        let Some(segment) = &mut self.segment else { return Ok(()) }; // begun above
        segment.append(&self.framed)?;
        self.last = milliseconds;
        self.written += self.framed.len() as u64;
        self.since_key = if kind == frame::Kind::Key { 1 } else { self.since_key + 1 };
        self.before.get_or_insert_default().clone_from(sample);
        Ok(())
    }

    /// Bytes of records written since the log was opened.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// A new segment, which begins with a key record; the oldest go as far as the bound wants it.
    fn begin(&mut self, milliseconds_now: u64) -> Result<(), LogError> {
        if let Some(full) = self.segment.take() {
            self.closed.push((full.path, full.size));
        }
        self.before = None;
        self.remove_oldest()?;
        // a clock that was set back must not put it before older ones
        let last = self.closed.last().and_then(|(path, _)| milliseconds(path));
        let name = last.map_or(milliseconds_now, |last| milliseconds_now.max(last + 1));
        let path = self.directory.join(format!("{name:014}.{ENDING}"));
        let file =
            OpenOptions::new().append(true).create_new(true).open(&path).map_err(failed("make", &path))?;
        let mut segment = Segment { file, path, size: 0 };
        if let Err(error) = segment.append(MAGIC) {
            // an empty one would be no log
            let _ = std::fs::remove_file(&segment.path);
            return Err(error);
        }
        self.segment = Some(segment);
        Ok(())
    }

    fn remove_oldest(&mut self) -> Result<(), LogError> {
        let keep = self.options.size.0 - self.options.size.0 / SEGMENTS;
        while self.closed.iter().map(|(_, size)| size).sum::<u64>() > keep {
            let (oldest, _) = self.closed.remove(0);
            match std::fs::remove_file(&oldest) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(failed("remove", &oldest)(error));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

impl Segment {
    /// One write of the whole, or none of it.
    fn append(&mut self, bytes: &[u8]) -> Result<(), LogError> {
        let written = self.file.write_all(bytes);
        if let Err(error) = written {
            // a part may have been written; if it can't be taken away, readers find it by its checksum
            let _ = self.file.set_len(self.size);
            return Err(failed("write to", &self.path)(error));
        }
        self.size += bytes.len() as u64;
        Ok(())
    }
}
