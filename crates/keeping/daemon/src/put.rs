//! The short way into a group that is there: one write per hierarchy, to a file that stays open. What is refused is done
//! again the long way ([`kernel::Host::move_into`]), which explains the refusal, once what was written here is taken back.

use std::os::fd::OwnedFd;

use classify::{Goal, Membership, seats};
use kernel::{Host, Seat};
use rustix::io::Errno;

/// What came of the short way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Placement {
    /// It is there with all its threads.
    Done,
    /// It ended.
    NoProcess,
    /// Refused; it is where it was.
    Refused,
}

/// A group's directory in one hierarchy.
#[derive(Debug)]
pub(crate) struct Place {
    /// The hierarchy ([`kernel::Hierarchy::id`]).
    pub at: usize,
    /// The path below its mount.
    pub path: String,
    /// Its `cgroup.procs`, if it stays open.
    processes: Option<OwnedFd>,
}

impl Place {
    const FILE: &str = "cgroup.procs";

    /// The places of goals, their files left open if `keep` says so; `None` if one is not there (yet).
    pub fn of(host: &Host, goals: &[Goal], keep: bool) -> Option<Vec<Place>> {
        let place = |seat: Seat<'_>| {
            let processes = keep.then(|| host.kernel().hold(seat.at, &seat.path, Self::FILE).ok()).flatten();
            Place { at: seat.at.id, path: seat.path, processes }
        };
        Some(seats(host, goals).ok()?.into_iter().map(|(seat, _)| place(seat)).collect())
    }

    /// Is a process in all of them?
    pub fn hold(places: &[Place], member: &Membership) -> bool {
        places.iter().all(|place| member.at(place.at) == Some(place.path.as_str()))
    }

    fn write(&self, host: &Host, pid: &str) -> Result<(), Errno> {
        match &self.processes {
            Some(file) => kernel::write_to(file, pid.as_bytes()),
            None => write(host, self.at, &self.path, pid),
        }
    }
}

/// Puts a process into places that are there. `from`: where it is.
pub(crate) fn put(host: &Host, places: &[Place], pid: u32, from: &Membership) -> Placement {
    let pid = pid.to_string();
    for (done, place) in places.iter().enumerate() {
        let failed = match place.write(host, &pid) {
            Ok(()) => continue,
            Err(Errno::SRCH) => Placement::NoProcess,
            Err(_) => Placement::Refused,
        };
        for place in places[..done].iter().rev() {
            if let Some(path) = from.at(place.at) {
                let _ = write(host, place.at, path, &pid);
            }
        }
        return failed;
    }
    Placement::Done
}

fn write(host: &Host, at: usize, path: &str, pid: &str) -> Result<(), Errno> {
    let at = host.hierarchies().get(at).ok_or(Errno::NODEV)?;
    host.kernel().write(at, path, Place::FILE, pid)
}
