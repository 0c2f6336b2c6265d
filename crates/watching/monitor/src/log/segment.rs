//! One segment that is read: its records in order, and the way on behind a place that is damaged. Never writes.

use std::{
    fs::File,
    io::{self, BufReader, Read, Seek, SeekFrom},
    ops::ControlFlow,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

use rustix::fs::{Mode, OFlags};

use super::{
    LogError, MAGIC, Torn,
    frame::{self, HEAD, Head, Kind},
};

/// How many bytes a search for a valid record looks through at once.
const SEARCHED: usize = 64 << 10;
/// Bytes that a search checksums at most, as often as the segment is long: one that was made to look like the beginning of a
/// record everywhere would else take the square of its size.
const CHECKSUMMED: u64 = 4;
const CHECKSUMMED_LEAST: u64 = 16 << 20;

#[derive(Debug)]
pub(super) struct Segment {
    pub path: PathBuf,
    file: BufReader<File>,
    /// Where the next record begins.
    pub at: u64,
    pub size: u64,
    /// Its first line, if that is damaged.
    pub damage: Option<Torn>,
}

pub(super) enum Opened {
    Segment(Segment),
    Removed,
    CutOff(Torn),
}

/// What follows a damaged place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// A valid record.
    At(u64),
    /// No valid record.
    Nothing,
    /// More than a search looks through.
    Unknown,
}

impl Segment {
    pub(super) fn open(path: &Path) -> Result<Opened, LogError> {
        // a FIFO would make this wait for a writer
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match rustix::fs::open(path, flags, Mode::empty()).map_err(io::Error::from) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Opened::Removed),
            opened => File::from(opened.map_err(failed("open", path))?),
        };
        let about = file.metadata().map_err(failed("look at", path))?;
        if !about.is_file() {
            return Err(LogError::Irregular { path: path.to_owned() });
        }
        let size = about.len();
        let mut file = BufReader::with_capacity(256 << 10, file);
        let mut magic = Vec::new();
        (&mut file).take(MAGIC.len() as u64).read_to_end(&mut magic).map_err(failed("read", path))?;
        let path = path.to_owned();
        let at = MAGIC.len() as u64;
        if magic.len() < MAGIC.len() && MAGIC.starts_with(&magic) {
            return Ok(Opened::CutOff(Torn { path, at: 0, bytes: size, goes_on: false, passed_over: 0 }));
        }
        let mut segment = Segment { path, file, at, size, damage: None };
        if magic != MAGIC {
            let path = segment.path.clone();
            if !is_one_bit_off(&magic) || !segment.is_valid_at(at).map_err(failed("read", &path))? {
                return Err(LogError::Foreign { path });
            }
            segment.damage = Some(Torn { path, at: 0, bytes: at, goes_on: true, passed_over: 0 });
        }
        Ok(Opened::Segment(segment))
    }

    /// The record at `at`, behind which reading goes on; `None` if it is damaged or cut off.
    pub(super) fn next(&mut self, packed: &mut Vec<u8>) -> io::Result<Option<(Head, Vec<u8>)>> {
        let Some(head) = frame::head(&mut self.file)? else { return Ok(None) };
        let Some(record) = head.record(&mut self.file, packed)? else { return Ok(None) };
        self.at += head.whole();
        Ok(Some((head, record)))
    }

    pub(super) fn go_to(&mut self, at: u64) -> io::Result<()> {
        self.at = at;
        self.file.seek(SeekFrom::Start(at)).map(|_| ())
    }

    /// The heads of the records from `at` on, each with its place, without a look at their checksums; reading goes on where it
    /// was. False if a place was met that is no head: what follows it is not known.
    pub(super) fn heads(&mut self, mut each: impl FnMut(u64, &Head) -> ControlFlow<()>) -> io::Result<bool> {
        let begin = self.at;
        let mut at = begin;
        let mut is_whole = true;
        while at < self.size {
            let head = frame::head(&mut self.file)?;
            let Some(head) = head.filter(|head| at + head.whole() <= self.size) else {
                is_whole = false;
                break;
            };
            if each(at, &head).is_break() {
                break;
            }
            at += head.whole();
            self.file.seek_relative(head.length as i64)?; // at most LONGEST
        }
        self.go_to(begin)?;
        Ok(is_whole)
    }

    /// Goes to the last key record before those from `since` on. Its checksum is looked at, as a damaged head may name any
    /// time.
    pub(super) fn skip_to(&mut self, since: u64) -> io::Result<()> {
        let mut keys = vec![self.at];
        self.heads(|at, head| {
            if head.milliseconds > since {
                return ControlFlow::Break(());
            }
            if head.kind == Kind::Key {
                keys.push(at);
            }
            ControlFlow::Continue(())
        })?;
        while let Some(at) = keys.pop() {
            if keys.is_empty() || self.is_valid_at(at)? {
                return self.go_to(at);
            }
        }
        Ok(())
    }

    /// What is damaged at `at`, and what follows it.
    pub(super) fn damaged(&self) -> io::Result<(Torn, Next)> {
        let next = self.next_valid()?;
        let end = if let Next::At(at) = next { at } else { self.size };
        let bytes = end.saturating_sub(self.at);
        let goes_on = next != Next::Nothing;
        Ok((Torn { path: self.path.clone(), at: self.at, bytes, goes_on, passed_over: 0 }, next))
    }

    /// The next record behind `at` whose checksum is right.
    fn next_valid(&self) -> io::Result<Next> {
        let file = self.file.get_ref();
        let mut left = self.size.saturating_mul(CHECKSUMMED).max(CHECKSUMMED_LEAST);
        let (mut window, mut packed) = (vec![0; SEARCHED + HEAD], Vec::new());
        let mut begin = self.at + 1;
        while begin + (HEAD as u64) <= self.size {
            let length = usize::try_from(self.size - begin).unwrap_or(usize::MAX).min(window.len());
            file.read_exact_at(&mut window[..length], begin)?;
            for (at, bytes) in window[..length].windows(HEAD).enumerate() {
                let Some(head) = <&[u8; HEAD]>::try_from(bytes).ok().and_then(frame::parse) else { continue };
                let at = begin + at as u64;
                if at + head.whole() > self.size {
                    continue;
                }
                let Some(rest) = left.checked_sub(head.whole()) else { return Ok(Next::Unknown) };
                left = rest;
                packed.resize(head.length, 0);
                file.read_exact_at(&mut packed, at + HEAD as u64)?;
                if head.is_of(&packed) {
                    return Ok(Next::At(at));
                }
            }
            begin += (length - HEAD + 1) as u64;
        }
        Ok(Next::Nothing)
    }

    fn is_valid_at(&mut self, at: u64) -> io::Result<bool> {
        let before = self.at;
        self.go_to(at)?;
        let is_valid = self.next(&mut Vec::new())?.is_some();
        self.go_to(before)?;
        Ok(is_valid)
    }
}

/// One flipped bit, though not in the number of the format: that would be another one.
fn is_one_bit_off(magic: &[u8]) -> bool {
    let number = MAGIC.len() - 2;
    let flipped = |(one, other): (&u8, &u8)| (one ^ other).count_ones();
    magic.len() == MAGIC.len()
        && magic[number] == MAGIC[number]
        && magic.iter().zip(MAGIC).map(flipped).sum::<u32>() == 1
}

/// What is damaged in a segment: every record's checksum is looked at.
pub(super) fn torn(path: &Path) -> Result<Vec<Torn>, LogError> {
    let mut segment = match Segment::open(path)? {
        Opened::Segment(segment) => segment,
        Opened::Removed => return Ok(Vec::new()),
        Opened::CutOff(torn) => return Ok(vec![torn]),
    };
    let mut found: Vec<Torn> = segment.damage.take().into_iter().collect();
    let mut packed = Vec::new();
    while segment.at < segment.size {
        if segment.next(&mut packed).map_err(failed("read", path))?.is_some() {
            continue;
        }
        let (torn, next) = segment.damaged().map_err(failed("read", path))?;
        found.push(torn);
        let Next::At(at) = next else { break };
        segment.go_to(at).map_err(failed("read", path))?;
    }
    Ok(found)
}

pub(super) fn failed(what: &'static str, path: &Path) -> impl Fn(io::Error) -> LogError {
    move |source| LogError::File { what, path: path.to_owned(), source }
}
