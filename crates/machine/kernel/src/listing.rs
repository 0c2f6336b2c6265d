//! Which groups there are, for a command that asks about many of them: a directory in which several are looked for is listed
//! once. As old as its first questions.

use std::{cell::RefCell, collections::HashMap};

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
    /// The names of all groups in it, with their inode numbers.
    Listed(HashMap<String, u64>),
}

impl<'h> Listing<'h> {
    /// Reads nothing yet.
    pub fn new(host: &'h Host) -> Listing<'h> {
        Listing { host, directories: RefCell::default() }
    }

    /// Is there such a group?
    pub fn holds(&self, at: &Hierarchy, path: &str) -> bool {
        self.listed(at, path).map_or_else(|| self.host.kernel().exists(at, path), |inode| inode.is_some())
    }

    /// The inode number of its directory, if there is such a group.
    pub fn inode(&self, at: &Hierarchy, path: &str) -> Option<u64> {
        self.listed(at, path).unwrap_or_else(|| self.host.kernel().inode(at, path).ok())
    }

    /// The answer of the parent's listing; `None` as long as it is not listed.
    fn listed(&self, at: &Hierarchy, path: &str) -> Option<Option<u64>> {
        let above = group_path::parent(path)?;
        let mut directories = self.directories.borrow_mut();
        let directory = directories.entry((at.id, above.to_owned())).or_insert(Directory::Asked(0));
        if let Directory::Asked(count) = directory {
            if *count < SINGLE {
                *count += 1;
                return None;
            }
            let names = match self.host.kernel().children_by_inode(at, above) {
                Ok(names) => names.into_iter().collect(),
                Err(Errno::NOENT | Errno::NODEV) => HashMap::new(),
                // it may be looked into, and not listed
                Err(_) => return None,
            };
            *directory = Directory::Listed(names);
        }
        match directory {
            Directory::Listed(names) => Some(names.get(group_path::name(path)).copied()),
            Directory::Asked(_) => None,
        }
    }

    /// As [`Host::seats`].
    pub fn seats(&self, group: &GroupName) -> Vec<Seat<'h>> {
        let seats = self.host.hierarchies().iter().map(|at| self.host.seat_in(at, group));
        seats.filter(|seat| self.holds(seat.at, &seat.path)).collect()
    }
}
