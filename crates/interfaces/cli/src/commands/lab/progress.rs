//! What `lab run` says while it runs: one line that changes on a terminal, a line per run elsewhere.

use std::{io::IsTerminal, time::Duration};

use lab::run::Step;

use crate::{failure::printable_lines, output};

pub struct Progress {
    on_terminal: bool,
}

impl Progress {
    pub fn new() -> Progress {
        Progress { on_terminal: std::io::stderr().is_terminal() }
    }

    pub fn show(&mut self, step: &Step<'_>) {
        match step {
            Step::Preparing(what) => self.line(what),
            Step::Run { number, of, condition, load, attempt, left } => {
                let under = load.map(|load| format!(" under {load}")).unwrap_or_default();
                let again = if *attempt > 1 { format!(", attempt {attempt}") } else { String::new() };
                self.line(&format!("run {number} of {of}: {condition}{under}{again}; {} left", about(*left)));
            }
            Step::Rejected(why) => {
                self.end();
                output::error(&format!("rejected: {}\n", printable_lines(why)));
            }
            Step::StillOpen(device) => {
                self.end();
                output::warning(&format!(
                    "another process keeps {0} open (lsof {0}): the kernel detaches it when that closes it",
                    device.display()
                ));
            }
        }
    }

    fn line(&self, text: &str) {
        let text = printable_lines(text);
        output::error(&if self.on_terminal { format!("\r\x1b[K{text}") } else { format!("{text}\n") });
    }

    /// Leaves the terminal's line to others.
    pub fn end(&mut self) {
        if self.on_terminal {
            output::error("\r\x1b[K");
        }
    }
}

/// `40 s`, `3 min`, `1 h 5 min`.
fn about(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..=99 => format!("{seconds} s"),
        seconds @ 100..=5999 => format!("{} min", seconds.div_ceil(60)),
        seconds => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}
