//! Printing: JSON or text, and a reader who goes away is no failure.

use std::io::{self, Write};

use serde::Serialize;

use crate::failure::Failure;

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

/// Prints a value as JSON.
pub fn json(value: &impl Serialize) -> Result<(), Failure> {
    let rendered = serde_json::to_string_pretty(value)
        .map_err(|error| Failure::new(format!("cannot render JSON: {error}")))?;
    text(&format!("{rendered}\n"))
}

/// Prints a warning on standard error.
pub fn warning(message: &str) {
    error(&format!("ringfence: warning: {message}\n"));
}

/// Prints on standard error. Nothing can be said where that is full or closed, and nothing fails for it.
pub fn error(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}
