//! Questions and notices in front of a page.

use std::path::Path;

use crate::change::{Proposal, Refusal};

/// Something that the next keys go to.
#[derive(Debug, Clone)]
pub(crate) enum Dialog {
    /// The keys.
    Help { first: usize },
    /// Groups are filtered while it is typed.
    Filter(Line),
    /// By what the groups are sorted.
    Sort(Menu),
    /// A setting and its new value; what that would write is shown while it is typed.
    Edit { group: String, line: Line, proposed: Option<Result<Proposal, Refusal>> },
    /// What would be written, to be said yes to.
    Sure { what: String, requested: Requested, proposed: Option<Result<Proposal, Refusal>> },
    /// Something to be read.
    Notice { title: String, lines: Vec<String> },
}

/// What yes means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Requested {
    Change { group: String, text: String },
    Undo,
}

/// A line that is typed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Line {
    pub text: String,
    /// In bytes, at a character's beginning.
    pub cursor: usize,
}

/// A list to choose from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Menu {
    pub selected: usize,
}

impl Dialog {
    pub(crate) fn notice(title: &str, lines: Vec<String>) -> Dialog {
        Dialog::Notice { title: title.to_owned(), lines }
    }

    pub(crate) fn refused(refusal: &Refusal) -> Dialog {
        Dialog::notice("Not done", refusal.lines())
    }
}

impl Line {
    pub(crate) fn new(text: &str) -> Line {
        Line { text: text.to_owned(), cursor: text.len() }
    }

    pub(crate) fn insert(&mut self, letter: char) {
        self.text.insert(self.cursor, letter);
        self.cursor += letter.len_utf8();
    }

    pub(crate) fn remove_before(&mut self) {
        if let Some(letter) = self.text[..self.cursor].chars().next_back() {
            self.cursor -= letter.len_utf8();
            self.text.remove(self.cursor);
        }
    }

    pub(crate) fn remove_after(&mut self) {
        if self.cursor < self.text.len() {
            self.text.remove(self.cursor);
        }
    }

    /// To the letter before, or the one after.
    pub(crate) fn go(&mut self, forward: bool) {
        let letter = match forward {
            true => self.text[self.cursor..].chars().next(),
            false => self.text[..self.cursor].chars().next_back(),
        };
        let width = letter.map_or(0, char::len_utf8);
        self.cursor = if forward { self.cursor + width } else { self.cursor - width };
    }

    /// All behind the first `=`, or all.
    pub(crate) fn clear(&mut self) {
        let end = self.text.find('=').filter(|at| at + 1 < self.text.len()).map_or(0, |at| at + 1);
        self.text.truncate(end);
        self.cursor = self.text.len();
    }
}

/// Lines of a proposal: each file with what it holds and would hold.
pub(crate) fn plan_lines<'p>(proposal: &'p Proposal) -> Vec<(&'p Path, String)> {
    let line = |write: &'p apply::Planned| {
        let before = write.before.as_deref().unwrap_or("?");
        let shown = |text: &str| if text.is_empty() { "(empty)".to_owned() } else { text.replace('\n', " ") };
        let same = if before == write.text { "  (as it is)" } else { "" };
        (write.path.as_path(), format!("{} -> {}{same}", shown(before), shown(&write.text)))
    };
    proposal.writes.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_edited_at_its_cursor_letter_by_letter() {
        let mut line = Line::new("cpu.max=5ü");
        line.go(false);
        line.insert('0');
        assert_eq!((line.text.as_str(), line.cursor), ("cpu.max=50ü", 10));
        line.remove_after();
        line.remove_before();
        assert_eq!(line.text, "cpu.max=5");
        line.go(true);
        line.clear();
        assert_eq!(line.text, "cpu.max=");
        line.clear();
        line.remove_before();
        line.remove_after();
        line.go(false);
        assert_eq!(line, Line::default());
    }
}
