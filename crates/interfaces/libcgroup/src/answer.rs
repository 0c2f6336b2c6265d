//! What a command prints on standard output, written at once when everything is known.

use std::{
    borrow::Cow,
    io::{ErrorKind, IsTerminal, Write},
};

use units::printable;

use crate::failure::{Failure, SYSTEM};

/// Prints it; the command is done then.
///
/// # Errors
/// A full disk or the like; a reader that went away is none.
pub(crate) fn print(text: &str) -> Result<u8, Failure> {
    let mut out = std::io::stdout().lock();
    let text = if out.is_terminal() { Cow::Owned(for_terminal(text)) } else { Cow::Borrowed(text) };
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::new(SYSTEM, format!("cannot write to standard output: {error}")))
        }
        _ => Ok(0),
    }
}

/// Names of groups are others' choice. Scripts get them as they are, a terminal without what would steer it.
fn for_terminal(text: &str) -> String {
    let lines = text.split_inclusive('\n').map(|line| {
        let (line, end) = line.strip_suffix('\n').map_or((line, ""), |line| (line, "\n"));
        let columns: Vec<_> = line.split('\t').map(printable).collect();
        columns.join("\t") + end
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    /// Attack finding 12.
    #[test]
    fn a_terminal_gets_lines_and_columns_and_nothing_else_that_steers_it() {
        let listed = "cpu:/a\u{1b}]0;x\u{7}b\n\tcpu.shares = \"1\";\nlast\r";
        let shown = "cpu:/a\\u{1b}]0;x\\u{7}b\n\tcpu.shares = \"1\";\nlast\\r";
        assert_eq!(super::for_terminal(listed), shown);
    }
}
