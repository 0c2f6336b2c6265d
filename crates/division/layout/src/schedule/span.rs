//! Spans of time as they are typed.

use std::time::Duration;

/// The longest one: a century.
const LONGEST: Duration = Duration::from_secs(100 * 366 * 86_400);
/// The shortest one: a change takes some milliseconds.
const SHORTEST: Duration = Duration::from_millis(100);

/// `600s`, `10min`, `1h 30m`, from 100 ms to a hundred years; a bare number is seconds. `None`: it is none of these.
pub fn parse_span(text: &str) -> Option<Duration> {
    let text = text.trim();
    let seconds = text.parse().ok().map(Duration::from_secs);
    let span = seconds.or_else(|| humantime::parse_duration(text).ok())?;
    (SHORTEST..=LONGEST).contains(&span).then_some(span)
}

/// A span as [`parse_span`] takes it.
pub fn span_text(span: Duration) -> String {
    humantime::format_duration(span).to_string()
}
