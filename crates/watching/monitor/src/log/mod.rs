//! The recorder's log: raw samples on disk, append-only, checksummed, compressed, with a bound on its size.
//!
//! A log is a directory of segments, `MILLISECONDS.rflog` by the time of their first record. A segment is the line
//! `MAGIC` and records; a record is a frame around a compressed record. A segment begins with a key record,
//! which stands alone; others hold what changed since the one before. Segments are only appended to, and the oldest
//! is removed when the whole is larger than its bound.
//!
//! A record that was cut off (kill -9, a full disk, lost power) or damaged (a flipped bit) is found by its length or
//! checksum. Reading reports it and goes on with the next valid key record: the changes before that one can't be applied.
//! Nothing that is valid is ever removed but to keep the bound.

mod frame;
mod numbers;
mod reader;
mod record;
mod recording;
mod samples;
mod segment;
mod writer;

#[cfg(test)]
mod tests;

use std::path::PathBuf;

pub use frame::{Kind as RecordKind, put as put_record};
pub use reader::Log;
pub use recording::{Broken, Recorded, Recording, Turn};
pub use samples::Samples;
pub use writer::{Recorder, RecorderOptions};

/// The first bytes of a segment; the number is the format's.
pub const MAGIC: &[u8] = b"ringfence log 1\n";
/// The end of a segment's name.
const ENDING: &str = "rflog";

/// The default directory of the log.
pub const DIRECTORY: &str = "/var/log/ringfence";
/// The variable that names another place.
pub const VARIABLE: &str = "RINGFENCE_LOG";

/// The directory of the log when none is named: what [`VARIABLE`] says, or [`DIRECTORY`].
pub fn directory() -> PathBuf {
    std::env::var_os(VARIABLE).map_or_else(|| PathBuf::from(DIRECTORY), PathBuf::from)
}

/// Why the log can't be read or written.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// A file or the directory is refused.
    #[error("cannot {what} {path}: {source}", path = shown(path))]
    File {
        /// What was to be done.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// A file of that name is no segment of this format.
    #[error("{path} is not a log of this version of ringfence", path = shown(path))]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// Somebody else records there.
    #[error("another recorder writes to {directory}", directory = shown(directory))]
    Busy {
        /// The log.
        directory: PathBuf,
    },
    /// What has a segment's name is no file: a directory, a FIFO, a device.
    #[error("{path} is not a regular file", path = shown(path))]
    Irregular {
        /// What has that name.
        path: PathBuf,
    },
    /// A sample is larger than a record may be.
    #[error("a sample of {bytes} bytes does not fit into a record of the log")]
    TooLarge {
        /// Its size.
        bytes: usize,
    },
}

impl LogError {
    /// A way out, if one is known.
    pub fn hint(&self) -> Option<String> {
        match self {
            LogError::File { what, source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
                match *what {
                    "list" => Some("ringfence record begins a log".to_owned()),
                    "make" => Some("make the directory above it first".to_owned()),
                    _ => None,
                }
            }
            LogError::File { .. } => None,
            LogError::Foreign { .. } => {
                Some("move it away, or read it with the version that wrote it".to_owned())
            }
            LogError::Irregular { path } => {
                let path = path.display().to_string();
                Some(units::hint::Command::new("rm").arg(path).to_string())
            }
            LogError::Busy { .. } => {
                Some("read it with ringfence dump, or name another directory".to_owned())
            }
            LogError::TooLarge { .. } => Some("record fewer groups".to_owned()),
        }
    }
}

/// A path as it may be printed: the name of the directory is its maker's choice.
fn shown(path: &std::path::Path) -> String {
    units::printable(&path.display().to_string()).into_owned()
}

/// A part of a segment that can't be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Torn {
    /// The segment.
    pub path: PathBuf,
    /// Where the part begins.
    pub at: u64,
    /// How many bytes long it is.
    pub bytes: u64,
    /// Valid records may follow it. If none does, it is a record that was cut off.
    pub goes_on: bool,
    /// How many valid records behind it only say what changed since it, so that they can't be read either.
    pub passed_over: u64,
}

impl std::fmt::Display for Torn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Torn { path, at, bytes, goes_on, passed_over } = self;
        let path = shown(path);
        if !goes_on {
            return write!(f, "{path} ends in a record that was cut off: {bytes} bytes from byte {at} on");
        }
        write!(f, "{path} has a damaged record: {bytes} bytes from byte {at} on")?;
        match passed_over {
            0 => Ok(()),
            1 => write!(f, ", and the sample behind it depends on it"),
            more => write!(f, ", and the {more} samples behind it depend on it"),
        }
    }
}

/// The segments of a directory, oldest first.
fn segments(directory: &std::path::Path) -> Result<Vec<PathBuf>, LogError> {
    let failed = |source| LogError::File { what: "list", path: directory.to_owned(), source };
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if milliseconds(&path).is_some() {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// When a segment begins; `None` if the file is none.
fn milliseconds(path: &std::path::Path) -> Option<u64> {
    let is_segment = path.extension().is_some_and(|ending| ending == ENDING);
    let stem = path.file_stem()?.to_str()?;
    // of one length, so that names sort as numbers do
    (is_segment && stem.len() == 14).then(|| stem.parse().ok())?
}
