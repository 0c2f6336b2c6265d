//! A log on disk, and where in it the samples of a time are. Records are in the order in which they were taken; their times
//! are too, unless the clock was set back: then the recorder began a new segment. Never writes.

use std::{
    collections::VecDeque,
    ops::ControlFlow,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use super::{
    LogError, Samples, Torn,
    frame::Kind,
    milliseconds,
    segment::{Opened, Segment, failed},
    segments,
};
use crate::sample::Sample;

/// A log on disk.
#[derive(Debug)]
pub struct Log {
    segments: Vec<Part>,
}

/// A segment.
#[derive(Debug)]
struct Part {
    path: PathBuf,
    /// The time of its first record, in milliseconds, if that can be read.
    first: Option<u64>,
    /// It is named by that time, so no segment before it has a later one: the clock was not set back to it.
    is_rising: bool,
}

impl Log {
    /// The log in a directory, as it is now.
    ///
    /// # Errors
    /// [`LogError::File`].
    pub fn open(directory: &Path) -> Result<Log, LogError> {
        let part = |path: PathBuf| {
            let first = first(&path);
            Part { is_rising: first.is_some() && first == milliseconds(&path), first, path }
        };
        Ok(Log { segments: segments(directory)?.into_iter().map(part).collect() })
    }

    /// When the oldest sample that is left was taken; `None` for an empty log.
    pub fn begins(&self) -> Option<SystemTime> {
        let first = self.segments.first().and_then(|part| part.first.or_else(|| milliseconds(&part.path)))?;
        SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(first))
    }

    /// The samples from `since` on, in the order in which they were recorded.
    pub fn since(&self, since: SystemTime) -> Samples {
        self.between(since, None)
    }

    /// The samples from `since` to `until`, in the order in which they were recorded.
    pub fn between(&self, since: SystemTime, until: Option<SystemTime>) -> Samples {
        let since = milliseconds_of(since);
        let until = until.map_or(u64::MAX, milliseconds_of);
        let wanted = |place: &usize| !self.is_before(*place, since) && !self.is_after(*place, until);
        let wanted = (0..self.segments.len()).filter(wanted);
        let paths: VecDeque<PathBuf> = wanted.map(|place| self.segments[place].path.clone()).collect();
        let mut samples = Samples::new(paths, since);
        samples.until = until;
        samples
    }

    /// Are all samples of a segment from before `moment`? That the next one begins at that or before it says so.
    fn is_before(&self, place: usize, moment: u64) -> bool {
        let next = self.segments.get(place + 1);
        next.is_some_and(|next| next.is_rising && next.first <= Some(moment))
    }

    /// Are all samples of a segment from after `moment`? In the last one the clock may yet be set back.
    fn is_after(&self, place: usize, moment: u64) -> bool {
        let is_followed = self.segments.get(place + 1).is_some_and(|next| next.is_rising);
        is_followed && self.segments[place].first.is_some_and(|first| first > moment)
    }

    /// The last sample that was taken at `moment` or before it; and what could not be read on the way there. Where the clock
    /// was set back and a time came twice, the sample that was recorded later.
    ///
    /// # Errors
    /// [`LogError`].
    pub fn at(&self, moment: SystemTime) -> Result<(Option<Sample>, Vec<Torn>), LogError> {
        let moment = milliseconds_of(moment);
        let mut found: Option<(Sample, u64)> = None;
        let mut torn = Vec::new();
        for place in (0..self.segments.len()).rev() {
            // none of these can be nearer
            let nearest = found.as_ref().map_or(0, |(_, at)| *at);
            let next = self.segments.get(place + 1);
            let is_earlier = next.is_some_and(|next| next.is_rising && next.first <= Some(nearest));
            if self.is_after(place, moment) || (found.is_some() && is_earlier) {
                continue;
            }
            let (nearer, damaged) = nearest_in(&self.segments[place].path, moment)?;
            torn.splice(0..0, damaged);
            if let Some(nearer) = nearer.filter(|(_, at)| found.is_none() || *at > nearest) {
                found = Some(nearer);
            }
        }
        Ok((found.map(|(sample, _)| sample), torn))
    }

    /// The samples that led to this one without a step of the clock between them, from `back` before it on: their times, and
    /// the samples from the first of them on. Empty if the sample is gone.
    ///
    /// # Errors
    /// [`LogError`].
    pub fn leading_to(&self, found: &Sample, back: Duration) -> Result<(Vec<SystemTime>, Samples), LogError> {
        let at = found.at.unwrap_or(SystemTime::UNIX_EPOCH);
        let begin = at.checked_sub(back).unwrap_or(SystemTime::UNIX_EPOCH);
        let mut samples = self.since(begin);
        let (mut times, mut skipped) = (Vec::new(), 0);
        let mut is_there = false;
        while let Some(sample) = samples.next_sample()? {
            let time = sample.at.unwrap_or(SystemTime::UNIX_EPOCH);
            if times.last().is_some_and(|last| time < *last) {
                skipped += times.len();
                times.clear();
            }
            times.push(time);
            is_there = (time, sample.clock, sample.number) == (at, found.clock, found.number);
            if is_there {
                break;
            }
        }
        if !is_there {
            (times, skipped) = (Vec::new(), 0);
        }
        let mut samples = self.since(begin);
        for _ in 0..skipped {
            samples.next_sample()?;
        }
        Ok((times, samples))
    }
}

fn milliseconds_of(moment: SystemTime) -> u64 {
    moment.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

/// The time of a segment's first record. What is wrong with a segment is reported when it is read.
fn first(path: &Path) -> Option<u64> {
    let Ok(Opened::Segment(mut segment)) = Segment::open(path) else { return None };
    let mut first = None;
    segment
        .heads(|_, head| {
            first = Some(head.milliseconds);
            ControlFlow::Break(())
        })
        .ok()?;
    first
}

/// A sample with its time in milliseconds.
type Timed = (Sample, u64);

/// The last sample of a segment at `moment` or before it, by the heads of its records where nothing is damaged.
fn nearest_in(path: &Path, moment: u64) -> Result<(Option<Timed>, Vec<Torn>), LogError> {
    if let Opened::Segment(mut segment) = Segment::open(path)? {
        let mut key = segment.at;
        let mut best: Option<(u64, u64, u64)> = None; // its time, its key record, what is behind it
        let heads = segment.heads(|at, head| {
            if head.kind == Kind::Key {
                key = at;
            }
            let is_nearer = best.is_none_or(|(nearest, ..)| head.milliseconds >= nearest);
            if head.milliseconds <= moment && is_nearer {
                best = Some((head.milliseconds, key, at + head.whole()));
            }
            ControlFlow::Continue(())
        });
        let is_whole = heads.map_err(failed("read", path))? && segment.damage.is_none();
        match best {
            None if is_whole => return Ok((None, Vec::new())),
            Some((time, key, end)) if is_whole => {
                segment.go_to(key).map_err(failed("read", path))?;
                segment.size = end;
                let mut samples = Samples::new(VecDeque::new(), 0);
                samples.begin_at(segment);
                let mut last = None;
                while let Some(sample) = samples.next_at()? {
                    last = Some(sample);
                }
                if samples.torn.is_empty() && last.as_ref().is_some_and(|(_, at)| *at == time) {
                    return Ok((last, Vec::new()));
                }
            }
            _ => {}
        }
    }
    // every record by its checksum
    let mut samples = Samples::new([path.to_owned()].into(), 0);
    let mut found: Option<Timed> = None;
    while let Some((sample, at)) = samples.next_at()? {
        if at <= moment && found.as_ref().is_none_or(|(_, nearest)| at >= *nearest) {
            found = Some((sample, at));
        }
    }
    Ok((found, samples.torn))
}
