//! Where the log goes and how much of it: standard error or the journal, a file, or syslog's socket. Sets up `tracing`,
//! and knows nothing of what is logged.

use std::{
    fs::{File, OpenOptions},
    io::Write,
    os::unix::{fs::OpenOptionsExt, net::UnixDatagram},
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

pub use tracing::Level;
use tracing_subscriber::{
    Layer,
    filter::LevelFilter,
    fmt::{
        MakeWriter,
        writer::{BoxMakeWriter, MakeWriterExt},
    },
    layer::SubscriberExt,
    util::SubscriberInitExt,
};

use crate::journal::Journal;

/// How the daemon logs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Log {
    /// The least important level that is logged; `None`: nothing.
    pub level: Option<Level>,
    /// Where to, each of them.
    pub to: Vec<Target>,
}

/// Where the log goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// Standard error; where that is the journal, each event goes there with its fields.
    StandardError,
    /// Standard output.
    StandardOutput,
    /// Appended to a file.
    File(PathBuf),
    /// syslog(3), with a facility's number (3 is `daemon`).
    Syslog(u8),
}

impl Log {
    /// Begins to log. A second time does nothing. A log that nobody reads any more is no error.
    ///
    /// # Errors
    /// The file or socket can't be opened.
    pub fn begin(&self) -> std::io::Result<()> {
        let Some(level) = self.level else { return Ok(()) };
        let is_error = |to: &&Target| **to == Target::StandardError;
        let journal = self.to.iter().find(is_error).and_then(|_| Journal::of_standard_error());
        let lines = self.to.iter().filter(|to| journal.is_none() || !is_error(to));
        let writers = lines.clone().map(Target::writer).collect::<std::io::Result<Vec<_>>>()?;
        let writer = writers.into_iter().reduce(|one, other| BoxMakeWriter::new(one.and(other)));
        // the journal and syslog have the time
        let timed = std::env::var_os("JOURNAL_STREAM").is_none()
            && lines.clone().any(|to| !matches!(to, Target::Syslog(_)));
        let lines = writer.map(|writer| {
            let lines =
                tracing_subscriber::fmt::layer().with_writer(writer).with_target(false).with_ansi(false);
            if timed { lines.boxed() } else { lines.without_time().boxed() }
        });
        let all = tracing_subscriber::registry().with(LevelFilter::from_level(level));
        let _ = all.with(lines).with(journal).try_init();
        Ok(())
    }
}

impl Target {
    fn writer(&self) -> std::io::Result<BoxMakeWriter> {
        Ok(match self {
            Target::StandardError => BoxMakeWriter::new(std::io::stderr),
            Target::StandardOutput => BoxMakeWriter::new(std::io::stdout),
            Target::File(path) => BoxMakeWriter::new(Mutex::new(opened(path)?)),
            Target::Syslog(facility) => BoxMakeWriter::new(Syslog::new(*facility)?),
        })
    }
}

fn opened(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(0o640).open(path)
}

/// The system log's socket.
#[derive(Debug, Clone)]
struct Syslog {
    socket: Arc<UnixDatagram>,
    facility: u8,
}

/// One message on its way.
struct Message {
    syslog: Syslog,
    severity: u8,
}

impl Syslog {
    fn new(facility: u8) -> std::io::Result<Syslog> {
        let socket = UnixDatagram::unbound()?;
        // a log daemon that hangs must not hang us
        socket.set_nonblocking(true)?;
        socket.connect("/dev/log")?;
        Ok(Syslog { socket: Arc::new(socket), facility })
    }
}

impl<'w> MakeWriter<'w> for Syslog {
    type Writer = Message;

    fn make_writer(&'w self) -> Message {
        Message { syslog: self.clone(), severity: 6 }
    }

    fn make_writer_for(&'w self, about: &tracing::Metadata<'_>) -> Message {
        let severity = match *about.level() {
            Level::ERROR => 3,
            Level::WARN => 4,
            Level::INFO => 6,
            _ => 7,
        };
        Message { syslog: self.clone(), severity }
    }
}

impl Write for Message {
    fn write(&mut self, text: &[u8]) -> std::io::Result<usize> {
        let priority = self.syslog.facility * 8 + self.severity;
        let mut message = format!("<{priority}>ringfenced[{}]: ", std::process::id()).into_bytes();
        message.extend(text.trim_ascii_end());
        // what can't be logged is lost
        let _ = self.syslog.socket.send(&message);
        Ok(text.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
