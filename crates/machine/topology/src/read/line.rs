//! A line of a listing that knows where it stands, so that every error can say it.

use std::str::FromStr;

use units::{Bytes, CpuSet, printable};

use crate::{MAX_CPUS, TopologyError};

/// A line with its number from 1 and the listing's name.
#[derive(Clone, Copy)]
pub(crate) struct Line<'a> {
    pub listing: &'a str,
    pub number: usize,
    pub text: &'a str,
}

/// The lines of a listing that are not blank.
pub(crate) struct Lines<'a> {
    listing: &'a str,
    rest: std::iter::Enumerate<std::str::Lines<'a>>,
    last: usize,
}

impl<'a> Lines<'a> {
    pub fn new(listing: &'a str, text: &'a str) -> Self {
        Lines { listing, rest: text.lines().enumerate(), last: 0 }
    }

    /// The next line, which must be there.
    pub fn expect(&mut self, expected: &str) -> Result<Line<'a>, TopologyError> {
        let last = self.last;
        let listing = self.listing;
        self.next().ok_or_else(|| TopologyError::Listing {
            name: listing.to_owned(),
            line: last + 1,
            expected: expected.to_owned(),
            found: "the end".to_owned(),
        })
    }

    /// Nothing may follow.
    pub fn end(&mut self) -> Result<(), TopologyError> {
        self.next().map_or(Ok(()), |line| Err(line.wrong("the end")))
    }
}

impl<'a> Iterator for Lines<'a> {
    type Item = Line<'a>;

    fn next(&mut self) -> Option<Line<'a>> {
        let (index, text) = self.rest.by_ref().find(|(_, text)| !text.trim().is_empty())?;
        self.last = index + 1;
        Some(Line { listing: self.listing, number: index + 1, text })
    }
}

impl<'a> Line<'a> {
    /// The error that this line is not as expected.
    pub fn wrong(&self, expected: impl Into<String>) -> TopologyError {
        self.wrong_at(expected, self.text)
    }

    /// The error that a part of this line is not as expected.
    pub fn wrong_at(&self, expected: impl Into<String>, found: &str) -> TopologyError {
        TopologyError::Listing {
            name: self.listing.to_owned(),
            line: self.number,
            // the reason of a parser quotes the text
            expected: printable(&expected.into()).into_owned(),
            found: quoted(found),
        }
    }

    /// What stands behind `prefix`.
    pub fn after(&self, prefix: &str) -> Result<&'a str, TopologyError> {
        self.text.strip_prefix(prefix).ok_or_else(|| self.wrong(format!("'{prefix}…'")))
    }

    /// A number, all of `text`.
    pub fn number<T: FromStr>(&self, text: &str, expected: &str) -> Result<T, TopologyError> {
        // no sign: FromStr would take a plus
        let digits = text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse().ok().filter(|_| digits).ok_or_else(|| self.wrong_at(expected, text))
    }

    /// A list of CPU numbers in the kernel's form.
    pub fn cpu_list(&self, text: &str) -> Result<CpuSet, TopologyError> {
        let cpus: CpuSet =
            text.parse().map_err(|error| self.wrong_at(format!("a list of CPUs ({error})"), text))?;
        self.known_cpus(cpus, text)
    }

    /// The CPUs, unless one is beyond what Linux numbers.
    pub fn known_cpus(&self, cpus: CpuSet, text: &str) -> Result<CpuSet, TopologyError> {
        if cpus.last().is_some_and(|last| last >= MAX_CPUS) {
            return Err(self.wrong_at(format!("CPU numbers below {MAX_CPUS}"), text));
        }
        Ok(cpus)
    }

    /// An amount of memory with its unit, as [`Bytes`] reads it.
    pub fn bytes(&self, text: &str) -> Result<Bytes, TopologyError> {
        text.parse().map_err(|_| self.wrong_at("an amount of memory", text))
    }
}

/// A found text in quotes, escaped and cut to what fits into a message.
pub(crate) fn quoted(text: &str) -> String {
    const MOST: usize = 60;
    let text = text.trim();
    let cut: String = text.chars().take(MOST).collect();
    let more = if text.chars().nth(MOST).is_some() { "…" } else { "" };
    format!("'{}{more}'", printable(&cut))
}
