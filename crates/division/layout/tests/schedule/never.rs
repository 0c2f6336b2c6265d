//! Schedules that are never made, never end, or begin at the same time as another.

use std::time::Duration;

use layout::schedule::{Compared, Missed, Never, When};

use crate::{Berlin, at, calendar};

const NOW: &str = "2026-11-26T12:00:00Z";

fn when(at: &str, until: &str) -> When {
    let until = (!until.is_empty()).then(|| calendar(until));
    When::At { at: calendar(at), until, missed: Missed::Run }
}

fn never(begins: &str, until: &str) -> Option<Never> {
    when(begins, until).never(at(NOW), &Berlin)
}

#[test]
fn what_is_past_for_good_never_begins() {
    let again = |moment: &str| Some(Never::Begins { of_any_year: Some(at(moment)) });
    assert_eq!(never("2026-11-26 12:59", ""), again("2027-11-26T11:59:00Z"));
    assert_eq!(never("2020..2025-12-24 22:00", "06:00"), again("2026-12-24T21:00:00Z"));
    assert_eq!(never("2020-01-02", "2020-01-03"), again("2027-01-01T23:00:00Z"));
    // it is on now
    assert_eq!(never("2026-11-26 10:00", "2026-11-26 20:00"), None);
    assert_eq!(never("2026-11-26 10:00", "20:00"), None);
    for (begins, until) in
        [("22:00", "06:00"), ("2027-01-01", ""), ("hourly", ""), ("2027-01-01 12:00", "daily")]
    {
        assert_eq!(never(begins, until), None, "{begins} {until}");
    }
    assert_eq!(never("2020-01-02 None/Such", ""), None, "another error says that");
}

#[test]
fn what_ends_before_it_begins_never_ends() {
    assert_eq!(never("2027-01-02", "2027-01-01"), Some(Never::Ends));
    assert_eq!(never("22:00", "2026-11-26 06:00"), Some(Never::Ends));
    assert_eq!(never("2027-01-02", "2027-01-03"), None);
    // in their own time zones
    assert_eq!(never("2027-01-02 12:00", "2027-01-02 11:30 UTC"), None);
    assert_eq!(never("2027-01-02 12:00", "2027-01-02 10:30 UTC"), Some(Never::Ends));
}

#[test]
fn what_ends_at_each_moment_at_which_it_begins_does_not_last() {
    assert_eq!(never("22:00", "22:00"), Some(Never::Lasts));
    assert_eq!(never("22:00", "hourly"), Some(Never::Lasts));
    assert_eq!(never("2027-01-02", "2027-01-02"), Some(Never::Lasts));
    // on Saturdays it lasts
    assert_eq!(never("22:00", "Mon..Fri 22:00"), None);
}

/// The first thousands of a frequent calendar do not reach the first of a rare one.
#[test]
fn a_rare_moment_that_a_frequent_calendar_has_too_is_found() {
    let meet = |one: &str, other: &str| {
        let (one, other) = (when(one, ""), when(other, ""));
        let (one, other) = (Compared::new(&one), Compared::new(&other));
        assert_eq!(one.meets(&other), other.meets(&one));
        one.meets(&other)
    };
    assert_eq!(meet("hourly", "*-12-31 23:00").unwrap(), "at the same time, such as 2024-12-31 23:00:00");
    assert_eq!(meet("daily", "2031-05-06").unwrap(), "at the same time, such as 2031-05-06 00:00:00");
    assert_eq!(meet("hourly", "*-12-31 23:30"), None);
}

#[test]
fn delays_that_are_repeated_are_compared_each_time() {
    let delay = |after, every: Option<u64>| When::After {
        after: Duration::from_secs(after),
        every: every.map(Duration::from_secs),
    };
    let meet = |one: When, other: When| Compared::new(&one).meets(&Compared::new(&other));
    let words = "at the same time, 15m after the apply";
    assert_eq!(meet(delay(900, None), delay(300, Some(300))).as_deref(), Some(words));
    // it is taken back then
    assert_eq!(meet(delay(600, None), delay(300, Some(300))), None);
    assert_eq!(meet(delay(60, None), delay(61, None)), None);
}
