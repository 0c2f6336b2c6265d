//! Appends samples to a log, one write per record, and keeps the whole below its bound. Never reads what it wrote
//! and never syncs: a crash of the machine costs what the kernel had not written yet, one of this process nothing.

use std::{
    fs::{File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
    time::SystemTime,
};

use units::Bytes;

use super::{ENDING, LogError, MAGIC, Torn, frame, milliseconds, reader, record, segments};
use crate::sample::Sample;

/// How a log is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecorderOptions {
    /// At most so much on disk, but for the segment that is being written; at least 1 MiB.
    pub size: Bytes,
    /// A key record every so many samples: the most that a reader goes through to find one.
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
    /// The directory, locked as long as this is open.
    _lock: File,
    options: RecorderOptions,
    segment: Option<Segment>,
    /// Closed segments with their sizes, oldest first.
    closed: Vec<(PathBuf, u64)>,
    before: Option<Sample>,
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

/// A bound is kept to an eighth of it.
const SEGMENTS: u64 = 8;

impl Recorder {
    /// Opens or begins the log in `directory`, which is made if it is not there (but not its parents). A record
    /// that was cut off at its end is taken away, and told.
    ///
    /// # Errors
    /// [`LogError::File`], [`LogError::Busy`].
    pub fn open(directory: &Path, options: RecorderOptions) -> Result<(Recorder, Option<Torn>), LogError> {
        match std::fs::create_dir(directory) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(failed("make", directory)(error));
            }
            _ => {}
        }
        // what looks cut off may be what another one is writing
        let lock = File::open(directory).map_err(failed("open", directory))?;
        rustix::fs::flock(&lock, rustix::fs::FlockOperation::NonBlockingLockExclusive)
            .map_err(|_| LogError::Busy { directory: directory.to_owned() })?;
        let paths = segments(directory)?;
        let torn = match paths.last() {
            Some(last) => reader::torn(last)?,
            None => None,
        };
        if let Some(torn) = &torn {
            let file = OpenOptions::new().write(true).open(&torn.path).map_err(failed("open", &torn.path))?;
            file.set_len(torn.at).map_err(failed("shorten", &torn.path))?;
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
        if self.segment.as_ref().is_none_or(is_full) {
            self.begin(milliseconds)?;
        }
        let is_key_due = self.since_key >= self.options.key_every;
        let before = self.before.as_ref().filter(|_| !is_key_due);
        self.record.clear();
        self.framed.clear();
        let kind = record::encode(sample, before, &mut self.record);
        frame::put(kind, milliseconds, &self.record, &mut self.framed)
            .ok_or(LogError::TooLarge { bytes: self.record.len() })?;
        let Some(segment) = &mut self.segment else { return Ok(()) }; // begun above
        segment.append(&self.framed)?;
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

fn failed(what: &'static str, path: &Path) -> impl Fn(io::Error) -> LogError {
    move |source| LogError::File { what, path: path.to_owned(), source }
}
