//! A test that does not end ends its suite, instead of whatever waits for the suite.

use std::{
    process,
    sync::mpsc::{RecvTimeoutError, Sender, channel},
    thread,
    time::Duration,
};

/// The slowest tests take some minutes, in a virtual machine.
const LONGEST: Duration = Duration::from_secs(15 * 60);

/// Held while a test runs.
pub struct Limit {
    _ends: Sender<()>,
}

impl Limit {
    #[allow(clippy::print_stderr, reason = "it is the suite's last line")]
    pub fn of(test: String) -> Self {
        Self::new(LONGEST, move || {
            eprintln!("{test}: has not ended in {} min, and the suite ends", LONGEST.as_secs() / 60);
            process::exit(101)
        })
    }

    fn new(longest: Duration, late: impl FnOnce() + Send + 'static) -> Self {
        let (ends, ended) = channel();
        thread::spawn(move || {
            if ended.recv_timeout(longest) == Err(RecvTimeoutError::Timeout) {
                late();
            }
        });
        Self { _ends: ends }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_test_that_does_not_end_is_late() {
        let (late, said) = channel();
        let in_time = late.clone();
        drop(Limit::new(Duration::from_mins(1), move || in_time.send("in time").unwrap()));
        let _held = Limit::new(Duration::from_millis(1), move || late.send("late").unwrap());
        assert_eq!(said.iter().collect::<Vec<_>>(), ["late"]);
    }
}
