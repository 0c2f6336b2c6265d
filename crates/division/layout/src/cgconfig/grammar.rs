//! The grammar's few rules over words: braces, `name = value;`, and where to go on after something is wrong.

use crate::diagnostic::{Diagnostic, Report};
use crate::names::cut;
use crate::origin::Origin;
use crate::source::Places;
use crate::words::{Token, Words};

/// The words of a file with one to look ahead.
pub(super) struct Grammar<'r> {
    places: &'r Places<'r>,
    words: Words<'r>,
    ahead: Option<Option<Token<'r>>>,
}

/// The owner of a block, for messages; a text only where a message uses it.
#[derive(Clone, Copy)]
pub(super) enum What<'r> {
    /// `group 'a'`.
    Named(&'static str, &'r str),
    /// `'perm'`.
    Plain(&'r str),
    /// Something that makes no sense itself.
    It,
}

impl std::fmt::Display for What<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            What::Named(kind, name) => write!(f, "{kind} '{}'", cut(name)),
            What::Plain(name) => write!(f, "'{}'", cut(name)),
            What::It => f.write_str("it"),
        }
    }
}

/// A block that is being read.
pub(super) struct Block<'r> {
    what: What<'r>,
    open: Token<'r>,
}

/// What stands next in a block.
pub(super) enum Item<'r> {
    /// A word: a name of something.
    Word(Token<'r>),
    /// The block is closed, or taken as closed.
    End,
}

impl<'r> Grammar<'r> {
    pub(super) fn new(places: &'r Places<'r>) -> Grammar<'r> {
        Grammar { places, words: Words::new(places.text()), ahead: None }
    }

    pub(super) fn next(&mut self) -> Option<Token<'r>> {
        match self.ahead.take() {
            Some(token) => token,
            None => self.words.next(),
        }
    }

    pub(super) fn peek(&mut self) -> Option<Token<'r>> {
        if self.ahead.is_none() {
            self.ahead = Some(self.words.next());
        }
        self.ahead.flatten()
    }

    pub(super) fn origin(&self, token: Token<'_>) -> Origin {
        self.places.of(token.text())
    }

    pub(super) fn origin_of(&self, text: &str) -> Origin {
        self.places.of(text)
    }

    /// The end of what has been read, for what is missing there.
    fn end_of(&self, token: Token<'_>) -> Origin {
        let text = token.text();
        let quote = usize::from(matches!(token, Token::Quoted(_)));
        let start = text.as_ptr() as usize - self.places.text().as_ptr() as usize + text.len() + quote;
        self.places.origin(start..start)
    }

    /// The brace that opens a block after `after`; reported if it is not there.
    pub(super) fn open(
        &mut self,
        what: What<'r>,
        after: Token<'r>,
        report: &mut Report,
    ) -> Option<Block<'r>> {
        match self.peek() {
            Some(open @ Token::Sign("{")) => {
                self.next();
                Some(Block { what, open })
            }
            other => {
                let message = format!("expected '{{' after {what}, found {}", found(other));
                report.push(Diagnostic::error(message).at(self.end_of(after)));
                None
            }
        }
    }

    /// The next word in a block; signs that make no sense are reported and left out.
    pub(super) fn item(&mut self, block: &Block<'r>, report: &mut Report) -> Item<'r> {
        loop {
            if report.is_hopeless() {
                return Item::End;
            }
            let Some(token) = self.peek() else {
                self.never_closed(block, report);
                return Item::End;
            };
            match token {
                Token::Sign("}") => {
                    self.next();
                    return Item::End;
                }
                Token::Bare(word) if super::SECTIONS.contains(&word) && self.section_begins() => {
                    self.never_closed(block, report);
                    return Item::End;
                }
                Token::Bare(_) | Token::Quoted(_) => {
                    self.next();
                    return Item::Word(token);
                }
                // an empty statement harms nobody
                Token::Sign(";") => {
                    self.next();
                }
                other => {
                    self.next();
                    let message = format!("expected a name in {}, found {}", block.what, found(Some(other)));
                    report.push(Diagnostic::error(message).at(self.origin(other)));
                    self.skip_statement();
                }
            }
        }
    }

    fn never_closed(&mut self, block: &Block<'r>, report: &mut Report) {
        let error = Diagnostic::error(format!("the '{{' of {} is never closed", block.what));
        report.push(error.at(self.origin(block.open)).hint("add the '}'"));
    }

    /// Does a section begin with the word ahead? `group NAME {` or `mount {`, neither of which can stand in a block.
    fn section_begins(&self) -> bool {
        let mut rest = Words::new(self.words.rest());
        match self.ahead.flatten() {
            Some(Token::Bare("group" | "template")) => {
                rest.next().is_some_and(|token| token.word().is_some())
                    && rest.next() == Some(Token::Sign("{"))
            }
            _ => rest.next().is_some_and(|token| token == Token::Sign("{")),
        }
    }

    /// `= value;` after a name. The value is missing where it was wrong and reported.
    pub(super) fn value(&mut self, name: Token<'r>, report: &mut Report) -> Option<Token<'r>> {
        match self.peek() {
            Some(Token::Sign("=")) => self.next(),
            other => {
                let message = format!("expected '=' after '{}', found {}", cut(name.text()), found(other));
                let error = Diagnostic::error(message).at(self.end_of(name));
                report.push(error.hint("settings are written name = value;"));
                self.skip_statement();
                return None;
            }
        };
        match self.next() {
            Some(value @ (Token::Bare(_) | Token::Quoted(_))) => self.end_of_value(name, value, report),
            Some(open @ Token::Open(_)) => {
                let error = Diagnostic::error("the quote is never closed").at(self.origin(open));
                report.push(error.hint("add the second '\"' before the ';'"));
                self.skip_statement();
                None
            }
            other => {
                let origin = other.map_or_else(|| self.end_of(name), |other| self.origin(other));
                let message = format!("expected a value for '{}', found {}", cut(name.text()), found(other));
                report.push(Diagnostic::error(message).at(origin).hint("an empty value is written \"\""));
                if !matches!(other, Some(Token::Sign(";" | "}"))) {
                    self.skip_statement();
                }
                None
            }
        }
    }

    /// The `;` after a value. A value of several words was meant to be in quotes; a `;` was forgotten if the next
    /// statement begins.
    fn end_of_value(&mut self, name: Token<'r>, value: Token<'r>, report: &mut Report) -> Option<Token<'r>> {
        match self.peek() {
            Some(Token::Sign(";")) => {
                self.next();
                Some(value)
            }
            _ if matches!(value, Token::Quoted(_)) || self.statement_begins() => {
                let message = format!("';' is missing after the value of '{}'", cut(name.text()));
                report.push(Diagnostic::error(message).at(self.end_of(value)).hint("add ';'"));
                Some(value)
            }
            _ => {
                let whole = self.rest_of_statement(value);
                let error = Diagnostic::error(format!("the value of '{}' needs quotes", cut(name.text())));
                report.push(
                    error
                        .at(self.places.of(whole))
                        .hint(format!("write \"{}\"", cut(whole).replace('"', ""))),
                );
                self.skip_statement();
                None
            }
        }
    }

    /// Does what is ahead begin another statement or end the block?
    fn statement_begins(&mut self) -> bool {
        match self.peek() {
            None | Some(Token::Sign("}")) => true,
            Some(Token::Bare(_) | Token::Quoted(_)) => {
                let mut rest = Words::new(self.words.rest());
                matches!(rest.next(), Some(Token::Sign("=" | "{")))
            }
            Some(_) => false,
        }
    }

    /// From a value to where its line or statement ends.
    fn rest_of_statement(&self, value: Token<'r>) -> &'r str {
        let start = value.text().as_ptr() as usize - self.places.text().as_ptr() as usize;
        let rest = &self.places.text()[start..];
        rest[..rest.find([';', '\n', '}', '#']).unwrap_or(rest.len())].trim_end()
    }

    /// Goes on behind the next `;`, or before the brace that closes the block, or on the next line.
    pub(super) fn skip_statement(&mut self) {
        // what was looked ahead at may be the end already
        if let Some(Some(token)) = self.ahead.take() {
            match token {
                Token::Sign(";") => return,
                Token::Sign("}") => {
                    self.ahead = Some(Some(token));
                    return;
                }
                _ => {}
            }
        }
        let rest = self.words.rest();
        let end = rest.find([';', '\n', '}']).unwrap_or(rest.len());
        let semicolon = rest[end..].starts_with(';');
        self.words.go_on(end + usize::from(semicolon));
    }

    /// Goes on behind the block that begins next, if one begins before the next section does.
    pub(super) fn skip_section(&mut self) {
        let mut depth = 0_usize;
        while let Some(token) = self.peek() {
            match token {
                Token::Bare(word) if super::SECTIONS.contains(&word) && self.section_begins() => return,
                Token::Sign("{") => depth += 1,
                Token::Sign("}") if depth <= 1 => {
                    // one that closes nothing gets its own error
                    if depth == 1 {
                        self.next();
                    }
                    return;
                }
                Token::Sign("}") => depth -= 1,
                _ => {}
            }
            self.next();
        }
    }
}

/// A token for a message.
pub(super) fn found(token: Option<Token<'_>>) -> String {
    match token {
        None => "the end of the file".to_owned(),
        Some(Token::Open(_)) => "a quote that is never closed".to_owned(),
        Some(token) => format!("'{}'", cut(token.text())),
    }
}
