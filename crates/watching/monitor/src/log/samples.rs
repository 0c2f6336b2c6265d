//! The samples of a log in the order in which they were recorded. What can't be read is reported and passed over; never
//! writes.

use std::{collections::VecDeque, ops::ControlFlow, path::PathBuf};

use super::{
    LogError, Torn,
    frame::Kind,
    record::Decoder,
    segment::{Next, Opened, Segment, failed},
};
use crate::sample::Sample;

/// Samples of a log, in order.
#[derive(Debug)]
pub struct Samples {
    segments: VecDeque<PathBuf>,
    open: Option<Segment>,
    /// Milliseconds since 1970, both inclusive.
    pub(super) since: u64,
    pub(super) until: u64,
    pub(super) torn: Vec<Torn>,
    decoder: Decoder,
    /// A record is missing: changes can't be applied up to the next key record.
    awaits_key: bool,
    /// Samples up to this place of the segment may be of the time that is wanted; not known yet.
    ends: Option<u64>,
    packed: Vec<u8>,
}

impl Samples {
    pub(super) fn new(segments: VecDeque<PathBuf>, since: u64) -> Samples {
        Samples {
            segments,
            open: None,
            since,
            until: u64::MAX,
            torn: Vec::new(),
            decoder: Decoder::default(),
            awaits_key: true,
            ends: None,
            packed: Vec::new(),
        }
    }

    /// What could not be read so far.
    pub fn torn(&self) -> &[Torn] {
        &self.torn
    }

    /// The next sample; `None` at the end of the log.
    ///
    /// # Errors
    /// [`LogError`]; reading may go on behind it.
    pub fn next_sample(&mut self) -> Result<Option<Sample>, LogError> {
        Ok(self.next_at()?.map(|(sample, _)| sample))
    }

    /// The next sample with its time in milliseconds.
    pub(super) fn next_at(&mut self) -> Result<Option<(Sample, u64)>, LogError> {
        loop {
            let Some(open) = &mut self.open else {
                let Some(next) = self.segments.pop_front() else { return Ok(None) };
                self.open_segment(next)?;
                continue;
            };
            if open.at >= open.size || self.ends.is_some_and(|end| open.at >= end) {
                self.open = None;
                continue;
            }
            let allowance = open.size;
            let read = open.next(&mut self.packed).map_err(failed("read", &open.path))?;
            let Some((head, record)) = read else {
                self.pass_over()?;
                continue;
            };
            if self.awaits_key && head.kind == Kind::Change {
                if let Some(torn) = self.torn.last_mut() {
                    torn.passed_over += 1;
                }
                continue;
            }
            let mut sample = Sample::default();
            if self.decoder.decode((head.kind, allowance), &record, &mut sample).is_none() {
                // whole, and not what this version writes
                let at = open.at - head.whole();
                let path = open.path.clone();
                self.torn.push(Torn { path, at, bytes: head.whole(), goes_on: true, passed_over: 0 });
                self.lose();
                continue;
            }
            self.awaits_key = false;
            if head.milliseconds > self.until {
                self.look_for_the_end()?;
            } else if head.milliseconds >= self.since {
                return Ok(Some((sample, head.milliseconds)));
            }
        }
    }

    /// What follows is after the time that is wanted, unless the clock was set back here.
    fn look_for_the_end(&mut self) -> Result<(), LogError> {
        let (Some(open), None) = (&mut self.open, self.ends) else { return Ok(()) };
        let mut end = open.at;
        let until = self.until;
        let is_whole = open.heads(|at, head| {
            if head.milliseconds <= until {
                end = at + head.whole();
            }
            ControlFlow::Continue(())
        });
        let is_whole = is_whole.map_err(failed("read", &open.path))?;
        self.ends = Some(if is_whole { end } else { open.size });
        Ok(())
    }

    /// Goes on behind a place that can't be read.
    fn pass_over(&mut self) -> Result<(), LogError> {
        let Some(open) = &mut self.open else { return Ok(()) };
        let (torn, next) = open.damaged().map_err(failed("read", &open.path))?;
        match next {
            Next::At(at) => open.go_to(at).map_err(failed("read", &open.path))?,
            Next::Nothing | Next::Unknown => self.open = None,
        }
        self.torn.push(torn);
        self.lose();
        Ok(())
    }

    fn lose(&mut self) {
        self.decoder = Decoder::default();
        self.awaits_key = true;
    }

    /// Opens a segment at its last key record before `since`, or at its beginning.
    fn open_segment(&mut self, path: PathBuf) -> Result<(), LogError> {
        let mut open = match Segment::open(&path)? {
            Opened::Segment(open) => open,
            Opened::Removed => return Ok(()), // by its recorder, to keep the bound
            Opened::CutOff(torn) => {
                self.torn.push(torn);
                return Ok(());
            }
        };
        if self.since > 0 {
            open.skip_to(self.since).map_err(failed("read", &path))?;
        }
        self.begin_at(open);
        Ok(())
    }

    /// Goes on in this segment, from a key record on.
    pub(super) fn begin_at(&mut self, mut segment: Segment) {
        self.torn.extend(segment.damage.take());
        self.lose();
        self.ends = None;
        self.open = Some(segment);
    }
}

impl Iterator for Samples {
    type Item = Result<Sample, LogError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_sample().transpose()
    }
}
