//! A metric by its name and labels, as Prometheus writes it: `http_request_duration_seconds{handler="/api"}`. Also the reader
//! of the labels of a line of metrics, whose syntax is the same.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Names and values of labels, in their order.
pub type Labels = Vec<(String, String)>;

/// A metric of a name with some labels.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Selector {
    text: String,
    name: String,
    labels: Labels,
}

impl Selector {
    /// Reads one; `None` if it is none.
    pub fn new(text: &str) -> Option<Selector> {
        let (name, labels, rest) = series(text.trim())?;
        let text = text.trim().to_owned();
        rest.trim().is_empty().then(|| Selector { text, name: name.to_owned(), labels })
    }

    /// The metric's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Are these labels of a series, which may have more, those of the metric?
    pub fn fits(&self, labels: &[(String, String)]) -> bool {
        self.labels.iter().all(|wanted| labels.contains(wanted))
    }
}

/// The name and the labels at the start of a text, and what follows them. `None`: there is no name, or the labels are not
/// closed.
pub fn series(text: &str) -> Option<(&str, Labels, &str)> {
    let in_name = |(at, letter): (usize, char)| {
        letter == '_' || letter == ':' || letter.is_ascii_alphabetic() || (at > 0 && letter.is_ascii_digit())
    };
    let end = text.char_indices().find(|one| !in_name(*one)).map_or(text.len(), |(at, _)| at);
    let (name, rest) = text.split_at(end);
    if name.is_empty() {
        return None;
    }
    let Some(mut rest) = rest.trim_start().strip_prefix('{') else { return Some((name, Vec::new(), rest)) };
    let mut labels = Vec::new();
    loop {
        rest = rest.trim_start();
        if let Some(rest) = rest.strip_prefix('}') {
            return Some((name, labels, rest));
        }
        let (label, behind) = rest.split_once('=')?;
        let label = label.trim();
        let is_label = !label.is_empty() && label.chars().all(|c| c == '_' || c.is_ascii_alphanumeric());
        let (value, behind) = quoted(behind.trim_start()).filter(|_| is_label)?;
        labels.push((label.to_owned(), value));
        let behind = behind.trim_start();
        rest = match behind.strip_prefix(',') {
            Some(next) => next,
            None if behind.starts_with('}') => behind,
            None => return None,
        };
    }
}

/// A value in quotes, with `\\`, `\"` and `\n` in it, and what follows it.
fn quoted(text: &str) -> Option<(String, &str)> {
    let text = text.strip_prefix('"')?;
    let mut value = String::new();
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => match letters.next()?.1 {
                'n' => value.push('\n'),
                other => value.push(other),
            },
            letter => value.push(letter),
        }
    }
    None
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl TryFrom<String> for Selector {
    type Error = String;

    fn try_from(text: String) -> Result<Selector, String> {
        Selector::new(&text).ok_or_else(|| format!("'{text}' is no metric"))
    }
}

impl From<Selector> for String {
    fn from(selector: Selector) -> String {
        selector.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_has_a_name_labels_and_a_rest() {
        let own = |labels: &[(&str, &str)]| -> Vec<(String, String)> {
            labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        assert_eq!(series("up 1"), Some(("up", own(&[]), " 1")));
        let text = r#"a:b_c{le="0.5", path="/\"x\\\n{}",} 7 1700000000"#;
        let labels = own(&[("le", "0.5"), ("path", "/\"x\\\n{}")]);
        assert_eq!(series(text), Some(("a:b_c", labels, " 7 1700000000")));
        for wrong in
            ["", "9a 1", "a{le=0.5} 1", "a{le=\"0.5\" 1", "a{=\"\"} 1", "a{b=\"c\"d=\"e\"} 1", "a{b=\"\\"]
        {
            assert_eq!(series(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_selector_fits_series_with_more_labels() {
        let selector = Selector::new(r#" http{handler="/api"} "#).unwrap();
        assert_eq!((selector.name(), selector.to_string().as_str()), ("http", r#"http{handler="/api"}"#));
        let label = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert!(selector.fits(&[label("code", "200"), label("handler", "/api")]));
        assert!(!selector.fits(&[label("handler", "/")]));
        assert_eq!(Selector::new("http{} 1"), None);
    }
}
