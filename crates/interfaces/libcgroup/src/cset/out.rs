//! Standard output as cset's log has it: a message begins with the program's name.

use std::io::Write;

use crate::cset::NAME;

/// How it prints.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Out {
    /// For programs: `-m`.
    pub machine: bool,
}

/// A move of at least this many tasks shows its progress.
const SHOWN: usize = 4;
/// How wide a finished bar is.
const BAR: usize = 50;

impl Out {
    /// A message, which may have several lines.
    pub fn info(self, message: &str) {
        self.plain(&format!("{NAME}: {message}"));
    }

    /// Text without the name.
    pub fn plain(self, text: &str) {
        write(&format!("{text}\n"));
    }

    /// The bar of a move that is over: drawn as cset leaves it on a terminal.
    pub fn progress(self, tasks: usize) {
        if self.machine || tasks < SHOWN {
            return;
        }
        let (room, back) = (" ".repeat(BAR), "\u{8}".repeat(BAR + 2));
        write(&format!("[{room}]%{back}{}]\n", "=".repeat(BAR)));
    }
}

/// A reader who went away has the exit status.
fn write(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}
