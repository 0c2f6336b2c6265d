//! Texts with stars and regular expressions, which conditions compare with.

use std::fmt;

/// A text in which `*` stands for any text, also none.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Glob(String);

/// A regular expression, checked. In time linear in the text, whatever the expression.
#[derive(Debug, Clone)]
pub struct Expression {
    text: String,
    regex: regex_lite::Regex,
}

impl Glob {
    /// `None` if it is empty or holds a control character.
    pub fn new(text: &str) -> Option<Glob> {
        (!text.is_empty() && !text.contains(char::is_control)).then(|| Glob(text.to_owned()))
    }

    /// As it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Is the whole text like it? Takes at most the product of both lengths.
    pub fn fits(&self, text: &[u8]) -> bool {
        like(self.0.as_bytes(), text)
    }
}

/// Does the whole text fit a pattern in which `*` is any text, also none? Goes back to the last star only, so that it
/// takes at most the product of both lengths.
pub(crate) fn like(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t, mut star) = (0, 0, None);
    while t < text.len() {
        if pattern.get(p) == Some(&b'*') {
            star = Some((p, t));
            p += 1;
        } else if pattern.get(p) == Some(&text[t]) {
            (p, t) = (p + 1, t + 1);
        } else if let Some((at, from)) = star {
            star = Some((at, from + 1));
            (p, t) = (at + 1, from + 1);
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
}

impl Expression {
    /// Reads a regular expression, in the syntax of the crate regex-lite.
    ///
    /// # Errors
    /// In words, what is wrong with it.
    pub fn new(text: &str) -> Result<Expression, String> {
        let built = regex_lite::RegexBuilder::new(text).size_limit(1 << 20).build();
        let regex = built.map_err(|error| error.to_string().replace('\n', " "))?;
        Ok(Expression { text: text.to_owned(), regex })
    }

    /// As it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Does it occur in the text?
    pub fn is_in(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }
}

impl PartialEq for Expression {
    fn eq(&self, other: &Expression) -> bool {
        self.text == other.text
    }
}
impl Eq for Expression {}

impl fmt::Display for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_text_also_in_the_middle() {
        assert!(like(b"", b"") && Glob::new("").is_none());
        for (pattern, text, fits) in [
            ("db1", "db1", true),
            ("db1", "db12", false),
            ("*/bin/ora*", "/u01/bin/oracle", true),
            ("*/bin/ora*", "/u01/sbin/oracle", false),
            ("*a*b", "xaxbxb", true),
            ("*a*b", "xbxa", false),
            ("*", "", true),
            ("a**", "a", true),
            ("**a", "ba", true),
            ("db*", "db12", true),
            ("*x*", "axb", true),
            ("ü*", "über", true),
        ] {
            assert_eq!(like(pattern.as_bytes(), text.as_bytes()), fits, "{pattern} {text}");
            assert_eq!(Glob::new(pattern).unwrap().fits(text.as_bytes()), fits, "{pattern} {text}");
        }
        assert_eq!(Glob::new(""), None);
    }

    #[test]
    fn an_expression_that_would_grow_without_bound_is_refused() {
        assert!(Expression::new("(((a{1000}){1000}){1000})").is_err());
        assert!(Expression::new("(").is_err());
        assert!(Expression::new("-D (archive|wal)").unwrap().is_in("postgres -D wal"));
    }
}
