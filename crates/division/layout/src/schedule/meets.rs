//! Whether two schedules are due at the same moment, so that none of them is the later one.

use std::{cell::OnceCell, collections::BTreeSet, time::Duration};

use jiff::{Timestamp, tz::TimeZone};

use crate::schedule::{Calendar, When, never::fits, span_text};

/// How many moments of two calendars are compared.
const COMPARED: usize = 1500;
/// And of the rarer one, whether they fit the other.
const FITTED: usize = 200;

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
                let (first, second) = (self.moments(one), other.moments(another));
                let both = first.iter().find(|moment| second.contains(moment));
                let both = both.copied().or_else(|| match first.last() > second.last() {
                    true => later(first, second, another),
                    false => later(second, first, one),
                });
                let civil = TimeZone::UTC.to_datetime(both?);
                Some(format!("at the same time, such as {} {}", civil.date(), civil.time()))
            }
            (When::After { after: one, every: first }, When::After { after: another, every: second }) => {
                let (one, another) = (begins(*one, *first), begins(*another, *second));
                let both = one.iter().find(|after| another.contains(after))?;
                Some(format!("at the same time, {} after the apply", span_text(*both)))
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

/// When a change by delay is made, every second time that something changes.
fn begins(after: Duration, every: Option<Duration>) -> BTreeSet<Duration> {
    let again = |made: &Duration| made.checked_add(every?.checked_mul(2)?);
    std::iter::successors(Some(after), again).take(COMPARED).collect()
}

/// Of the moments of a rare calendar, the first behind those of a frequent one that fits it, too.
fn later(rare: &BTreeSet<Timestamp>, known: &BTreeSet<Timestamp>, frequent: &Calendar) -> Option<Timestamp> {
    let behind = rare.iter().filter(|moment| Some(*moment) > known.last()).take(FITTED);
    behind.copied().find(|moment| fits(frequent, *moment, &TimeZone::UTC))
}
