//! The history's changes as events: who waits for them sleeps until a generation begins or ends.

use std::{mem::MaybeUninit, os::fd::OwnedFd};

use apply::State;
use rustix::{
    fs::inotify::{self, CreateFlags, Reader, WatchFlags},
    io::Errno,
};

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
