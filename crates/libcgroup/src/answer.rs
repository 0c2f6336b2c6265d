//! What a command prints on standard output, written at once when everything is known.

use std::io::{ErrorKind, Write};

use crate::failure::{Failure, SYSTEM};

/// Prints it; the command has then done what it was asked.
///
/// # Errors
/// A full disk or the like; a reader that went away is none.
pub(crate) fn print(text: &str) -> Result<u8, Failure> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::new(SYSTEM, format!("cannot write to standard output: {error}")))
        }
        _ => Ok(0),
    }
}
