//! The recorder's log: the same samples, at another time. Steps back are read again from a while before, as rates
//! have their beginning there.

use std::{
    collections::VecDeque,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use exporters::view;
use monitor::{Beat, Log, Window, log::Samples};

use super::Source;
use crate::{
    error::Error,
    figures::Figures,
    model::{Answer, Event, Request},
};

/// Counters that are read seldom have their rates from readings this far back, at most.
const BACK: Duration = Duration::from_secs(300);
/// Samples whose figures the histories begin with.
const PAST: usize = 60;

/// A log, and a moment in it.
pub struct Replay {
    directory: PathBuf,
    figures: Figures,
    moment: SystemTime,
    /// What follows the moment.
    rest: Option<Samples>,
    window: Option<Window>,
    /// When the samples before this moment were taken, as far as they were read; the last is the moment's.
    times: VecDeque<SystemTime>,
}

impl Replay {
    /// The log in a directory, at a moment.
    pub fn new(directory: &Path, moment: SystemTime, figures: Figures) -> Replay {
        let directory = directory.to_owned();
        Replay { directory, figures, moment, rest: None, window: None, times: VecDeque::new() }
    }

    /// Reads up to the last sample that is not after the moment, from a while before it.
    fn go_to(&mut self, moment: SystemTime, open: Option<&str>) -> Result<Vec<Event>, Error> {
        let log = Log::open(&self.directory)?;
        let Some(found) = log.at(moment)?.0 else {
            return self.before_all(&log, moment);
        };
        let (times, mut samples) = log.leading_to(&found, BACK)?;
        let past = times.len().saturating_sub(PAST);
        let mut events = vec![Event::HistoryReset];
        self.window = None;
        for place in 0..times.len() {
            let Some(sample) = samples.next_sample()? else { break };
            let window = self.window.get_or_insert_with(|| view::window_for(&sample));
            window.push(&sample);
            if place >= past && place + 1 < times.len() {
                events.extend(self.figures.past(window).map(|picture| Event::Past(Box::new(picture))));
            }
        }
        self.times = times.into();
        self.rest = Some(samples);
        events.extend(self.sight(open));
        Ok(events)
    }

    fn before_all(&self, log: &Log, moment: SystemTime) -> Result<Vec<Event>, Error> {
        // what is on the screen stays there
        if self.window.is_some() {
            return Ok(vec![Event::Answer(Answer::Edge("the log begins here"))]);
        }
        let shown = |at| humantime::format_rfc3339_seconds(at).to_string();
        Err(Error::NothingRecorded { moment: shown(moment), begins: log.begins().map(shown) })
    }

    fn sight(&self, open: Option<&str>) -> Option<Event> {
        let sight = self.figures.sight(self.window.as_ref()?, open)?;
        Some(Event::Sampled(Box::new(sight)))
    }

    /// The next sample; at the end of the log it is looked for again, as a recorder may go on with it.
    fn forward(&mut self, open: Option<&str>) -> Result<Vec<Event>, Error> {
        let edge = || Ok(vec![Event::Answer(Answer::Edge("the log ends here"))]);
        let next = match &mut self.rest {
            Some(rest) => rest.next_sample()?,
            None => None,
        };
        let next = match (next, self.times.back()) {
            (Some(next), _) => Some(next),
            (None, Some(last)) => {
                let mut samples = Log::open(&self.directory)?.since(*last);
                let mut next = samples.next_sample()?;
                while next.as_ref().is_some_and(|sample| sample.at <= Some(*last)) {
                    next = samples.next_sample()?;
                }
                self.rest = Some(samples);
                next
            }
            (None, None) => None,
        };
        let (Some(sample), Some(window)) = (next, self.window.as_mut()) else { return edge() };
        window.push(&sample);
        self.times.extend(sample.at);
        Ok(self.sight(open).into_iter().collect())
    }

    fn back(&mut self, samples: u64, open: Option<&str>) -> Result<Vec<Event>, Error> {
        let back = usize::try_from(samples).unwrap_or(usize::MAX);
        let place = self.times.len().checked_sub(1).and_then(|last| last.checked_sub(back));
        let first = self.times.front().copied();
        match (place.and_then(|place| self.times.get(place)).copied(), first) {
            (Some(moment), _) => self.go_to(moment, open),
            // before what was read: its first sample, and what is before that
            (None, Some(first)) => {
                self.go_to(first.checked_sub(Duration::from_millis(1)).unwrap_or(first), open)
            }
            (None, None) => Ok(Vec::new()),
        }
    }

    fn jump(&mut self, seconds: i64, open: Option<&str>) -> Result<Vec<Event>, Error> {
        let Some(now) = self.times.back().copied() else { return Ok(Vec::new()) };
        let by = Duration::from_secs(seconds.unsigned_abs());
        let moment = if seconds < 0 { now.checked_sub(by) } else { now.checked_add(by) };
        self.go_to(moment.unwrap_or(now), open)
    }
}

impl Source for Replay {
    fn first(&mut self) -> Result<Vec<Event>, Error> {
        self.go_to(self.moment, None)
    }

    fn beat(&mut self, _: Beat, open: Option<&str>) -> Result<Vec<Event>, Error> {
        self.forward(open)
    }

    fn answer(&mut self, request: Request, open: Option<&str>) -> Result<Vec<Event>, Error> {
        match request {
            Request::Step(by @ ..0) => self.back(by.unsigned_abs(), open),
            Request::Step(by) => {
                let mut events = Vec::new();
                for _ in 0..by {
                    events.extend(self.forward(open)?);
                }
                Ok(events)
            }
            Request::Jump(seconds) => self.jump(seconds, open),
            _ => Ok(Vec::new()),
        }
    }
}
