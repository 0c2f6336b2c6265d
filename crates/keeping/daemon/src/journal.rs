//! The journal of systemd, each event with its fields (systemd.journal-fields(7)), so that `journalctl GROUP=db` finds what
//! happened to a group. One datagram per event to journald's socket, never a wait: what it does not take is lost, as a log
//! daemon that hangs must not hang us.

use std::{
    fmt::{Debug, Write as _},
    os::{linux::fs::MetadataExt, unix::net::UnixDatagram},
};

use tracing::{
    Event, Level, Subscriber,
    field::{Field, Visit},
};
use tracing_subscriber::{Layer, layer::Context};

const SOCKET: &str = "/run/systemd/journal/socket";
/// What a message is cut to: a datagram is to fit any socket buffer.
const LONGEST: usize = 48 << 10;

/// The way to journald.
#[derive(Debug)]
pub(crate) struct Journal(UnixDatagram);

impl Journal {
    /// If standard error is the journal's (systemd.exec(5), `$JOURNAL_STREAM`), and journald listens.
    pub fn of_standard_error() -> Option<Journal> {
        let stream = std::env::var("JOURNAL_STREAM").ok()?;
        let ours = std::fs::metadata("/proc/self/fd/2").ok()?;
        if stream != format!("{}:{}", ours.st_dev(), ours.st_ino()) {
            return None;
        }
        let socket = UnixDatagram::unbound().ok()?;
        socket.set_nonblocking(true).ok()?;
        // not connected: journald may restart
        socket.send_to(&[], SOCKET).ok()?;
        Some(Journal(socket))
    }
}

impl<S: Subscriber> Layer<S> for Journal {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let priority = match *event.metadata().level() {
            Level::ERROR => "3",
            Level::WARN => "4",
            Level::INFO => "6",
            _ => "7",
        };
        let mut entry = Entry(Vec::new());
        entry.put("PRIORITY", priority);
        entry.put("SYSLOG_IDENTIFIER", "ringfenced");
        event.record(&mut entry);
        let _ = self.0.send_to(&entry.0, SOCKET);
    }
}

/// One event in journald's native protocol.
struct Entry(Vec<u8>);

impl Entry {
    /// The name is of letters, digits and underscores, and begins with a letter; journald ignores others.
    fn put(&mut self, name: &str, value: &str) {
        let mut end = value.len().min(LONGEST);
        while !value.is_char_boundary(end) {
            end -= 1;
        }
        let value = &value[..end];
        self.0.extend(name.bytes().map(|byte| if byte == b'.' { b'_' } else { byte.to_ascii_uppercase() }));
        if value.contains('\n') {
            self.0.push(b'\n');
            self.0.extend((value.len() as u64).to_le_bytes());
        } else {
            self.0.push(b'=');
        }
        self.0.extend(value.as_bytes());
        self.0.push(b'\n');
    }
}

impl Visit for Entry {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field.name(), value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let mut text = String::new();
        let _ = write!(text, "{value:?}"); // a String takes everything
        self.put(field.name(), text.trim_end());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_of_several_lines_has_its_length_before_it() {
        let mut entry = Entry(Vec::new());
        entry.put("message", "one\ntwo");
        entry.put("group", "db");
        assert_eq!(entry.0, b"MESSAGE\n\x07\0\0\0\0\0\0\0one\ntwo\nGROUP=db\n");
    }

    #[test]
    fn a_long_value_is_cut_between_characters() {
        let mut entry = Entry(Vec::new());
        entry.put("message", &"\u{20ac}".repeat(LONGEST));
        assert!(entry.0.len() <= LONGEST + 10 && std::str::from_utf8(&entry.0).is_ok());
    }
}
