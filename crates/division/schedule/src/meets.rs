//! Whether two schedules are due at the same moment, so that none of them is the later one.

use std::{cell::OnceCell, collections::BTreeSet};

use jiff::{Timestamp, tz::TimeZone};

use crate::{Calendar, When, span_text};

/// How many moments of two calendars are compared.
const COMPARED: usize = 1500;

/// A schedule to be compared with many others.
#[derive(Debug)]
pub struct Compared<'w> {
    when: &'w When,
    moments: OnceCell<BTreeSet<Timestamp>>,
}

impl<'w> Compared<'w> {
    /// What is to be compared.
    pub fn new(when: &'w When) -> Compared<'w> {
        Compared { when, moments: OnceCell::new() }
    }

    /// The first moment at which both are due, in words; `None`: none was found. Calendars are compared from 2024 on, a leap
    /// year, and only in the same time zone.
    pub fn meets(&self, other: &Compared<'_>) -> Option<String> {
        match (self.when, other.when) {
            (When::At { at: one, .. }, When::At { at: another, .. }) if one.zone() == another.zone() => {
                let (one, another) = (self.moments(one), other.moments(another));
                let civil = TimeZone::UTC.to_datetime(*one.iter().find(|moment| another.contains(moment))?);
                Some(format!("at the same time, such as {} {}", civil.date(), civil.time()))
            }
            (When::After { after: one, .. }, When::After { after: another, .. }) if one == another => {
                Some(format!("at the same time, {} after the apply", span_text(*one)))
            }
            (When::On(one), When::On(another)) if one == another => Some("on the same event".to_owned()),
            _ => None,
        }
    }

    /// The first ones, as if the clock were UTC's.
    fn moments(&self, calendar: &Calendar) -> &BTreeSet<Timestamp> {
        const START: i64 = 1_704_067_199;
        self.moments.get_or_init(|| {
            let next = |after: &Timestamp| calendar.next(*after, &TimeZone::UTC);
            let first = Timestamp::from_second(START).ok().and_then(|start| next(&start));
            std::iter::successors(first, next).take(COMPARED).collect()
        })
    }
}
