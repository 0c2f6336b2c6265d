//! Why a machine could not be read, merged or printed.

use std::{io, path::PathBuf};

/// Every failure of this crate. The message has no hint in it; [`TopologyError::hint`] has.
#[derive(Debug, thiserror::Error)]
pub enum TopologyError {
    /// A file that must be there could not be read.
    #[error("cannot read {}: {reason}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the kernel said.
        reason: io::Error,
    },
    /// A file of `/sys` or `/proc` holds something else than it should.
    #[error("{}: expected {expected}, found {found}", path.display())]
    Value {
        /// The file.
        path: PathBuf,
        /// What should be there.
        expected: String,
        /// What is there, in quotes and cut to a readable length.
        found: String,
    },
    /// A listing has a wrong line.
    #[error("{name}:{line}: expected {expected}, found {found}")]
    Listing {
        /// The listing's name.
        name: String,
        /// The line, from 1.
        line: usize,
        /// What should be there.
        expected: String,
        /// What is there, in quotes and cut to a readable length, or `the end`.
        found: String,
    },
    /// A listing of no known kind.
    #[error("{name}: not a machine listing of a known format (it begins with {begins})")]
    UnknownFormat {
        /// The listing's name.
        name: String,
        /// Its first line, in quotes and cut, or `nothing`.
        begins: String,
    },
    /// A listing longer than [`crate::MAX_LISTING`].
    #[error("{name}: {bytes} bytes are too long for a machine listing (at most {most})")]
    TooLong {
        /// The listing's name.
        name: String,
        /// Its length.
        bytes: usize,
        /// The most that is read.
        most: usize,
    },
    /// Our own JSON in a version that this program does not know.
    #[error("{name}: machine JSON of version {found}, but this program reads version {known}")]
    Version {
        /// The listing's name.
        name: String,
        /// The version it says.
        found: u64,
        /// The version that is known.
        known: u64,
    },
    /// The parts of a description contradict each other.
    #[error("{name}: {what}")]
    Contradiction {
        /// The source's name.
        name: String,
        /// What contradicts what.
        what: String,
    },
    /// Two descriptions are not of the same machine.
    #[error("{first} and {second} do not describe the same machine: {what}")]
    Merge {
        /// The first description's source.
        first: String,
        /// The second description's source.
        second: String,
        /// What differs.
        what: String,
    },
    /// A form to print in needs what the sources lack.
    #[error("format '{format}' needs {missing}, which {source_name} does not tell")]
    Missing {
        /// The form.
        format: &'static str,
        /// What is missing.
        missing: String,
        /// The sources.
        source_name: String,
    },
}

impl TopologyError {
    /// How to fix it, where there is a way.
    pub fn hint(&self) -> Option<String> {
        match self {
            TopologyError::UnknownFormat { .. } => Some(format!("known formats are {KNOWN}")),
            TopologyError::Missing { .. } => Some(
                "give a second listing of the same machine that has it (--machine may be repeated)"
                    .to_owned(),
            ),
            TopologyError::Version { found, known, .. } if found > known => {
                Some("a newer ringfence wrote it; read it with that".to_owned())
            }
            _ => None,
        }
    }
}

/// The formats that [`crate::Machine::from_listing`] recognises.
const KNOWN: &str = "`numactl --hardware`, `lscpu` (also with -e, -p or -J), `lstopo` (text, or --of xml), the \
                     per-CPU listing (`ringfence topology --format cpus`) and `ringfence topology --json`";
