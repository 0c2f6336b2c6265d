//! The words of libcgroup's files: bare or in quotes, with signs and comments between. Knows no grammar.

use winnow::Parser as _;
use winnow::Result;
use winnow::combinator::{alt, delimited};
use winnow::token::{any, take_till, take_while};

/// A piece of a text, with the part of the text it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Token<'s> {
    /// A word as it was written.
    Bare(&'s str),
    /// What stood in quotes.
    Quoted(&'s str),
    /// One other character.
    Sign(&'s str),
    /// A quote that is never closed, with the rest of its statement or line.
    Open(&'s str),
}

impl<'s> Token<'s> {
    /// The text of a word.
    pub(crate) fn word(self) -> Option<&'s str> {
        match self {
            Token::Bare(text) | Token::Quoted(text) => Some(text),
            Token::Sign(_) | Token::Open(_) => None,
        }
    }

    /// The part of the text, for its place.
    pub(crate) fn text(self) -> &'s str {
        match self {
            Token::Bare(text) | Token::Quoted(text) | Token::Sign(text) | Token::Open(text) => text,
        }
    }
}

/// The pieces of a whole file, one after the other.
pub(crate) struct Words<'s> {
    whole: &'s str,
    rest: &'s str,
}

impl<'s> Words<'s> {
    pub(crate) fn new(whole: &'s str) -> Words<'s> {
        Words { whole, rest: whole }
    }

    /// The text behind the last piece.
    pub(crate) fn rest(&self) -> &'s str {
        self.rest
    }

    /// Skips `bytes` bytes of the rest, which end at a character.
    pub(crate) fn go_on(&mut self, bytes: usize) {
        self.rest = self.rest.get(bytes..).unwrap_or_default();
    }

    /// Leaves out white space and comments. A star at the beginning of a line starts one too, as libcgroup has it.
    fn skip_blank(&mut self) {
        loop {
            self.rest = self.rest.trim_start();
            let at = self.whole.len() - self.rest.len();
            let line_begins = at == 0 || self.whole.as_bytes()[at - 1] == b'\n';
            if !(self.rest.starts_with('#') || (line_begins && self.rest.starts_with('*'))) {
                return;
            }
            self.rest = &self.rest[self.rest.find('\n').unwrap_or(self.rest.len())..];
        }
    }
}

impl<'s> Iterator for Words<'s> {
    type Item = Token<'s>;

    fn next(&mut self) -> Option<Token<'s>> {
        self.skip_blank();
        piece(&mut self.rest).ok()
    }
}

/// One piece; fails at the end only.
fn piece<'s>(input: &mut &'s str) -> Result<Token<'s>> {
    alt((
        take_while(1.., is_bare).map(Token::Bare),
        quoted.map(Token::Quoted),
        ('"', take_till(0.., ['\n', ';', '}'])).take().map(Token::Open),
        any.take().map(Token::Sign),
    ))
    .parse_next(input)
}

/// A text in quotes. It may go over lines, as `cgsnapshot` writes files of several lines; but if signs of the grammar
/// stand in it then, its own quote was forgotten and this is the next one's.
fn quoted<'s>(input: &mut &'s str) -> Result<&'s str> {
    delimited('"', take_till(0.., '"'), '"')
        .verify(|text: &str| !text.contains('\n') || !text.contains([';', '{', '}']))
        .parse_next(input)
}

/// Characters of a word without quotes, as libcgroup's lexer has them.
pub(crate) fn is_bare(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '/' | '.' | ',' | '%' | '@' | '\\')
}
