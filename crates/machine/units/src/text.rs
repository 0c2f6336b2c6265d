//! Text of others, such as names of groups, paths and arguments, made safe for a terminal and for a shell; and how many
//! there are of a thing. Never prints.

use std::{borrow::Cow, fmt::Display};

/// `text` with everything that would steer a terminal or reorder its line written as an escape: control characters
/// (ESC, BEL, CR, newline, C1), bidirectional marks, separators of lines and paragraphs, and marks without width.
pub fn printable(text: &str) -> Cow<'_, str> {
    // nearly all text is plain ASCII
    if text.bytes().all(|byte| byte.is_ascii() && !byte.is_ascii_control()) || !text.chars().any(steers) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        if steers(letter) {
            out.extend(letter.escape_default());
        } else {
            out.push(letter);
        }
    }
    Cow::Owned(out)
}

fn steers(letter: char) -> bool {
    letter.is_control()
        || matches!(letter,
            '\u{061c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// `1 group`, `2 groups`, `0 processes`.
pub fn counted<N: Display + PartialEq + From<u8>>(count: N, noun: &str) -> String {
    let ending = match noun.ends_with('s') {
        _ if count == N::from(1) => "",
        true => "es",
        false => "s",
    };
    format!("{count} {noun}{ending}")
}

/// Decodes bytes that the kernel escapes as `mark` and a fixed number of digits: a space in mountinfo as `\040`, a backslash in its log
/// as `\x5c`.
///
/// ```
/// assert_eq!(units::unescaped(r"a\040b", r"\", 3, 8), "a b");
/// ```
pub fn unescaped(text: &str, mark: &str, digits: usize, radix: u32) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        let number = rest.strip_prefix(mark.as_bytes()).and_then(|tail| tail.get(..digits));
        match number.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, radix).ok()) {
            Some(decoded) => {
                out.push(decoded);
                rest = &rest[mark.len() + digits..];
            }
            None => {
                out.push(byte);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// `text` as one word of a POSIX shell: bare where that is safe, otherwise in single quotes.
///
/// Not `shlex::try_quote`: it quotes `cpu.max=1,2` as well, and commands in hints are read before they are pasted.
pub fn shell_quote(text: &str) -> Cow<'_, str> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-:=,@%+".contains(&byte);
    if !text.is_empty() && text.bytes().all(is_plain) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(format!("'{}'", text.replace('\'', r"'\''")))
}

/// A text that a spreadsheet shows and never works out: one that would begin a formula has an apostrophe before it.
pub fn csv_cell(text: &str) -> String {
    let text = printable(text);
    let is_formula = text.starts_with(['=', '+', '-', '@', '|', '%']);
    if is_formula { format!("'{text}") } else { text.into_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// attack finding 12: a spreadsheet worked out what a condition was called.
    #[test]
    fn no_cell_begins_a_formula() {
        for text in ["=cmd|'/c calc'!A1", "+1", "-1", "@SUM(A1)", "|x", "%x"] {
            assert!(csv_cell(text).starts_with('\''), "{text}");
        }
        assert_eq!(csv_cell("\r=1"), r"\r=1");
        assert_eq!(csv_cell("\t=1"), r"\t=1");
        for text in ["all CPUs", "10 reads/s", "", "2026-01-31"] {
            assert_eq!(csv_cell(text), text);
        }
    }
}
