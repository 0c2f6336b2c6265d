//! Why the page is not served.

use std::net::SocketAddr;

/// Why; each with a hint where one is known.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Others could reach it.
    #[error("{0} is not a loopback address: other machines would reach the page")]
    NotLoopback(SocketAddr),
    /// The address is taken, or there is none such.
    #[error("cannot listen on {address}: {error}")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// Why not.
        error: std::io::Error,
    },
    /// No thread, no descriptor.
    #[error("cannot start: {0}")]
    Start(std::io::Error),
    /// The kernel has no random numbers.
    #[error("there is no random token: {}", kernel::describe(*.0))]
    Random(rustix::io::Errno),
}

impl Error {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Error::NotLoopback(address) => Some(format!(
                "listen on 127.0.0.1, and reach it from elsewhere by ssh -L {port}:127.0.0.1:{port} THIS-MACHINE",
                port = if address.port() == 0 { 8080 } else { address.port() }
            )),
            Error::Listen { error, .. } if error.kind() == std::io::ErrorKind::AddrInUse => {
                Some("--listen 127.0.0.1:0 takes a free port".to_owned())
            }
            Error::Listen { .. } | Error::Start(_) | Error::Random(_) => None,
        }
    }
}
