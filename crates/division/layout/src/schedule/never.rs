//! What of a schedule never happens: a change whose moments are past, or one that ends before it begins.

use jiff::{SignedDuration, Timestamp, tz::TimeZone};

use crate::schedule::{Calendar, When, Zones};

/// How many moments of a calendar are compared with its end.
const COMPARED: usize = 50;

/// Why a change at moments of a calendar is of no use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Never {
    /// It is not made any more.
    Begins {
        /// When it would be made if its calendar named no year.
        of_any_year: Option<Timestamp>,
    },
    /// It is made, and never taken back: `until` is earlier.
    Ends,
    /// Each time, it is taken back at the moment at which it is made.
    Lasts,
}

impl When {
    /// What never happens from `now` on; `None`: nothing, or a time zone is not known, or there is no calendar.
    pub fn never(&self, now: Timestamp, zones: &dyn Zones) -> Option<Never> {
        let When::At { at, until, .. } = self else { return None };
        let zone = zones.zone(at.zone())?;
        let until = match until {
            Some(until) => Some((until, zones.zone(until.zone().or(at.zone()))?)),
            None => None,
        };
        let Some(first) = at.next(now, &zone) else {
            let is_on = until.is_some_and(|(until, until_zone)| {
                let made = at.latest(now, &zone);
                until.next(now, &until_zone).is_some() && made > until.latest(now, &until_zone)
            });
            let of_any_year = at.of_any_year().next(now, &zone);
            return (!is_on).then_some(Never::Begins { of_any_year });
        };
        let (until, until_zone) = until?;
        let mut moments = std::iter::successors(Some(first), |moment| at.next(*moment, &zone)).take(COMPARED);
        if moments.all(|moment| fits(until, moment, &until_zone)) {
            return Some(Never::Lasts);
        }
        until.next(first, &until_zone).is_none().then_some(Never::Ends)
    }
}

/// Is it a moment of the calendar?
pub(crate) fn fits(calendar: &Calendar, moment: Timestamp, zone: &TimeZone) -> bool {
    let before = moment.checked_sub(SignedDuration::from_secs(1)).ok();
    before.and_then(|before| calendar.next(before, zone)) == Some(moment)
}
