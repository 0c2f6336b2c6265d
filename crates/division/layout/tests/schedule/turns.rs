//! What is due at a look.

use std::time::Duration;

use jiff::SignedDuration;
use layout::schedule::{Event, Look, Memory, Missed, Moment, When};

use crate::{Berlin, at, calendar};

fn moment(wall: &str, elapsed: u64) -> Moment {
    Moment { wall: at(wall), elapsed: Duration::from_secs(elapsed) }
}

/// What is due, as `on 2026-…` or `off 2026-…`.
fn due(when: &When, seen: Option<Moment>, now: Moment) -> Option<String> {
    let turn = when.turn(&Look { seen, now, zones: &Berlin })?;
    Some(format!("{} {}", if turn.on { "on" } else { "off" }, turn.at))
}

fn night(missed: Missed) -> When {
    When::At { at: calendar("Mon..Fri 22:00"), until: Some(calendar("06:00")), missed }
}

#[test]
fn the_latest_missed_one_counts_once() {
    // from Thursday to Saturday morning
    let seen = Some(moment("2026-11-19T12:00:00Z", 0));
    for (now, run, skip) in [
        ("2026-11-19T12:00:10Z", None, None),
        ("2026-11-19T21:00:00Z", Some("on 2026-11-19T21:00:00Z"), Some("on 2026-11-19T21:00:00Z")),
        ("2026-11-19T21:00:59Z", Some("on 2026-11-19T21:00:00Z"), Some("on 2026-11-19T21:00:00Z")),
        ("2026-11-19T21:05:00Z", Some("on 2026-11-19T21:00:00Z"), None),
        ("2026-11-20T07:00:00Z", Some("off 2026-11-20T05:00:00Z"), Some("off 2026-11-20T05:00:00Z")),
        ("2026-11-20T23:00:00Z", Some("on 2026-11-20T21:00:00Z"), Some("off 2026-11-20T05:00:00Z")),
        ("2026-11-22T07:00:00Z", Some("off 2026-11-22T05:00:00Z"), Some("off 2026-11-22T05:00:00Z")),
    ] {
        let now = moment(now, 0);
        assert_eq!(due(&night(Missed::Run), seen, now).as_deref(), run, "{now:?}");
        assert_eq!(due(&night(Missed::Skip), seen, now).as_deref(), skip, "{now:?}");
        // once
        assert_eq!(due(&night(Missed::Run), Some(now), now), None);
    }
    // the layout is applied first in the midst of the night
    let now = moment("2026-11-19T23:00:00Z", 0);
    assert_eq!(due(&night(Missed::Run), None, now).as_deref(), Some("on 2026-11-19T21:00:00Z"));
    let endless = When::At { at: calendar("22:00"), until: None, missed: Missed::Run };
    assert_eq!(due(&endless, None, now), None);
}

#[test]
fn a_clock_that_is_set_back_shows_moments_once_more() {
    let (seen, now) = (moment("2026-11-20T12:00:00Z", 50), moment("2026-11-19T20:59:00Z", 51));
    assert_eq!(due(&night(Missed::Run), Some(seen), now), None);
    let later = moment("2026-11-19T21:00:00Z", 111);
    assert_eq!(due(&night(Missed::Run), Some(now), later).as_deref(), Some("on 2026-11-19T21:00:00Z"));
}

#[test]
fn a_delay_does_not_mind_the_clock() {
    let once = When::After { after: Duration::from_secs(600), every: None };
    let seen = moment("2026-11-19T12:00:00Z", 0);
    assert_eq!(due(&once, Some(seen), moment("2029-01-01T00:00:00Z", 599)), None);
    let now = moment("2001-01-01T00:00:10Z", 610);
    assert_eq!(due(&once, Some(seen), now).as_deref(), Some("on 2001-01-01T00:00:00Z"));
    assert_eq!(due(&once, Some(now), moment("2001-01-01T01:00:00Z", 4000)), None);
    assert_eq!(once.next(true, &Look { seen: Some(now), now, zones: &Berlin }), None);

    let turns = When::After { after: Duration::from_secs(600), every: Some(Duration::from_secs(60)) };
    let at_second = |second: u64| {
        let wall = at("2026-11-19T12:00:00Z") + SignedDuration::from_secs(i64::try_from(second).unwrap());
        Moment { wall, elapsed: Duration::from_secs(second) }
    };
    let mut seen = at_second(0);
    let mut made = Vec::new();
    for second in 1..=800 {
        let now = at_second(second);
        let next = turns.next(false, &Look { seen: Some(seen), now: seen, zones: &Berlin }).unwrap();
        let due = turns.turn(&Look { seen: Some(seen), now, zones: &Berlin });
        assert_eq!(due, (next.at <= now.wall).then_some(next), "{second}");
        made.extend(due.map(|due| (second, due.on)));
        seen = now;
    }
    assert_eq!(made, [(600, true), (660, false), (720, true), (780, false)]);
}

#[test]
fn events_count_where_they_are_seen() {
    let now = at("2026-11-19T12:00:00Z");
    let of = |runs| When::On(Event::Process { program: "pg_dump".to_owned(), runs });
    let turn = |when: &When, before, level| when.turn_of_event(before, level, now).map(|turn| turn.on);
    let (start, end) = (of(true), of(false));
    for (before, level, on_start, on_end) in [
        (None, true, Some(true), None),
        (None, false, None, None),
        (Some(false), true, Some(true), Some(false)),
        (Some(true), false, Some(false), Some(true)),
        (Some(true), true, None, None),
        (Some(false), false, None, None),
    ] {
        assert_eq!(turn(&start, before, level), on_start, "{before:?} {level}");
        assert_eq!(turn(&end, before, level), on_end, "{before:?} {level}");
    }
}

#[test]
fn the_change_that_was_made_last_counts_most() {
    let (mut memory, now) = (Memory::default(), at("2026-11-19T12:00:00Z"));
    assert!(!memory.turn("night", false, now));
    assert!(memory.turn("night", true, now) && memory.turn("backup", true, now));
    assert_eq!(memory.names(), ["night", "backup"]);
    assert!(memory.turn("night", true, now) && !memory.turn("night", true, now));
    assert_eq!(memory.names(), ["backup", "night"]);
    assert!(memory.turn("backup", false, now) && !memory.turn("backup", false, now));
    assert_eq!(memory.names(), ["night"]);
}
