//! A calendar: which moments fit, and which one comes next. Times that a change of the clocks leaves out come when it has
//! passed, and times that come twice count once.

use jiff::{
    SignedDuration, Timestamp,
    civil::{Date, DateTime, Time},
    tz::{AmbiguousOffset, TimeZone},
};

use crate::schedule::limits::YEARS;

/// Moments as systemd writes them: `Mon..Fri 22:00`, `*-*-01 03:00:00`, `hourly`, `Mon *-05~07/1 08..18/2:00 Europe/Berlin`.
/// At least one day of the years 1970 to 2199 fits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Calendar {
    /// As it was typed.
    pub(crate) text: String,
    /// Days of the week, Monday first; all by default.
    pub(crate) weekdays: [bool; 7],
    pub(crate) years: Field,
    pub(crate) months: Field,
    pub(crate) days: Field,
    /// Are days counted from the end of the month (`~`)? 1 is the last one then.
    pub(crate) from_end: bool,
    pub(crate) hours: Field,
    pub(crate) minutes: Field,
    pub(crate) seconds: Field,
    /// IANA's name; `None` is the machine's own.
    pub(crate) zone: Option<String>,
}

/// Numbers of one kind; none means any.
pub(crate) type Field = Vec<Part>;

/// A number, `5`; a range, `5..7`; every so often, `5/2` and `5..9/2`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Part {
    pub first: i16,
    pub last: Option<i16>,
    /// From 1.
    pub step: Option<i16>,
}

impl Part {
    fn has(self, number: i16) -> bool {
        let last = match (self.last, self.step) {
            (Some(last), _) => last,
            (None, Some(_)) => i16::MAX,
            (None, None) => self.first,
        };
        (self.first..=last).contains(&number) && (number - self.first) % self.step.unwrap_or(1) == 0
    }

    /// The same, counted from the end of a month with this many days.
    fn before_end(self, days: i16) -> Part {
        let back = |day: i16| days + 1 - day;
        match self.last {
            Some(last) => Part { first: back(last), last: Some(back(self.first)), step: self.step },
            None => Part { first: back(self.first), ..self },
        }
    }
}

fn has(field: &Field, number: i16) -> bool {
    field.is_empty() || field.iter().any(|part| part.has(number))
}

impl Calendar {
    /// IANA's name of its time zone, as it was typed; `None` is the machine's own.
    pub fn zone(&self) -> Option<&str> {
        self.zone.as_deref()
    }

    /// The same in every year.
    pub(crate) fn of_any_year(&self) -> Calendar {
        Calendar { years: Field::new(), ..self.clone() }
    }

    /// The first moment after `after`; `None`: there is none any more. `zone` is what [`Calendar::zone`] names.
    pub fn next(&self, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let mut civil = zone.to_datetime(after);
        loop {
            civil = self.next_civil(civil)?;
            let moment = moment(civil, zone)?;
            if moment > after {
                return Some(moment);
            }
        }
    }

    /// The last moment up to `now`, `now` included.
    pub fn latest(&self, now: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let next =
            |second: i64| self.next(Timestamp::from_second(second).ok()?, zone).filter(|next| *next <= now);
        // one comes behind `before`, none behind `beyond`
        let (mut before, mut beyond) = (-1, now.as_second());
        let mut latest = next(before)?;
        while beyond - before > 1 {
            let middle = before + (beyond - before) / 2;
            match next(middle) {
                Some(one) => (before, latest) = (middle, one),
                None => beyond = middle,
            }
        }
        Some(latest)
    }

    /// The first time on the clock after `after`, whatever the clock does then.
    pub(crate) fn next_civil(&self, after: DateTime) -> Option<DateTime> {
        self.dates(after.date()).find_map(|date| {
            let after = (date == after.date()).then(|| after.time());
            Some(date.to_datetime(self.first_time(after)?))
        })
    }

    /// The days from `from` on.
    pub(crate) fn dates(&self, from: Date) -> impl Iterator<Item = Date> {
        let years = from.year().max(*YEARS.start())..=*YEARS.end();
        let months = years.filter(|year| has(&self.years, *year)).flat_map(move |year| {
            (1..=12).filter(|month| has(&self.months, i16::from(*month))).map(move |month| (year, month))
        });
        let start = (from.year(), from.month());
        let of_month = move |(year, month)| {
            let first = Date::new(year, month, 1).ok()?;
            let last = i16::from(first.days_in_month());
            let fits = move |date: &Date| {
                let day = i16::from(date.day());
                let day_fits = self.days.is_empty()
                    || self.days.iter().any(|part| match self.from_end {
                        true => part.before_end(last).has(day),
                        false => part.has(day),
                    });
                day_fits && self.weekdays[date.weekday().to_monday_zero_offset().unsigned_abs() as usize]
            };
            Some(
                (1..=first.days_in_month())
                    .filter_map(move |day| Date::new(year, month, day).ok())
                    .filter(fits),
            )
        };
        let all = months.skip_while(move |month| *month < start).filter_map(of_month).flatten();
        all.skip_while(move |date| *date < from)
    }

    /// The first time of a day, after `after` if that is given.
    fn first_time(&self, after: Option<Time>) -> Option<Time> {
        let (hour, minute, second) =
            after.map_or((0, 0, 0), |after| (after.hour(), after.minute(), after.second() + 1));
        let of =
            |field: &'_ Field, from: i8, to: i8| (from..=to).find(|number| has(field, i16::from(*number)));
        let first = |field: &Field| of(field, 0, 59);
        let hours = (hour..=23).filter(|one| has(&self.hours, i16::from(*one)));
        hours.into_iter().find_map(|this| {
            if this > hour {
                return Time::new(this, first(&self.minutes)?, first(&self.seconds)?, 0).ok();
            }
            let same =
                (has(&self.minutes, i16::from(minute))).then(|| of(&self.seconds, second, 59)).flatten();
            let (minute, second) = match same {
                Some(second) => (minute, second),
                None => (of(&self.minutes, minute + 1, 59)?, first(&self.seconds)?),
            };
            Time::new(this, minute, second, 0).ok()
        })
    }
}

/// When it is that time on the clock: where clocks skip it, the end of the gap; where it comes twice, the first.
fn moment(civil: DateTime, zone: &TimeZone) -> Option<Timestamp> {
    let ambiguous = zone.to_ambiguous_timestamp(civil);
    match ambiguous.offset() {
        AmbiguousOffset::Gap { .. } => {
            // before the gap in what the clock showed then
            let before = ambiguous.earlier().ok()?;
            zone.following(before.checked_sub(SignedDuration::from_secs(1)).ok()?)
                .next()
                .map(|transition| transition.timestamp())
        }
        _ => ambiguous.earlier().ok(),
    }
}

impl std::fmt::Display for Calendar {
    /// As it was typed, with single blanks.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}
