//! Which groups there are, for a command that asks about many of them: a directory in which several are looked for is listed
//! once. As old as its first questions.

use std::{
    cell::RefCell,
    collections::{HashMap, HashSet},
};

use rustix::io::Errno;
use units::group_path;

use crate::{GroupName, Hierarchy, Host, Seat};

/// So many groups of one directory are looked for one by one, before it is listed.
const SINGLE: usize = 8;

/// Answers which groups exist.
pub struct Listing<'h> {
    host: &'h Host,
    directories: RefCell<HashMap<(usize, String), Directory>>,
}

enum Directory {
    /// How many groups in it were looked for.
    Asked(usize),
    /// The names of all groups in it.
    Listed(HashSet<String>),
}

impl<'h> Listing<'h> {
    /// Reads nothing yet.
    pub fn new(host: &'h Host) -> Listing<'h> {
        Listing { host, directories: RefCell::default() }
    }

    /// Is there such a group?
    pub fn holds(&self, at: &Hierarchy, path: &str) -> bool {
        let Some(above) = group_path::parent(path) else { return self.host.kernel().exists(at, path) };
        let mut directories = self.directories.borrow_mut();
        let directory = directories.entry((at.id, above.to_owned())).or_insert(Directory::Asked(0));
        if let Directory::Asked(count) = directory {
            if *count < SINGLE {
                *count += 1;
                return self.host.kernel().exists(at, path);
            }
            let names = match self.host.kernel().children_by_inode(at, above) {
                Ok(names) => names.into_iter().map(|(name, _)| name).collect(),
                Err(Errno::NOENT | Errno::NODEV) => HashSet::new(),
                // it may be looked into, and not listed
                Err(_) => return self.host.kernel().exists(at, path),
            };
            *directory = Directory::Listed(names);
        }
        matches!(directory, Directory::Listed(names) if names.contains(group_path::name(path)))
    }

    /// As [`Host::seats`].
    pub fn seats(&self, group: &GroupName) -> Vec<Seat<'h>> {
        let seats = self.host.hierarchies().iter().map(|at| self.host.seat_in(at, group));
        seats.filter(|seat| self.holds(seat.at, &seat.path)).collect()
    }
}
