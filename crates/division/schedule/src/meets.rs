//! Whether two schedules are due at the same moment, so that none of them is the later one.

use std::collections::BTreeSet;

use jiff::{Timestamp, tz::TimeZone};

use crate::{Calendar, When, span_text};

/// How many moments of two calendars are compared.
const COMPARED: usize = 1500;

impl When {
    /// The first moment at which both are due, in words; `None`: none was found. Calendars are compared from 2024 on, a leap
    /// year, and only in the same time zone.
    pub fn meets(&self, other: &When) -> Option<String> {
        match (self, other) {
            (When::At { at: one, .. }, When::At { at: other, .. }) if one.zone() == other.zone() => {
                let (one, other) = (moments(one), moments(other));
                let civil = TimeZone::UTC.to_datetime(*one.iter().find(|moment| other.contains(moment))?);
                Some(format!("at the same time, such as {} {}", civil.date(), civil.time()))
            }
            (When::After { after: one, .. }, When::After { after: other, .. }) if one == other => {
                Some(format!("at the same time, {} after the apply", span_text(*one)))
            }
            (When::On(one), When::On(other)) if one == other => Some("on the same event".to_owned()),
            _ => None,
        }
    }
}

/// The first ones, as if the clock were UTC's.
fn moments(calendar: &Calendar) -> BTreeSet<Timestamp> {
    const START: i64 = 1_704_067_199;
    let next = |after: &Timestamp| calendar.next(*after, &TimeZone::UTC);
    let first = Timestamp::from_second(START).ok().and_then(|start| next(&start));
    std::iter::successors(first, next).take(COMPARED).collect()
}
