//! Syntax errors of TOML in our words: where, what, and how to fix what people trip over most.

use std::collections::BTreeSet;
use std::ops::Range;

use toml::de::Error;

use crate::diagnostic::{Diagnostic, Report};
use crate::names::cut;
use crate::origin::Origin;
use crate::source::Places;

/// Reports each and returns the lines that mean something else than they were to.
pub(super) fn report(errors: &[Error], places: &Places<'_>, report: &mut Report) -> BTreeSet<usize> {
    let mut lines = BTreeSet::new();
    let mut open_until = None;
    let mut last_line = 0..0;
    for error in errors {
        if report.is_hopeless() {
            break;
        }
        let span = error.span().unwrap_or(0..0);
        // what follows an error on a line is mostly the same one again
        if last_line.contains(&span.start) {
            continue;
        }
        let origin = places.origin(span.clone());
        last_line = places.line_of(&origin);
        if !lines.insert(origin.line) {
            continue;
        }
        let (what, expected) = error.message().split_once(", expected ").unwrap_or((error.message(), ""));
        if what != "duplicate key" {
            lost_section(places, &origin, &mut lines);
        }
        // a table or array that was not closed goes on here: what it says above is not what was meant
        let goes_on = what.starts_with("missing comma") && is_first(places, &origin);
        if goes_on {
            lines.extend(origin.line.checked_sub(1));
            if open_until.replace(origin.line) == origin.line.checked_sub(1) {
                continue;
            }
        }
        let part = part(what, places.text(), span.clone());
        let (message, hint) = match goes_on {
            true => (
                "what began above is not closed before this line".to_owned(),
                Some("is a ']', '}' or ',' missing?".to_owned()),
            ),
            false => words(what, expected, part.unwrap_or_default()),
        };
        let diagnostic = Diagnostic::error(message).at(part.map_or(origin, |part| places.of(part)));
        report.push(first_place(what, places, span.start, diagnostic.maybe_hint(hint)));
    }
    lines
}

/// Is a place the first on its line?
fn is_first(places: &Places<'_>, origin: &Origin) -> bool {
    places.line(origin).is_some_and(|(line, at)| line[..at].trim().is_empty())
}

/// What stands below a broken header belongs to nothing: its lines are not worth complaints of their own.
fn lost_section(places: &Places<'_>, header: &Origin, lines: &mut BTreeSet<usize>) {
    let line = |number| places.line(&Origin { line: number, column: 1, ..header.clone() });
    let is_header = |number| line(number).is_some_and(|(line, _)| line.trim_start().starts_with('['));
    if is_header(header.line) {
        let below = (header.line + 1..).take_while(|number| line(*number).is_some() && !is_header(*number));
        lines.extend(below);
    }
}

/// The part of the text that an error is about, where that is not the place where it was found.
fn part<'t>(what: &str, text: &'t str, span: Range<usize>) -> Option<&'t str> {
    match what {
        what if what.starts_with("cannot extend value") => Some(from_line_start(text, span.end)),
        "duplicate key" => Some(token(text, span.start)),
        "string values must be quoted" => text.get(span).map(str::trim_end).filter(|part| !part.is_empty()),
        what if what.starts_with("invalid date") || what == "unexpected leading zero" => {
            Some(token(text, span.start)).filter(|part| !part.is_empty())
        }
        _ => None,
    }
}

/// A dotted key up to a byte.
fn from_line_start(text: &str, end: usize) -> &str {
    let end = (0..=end.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    let line = text[..end].rfind('\n').map_or(0, |at| at + 1);
    text[line..end].trim_start()
}

/// An error in our words, and the hint.
fn words(what: &str, expected: &str, part: &str) -> (String, Option<String>) {
    let part = cut(part.trim_matches(['"', '\'']));
    let say = |message: &str, hint: &str| (message.to_owned(), Some(hint.to_owned()));
    match what {
        "string values must be quoted" if part.is_empty() => ("a value is missing".to_owned(), None),
        what if part.is_empty() && what.starts_with("invalid basic string") => {
            say("the quote is never closed", "add the second '\"'")
        }
        what if part.is_empty() && what.starts_with("invalid literal string") => {
            say("the quote is never closed", "add the second \"'\"")
        }
        "duplicate key" => (format!("'{part}' is given twice"), Some("keep one of them".to_owned())),
        what if what.starts_with("cannot extend value") => (
            format!("'{part}' already has a value, and other settings' names extend it"),
            Some(
                "put the longer name in quotes as a whole, such as \"cpu.max.burst\" beside cpu.max"
                    .to_owned(),
            ),
        ),
        "unclosed table" | "unclosed array table" => {
            say("the header's ']' is missing", "such as [groups.oltp1]")
        }
        "unclosed array" => say("the array's ']' is missing", "such as [1, 2]"),
        "unclosed inline table" => say("the table's '}' is missing", "such as { count = 8 }"),
        "key with no value" => say("'=' and a value are missing after the key", "such as cpus = 8"),
        "invalid unquoted key" => {
            say("a key may hold letters, digits, '-' and '_' only", "put it in quotes, such as \"/dev/sdb\"")
        }
        "unexpected key or value" => say("the line goes on after its value", "write one key a line"),
        "missing escaped value" => {
            say("a backslash that means nothing", "write '\\\\', or put the string in single quotes")
        }
        what if what.contains("recurs") => ("the nesting is too deep".to_owned(), None),
        _ if !part.is_empty() => (
            format!("'{part}' is no value"),
            Some(format!("put it in quotes: \"{}\"", part.replace('"', ""))),
        ),
        what => {
            (what.to_owned(), (!matches!(expected, "" | "nothing")).then(|| format!("expected {expected}")))
        }
    }
}

/// The word that a byte stands in.
fn token(text: &str, at: usize) -> &str {
    let at = (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let ends = |c: char| c.is_whitespace() || matches!(c, ',' | ']' | '}' | '[' | '{' | '=' | '#' | '.');
    let ends_value = |c: char| ends(c) && c != '.';
    let line = text[..at].rfind('\n').map_or(0, |end| end + 1);
    let is_key = !text[line..at].contains('=') || text[line..at].trim_end().ends_with(['{', ',']);
    let ends: &dyn Fn(char) -> bool = if is_key { &ends } else { &ends_value };
    let start =
        text[..at].char_indices().rev().take_while(|(_, c)| !ends(*c)).last().map_or(at, |(at, _)| at);
    let end = text[at..].find(ends).map_or(text.len(), |end| at + end);
    &text[start..end]
}

/// Adds where a key was given first: the same header, or the same key in the same section.
fn first_place(what: &str, places: &Places<'_>, at: usize, diagnostic: Diagnostic) -> Diagnostic {
    let text = places.text();
    if what != "duplicate key" {
        return diagnostic;
    }
    // a wrong file of 16 MB can have a million of them
    let from = (at.saturating_sub(64 * 1024)..=at).find(|from| text.is_char_boundary(*from)).unwrap_or(at);
    let before = &text[from..at];
    let (earlier, start) = before.rsplit_once('\n').unwrap_or(("", before));
    let head = |line: &str| line.split('=').next().unwrap_or_default().trim().to_owned();
    let rest = text[at..].lines().next().unwrap_or_default();
    let this = head(&format!("{start}{rest}"));
    let header = this.starts_with('[');
    let mut lines = earlier.lines().rev().take_while(|line| header || !line.trim_start().starts_with('['));
    match lines.find(|line| head(line) == this) {
        Some(first) => diagnostic.also(places.of(first.trim()), "first given here"),
        None => diagnostic,
    }
}
