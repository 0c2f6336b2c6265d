//! When a schedule's change is made and taken back: decided from the moment of the last look and of this one.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use serde::{Deserialize, Serialize};

use crate::schedule::{Calendar, span_text};

/// What a schedule waits for.
#[allow(clippy::large_enum_variant, reason = "a layout has a hundred of them at most")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum When {
    /// Made at moments of a calendar, taken back at those of another.
    At {
        /// When it is made.
        at: Calendar,
        /// When it is taken back; in the time zone of `at` unless it names one.
        until: Option<Calendar>,
        /// What becomes of one that was missed.
        missed: Missed,
    },
    /// Made some time after the layout was applied first in this boot.
    After {
        /// How long, above zero.
        after: Duration,
        /// Taken back after so long, and made again, in turns; above zero.
        every: Option<Duration>,
    },
    /// Made when something happens, and taken back when its opposite does.
    On(Event),
}

/// What happens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A unit of systemd becomes active, or no longer is.
    Unit {
        /// Its whole name.
        name: String,
        /// Which of both.
        active: bool,
    },
    /// The first process of a program starts, or the last one ends.
    Process {
        /// A path, or the program's name, at most 15 bytes of it.
        program: String,
        /// Which of both.
        runs: bool,
    },
}

/// What becomes of a moment that passed while nobody looked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Missed {
    /// The latest one counts, once.
    #[default]
    Run,
    /// It counts only up to [`LATE`] later.
    Skip,
}

/// A moment counts as missed after this time.
pub const LATE: Duration = Duration::from_secs(60);

/// A moment, on both clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moment {
    /// On the machine's clock, which can be set.
    pub wall: Timestamp,
    /// Since the layout was applied, sleep included; never set.
    pub elapsed: Duration,
}

/// What is looked at.
pub struct Look<'z> {
    /// Up to when everything was decided; `None`: this is the first look.
    pub seen: Option<Moment>,
    /// This moment.
    pub now: Moment,
    /// The time zones.
    pub zones: &'z dyn Zones,
}

/// Where time zones come from.
pub trait Zones {
    /// The one of this name, or the machine's own; `None`: it is not known.
    fn zone(&self, name: Option<&str>) -> Option<TimeZone>;
}

/// A change that is due or comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// Made, or taken back?
    pub on: bool,
    /// The moment that it was to happen.
    pub at: Timestamp,
}

impl When {
    /// The change that is due, the latest only. Of events, [`When::turn_of_event`] knows.
    pub fn turn(&self, look: &Look<'_>) -> Option<Turn> {
        match self {
            When::At { at, until, missed } => at_or_until(at, until.as_ref(), *missed, look),
            When::After { after, every } => {
                let seen = look.seen.map_or(Duration::ZERO, |seen| seen.elapsed);
                let (flip, at) = last_flip(*after, *every, look.now.elapsed)?;
                (at > seen).then(|| Turn { on: flip % 2 == 0, at: back(look.now, look.now.elapsed - at) })
            }
            When::On(_) => None,
        }
    }

    /// The change that an event means: `before` is what was seen last, `now` is whether the unit is active or a process runs.
    /// What has ended before the first look has not ended just now.
    pub fn turn_of_event(&self, before: Option<bool>, now: bool, at: Timestamp) -> Option<Turn> {
        let When::On(Event::Unit { active: wanted, .. } | Event::Process { runs: wanted, .. }) = self else {
            return None;
        };
        let on = now == *wanted;
        let first = before.is_none() && (!on || !now);
        (before != Some(now) && !first).then_some(Turn { on, at })
    }

    /// The changes that come, as far as their times are known.
    pub fn coming<'a>(&'a self, on: bool, look: &'a Look<'a>) -> impl Iterator<Item = Turn> + 'a {
        let after = |turn: &Turn| {
            let passed = turn.at.duration_since(look.now.wall);
            let elapsed = look.now.elapsed + Duration::try_from(passed).unwrap_or_default();
            let now = Moment { wall: turn.at, elapsed };
            self.next(turn.on, &Look { seen: None, now, zones: look.zones })
        };
        std::iter::successors(self.next(on, look), after)
    }

    /// The change that comes next, if its time is known. `on`: is the change in force?
    pub fn next(&self, on: bool, look: &Look<'_>) -> Option<Turn> {
        let now = look.now;
        match self {
            When::At { at, until, .. } => {
                let zone = at.zone();
                let next = |calendar: &Calendar| {
                    let zone = look.zones.zone(calendar.zone().or(zone))?;
                    calendar.next(now.wall, &zone)
                };
                let made = next(at).map(|at| Turn { on: true, at });
                let taken = until.as_ref().and_then(next).map(|at| Turn { on: false, at });
                // what is not in force is not taken back, and what is in force is made once more only without an end
                match (on, taken) {
                    (true, Some(taken)) => Some(taken),
                    _ => made,
                }
            }
            When::After { after, every } => {
                let next = match last_flip(*after, *every, now.elapsed) {
                    None => (0, *after),
                    Some((flip, at)) => (flip + 1, at.checked_add((*every)?)?),
                };
                let left = next.1.checked_sub(now.elapsed)?;
                let left = SignedDuration::try_from(left).ok()?;
                Some(Turn { on: next.0 % 2 == 0, at: now.wall.checked_add(left).ok()? })
            }
            When::On(_) => None,
        }
    }
}

impl std::fmt::Display for When {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            When::At { at, until, .. } => {
                write!(f, "at {at}")?;
                until.iter().try_for_each(|until| write!(f, " until {until}"))
            }
            When::After { after, every } => {
                write!(f, "{} after the apply", span_text(*after))?;
                every.iter().try_for_each(|every| write!(f, ", every {}", span_text(*every)))
            }
            When::On(Event::Unit { name, active }) => {
                write!(f, "while {name} is {}active", if *active { "" } else { "in" })
            }
            When::On(Event::Process { program, runs: true }) => write!(f, "while {program} runs"),
            When::On(Event::Process { program, .. }) => {
                write!(f, "from the end of {program} to its next start")
            }
        }
    }
}

/// The number of the last change by delay up to `elapsed`, and its time since the apply.
fn last_flip(after: Duration, every: Option<Duration>, elapsed: Duration) -> Option<(u32, Duration)> {
    let beyond = elapsed.checked_sub(after)?;
    let Some(every) = every.filter(|every| !every.is_zero()) else { return Some((0, after)) };
    let flip = u32::try_from(beyond.as_nanos() / every.as_nanos()).ok()?;
    Some((flip, after.checked_add(every.checked_mul(flip)?)?))
}

fn back(now: Moment, by: Duration) -> Timestamp {
    SignedDuration::try_from(by).ok().and_then(|by| now.wall.checked_sub(by).ok()).unwrap_or(now.wall)
}

fn at_or_until(at: &Calendar, until: Option<&Calendar>, missed: Missed, look: &Look<'_>) -> Option<Turn> {
    let now = look.now.wall;
    let zone = at.zone();
    let latest = |calendar: &Calendar| {
        let zone = look.zones.zone(calendar.zone().or(zone))?;
        calendar.latest(now, &zone)
    };
    // a clock that was set back shows moments once more
    let unseen = |moment: &Timestamp| match look.seen {
        Some(seen) => *moment > seen.wall,
        // what has no end and came before the layout did was not missed
        None => until.is_some(),
    };
    let made = latest(at);
    let taken = until.and_then(latest);
    match (made, taken) {
        (Some(made), Some(taken)) if taken >= made => {
            Some(taken).filter(unseen).map(|at| Turn { on: false, at })
        }
        (Some(made), _) => {
            let late = now.duration_since(made) > SignedDuration::try_from(LATE).unwrap_or_default();
            let skipped = missed == Missed::Skip && late;
            // a change of an earlier day ends all the same
            match Some(made).filter(unseen)? {
                at if !skipped => Some(Turn { on: true, at }),
                _ => taken.filter(unseen).map(|at| Turn { on: false, at }),
            }
        }
        (None, taken) => taken.filter(unseen).map(|at| Turn { on: false, at }),
    }
}
