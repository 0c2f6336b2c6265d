//! A configuration's text, and the way from a byte of it to a line and column. Text only; `read` gets it from files.

use std::ops::Range;
use std::sync::Arc;

use crate::origin::Origin;

/// A configuration's text and what it is called.
#[derive(Debug, Clone)]
pub struct Source {
    /// The file's path as the user gave it.
    pub name: Arc<str>,
    /// What it holds.
    pub text: Arc<str>,
}

impl Source {
    /// A text called `name`. A byte order mark before it is left out.
    pub fn new(name: &str, text: &str) -> Source {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        Source { name: name.into(), text: text.into() }
    }

    /// The place of a range of bytes, as far as it lies on its first line.
    pub fn origin(&self, range: Range<usize>) -> Origin {
        Places::new(self).origin(range)
    }
}

/// Bytes whose characters are counted together.
const BLOCK: usize = 256;

/// Finds lines and columns. A place costs a search among the lines and one block's characters, however long the
/// lines are: a file of one line of 10 MB must not cost its square.
pub(crate) struct Places<'s> {
    source: &'s Source,
    /// Where each line begins.
    lines: Vec<usize>,
    /// Characters before each block; none in plain ASCII, where bytes are characters.
    blocks: Vec<usize>,
}

impl<'s> Places<'s> {
    pub(crate) fn new(source: &'s Source) -> Places<'s> {
        let bytes = source.text.as_bytes();
        let ends = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
        let lines = std::iter::once(0).chain(ends.map(|(at, _)| at + 1)).collect();
        if bytes.is_ascii() {
            return Places { source, lines, blocks: Vec::new() };
        }
        let mut before = 0;
        let blocks = bytes.chunks(BLOCK).map(|block| {
            before += characters(block);
            before
        });
        let blocks = std::iter::once(0).chain(blocks).collect();
        Places { source, lines, blocks }
    }

    pub(crate) fn text(&self) -> &'s str {
        &self.source.text
    }

    /// The place of a range of bytes, as far as it lies on its first line.
    pub(crate) fn origin(&self, range: Range<usize>) -> Origin {
        let start = range.start.min(self.source.text.len());
        let line = self.lines.partition_point(|begin| *begin <= start); // at least 1: line 1 begins at 0
        let begin = self.lines[line - 1];
        let end = self.lines.get(line).map_or(self.source.text.len(), |next| next - 1);
        let end = range.end.clamp(start, end.max(start));
        Origin {
            file: Arc::clone(&self.source.name),
            line,
            column: self.before(start) - self.before(begin) + 1,
            length: (self.before(end) - self.before(start)).max(1),
        }
    }

    /// The place of a part of the text.
    pub(crate) fn of(&self, part: &str) -> Origin {
        let start = (part.as_ptr() as usize).saturating_sub(self.source.text.as_ptr() as usize);
        self.origin(start..start + part.len())
    }

    /// The bytes of the line of a place, with its end.
    pub(crate) fn line_of(&self, origin: &Origin) -> Range<usize> {
        let bound = |line: usize| self.lines.get(line).copied().unwrap_or(self.source.text.len());
        bound(origin.line - 1)..bound(origin.line)
    }

    /// The text of a line without its end, and the byte in it where a column begins; `None` if there is no such line.
    pub(crate) fn line(&self, origin: &Origin) -> Option<(&'s str, usize)> {
        let begin = *self.lines.get(origin.line.checked_sub(1)?)?;
        let end = self.lines.get(origin.line).map_or(self.source.text.len(), |next| next - 1);
        let line = &self.source.text[begin..end];
        let before = self.before(begin) + origin.column - 1;
        let at = self.byte(before).clamp(begin, end);
        let line_end = line.strip_suffix('\r').unwrap_or(line);
        Some((line_end, (at - begin).min(line_end.len())))
    }

    /// The byte where the character after `before` others begins.
    fn byte(&self, before: usize) -> usize {
        if self.blocks.is_empty() {
            return before;
        }
        let block = self.blocks.partition_point(|characters| *characters <= before).saturating_sub(1);
        let block = block.min(self.source.text.len() / BLOCK);
        let rest = &self.source.text.as_bytes()[block * BLOCK..];
        let starts = rest.iter().enumerate().filter(|(_, byte)| **byte & 0xc0 != 0x80);
        let at = starts.map(|(at, _)| at).nth(before - self.blocks[block]);
        at.map_or(self.source.text.len(), |at| at + block * BLOCK)
    }

    /// Characters before a byte.
    fn before(&self, at: usize) -> usize {
        if self.blocks.is_empty() {
            return at;
        }
        let block = at / BLOCK;
        self.blocks[block] + characters(&self.source.text.as_bytes()[block * BLOCK..at])
    }
}

/// How many characters begin in these bytes of UTF-8.
fn characters(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte & 0xc0 != 0x80).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_counts_characters_and_stays_on_its_line() {
        let source = Source::new("f", &format!("é = 1\n{}ü\n", "ä".repeat(3000)));
        let places = Places::new(&source);
        let at = |range| {
            let origin = places.origin(range);
            (origin.line, origin.column, origin.length)
        };
        assert_eq!(at(0..2), (1, 1, 1));
        assert_eq!(at(5..6), (1, 5, 1));
        assert_eq!(at(3..500), (1, 3, 3), "not beyond the line's end");
        assert_eq!(at(7 + 6000..7 + 6002), (2, 3001, 1));
        assert_eq!(at(usize::MAX - 1..usize::MAX), (3, 1, 1));
        assert_eq!(places.of(&source.text[7..11]).length, 2);
        for range in [0..2, 5..6, 7..9, 7 + 6000..7 + 6002] {
            let (line, at) = places.line(&places.origin(range.clone())).unwrap();
            assert_eq!(line[at..].as_ptr(), source.text[range].as_ptr());
        }
        assert_eq!(places.line(&Origin::new("f", 3, 1, 1)), Some(("", 0)));
        assert_eq!(places.line(&Origin::new("f", 4, 1, 1)), None);
        // a place behind the last character, before, at and behind the end of a block
        for length in [1, BLOCK - 1, BLOCK, BLOCK + 1].into_iter().flat_map(|n| [n, n * 2]) {
            let source =
                Source::new("f", &if length % 2 == 0 { "ä".repeat(length / 2) } else { "x".repeat(length) });
            let places = Places::new(&source);
            assert_eq!(places.line(&places.origin(length..length)), Some((&*source.text, length)));
        }
    }
}
