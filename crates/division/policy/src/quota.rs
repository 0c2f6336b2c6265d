//! A CPU quota between `min` and `max` (`cpu.max = { min, max }`): a group whose quota runs out may first use more for a
//! moment (`cpu.max.burst`), then its quota grows; when it is quiet, both shrink again. What it uses above `min` comes out of
//! a bucket, so that it has `max` for a while and not for ever.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use crate::parameters::parameters;
use crate::{Error, GroupState};

parameters! {
    /// The numbers of quotas; [`QUOTA`] has their units, defaults and ranges.
    Numbers, QUOTA;
    period: 0.1 "s", 0.01 to 60.0, "The time between two samples.";
    late: 3.0 "periods", 1.5 to 100.0, "A sample that comes later than this after the one before is late: no quota shrinks then.";
    throttled: 0.05 "of the periods", 0.0 to 1.0, "A quota that runs out more often than this grows.";
    burst: 0.5 "of the quota", 0.0 to 1.0, "What the first burst allows beyond the quota, at once.";
    grow: 1.2 "times", 1.01 to 4.0, "What a quota is multiplied with to grow.";
    shrink: 0.8 "times", 0.1 to 0.99, "What a quota is multiplied with to shrink.";
    quiet: 0.6 "of the quota", 0.05 to 0.9, "A group is quiet while it uses less; less than shrink, so that a smaller quota does not run out.";
    dwell: 5.0 "s", 0.1 to 3600.0, "How long a group has to be quiet before its quota shrinks.";
    bucket: 60.0 "s", 1.0 to 86400.0, "How long a full bucket lasts for a group that uses max.";
    refilled: 0.25 "of the bucket", 0.0 to 1.0, "After the bucket was empty, a quota grows again from this on.";
}

/// What is written, in CPUs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Setting {
    /// `cpu.max`.
    pub quota: f64,
    /// `cpu.max.burst`, at most the quota.
    pub burst: f64,
}

/// A new quota. The quota or the burst changes, never both upwards.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Change {
    /// What it was.
    pub from: Setting,
    /// What it is to be.
    pub to: Setting,
    /// Why.
    pub reason: Reason,
}

/// Why a quota changes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "reason")]
pub enum Reason {
    /// It ran out.
    Throttled {
        /// In which share of the periods.
        throttled: f64,
    },
    /// The group was quiet for the dwell.
    Quiet {
        /// The most CPUs used in that time.
        peak: f64,
    },
    /// The bucket is empty.
    Spent,
    /// Nothing follows the load any more.
    Ended,
}

/// A group's quota.
#[derive(Debug, Clone)]
pub struct Quota {
    min: f64,
    max: f64,
    now: Setting,
    /// CPU seconds above `min` that are left.
    tokens: f64,
    /// Was the bucket empty, and is it not refilled yet?
    spent: bool,
    last: Option<f64>,
    /// Since when the group is quiet, and the most CPUs used since then.
    quiet: Option<(f64, f64)>,
    numbers: Numbers,
}

impl Quota {
    /// Starts with `min`, no burst and a full bucket. Both bounds are CPUs.
    ///
    /// # Errors
    /// `min` is not above 0, or `max` below it; a number is out of its range.
    pub fn new(min: f64, max: f64, numbers: Numbers) -> Result<Quota, Error> {
        numbers.check()?;
        if !(min > 0.0 && max >= min && max.is_finite()) {
            return Err(Error::Bounds { what: "the quota", min, max });
        }
        let now = Setting { quota: min, burst: 0.0 };
        let tokens = (max - min) * numbers.bucket;
        Ok(Quota { min, max, now, tokens, spent: false, last: None, quiet: None, numbers })
    }

    /// Starts with what is written, brought between the bounds.
    #[must_use]
    pub fn starting_at(mut self, setting: Setting) -> Quota {
        let quota =
            if setting.quota.is_finite() { setting.quota.clamp(self.min, self.max) } else { self.min };
        let burst = if setting.burst.is_finite() { setting.burst.clamp(0.0, quota) } else { 0.0 };
        self.now = Setting { quota, burst };
        self
    }

    /// What is written now.
    pub fn setting(&self) -> Setting {
        self.now
    }

    /// CPU seconds above `min` that are left.
    pub fn tokens(&self) -> f64 {
        self.tokens
    }

    /// The change that follows from what the group did. Figures that are no numbers change nothing.
    pub fn tick(&mut self, now: Duration, state: &GroupState) -> Option<Change> {
        let now = now.as_secs_f64();
        let since = self.last.replace(now).map_or(0.0, |last| now - last);
        let longest = self.numbers.period * self.numbers.late;
        let late = !(0.0..=longest).contains(&since);
        if !state.is_sound() {
            self.quiet = None;
            return None;
        }
        self.spend(state.used, since.clamp(0.0, longest));
        let (to, reason) = self.wanted(now, late, state)?;
        let from = std::mem::replace(&mut self.now, to);
        self.quiet = None;
        (from != to).then_some(Change { from, to, reason })
    }

    /// This change was not written: what was there before still is.
    pub fn withdraw(&mut self, change: &Change) {
        (self.now, self.quiet) = (change.from, None);
    }

    /// Is it `min`, without a burst?
    pub fn is_least(&self) -> bool {
        self.now.quota <= self.min && self.now.burst <= 0.0
    }

    /// Back to `min`, if it is not there.
    pub fn reset(&mut self) -> Option<Change> {
        if self.is_least() {
            return None;
        }
        let to = Setting { quota: self.min, burst: 0.0 };
        let from = std::mem::replace(&mut self.now, to);
        Some(Change { from, to, reason: Reason::Ended })
    }

    fn spend(&mut self, used: f64, seconds: f64) {
        let full = (self.max - self.min) * self.numbers.bucket;
        self.tokens = (self.tokens + (self.min - used) * seconds).clamp(0.0, full);
        self.spent = match self.spent {
            true => self.tokens < full * self.numbers.refilled,
            false => self.tokens <= 0.0 && full > 0.0,
        };
    }

    fn wanted(&mut self, now: f64, late: bool, state: &GroupState) -> Option<(Setting, Reason)> {
        let Setting { quota, burst } = self.now;
        let smaller = Setting { quota: (quota * self.numbers.shrink).max(self.min), burst: 0.0 };
        let is_least = self.is_least();
        if self.spent {
            return (!late && !is_least).then_some((smaller, Reason::Spent));
        }
        if state.throttled > self.numbers.throttled {
            self.quiet = None;
            let reason = Reason::Throttled { throttled: state.throttled };
            let first = quota * self.numbers.burst;
            if burst <= 0.0 && first > 0.0 {
                return Some((Setting { quota, burst: first }, reason));
            }
            let larger = (quota * self.numbers.grow).min(self.max);
            return (larger > quota).then_some((Setting { quota: larger, burst }, reason));
        }
        if late || state.used >= quota * self.numbers.quiet {
            self.quiet = None;
            return None;
        }
        let (since, peak) = self.quiet.unwrap_or((now, 0.0));
        let peak = peak.max(state.used);
        self.quiet = Some((since, peak));
        (now - since >= self.numbers.dwell && !is_least).then_some((smaller, Reason::Quiet { peak }))
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Throttled { throttled } => {
                write!(f, "its quota ran out in {:.0} % of the periods", throttled * 100.0)
            }
            Reason::Quiet { peak } => write!(f, "used at most {peak:.2} CPUs for the dwell"),
            Reason::Ended => write!(f, "resizing has ended"),
            Reason::Spent => write!(f, "what it may use above its min is spent"),
        }
    }
}
