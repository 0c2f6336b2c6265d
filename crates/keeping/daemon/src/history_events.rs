//! The history's changes as events: who waits for them sleeps until a generation begins or ends.

use std::{
    mem::MaybeUninit,
    os::{
        fd::{AsFd, OwnedFd},
        unix::net::UnixStream,
    },
    time::Duration,
};

use apply::State;
use rustix::{
    event::{PollFd, PollFlags, poll},
    fs::inotify::{self, CreateFlags, Reader, WatchFlags},
    io::Errno,
};

use crate::timespec::timespec;

/// A descriptor that becomes readable with each.
///
/// # Errors
/// The kernel's errno: no descriptor or watch is left.
pub(crate) fn watch(state: &State) -> Result<OwnedFd, Errno> {
    let inotify = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
    let what = WatchFlags::CREATE | WatchFlags::MOVED_TO | WatchFlags::ONLYDIR;
    inotify::add_watch(&inotify, state.directory().join("generations"), what)?;
    Ok(inotify)
}

/// Takes all events that are there.
pub(crate) fn drain(events: &OwnedFd) {
    let mut bytes = [MaybeUninit::uninit(); 4096];
    let mut reader = Reader::new(events, &mut bytes);
    while reader.next().is_ok() {}
}

/// Waits for the time, or without one until the history changes. True at the daemon's end.
pub(crate) fn is_stopped_within(
    stopped: &UnixStream,
    events: Option<&OwnedFd>,
    time: Option<Duration>,
) -> bool {
    let time = time.map(timespec);
    let changes = events.map_or(stopped.as_fd(), AsFd::as_fd);
    let mut both = [PollFd::new(stopped, PollFlags::IN), PollFd::from_borrowed_fd(changes, PollFlags::IN)];
    let _ = poll(&mut both, time.as_ref()); // interrupted: it looks once more
    let is_stopped = !both[0].revents().is_empty();
    events.into_iter().for_each(drain);
    is_stopped
}
