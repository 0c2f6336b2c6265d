//! Calendars against a count of every second, against clocks that change, and what follows from a look.
#![allow(clippy::unwrap_used, clippy::panic)]

mod calendars;
mod never;
mod turns;

use jiff::{Timestamp, tz::TimeZone};
use layout::schedule::{Calendar, Zones};

/// Central Europe, and the same for every name but `None/Such`.
pub struct Berlin;

impl Zones for Berlin {
    fn zone(&self, name: Option<&str>) -> Option<TimeZone> {
        match name {
            Some("None/Such") => None,
            Some("UTC") => Some(TimeZone::UTC),
            _ => Some(TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap()),
        }
    }
}

/// A moment, as `2026-11-25T12:00:00Z`.
pub fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// A calendar that is right.
pub fn calendar(text: &str) -> Calendar {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}
