//! A log with a line for each request: read from its end on, and followed where it is renamed or emptied.

use std::{
    collections::VecDeque,
    fs::File,
    io::Read,
    os::unix::fs::{FileExt, MetadataExt},
    path::PathBuf,
    time::Duration,
};

use layout::LatencyUnit;
use regex_lite::Regex;
use rustix::fs::{Mode, OFlags};

use crate::latency::{
    Answer, Error,
    amount::seconds,
    answer::words_of,
    wait::Wait,
    window::{MOST as MOST_REQUESTS, Window},
};

/// More than this is passed over where it was written between two looks: the newest lines count.
const MOST: u64 = 4 << 20;
/// A longer line is no request.
const LONGEST: usize = 64 << 10;

/// A log that is followed.
#[derive(Debug)]
pub(crate) struct Log {
    path: PathBuf,
    pattern: Regex,
    unit: LatencyUnit,
    open: Option<Open>,
    window: Window,
}

/// The file as it was opened.
#[derive(Debug)]
struct Open {
    file: File,
    inode: (u64, u64),
    /// Up to where it was read.
    at: u64,
    /// The start of a line whose end is not there yet.
    begun: Vec<u8>,
    /// Is this the rest of a line whose start was passed over?
    skips: bool,
}

impl Log {
    /// Nothing is opened yet.
    ///
    /// # Errors
    /// In words: the pattern is none.
    pub fn new(path: &str, pattern: &str, unit: LatencyUnit, span: Duration) -> Result<Log, Error> {
        let pattern = Regex::new(pattern).map_err(|error| Error::Says(error.to_string()))?;
        Ok(Log { path: path.into(), pattern, unit, open: None, window: Window::new(span) })
    }

    /// Takes in what was written since the last look. `now`: of a clock that only rises.
    pub fn look(&mut self, now: Duration, wait: &Wait<'_>) -> Result<Answer, Error> {
        let named = std::fs::metadata(&self.path).map(|about| (about.dev(), about.ino()));
        match &self.open {
            None => self.open = Some(self.find(true)?),
            Some(open) if named.as_ref().is_ok_and(|named| *named != open.inode) => {
                // the last lines of the one that was renamed, then the new one from its start
                self.take(now, wait)?;
                self.open = Some(self.find(false)?);
            }
            Some(_) => {}
        }
        self.take(now, wait)?;
        named.map_err(|error| self.failed(&error))?;
        Ok(self.window.p99(now).map_or(Answer::Nothing, Answer::P99))
    }

    fn find(&self, at_end: bool) -> Result<Open, Error> {
        // neither a FIFO nor a lease makes it wait
        let how = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let opened = rustix::fs::open(&self.path, how, Mode::empty());
        let file = File::from(opened.map_err(|errno| self.failed(&errno.into()))?);
        let about = file.metadata().map_err(|error| self.failed(&error))?;
        if !about.is_file() {
            return Err(Error::Says(format!("{} is no regular file", self.path.display())));
        }
        let at = if at_end { about.len() } else { 0 };
        let skips = at_end && at > 0 && !ends_a_line(&file, at);
        Ok(Open { file, inode: (about.dev(), about.ino()), at, begun: Vec::new(), skips })
    }

    fn take(&mut self, now: Duration, wait: &Wait<'_>) -> Result<(), Error> {
        let Some(mut open) = self.open.take() else { return Ok(()) };
        let new = open.read();
        self.open = Some(open);
        let new = new.map_err(|error| self.failed(&error))?;
        // a pattern may take long for a line: where there is no time for all, the newest count
        let mut latencies = Vec::new();
        for line in new.iter().rev() {
            match wait.go_on() {
                Err(Error::Late) => break,
                done => done?,
            }
            let Ok(line) = std::str::from_utf8(line) else { continue };
            let found = self.pattern.captures(line).and_then(|found| found.get(1));
            latencies.extend(found.and_then(|found| seconds(found.as_str(), self.unit)));
        }
        latencies.into_iter().rev().for_each(|latency| self.window.add(now, latency));
        Ok(())
    }

    fn failed(&self, error: &std::io::Error) -> Error {
        Error::Says(format!("{}: {}", self.path.display(), words_of(error)))
    }
}

/// Is the byte before this place the end of a line?
fn ends_a_line(file: &File, at: u64) -> bool {
    let mut last = [0];
    file.read_exact_at(&mut last, at - 1).is_ok() && last == *b"\n"
}

impl Open {
    /// The newest of the whole lines that are new, as many as can count.
    fn read(&mut self) -> std::io::Result<VecDeque<Vec<u8>>> {
        let size = self.file.metadata()?.len();
        if size < self.at {
            // emptied: what is there now is new
            (self.at, self.skips) = (0, false);
            self.begun.clear();
        }
        if size - self.at > MOST {
            (self.at, self.skips) = (size - MOST, true);
            self.begun.clear();
        }
        let mut new = Vec::new();
        std::io::Seek::seek(&mut self.file, std::io::SeekFrom::Start(self.at))?;
        (&self.file).take(size - self.at).read_to_end(&mut new)?;
        self.at += new.len() as u64;
        let mut lines = VecDeque::new();
        for part in new.split_inclusive(|byte| *byte == b'\n') {
            let (part, is_whole) = part.strip_suffix(b"\n").map_or((part, false), |part| (part, true));
            if self.begun.len() + part.len() > LONGEST {
                self.skips = true;
                self.begun.clear();
            } else if !self.skips {
                self.begun.extend_from_slice(part);
            }
            if is_whole {
                let line = std::mem::take(&mut self.begun);
                lines.extend((!std::mem::take(&mut self.skips)).then_some(line));
                // four million empty lines would take a hundred megabytes
                if lines.len() > MOST_REQUESTS {
                    lines.pop_front();
                }
            }
        }
        Ok(lines)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_lines_are_held_than_count() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let lines = MOST_REQUESTS + 2;
        std::fs::write(&file, (0..lines).map(|line| format!("{line}\n")).collect::<String>()).unwrap();
        let mut open =
            Open { file: file.reopen().unwrap(), inode: (0, 0), at: 0, begun: Vec::new(), skips: false };
        let read = open.read().unwrap();
        assert_eq!((read.len(), read[0].as_slice()), (MOST_REQUESTS, b"2".as_slice()));
    }
}
