//! The syntax of a calendar: systemd's (systemd.time(7)), without fractions of seconds and `@` moments.

use jiff::civil::Date;

use crate::schedule::{
    calendar::{Calendar, Field, Part},
    limits::YEARS,
};

/// Why a text is no calendar.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct CalendarError {
    what: String,
    /// What to write instead.
    pub hint: String,
}

fn wrong(what: impl Into<String>, hint: impl Into<String>) -> CalendarError {
    CalendarError { what: what.into(), hint: hint.into() }
}

/// The longest text that is read; systemd's own lists are shorter.
const LONGEST: usize = 500;

const EXAMPLES: &str = "such as \"22:00\", \"Mon..Fri 22:00\", \"*-*-01 03:00\" or \"hourly\"";

/// systemd's words for frequent calendars.
const WORDS: [(&str, &str); 10] = [
    ("minutely", "*-*-* *:*:00"),
    ("hourly", "*-*-* *:00:00"),
    ("daily", "*-*-* 00:00:00"),
    ("weekly", "Mon *-*-* 00:00:00"),
    ("monthly", "*-*-01 00:00:00"),
    ("quarterly", "*-01,04,07,10-01 00:00:00"),
    ("semiannually", "*-01,07-01 00:00:00"),
    ("yearly", "*-01-01 00:00:00"),
    ("annually", "*-01-01 00:00:00"),
    ("anually", "*-01-01 00:00:00"),
];

const WEEKDAYS: [&str; 7] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];

/// What the parts of a date and a time are called, and their numbers.
struct Range {
    noun: &'static str,
    first: i16,
    last: i16,
}

const YEAR: Range = Range { noun: "year", first: *YEARS.start(), last: *YEARS.end() };
const MONTH: Range = Range { noun: "month", first: 1, last: 12 };
const DAY: Range = Range { noun: "day", first: 1, last: 31 };
const HOUR: Range = Range { noun: "hour", first: 0, last: 23 };
const MINUTE: Range = Range { noun: "minute", first: 0, last: 59 };
const SECOND: Range = Range { noun: "second", first: 0, last: 59 };

impl std::str::FromStr for Calendar {
    type Err = CalendarError;

    fn from_str(text: &str) -> Result<Calendar, CalendarError> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let mut calendar = Calendar {
            text: words.join(" "),
            weekdays: [true; 7],
            years: Field::new(),
            months: Field::new(),
            days: Field::new(),
            from_end: false,
            hours: just(0),
            minutes: just(0),
            seconds: just(0),
            zone: None,
        };
        if calendar.text.len() > LONGEST {
            return Err(wrong(format!("a calendar has at most {LONGEST} characters"), EXAMPLES));
        }
        calendar.read(&words)?;
        let first = Date::new(YEAR.first, 1, 1).map_err(|error| wrong(error.to_string(), EXAMPLES))?;
        if calendar.dates(first).next().is_none() {
            let what = format!("there is no such day: '{}' never comes", calendar.text);
            let years = format!("from {} to {}", YEAR.first, YEAR.last);
            return Err(wrong(what, format!("no date {years} fits; the last day of a month is *-*~01")));
        }
        Ok(calendar)
    }
}

impl Calendar {
    fn read(&mut self, words: &[&str]) -> Result<(), CalendarError> {
        let mut rest = words.iter().copied().peekable();
        let Some(first) = words.first() else { return Err(wrong("a calendar is empty", EXAMPLES)) };
        let mut said = false;
        if let Some((_, meaning)) = WORDS.iter().find(|(word, _)| first.eq_ignore_ascii_case(word)) {
            rest.next();
            self.read(&meaning.split(' ').collect::<Vec<_>>())?;
            return self.end(rest.next(), rest.next());
        }
        if first.starts_with(|c: char| c.is_ascii_alphabetic()) {
            self.weekdays = weekdays(first)?;
            rest.next();
            said = true;
        }
        if let Some(date) = rest.next_if(|word| !word.contains(':') && is_numeric(word)) {
            self.date(date)?;
            said = true;
        }
        if let Some(time) = rest.next_if(|word| word.contains(':')) {
            self.time(time)?;
            said = true;
        }
        match rest.peek() {
            Some(word) if !said => Err(wrong(format!("'{}' is no calendar", short(word)), EXAMPLES)),
            _ => self.end(rest.next(), rest.next()),
        }
    }

    /// The time zone, and nothing behind it.
    fn end(&mut self, zone: Option<&str>, more: Option<&str>) -> Result<(), CalendarError> {
        let is_zone = |word: &str| {
            let sign = |c: char| c.is_ascii_alphanumeric() || "/_+-".contains(c);
            word.starts_with(|c: char| c.is_ascii_alphabetic())
                && word.chars().all(sign)
                && !word.contains("//")
        };
        if let Some(word) = more.or(zone.filter(|zone| !is_zone(zone))) {
            let what = format!("'{}' is not expected there", short(word));
            return Err(wrong(
                what,
                "a calendar is days of the week, a date, a time and a time zone, in this order",
            ));
        }
        self.zone = zone.map(str::to_owned);
        Ok(())
    }

    fn date(&mut self, text: &str) -> Result<(), CalendarError> {
        let hint = "a date is YEAR-MONTH-DAY or MONTH-DAY, such as *-*-01 or *-12-24; the days before the end of a \
                    month are *-*~03";
        let (before, day) = text.rsplit_once(['-', '~']).ok_or_else(|| match text.parse::<i16>() {
            Ok(number) => wrong(format!("'{number}' is no date"), format!("{number}:00 is a time; {hint}")),
            Err(_) => wrong(format!("'{}' is no date", short(text)), hint),
        })?;
        self.from_end = text.as_bytes().get(before.len()) == Some(&b'~');
        self.days = field(day, &DAY)?;
        let (year, month) = before.split_once('-').unwrap_or(("*", before));
        self.years = field(year, &YEAR)?;
        self.months = field(month, &MONTH)?;
        Ok(())
    }

    fn time(&mut self, text: &str) -> Result<(), CalendarError> {
        let mut parts = text.split(':');
        let mut part = || parts.next();
        let (hour, minute, second) = (part().unwrap_or_default(), part().unwrap_or_default(), part());
        if parts.next().is_some() {
            let what = format!("'{}' has too many colons", short(text));
            return Err(wrong(
                what,
                "a time is HOUR:MINUTE or HOUR:MINUTE:SECOND; ranges are of one part: 08..18:00",
            ));
        }
        self.hours = field(hour, &HOUR)?;
        self.minutes = field(minute, &MINUTE)?;
        self.seconds = second.map_or(Ok(just(0)), |second| field(second, &SECOND))?;
        Ok(())
    }
}

fn just(number: i16) -> Field {
    vec![Part { first: number, last: None, step: None }]
}

/// The start of a text, for a message.
fn short(text: &str) -> String {
    text.chars().take(40).collect()
}

fn is_numeric(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_digit() || "*~-".contains(c))
}

/// Numbers of one kind: `*`, or parts with commas between them.
fn field(text: &str, range: &Range) -> Result<Field, CalendarError> {
    match text {
        "*" => Ok(Field::new()),
        _ => text.split(',').map(|text| part(text, range)).collect(),
    }
}

fn part(text: &str, range: &Range) -> Result<Part, CalendarError> {
    let noun = range.noun;
    if let Some(step) = text.strip_prefix("*/") {
        let what = format!("'{}' is no {noun}", short(text));
        return Err(wrong(what, format!("every so often is {}/{}", range.first.min(1), short(step))));
    }
    let (numbers, step) = match text.split_once('/') {
        Some((numbers, step)) => {
            let number = whole(step).filter(|step| *step > 0);
            let error =
                || wrong(format!("'{}' is no interval of {noun}s", short(step)), "a whole number from 1");
            (numbers, Some(number.ok_or_else(error)?))
        }
        None => (text, None),
    };
    let (first, last) = match numbers.split_once("..") {
        Some((first, last)) => (number(first, range)?, Some(number(last, range)?)),
        None => (number(numbers, range)?, None),
    };
    if let Some(last) = last.filter(|last| *last < first) {
        let ends = (range.last, range.first);
        let hint = format!("such as {first}..{},{}..{last}", ends.0, ends.1);
        return Err(wrong(format!("the range of {noun}s {first}..{last} is backwards"), hint));
    }
    Ok(Part { first, last, step })
}

fn whole(text: &str) -> Option<i16> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

fn number(text: &str, range: &Range) -> Result<i16, CalendarError> {
    let Range { noun, first, last } = range;
    let number = whole(text).map(|number| match number {
        // as systemd and people read years of two digits
        0..70 if *noun == YEAR.noun => number + 2000,
        70..100 if *noun == YEAR.noun => number + 1900,
        number => number,
    });
    match number {
        Some(number) if (*first..=*last).contains(&number) => Ok(number),
        _ if text.contains('-') => {
            let what = format!("'{}' is no {noun}", short(text));
            Err(wrong(what, format!("a range has two dots: {}", short(&text.replace('-', "..")))))
        }
        _ => Err(wrong(format!("'{}' is no {noun}", short(text)), format!("from {first} to {last}"))),
    }
}

fn weekdays(text: &str) -> Result<[bool; 7], CalendarError> {
    let mut days = [false; 7];
    for part in text.split(',') {
        let (first, last) = part.split_once("..").or_else(|| part.split_once('-')).unwrap_or((part, part));
        let (first, last) = (weekday(first)?, weekday(last)?);
        if first > last {
            let name = |day: usize| title(WEEKDAYS[day]);
            let hint = format!("a week begins on Monday: {}..Sun,Mon..{}", name(first), name(last));
            return Err(wrong(format!("the range {} is backwards", short(part)), hint));
        }
        days[first..=last].fill(true);
    }
    Ok(days)
}

/// `Mon`.
fn title(day: &str) -> String {
    day.char_indices().take(3).map(|(at, c)| if at == 0 { c.to_ascii_uppercase() } else { c }).collect()
}

fn weekday(text: &str) -> Result<usize, CalendarError> {
    let lower = text.to_ascii_lowercase();
    let is_it = |day: &&str| **day == lower || day[..3] == lower;
    WEEKDAYS.iter().position(is_it).ok_or_else(|| {
        let short_names: Vec<String> = WEEKDAYS.iter().map(|day| title(day)).collect();
        let known = short_names.iter().map(String::as_str).chain(WEEKDAYS).chain(WORDS.map(|(word, _)| word));
        let shown = short(text);
        let hint = match units::nearest(&shown, known).as_slice() {
            [] => EXAMPLES.to_owned(),
            near => format!("did you mean {}?", near.join(" or ")),
        };
        wrong(format!("'{shown}' is no day of the week"), hint)
    })
}
