//! A span of time as people type it, the same for every option.

use std::time::Duration;

/// `5`, `5s`, `1.5s`, `1m`, `500ms`, `1h 30m`; a bare number is seconds.
pub fn duration(text: &str) -> Option<Duration> {
    let text = text.trim();
    let seconds = text.strip_suffix('s').unwrap_or(text);
    if seconds.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        return seconds.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    }
    humantime::parse_duration(text).ok()
}

/// What an error offers to type.
const EXAMPLES: [&str; 4] = ["5", "5s", "1m", "500ms"];

/// A parser of spans between two others, both of them included; they are named in its error.
pub fn between(
    least: &'static str,
    most: &'static str,
) -> impl Fn(&str) -> Result<Duration, String> + Clone + Send + Sync + 'static {
    move |text| {
        let fits = |span: &Duration| match (duration(least), duration(most)) {
            (Some(least), Some(most)) => (least..=most).contains(span),
            _ => false,
        };
        let span = duration(text).ok_or_else(|| {
            let taken = EXAMPLES.into_iter().filter(|example| duration(example).as_ref().is_some_and(fits));
            let taken: Vec<&str> = taken.collect();
            let taken = match taken.split_last() {
                Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
                _ => taken.concat(),
            };
            format!("expected a time from {least} to {most}, such as {taken}")
        })?;
        if fits(&span) { Ok(span) } else { Err(format!("expected {least} to {most}")) }
    }
}
