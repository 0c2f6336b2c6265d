//! Which moments fit, and which come next.

use jiff::{SignedDuration, Timestamp, civil::DateTime, tz::TimeZone};
use layout::schedule::{self, Zones};
use proptest::prelude::*;

use crate::{Berlin, at, calendar};

/// The next few, in UTC.
fn next(text: &str, from: &str, count: usize) -> Vec<String> {
    let calendar = calendar(text);
    let zone = Berlin.zone(calendar.zone()).unwrap();
    let next = |after: &Timestamp| calendar.next(*after, &zone);
    std::iter::successors(next(&at(from)), next).take(count).map(|one| one.to_string()).collect()
}

/// What systemd-analyze(1) calendar says, but for the 29th of March at 01:00, which it leaves out.
#[test]
fn clocks_that_change_move_what_they_skip_and_repeat_nothing() {
    for (text, from, expected) in [
        (
            "02:30",
            "2026-03-28T12:00:00Z",
            ["2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z", "2026-03-31T00:30:00Z"],
        ),
        (
            "02:30",
            "2026-10-24T12:00:00Z",
            ["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z", "2026-10-27T01:30:00Z"],
        ),
        (
            "hourly",
            "2026-10-24T23:00:00Z",
            ["2026-10-25T00:00:00Z", "2026-10-25T02:00:00Z", "2026-10-25T03:00:00Z"],
        ),
        (
            "*:0/30",
            "2026-03-29T00:00:00Z",
            ["2026-03-29T00:30:00Z", "2026-03-29T01:00:00Z", "2026-03-29T01:30:00Z"],
        ),
        (
            "02:30 UTC",
            "2026-03-28T12:00:00Z",
            ["2026-03-29T02:30:00Z", "2026-03-30T02:30:00Z", "2026-03-31T02:30:00Z"],
        ),
        // in the midst of the hour that comes again
        (
            "*:0/20",
            "2026-10-25T01:10:00Z",
            ["2026-10-25T02:00:00Z", "2026-10-25T02:20:00Z", "2026-10-25T02:40:00Z"],
        ),
    ] {
        assert_eq!(next(text, from, 3), expected, "{text} from {from}");
    }
}

#[test]
fn bad_calendars_say_what_to_write() {
    for (text, error, hint) in [
        ("", "a calendar is empty", "22:00"),
        ("12", "'12' is no date", "12:00 is a time"),
        ("24:00", "'24' is no hour", "from 0 to 23"),
        ("*/2:00", "'*/2' is no hour", "0/2"),
        ("08:00:00..18:00", "'08:00:00..18:00' has too many colons", "08..18:00"),
        ("Fri..Mon 10:00", "the range Fri..Mon is backwards", "Fri..Sun,Mon..Mon"),
        ("Mun 10:00", "'Mun' is no day of the week", "did you mean Sun?"),
        ("hurly", "'hurly' is no day of the week", "did you mean hourly?"),
        ("*-02-30 10:00", "there is no such day: '*-02-30 10:00' never comes", "*-*~01"),
        ("Mon 2026-11-25", "there is no such day: 'Mon 2026-11-25' never comes", "1970"),
        ("08-18:00", "'08-18' is no hour", "08..18"),
        ("0:5..1", "the range of minutes 5..1 is backwards", "5..59,0..1"),
        ("10:00 22:00", "'22:00' is not expected there", "in this order"),
        ("10:00 Europe/Berlin now", "'now' is not expected there", "in this order"),
        ("0:0/0", "'0' is no interval of minutes", "from 1"),
        ("99999-01-01", "'99999' is no year", "from 1970 to 2199"),
        ("*-*-*", "", ""),
    ] {
        match text.parse::<schedule::Calendar>() {
            Ok(_) => assert_eq!(error, "", "{text}"),
            Err(found) => {
                assert_eq!(found.to_string(), error, "{text}");
                assert!(found.hint.contains(hint), "{text}: {}", found.hint);
            }
        }
    }
}

/// A calendar's text, mostly a right one.
fn texts() -> impl Strategy<Value = String> {
    let part = |most: u32| {
        let one = 0..=most;
        prop_oneof![
            3 => Just("*".to_owned()),
            3 => one.clone().prop_map(|one| one.to_string()),
            1 => (0..=most / 2, 1..8u32).prop_map(|(first, step)| format!("{first}/{step}")),
            1 => (0..=most / 2, 0..=most / 2).prop_map(|(first, more)| format!("{first}..{}", first + more)),
            1 => (one.clone(), one).prop_map(|(one, other)| format!("{one},{other}")),
        ]
    };
    let days = prop_oneof![4 => Just(String::new()), 1 => Just("Mon..Fri ".to_owned()), 1 => Just("sun,Wed ".to_owned())];
    let date = prop_oneof![
        3 => Just(String::new()),
        1 => (part(12), part(28)).prop_map(|(month, day)| format!("*-{month}-{day} ")),
        1 => (part(12), 1..9u32).prop_map(|(month, day)| format!("*-{month}~{day} ")),
        1 => (part(12), 1..9u32).prop_map(|(month, day)| format!("{month}~{day}/1 ")),
    ];
    let time =
        (part(23), part(59), part(59)).prop_map(|(hour, minute, second)| format!("{hour}:{minute}:{second}"));
    (days, date, time).prop_map(|(days, date, time)| days + &date + &time)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_next_moment_is_later_and_none_is_between(
        text in texts(), start in 0..4_000_000_000i64, zone in any::<bool>(), between in 0.0..1.0f64,
    ) {
        let Ok(calendar) = text.parse::<schedule::Calendar>() else { return Ok(()) };
        let zone = if zone { TimeZone::UTC } else { Berlin.zone(None).unwrap() };
        let start = Timestamp::from_second(start).unwrap();
        let Some(next) = calendar.next(start, &zone) else { return Ok(()) };
        prop_assert!(next > start);
        prop_assert_eq!(calendar.latest(next, &zone), Some(next));
        // from any moment before it, the same one comes next
        let span = next.duration_since(start).as_secs() - 1;
        let within = start + SignedDuration::from_secs((span as f64 * between) as i64);
        prop_assert_eq!(calendar.next(within, &zone), Some(next));
        prop_assert!(calendar.latest(within, &zone).is_none_or(|latest| latest <= start));
    }

    /// Every second of five minutes before and behind, in UTC, by the calendar of one second.
    #[test]
    fn what_fits_is_what_comes(text in texts(), start in 0..4_000_000_000i64) {
        let Ok(calendar) = text.parse::<schedule::Calendar>() else { return Ok(()) };
        let Some(next) = calendar.next(Timestamp::from_second(start).unwrap(), &TimeZone::UTC) else { return Ok(()) };
        let civil: DateTime = TimeZone::UTC.to_datetime(next);
        let exact = format!("{} {}", civil.date(), civil.time());
        let exact = exact.parse::<schedule::Calendar>().unwrap();
        prop_assert_eq!(exact.next(next - SignedDuration::from_secs(3600), &TimeZone::UTC), Some(next));
        let by_hour = (-300..300).filter(|second| {
            let moment = next + SignedDuration::from_secs(*second);
            calendar.next(moment - SignedDuration::from_secs(1), &TimeZone::UTC) == Some(moment)
        }).count();
        let from = next - SignedDuration::from_secs(301);
        let by_next = std::iter::successors(calendar.next(from, &TimeZone::UTC), |one| calendar.next(*one, &TimeZone::UTC));
        prop_assert_eq!(by_next.take_while(|one| *one < next + SignedDuration::from_secs(300)).count(), by_hour);
    }

    #[test]
    fn no_text_breaks_it(text in "[-0-9*./,:~ MonFriUTCeuropa]{0,24}") {
        if let Ok(calendar) = text.parse::<schedule::Calendar>() {
            let again = calendar.to_string().parse::<schedule::Calendar>();
            prop_assert_eq!(again, Ok(calendar));
        }
    }
}

/// The same as systemd for calendars that its own documentation has; in a zone without changes, and in UTC.
#[test]
fn systemd_says_the_same() {
    let texts = [
        "22:00",
        "Mon..Fri 22:00",
        "*-*-01 03:00:00",
        "hourly",
        "minutely",
        "weekly",
        "quarterly",
        "semiannually",
        "Mon,Wed 08..18/2:00",
        "*-02~03",
        "Mon *-05~07/1",
        "*-*-1,5..7,10/10",
        "Sat,Sun 12-05 08:05:40",
        "*:0/7:13",
        "Wed..Sat,Tue 32-10-15 1:2:3",
        "2030-*-29 4:5",
        "*-2/3-1",
        "*-*~1..3 23:59:59",
        "*-*~7..9/2",
        "*-*~05/2",
        "monday 0:0",
        "Thu..Sun *:15",
    ];
    let Ok(probe) = std::process::Command::new("systemd-analyze").arg("--version").output() else {
        // where there is no systemd, what it said when this was written
        assert_eq!(next("Mon *-05~07/1 UTC", "2026-11-25T00:00:00Z", 1), ["2027-05-31T00:00:00Z"]);
        return;
    };
    assert!(probe.status.success());
    for text in texts {
        let mut command = std::process::Command::new("systemd-analyze");
        command
            .args(["calendar", "--base-time=2026-11-25 12:34:56 UTC", "--iterations=6", text])
            .env("TZ", "UTC");
        let output = command.env("LC_ALL", "C").env("SYSTEMD_COLORS", "0").output().unwrap();
        let shown = String::from_utf8(output.stdout).unwrap();
        let line = |line: &str| {
            let (label, moment) = line.trim().split_once(": ")?;
            let is_moment = label == "Next elapse" || label.starts_with("Iter. #");
            let words: Vec<&str> = moment.split_whitespace().collect();
            (is_moment && words != ["never"]).then(|| format!("{}T{}Z", words[1], words[2]))
        };
        let systemds: Vec<String> =
            shown.replace("Iteration #", "Iter. #").lines().filter_map(line).collect();
        assert_eq!(systemds.is_empty(), shown.contains("Next elapse: never"), "{text}: {shown}");
        assert_eq!(
            next(&format!("{text} UTC"), "2026-11-25T12:34:56Z", systemds.len().max(1)),
            systemds,
            "{text}"
        );
    }
}
