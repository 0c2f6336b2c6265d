//! Why nothing was measured.

use std::io;

use units::CpuSet;

/// Why nothing was measured.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The kernel's table can't be read.
    #[error("cannot read {file}: {source}")]
    Read {
        /// The file.
        file: &'static str,
        /// Why.
        source: io::Error,
    },
    /// No CPU was named.
    #[error("no CPU is named")]
    NoCpu,
    /// A CPU that does not run.
    #[error("CPU {cpu} is not online (those that are: {online})")]
    Offline {
        /// The CPU.
        cpu: usize,
        /// Those that are.
        online: CpuSet,
    },
}

impl Error {
    /// What to do.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Error::Offline { .. } => Some("ringfence topology shows the CPUs"),
            Error::NoCpu => Some("for example 2-3, or a group that has CPUs"),
            Error::Read { .. } => None,
        }
    }
}
