//! A log of single transactions, a file per thread: what of it lies within a span. The format is pgbench's
//! (pgbench(1), "Per-Transaction Logging").

use std::{
    io::{BufRead, BufReader},
    ops::Range,
    path::{Path, PathBuf},
};

use super::distribution::Distribution;
use crate::{Error, Failure, files};

/// Transactions of a span, and of the whole log.
pub(crate) struct Tally {
    /// Those that ended within the span; times are in microseconds, with a rate from the intended start.
    pub latency: Distribution,
    /// Of the same, how late they were begun; empty without a rate.
    pub lag: Distribution,
    /// Given up for an error, within the span.
    pub failed: u64,
    /// Not begun because they were too late, within the span.
    pub skipped: u64,
    /// Those of the whole log that were neither.
    pub all: u64,
    /// Ends of all these, in microseconds since the span's beginning.
    pub ends: Vec<i64>,
}

/// One line.
#[derive(Debug, PartialEq, Eq)]
struct Line {
    /// `None`: failed or skipped.
    took: Option<u64>,
    skipped: bool,
    /// Microseconds since 1970.
    end: i64,
    lag: Option<u64>,
}

impl Tally {
    /// Reads the logs. `span` is in microseconds since 1970: what ended at or after its beginning and before its end.
    ///
    /// # Errors
    /// A log can't be read, or is no such log.
    pub fn read(logs: &[PathBuf], span: &Range<i64>, with_lag: bool) -> Result<Tally, Error> {
        let (latency, lag) = (Distribution::new()?, Distribution::new()?);
        let mut tally = Tally { latency, lag, failed: 0, skipped: 0, all: 0, ends: Vec::new() };
        for log in logs {
            tally.add(log, span, with_lag)?;
        }
        Ok(tally)
    }

    fn add(&mut self, log: &Path, span: &Range<i64>, with_lag: bool) -> Result<(), Error> {
        let mut file =
            BufReader::with_capacity(1 << 16, files::open(log).map_err(Failure::file("open", log))?);
        let mut text = Vec::new();
        loop {
            text.clear();
            let read = file.read_until(b'\n', &mut text).map_err(Failure::file("read", log))?;
            if read == 0 {
                return Ok(());
            }
            let line = std::str::from_utf8(&text).ok().and_then(|text| line(text, with_lag));
            let line = line.ok_or_else(|| {
                let text = String::from_utf8_lossy(&text);
                Failure::unreadable(
                    "the clients",
                    format!("'{}' in their log", text.trim_end().escape_debug()),
                )
            })?;
            self.count(&line, span);
        }
    }

    fn count(&mut self, line: &Line, span: &Range<i64>) {
        let counts = span.contains(&line.end);
        match line.took {
            Some(took) => {
                self.all += 1;
                self.ends.push(line.end - span.start);
                if counts {
                    self.latency.record(took);
                    line.lag.into_iter().for_each(|lag| self.lag.record(lag));
                }
            }
            None if counts && line.skipped => self.skipped += 1,
            None if counts => self.failed += 1,
            None => {}
        }
    }
}

/// `client transaction time script epoch microseconds [lag] [retries]`. The time of a failed transaction is a word.
fn line(text: &str, with_lag: bool) -> Option<Line> {
    let mut words = text.split_ascii_whitespace();
    let (time, _script) = (words.nth(2)?, words.next()?);
    let (seconds, microseconds): (i64, i64) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    let lag = if with_lag { Some(words.next()?.parse::<f64>().ok()?.max(0.0) as u64) } else { None };
    let took = match time {
        "skipped" | "failed" | "serialization" | "deadlock" => None,
        time => Some(time.parse().ok()?),
    };
    let end = seconds.checked_mul(1_000_000)?.checked_add(microseconds)?;
    Some(Line { took, skipped: time == "skipped", end, lag })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_manual_are_read() {
        let plain = line("0 199 2241 0 1175850568 995598\n", false).unwrap();
        assert_eq!(plain, Line { took: Some(2241), skipped: false, end: 1_175_850_568_995_598, lag: None });
        assert_eq!(line("0 81 4621 0 1412881037 912698 3005", true).unwrap().lag, Some(3005));
        let skipped = line("0 84 skipped 0 1412881037 912698 5217", true).unwrap();
        assert!(skipped.skipped && skipped.took.is_none());
        let failed = line("3 0 failed 0 1499414498 84905 9", true).unwrap();
        assert!(!failed.skipped && failed.took.is_none());
        for bad in ["", "0 1 2", "0 1 x 0 1 1", "0 1 2 0 1 1", "0 1 2 0 9223372036854775807 1 1"] {
            assert_eq!(line(bad, true), None, "{bad}");
        }
    }

    #[test]
    fn what_ends_at_the_beginning_counts_and_at_the_end_not() {
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("log");
        let text =
            "0 0 5 0 1 999999\n0 1 7 0 2 0\n1 2 failed 0 2 1\n1 3 skipped 0 2 2\n0 4 9 0 2 9\n0 5 8 0 2 10\n";
        std::fs::write(&log, text).unwrap();
        let tally = Tally::read(&[log], &(2_000_000..2_000_010), false).unwrap();
        assert_eq!((tally.latency.count(), tally.failed, tally.skipped, tally.all), (2, 1, 1, 4));
        assert_eq!(tally.ends, [-1, 0, 9, 10]);
        let reported = tally.latency.latency(1e-6, tally.skipped).unwrap();
        assert_eq!((reported.min, reported.max, reported.missed), (7e-6, 9e-6, 1));
    }
}
