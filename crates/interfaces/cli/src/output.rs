//! Printing: JSON or text, and a reader who goes away is no failure.

use std::{
    io::{self, IsTerminal, Write},
    sync::atomic::{AtomicBool, Ordering},
};

use answers::{Reason, Refused};
use serde::Serialize;

use crate::failure::{Failure, printable_lines};

/// Prints text on standard output.
pub fn text(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::new(format!("cannot write to standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// A whole JSON document was printed: there is one for each command, and an error after it goes to standard error alone.
static ANSWERED: AtomicBool = AtomicBool::new(false);

/// Prints a value as JSON.
pub fn json(value: &impl Serialize) -> Result<(), Failure> {
    ANSWERED.store(true, Ordering::Relaxed);
    let rendered = serde_json::to_string_pretty(value)
        .map_err(|error| Failure::new(format!("cannot render JSON: {error}")))?;
    text(&format!("{rendered}\n"))
}

/// The same in the order of the names, at any depth: so are answers that were put together from parts.
pub fn json_by_name(value: &impl Serialize) -> Result<(), Failure> {
    let value = serde_json::to_value(value);
    json(&value.map_err(|error| Failure::new(format!("cannot render JSON: {error}")))?)
}

/// Prints a failure: on standard error for people, and as an object on standard output with --json. Returns its exit
/// status.
pub fn failure(failure: &Failure, as_json: bool) -> u8 {
    error(&failure.rendered());
    if as_json && !ANSWERED.load(Ordering::Relaxed) {
        let Failure { message, hint, newest, diagnostics, .. } = failure;
        let place = failure.place().cloned();
        let error = Reason { message: message.clone(), hint: hint.clone(), place, newest: *newest };
        // a reader who went away has the status
        let _ = json_by_name(&Refused { error, diagnostics: diagnostics.clone() });
    }
    failure.code
}

/// Prints a warning on standard error.
pub fn warning(message: &str) {
    error(&format!("warning: {}\n", printable_lines(message)));
}

/// Prints on standard error. Nothing can be said where that is full or closed, and nothing fails for it.
pub fn error(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// Colours, where there is a terminal and NO_COLOR (<https://no-color.org>) does not forbid them.
#[derive(Debug, Clone, Copy)]
pub struct Paint {
    on: bool,
}

impl Paint {
    /// For standard output.
    pub fn stdout() -> Paint {
        let forbidden = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
            || std::env::var_os("TERM").is_some_and(|terminal| terminal == "dumb");
        Paint { on: !forbidden && io::stdout().is_terminal() }
    }

    pub fn good(self, text: &str) -> String {
        self.in_colour("32", text)
    }

    pub fn changed(self, text: &str) -> String {
        self.in_colour("33", text)
    }

    pub fn bad(self, text: &str) -> String {
        self.in_colour("1;31", text)
    }

    pub fn strong(self, text: &str) -> String {
        self.in_colour("1", text)
    }

    fn in_colour(self, colour: &str, text: &str) -> String {
        if self.on { format!("\x1b[{colour}m{text}\x1b[0m") } else { text.to_owned() }
    }
}
