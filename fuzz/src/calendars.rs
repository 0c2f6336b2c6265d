//! Calendars of schedules.

use jiff::{Timestamp, tz::TimeZone};
use layout::schedule::Calendar;

/// What is read comes, comes later than before, and is read again as the same.
pub fn calendar(data: &[u8]) {
    crate::with_text(data, |text| match text.parse::<Calendar>() {
        Ok(calendar) => {
            assert_eq!(calendar.to_string().parse(), Ok(calendar.clone()), "{text:?}");
            let Ok(zone) = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3") else { unreachable!("it is one") };
            let mut before = Timestamp::UNIX_EPOCH;
            for _ in 0..5 {
                let Some(next) = calendar.next(before, &zone) else { break };
                assert!(next > before, "{text:?}: {next} after {before}");
                assert_eq!(calendar.latest(next, &zone), Some(next), "{text:?}");
                before = next;
            }
        }
        Err(error) => assert!(!error.to_string().is_empty() && !error.hint.is_empty(), "{text:?}"),
    });
}
