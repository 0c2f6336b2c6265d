//! The control groups of systemd's units: found by a unit's name in the tree of units, without asking systemd. A user's
//! own units are in that user's `user@UID.service` and are not meant.

use settings::{GroupName, Version};
use topology::facts::UNIT_NAME;
use units::{group_path, nearest};

use crate::{Error, Hierarchy, Host, Seat, owners::systemd_manages, unit::is_unit_name, unit_of};

/// The most slices that are in each other; systemd's names have at most 255 characters.
const DEEPEST: usize = 128;

impl Host {
    /// Could this be the name of a unit here? Looks at nothing but the name.
    pub fn is_unit_name(&self, name: &GroupName) -> bool {
        self.systemd && !name.is_from_root() && is_unit_name(name.path())
    }

    /// The group of a unit, named from the hierarchy's root.
    ///
    /// # Errors
    /// [`Error::NoUnit`] with names near to it.
    pub fn unit_group(&self, unit: &str) -> Result<GroupName, Error> {
        let units = self.units();
        if let Some((_, path)) = units.iter().find(|(known, _)| known == unit) {
            return Ok(GroupName::new(&format!("/{path}"))?);
        }
        let near = nearest(unit, units.iter().map(|(known, _)| known.as_str()));
        Err(Error::NoUnit { unit: unit.to_owned(), near: near.into_iter().map(str::to_owned).collect() })
    }

    /// The names of all units that have a group now.
    pub fn unit_names(&self) -> Vec<String> {
        let units = self.units().into_iter().map(|(unit, _)| unit);
        units.filter(|unit| unit != UNIT_NAME).collect()
    }

    /// All units that have a group now, with the group's path below the mount.
    pub(crate) fn units(&self) -> Vec<(String, String)> {
        let mut found = Vec::new();
        for at in self.unit_trees() {
            let mut left = vec![(String::new(), 0)];
            while let Some((slice, depth)) = left.pop() {
                for name in self.kernel.children(at, &slice).unwrap_or_default() {
                    let path = group_path::join(&slice, &name);
                    let Some(unit) = unit_of(&path).filter(|_| is_unit(&name)) else { continue };
                    if unit.ends_with(".slice") && depth < DEEPEST {
                        left.push((path.clone(), depth + 1));
                    }
                    found.push((unit, path));
                }
            }
        }
        found
    }

    /// The unit of systemd that a process is in, if it is not ours; a user's own units are that user's
    /// `user@UID.service`.
    pub fn unit_of_process(&self, pid: u32) -> Option<String> {
        let path = self.unit_trees().find_map(|at| self.kernel.group_of(at, pid).ok())?;
        unit_of(&path).filter(|unit| unit != UNIT_NAME)
    }

    /// The hierarchies that have the tree of units: v2 first, as all of it is there.
    fn unit_trees(&self) -> impl Iterator<Item = &Hierarchy> {
        let managed = || self.hierarchies().iter().filter(|at| self.systemd && systemd_manages(at));
        let v2 = managed().filter(|at| at.version == Version::V2);
        v2.chain(managed().filter(|at| at.version == Version::V1 && at.name.is_some()))
    }

    /// What a group was given, file and text. What systemd has no property for is left out, and what a new group has too.
    pub(crate) fn given<'s, 'h: 's>(
        &self,
        seats: impl Iterator<Item = &'s Seat<'h>>,
    ) -> Vec<(String, String)> {
        let of_seat = |seat: &Seat<'_>| {
            let files = self.kernel.files(seat.at, &seat.path).unwrap_or_default();
            let of_file = |file: &String| {
                let text = self.kernel.read(seat.at, &seat.path, file).ok()?;
                let text = text.trim();
                let is_new = text.is_empty() || text == "default 100";
                let is_new = is_new || settings::initial(Version::V2, file) == Some(text);
                (!is_new).then(|| (file.clone(), text.to_owned()))
            };
            let has_property = |file: &&String| !settings::bus_names(file).is_empty();
            files.iter().filter(has_property).filter_map(of_file).collect::<Vec<_>>()
        };
        seats.filter(|seat| seat.at.version == Version::V2).flat_map(of_seat).collect()
    }
}

/// systemd puts "_" before a name that would clash with a kernel file.
fn is_unit(directory: &str) -> bool {
    is_unit_name(directory.strip_prefix('_').unwrap_or(directory))
}
