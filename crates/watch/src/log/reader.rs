//! Reads a log from a moment on, segment by segment. What can't be read is told and passed over; never writes.

use std::{
    collections::VecDeque,
    fs::File,
    io::{self, BufReader, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use super::{
    LogError, MAGIC, Torn,
    frame::{self, HEAD, Head, Kind},
    milliseconds,
    record::Decoder,
    segments,
};
use crate::sample::Sample;

/// A log on disk.
#[derive(Debug)]
pub struct Log {
    segments: Vec<PathBuf>,
}

impl Log {
    /// The log in a directory, as it is now.
    ///
    /// # Errors
    /// [`LogError::File`].
    pub fn open(directory: &Path) -> Result<Log, LogError> {
        Ok(Log { segments: segments(directory)? })
    }

    /// When the oldest sample that is left was taken; `None` for an empty log.
    pub fn begins(&self) -> Option<SystemTime> {
        let first = self.segments.first().and_then(|path| milliseconds(path))?;
        SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(first))
    }

    /// The samples from `since` on, oldest first.
    pub fn since(&self, since: SystemTime) -> Samples {
        let since = since.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64);
        // the last segment that begins before may hold what is asked for
        let begins_before = |path: &&PathBuf| milliseconds(path).is_some_and(|begin| begin <= since);
        let skipped = self.segments.iter().take_while(begins_before).count().saturating_sub(1);
        Samples {
            segments: self.segments[skipped..].iter().cloned().collect(),
            open: None,
            since,
            torn: Vec::new(),
            decoder: Decoder::default(),
            packed: Vec::new(),
        }
    }

    /// The last sample that was taken at `moment` or before it; and what could not be read on the way there.
    ///
    /// # Errors
    /// [`LogError`].
    pub fn at(&self, moment: SystemTime) -> Result<(Option<Sample>, Vec<Torn>), LogError> {
        let mut samples = self.since(moment);
        let mut found = None;
        // the key record before the moment is where reading begins
        samples.since = 0;
        if let Some(first) = samples.segments.front().cloned() {
            samples.open_segment(first, Some(milliseconds_of(moment)))?;
        }
        while let Some(sample) = samples.next_sample()? {
            if sample.at.is_none_or(|at| at > moment) {
                break;
            }
            found = Some(sample);
        }
        Ok((found, samples.torn))
    }
}

fn milliseconds_of(moment: SystemTime) -> u64 {
    moment.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

/// Samples of a log, in order.
#[derive(Debug)]
pub struct Samples {
    segments: VecDeque<PathBuf>,
    open: Option<OpenSegment>,
    since: u64,
    torn: Vec<Torn>,
    decoder: Decoder,
    packed: Vec<u8>,
}

#[derive(Debug)]
struct OpenSegment {
    path: PathBuf,
    file: BufReader<File>,
    /// Where the next record begins.
    at: u64,
    size: u64,
}

impl Samples {
    /// What could not be read so far.
    pub fn torn(&self) -> &[Torn] {
        &self.torn
    }

    /// The next sample; `None` at the end of the log.
    ///
    /// # Errors
    /// [`LogError`]; reading may go on behind it.
    pub fn next_sample(&mut self) -> Result<Option<Sample>, LogError> {
        loop {
            let Some(open) = &mut self.open else {
                let Some(next) = self.segments.pop_front() else { return Ok(None) };
                let since = (self.since > 0).then_some(self.since);
                self.open_segment(next, since)?;
                continue;
            };
            if open.at == open.size {
                self.open = None;
                continue;
            }
            let mut sample = Sample::default();
            let read = open.next(&mut self.packed).map_err(failed("read", &open.path))?;
            let length = read.as_ref().map_or(0, |(head, _)| (HEAD + head.length) as u64);
            let decoded = read.and_then(|(head, record)| {
                self.decoder.decode(head.kind, &record, &mut sample)?;
                Some(head)
            });
            match decoded {
                Some(head) => {
                    open.at += length;
                    if head.milliseconds >= self.since {
                        return Ok(Some(sample));
                    }
                }
                None => {
                    self.torn.push(open.torn());
                    self.open = None;
                }
            }
        }
    }

    /// Opens a segment at its last key record before `since`, or at its beginning.
    fn open_segment(&mut self, path: PathBuf, since: Option<u64>) -> Result<(), LogError> {
        if self.segments.front() == Some(&path) {
            self.segments.pop_front();
        }
        let failed_here = |what| failed(what, &path);
        let mut open = match OpenSegment::open(&path)? {
            Opened::Segment(open) => open,
            Opened::Removed => return Ok(()), // by its recorder, to keep the bound
            Opened::CutOff(torn) => {
                self.torn.push(torn);
                return Ok(());
            }
        };
        if let Some(since) = since {
            open.skip_to(since).map_err(failed_here("read"))?;
        }
        self.decoder = Decoder::default();
        self.open = Some(open);
        Ok(())
    }
}

impl Iterator for Samples {
    type Item = Result<Sample, LogError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_sample().transpose()
    }
}

enum Opened {
    Segment(OpenSegment),
    Removed,
    CutOff(Torn),
}

impl OpenSegment {
    fn open(path: &Path) -> Result<Opened, LogError> {
        let file = match File::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Opened::Removed),
            opened => opened.map_err(failed("open", path))?,
        };
        let size = file.metadata().map_err(failed("look at", path))?.len();
        let mut file = BufReader::with_capacity(256 << 10, file);
        let mut magic = Vec::new();
        (&mut file).take(MAGIC.len() as u64).read_to_end(&mut magic).map_err(failed("read", path))?;
        if magic != MAGIC {
            return match MAGIC.starts_with(&magic) {
                true => Ok(Opened::CutOff(Torn { path: path.to_owned(), at: 0, bytes: size })),
                false => Err(LogError::Foreign { path: path.to_owned() }),
            };
        }
        Ok(Opened::Segment(OpenSegment { path: path.to_owned(), file, at: MAGIC.len() as u64, size }))
    }

    /// The record at `at`; `None` if it is cut off.
    fn next(&mut self, packed: &mut Vec<u8>) -> io::Result<Option<(Head, Vec<u8>)>> {
        let Some(head) = frame::head(&mut self.file)? else { return Ok(None) };
        Ok(head.record(&mut self.file, packed)?.map(|record| (head, record)))
    }

    /// Goes to the last key record that is not after `since`, by the heads alone.
    fn skip_to(&mut self, since: u64) -> io::Result<()> {
        let mut at = self.at;
        let mut found = self.at;
        while at < self.size {
            let Some(head) = frame::head(&mut self.file)? else { break };
            if head.milliseconds > since {
                break;
            }
            if head.kind == Kind::Key {
                found = at;
            }
            at += (HEAD + head.length) as u64;
            self.file.seek_relative(head.length as i64)?; // at most LONGEST
        }
        self.at = found;
        self.file.seek(SeekFrom::Start(found)).map(|_| ())
    }

    fn torn(&self) -> Torn {
        Torn { path: self.path.clone(), at: self.at, bytes: self.size.saturating_sub(self.at) }
    }
}

/// Where a segment was cut off, if it was: every record's checksum is looked at.
pub(super) fn torn(path: &Path) -> Result<Option<Torn>, LogError> {
    let mut open = match OpenSegment::open(path)? {
        Opened::Segment(open) => open,
        Opened::Removed => return Ok(None),
        Opened::CutOff(torn) => return Ok(Some(torn)),
    };
    let mut packed = Vec::new();
    while open.at < open.size {
        match open.next(&mut packed).map_err(failed("read", path))? {
            Some((head, _)) => open.at += (HEAD + head.length) as u64,
            None => return Ok(Some(open.torn())),
        }
    }
    Ok(None)
}

fn failed(what: &'static str, path: &Path) -> impl Fn(io::Error) -> LogError {
    move |source| LogError::File { what, path: path.to_owned(), source }
}
