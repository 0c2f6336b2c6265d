//! What can fail between the kernel's event sources and us.

use std::path::PathBuf;

use rustix::io::Errno;

/// Why there are no events.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A system call failed.
    #[error("{call}: {errno}")]
    Call {
        /// The call and what it was for.
        call: &'static str,
        /// The kernel's answer.
        errno: Errno,
    },
    /// The proc connector did not answer the subscription.
    #[error(
        "the kernel does not tell process events here\n\
         hint: the proc connector needs CONFIG_PROC_EVENTS and the first network and PID namespace"
    )]
    Unanswered,
    /// The proc connector refused the subscription.
    #[error(
        "the kernel refused to tell process events: {errno}\nhint: the proc connector needs CAP_NET_ADMIN"
    )]
    Subscription {
        /// The kernel's answer.
        errno: Errno,
    },
    /// The kernel refuses fanotify with permission events.
    #[error(
        "execs can't be held here: {errno}\n\
         hint: this needs CAP_SYS_ADMIN and CONFIG_FANOTIFY_ACCESS_PERMISSIONS"
    )]
    Gate {
        /// The kernel's answer to fanotify_init(2).
        errno: Errno,
    },
    /// An executable is named by a path that depends on the working directory.
    #[error("{}: not an absolute path", path.display())]
    NotAbsolute {
        /// The path as given.
        path: PathBuf,
    },
    /// An executable can't be marked or watched.
    #[error("{}: {call}: {errno}", path.display())]
    Executable {
        /// The path as given.
        path: PathBuf,
        /// What was tried.
        call: &'static str,
        /// The kernel's answer.
        errno: Errno,
    },
}

impl Error {
    /// For `map_err`: the error of `call`.
    pub(crate) fn of(call: &'static str) -> impl Fn(Errno) -> Error {
        move |errno| Error::Call { call, errno }
    }
}

pub(crate) fn of_nix(errno: nix::errno::Errno) -> Errno {
    Errno::from_raw_os_error(errno as i32)
}
