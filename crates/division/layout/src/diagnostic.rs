//! What is wrong with a configuration, with the place and the hint, and how that is shown on a terminal. Many are
//! collected before any is shown; nothing here stops at the first.
//!
//! The drawing is our own: the usual crates look for a place's line from the beginning of the file each time, which
//! costs the square of a large file, bring fifty crates, and change what they print.

use std::collections::HashMap;
use std::fmt::Write as _;

use crate::origin::Origin;
use crate::source::{Places, Source};

/// The limit of diagnostics of one reading; more help nobody.
const MOST: usize = 1000;
/// The most characters of a line that are shown.
const WIDTH: usize = 100;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// It works, but perhaps not as meant.
    Warning,
    /// The configuration can't be used.
    Error,
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong: lower-case, no full stop.
    pub message: String,
    /// Where; `None` if it is about a whole file, which the message then names.
    pub origin: Option<Origin>,
    /// Other places that have to do with it, each with a note.
    pub also: Vec<(Origin, String)>,
    /// How to fix it.
    pub hint: Option<String>,
    /// Is it about a setting's value alone, which only the kernel would refuse?
    #[serde(skip)]
    pub is_of_value: bool,
}

impl Diagnostic {
    /// An error.
    pub fn error(message: impl Into<String>) -> Diagnostic {
        let message = message.into();
        Diagnostic {
            severity: Severity::Error,
            message,
            origin: None,
            also: Vec::new(),
            hint: None,
            is_of_value: false,
        }
    }

    /// A warning.
    pub fn warning(message: impl Into<String>) -> Diagnostic {
        Diagnostic { severity: Severity::Warning, ..Diagnostic::error(message) }
    }

    /// Says that a setting's value is wrong, and nothing else.
    #[must_use]
    pub(crate) fn of_value(self) -> Diagnostic {
        Diagnostic { is_of_value: true, ..self }
    }

    /// Says where.
    #[must_use]
    pub fn at(self, origin: Origin) -> Diagnostic {
        Diagnostic { origin: Some(origin), ..self }
    }

    /// Adds another place with a note.
    #[must_use]
    pub fn also(mut self, origin: Origin, what: impl Into<String>) -> Diagnostic {
        self.also.push((origin, what.into()));
        self
    }

    /// Says how to fix it.
    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> Diagnostic {
        Diagnostic { hint: Some(hint.into()), ..self }
    }

    /// The same, with a hint if there is one.
    #[must_use]
    pub fn maybe_hint(self, hint: Option<String>) -> Diagnostic {
        Diagnostic { hint: hint.or(self.hint), ..self }
    }
}

/// What one reading has found wrong so far.
#[derive(Debug, Default)]
pub(crate) struct Report {
    found: Vec<Diagnostic>,
    dropped: usize,
    errors: usize,
}

impl Report {
    pub(crate) fn push(&mut self, diagnostic: Diagnostic) {
        self.errors += usize::from(diagnostic.severity == Severity::Error);
        if self.found.len() < MOST {
            self.found.push(diagnostic);
        } else {
            self.dropped += 1;
        }
    }

    /// Is the limit reached? Then what only makes a message better can be left out.
    pub(crate) fn is_full(&self) -> bool {
        self.found.len() >= MOST
    }

    /// Are the errors at the limit, so that reading on helps nobody? Then readers stop.
    pub(crate) fn is_hopeless(&self) -> bool {
        self.errors >= MOST
    }

    /// How many errors there are so far.
    pub(crate) fn errors(&self) -> usize {
        self.errors
    }

    /// Everything, in the order of the files and their lines.
    pub(crate) fn finish(self, sources: &[Source]) -> Vec<Diagnostic> {
        let order: HashMap<&str, usize> =
            sources.iter().enumerate().map(|(index, source)| (&*source.name, index)).collect();
        let mut found = self.found;
        found.sort_by_key(|diagnostic| {
            let origin = diagnostic.origin.as_ref();
            origin.map(|origin| (order.get(&*origin.file).copied(), origin.line, origin.column))
        });
        if self.errors >= MOST {
            found.push(Diagnostic::error("too many errors: what comes behind them was not read"));
        } else if self.dropped > 0 {
            found.push(Diagnostic::warning(format!("and {} more that are not shown", self.dropped)));
        }
        found
    }
}

/// How many of them are errors: `1 error`, `2 errors`.
pub fn errors(diagnostics: &[Diagnostic]) -> String {
    match diagnostics.iter().filter(|one| one.severity == Severity::Error).count() {
        1 => "1 error".to_owned(),
        count => format!("{count} errors"),
    }
}

/// Shows diagnostics with their lines, as compilers do: message, place, line, caret, hint. Plain text; ends with a
/// newline unless there are none. `sources` are what was read; a place in another file is shown without its line.
pub fn render(diagnostics: &[Diagnostic], sources: &[Source]) -> String {
    let mut read: HashMap<&str, Places<'_>> = HashMap::new();
    let mut out = String::new();
    for diagnostic in diagnostics {
        if !out.is_empty() {
            out.push('\n');
        }
        let severity = match diagnostic.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        // writing to a String can't fail
        let _ = writeln!(out, "{severity}: {}", printable(&diagnostic.message));
        let places = diagnostic.origin.iter().map(|origin| (origin, "", '^'));
        let also = diagnostic.also.iter().map(|(origin, what)| (origin, what.as_str(), '-'));
        for (origin, what, mark) in places.chain(also) {
            let source = sources.iter().find(|source| source.name == origin.file);
            let places = source.map(|source| {
                let places = read.entry(&source.name);
                places.or_insert_with(|| Places::new(source))
            });
            let line = places.and_then(|places| places.line(origin));
            show(&mut out, origin, what, mark, line);
        }
        if let Some(hint) = &diagnostic.hint {
            let _ = writeln!(out, "hint: {}", printable(hint));
        }
    }
    out
}

fn show(out: &mut String, origin: &Origin, what: &str, mark: char, line: Option<(&str, usize)>) {
    let number = origin.line.to_string();
    let margin = " ".repeat(number.len());
    let colon = if what.is_empty() { "" } else { ": " };
    let _ = writeln!(out, "{margin}--> {origin}{colon}{}", printable(what));
    let Some((line, at)) = line else { return };
    let (shown, at) = window(line, at);
    let room = (shown.chars().count() + 1).saturating_sub(at).max(1);
    let marks = mark.to_string().repeat(origin.length.min(room));
    let _ = writeln!(out, "{margin} |\n{number} | {shown}\n{margin} | {}{marks}", " ".repeat(at));
}

/// The part of a line around a byte of it that is shown, and how many characters of it stand before that byte.
fn window(line: &str, at: usize) -> (String, usize) {
    let (before, after) = line.split_at(at);
    let mut start: Vec<char> = before.chars().rev().take(WIDTH * 3 / 4).map(single).collect();
    if before.chars().rev().nth(start.len()).is_some() {
        start.truncate(WIDTH / 2);
        start.push('…');
    }
    start.reverse();
    let at = start.len();
    let mut shown: String = start.into_iter().collect();
    let mut after = after.chars();
    shown.extend(after.by_ref().take(WIDTH.saturating_sub(at)).map(single));
    let shown = if after.next().is_some() { shown + "…" } else { shown.trim_end().to_owned() };
    (shown, at)
}

/// One character as one column: a configuration must not move the cursor or hide text on a terminal.
fn single(c: char) -> char {
    match c {
        '\t' => ' ',
        c if c.is_control() || unseen(c) => '\u{fffd}',
        c => c,
    }
}

fn printable(text: &str) -> String {
    text.chars().map(|c| if c == '\n' { '\n' } else { single(c) }).collect()
}

/// Marks that reorder or join text (Unicode "bidirectional control" and "zero width").
fn unseen(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}
