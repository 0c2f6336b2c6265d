//! The options of a workload's hidden subcommand: `--name value` pairs, written by this crate and read by it in
//! another process. Strict all the same, as they can be typed by hand.

use std::{ffi::OsString, path::PathBuf};

use crate::Error;

/// What is still to be read of the given pairs.
pub(crate) struct Options {
    pairs: Vec<(String, OsString)>,
}

impl Options {
    /// Splits words into pairs.
    ///
    /// # Errors
    /// A word where a name should be, a name without a value, or one given twice.
    pub fn new(words: impl IntoIterator<Item = OsString>) -> Result<Options, Error> {
        let mut pairs: Vec<(String, OsString)> = Vec::new();
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            let word = word.to_string_lossy().into_owned();
            let Some(name) = word.strip_prefix("--") else { return Err(wrong(&word, "is not an option")) };
            let value = words.next().ok_or_else(|| wrong(&word, "needs a value"))?;
            if pairs.iter().any(|(before, _)| before == name) {
                return Err(wrong(&word, "is given twice"));
            }
            pairs.push((name.to_owned(), value));
        }
        Ok(Options { pairs })
    }

    fn take(&mut self, name: &str) -> Option<OsString> {
        let place = self.pairs.iter().position(|(given, _)| given == name)?;
        Some(self.pairs.swap_remove(place).1)
    }

    /// A number within `range`, or `default` if it was not given.
    pub fn number(
        &mut self,
        name: &str,
        range: std::ops::RangeInclusive<u64>,
        default: Option<u64>,
    ) -> Result<u64, Error> {
        let Some(value) = self.take(name) else {
            return default.ok_or_else(|| wrong(&format!("--{name}"), "is needed"));
        };
        let number =
            value.to_str().and_then(|text| text.parse().ok()).filter(|number| range.contains(number));
        number.ok_or_else(|| {
            let reason =
                format!("'{}' is no number from {} to {}", value.display(), range.start(), range.end());
            wrong(&format!("--{name}"), &reason)
        })
    }

    /// A word of any kind.
    pub fn text(&mut self, name: &str) -> Result<Option<String>, Error> {
        let Some(value) = self.take(name) else { return Ok(None) };
        let text = value.into_string();
        text.map(Some).map_err(|_| wrong(&format!("--{name}"), "is not UTF-8"))
    }

    /// A file's path.
    pub fn path(&mut self, name: &str) -> Result<PathBuf, Error> {
        self.take(name).map(PathBuf::from).ok_or_else(|| wrong(&format!("--{name}"), "is needed"))
    }

    /// Nothing may be left.
    pub fn end(self) -> Result<(), Error> {
        match self.pairs.first() {
            Some((name, _)) => Err(wrong(&format!("--{name}"), "is not known")),
            None => Ok(()),
        }
    }
}

fn wrong(option: &str, reason: &str) -> Error {
    Error::Option { option: option.to_owned(), reason: reason.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(words: &[&str]) -> Result<Options, Error> {
        Options::new(words.iter().map(OsString::from))
    }

    #[test]
    fn options_are_taken_by_name_and_what_is_left_is_refused() {
        let mut given = options(&["--threads", "3", "--device", "/dev/sda", "--odd", "1"]).unwrap();
        assert_eq!(given.path("device").unwrap(), PathBuf::from("/dev/sda"));
        assert_eq!(given.number("threads", 1..=8, None).unwrap(), 3);
        assert_eq!(given.number("interval-ms", 0..=8, Some(5)).unwrap(), 5);
        assert_eq!(given.end().unwrap_err().to_string(), "--odd: is not known");
    }

    #[test]
    fn wrong_options_are_refused_with_the_reason() {
        let error = |words: &[&str]| options(words).err().unwrap().to_string();
        assert_eq!(error(&["cpu"]), "cpu: is not an option");
        assert_eq!(error(&["--threads"]), "--threads: needs a value");
        assert_eq!(error(&["--a", "1", "--a", "2"]), "--a: is given twice");
        for bad in ["0", "-1", "9", "NaN", "1s", ""] {
            let error = options(&["--threads", bad]).unwrap().number("threads", 1..=8, None).unwrap_err();
            assert_eq!(error.to_string(), format!("--threads: '{bad}' is no number from 1 to 8"));
        }
        let error = options(&[]).unwrap().path("device").unwrap_err();
        assert_eq!(error.to_string(), "--device: is needed");
    }
}
