//! Making and removing groups, and who may: cgroupfs as a file system.

use kernel::Ownership;
use rustix::io::Errno;
use settings::{Controller, Version};
use units::group_path;

use crate::{
    core_v2, cpuset_v1, devices, files,
    state::{Group, Owner, Place, State},
};

impl Owner {
    /// May `uid` do what one of the bits 4 (read), 2 (write), 1 (enter) stands for? Groups of users are not
    /// modelled: every user but the owner counts as one of the others.
    pub fn allows(self, uid: u32, bit: u32) -> bool {
        uid == 0 || (if uid == self.uid { self.mode >> 6 } else { self.mode }) & bit != 0
    }
}

impl Group {
    pub fn new(uid: u32, mode: u32, inode: u64) -> Group {
        let (files, values) = Default::default();
        Group { owner: Owner { uid, gid: uid, mode }, inode, maker: (uid, uid), files, values }
    }
}

impl State {
    /// The group is there, and the caller may pass through its directory and those above it.
    pub fn may_enter(&self, place: &Place) -> Result<(), Errno> {
        let path: Vec<Place> = place.upward().collect();
        for step in path.iter().rev() {
            let group = self.group(step).ok_or(Errno::NOENT)?;
            if !group.owner.allows(self.caller.1, 1) {
                return Err(Errno::ACCESS);
            }
        }
        Ok(())
    }

    /// Is the hierarchy mounted for writing?
    pub fn is_writable(&self, place: &Place) -> Result<(), Errno> {
        if self.trees[place.tree].at.read_only { Err(Errno::ROFS) } else { Ok(()) }
    }

    /// May the caller make and remove groups here?
    pub fn may_change(&self, place: &Place) -> Result<(), Errno> {
        self.may_enter(place)?;
        let owner = self.group(place).ok_or(Errno::NOENT)?.owner;
        if owner.allows(self.caller.1, 2) { Ok(()) } else { Err(Errno::ACCESS) }
    }

    pub fn mkdir(&mut self, place: &Place) -> Result<(), Errno> {
        let parent = self.parent_directory(place)?;
        let name = group_path::name(&place.group);
        if self.group(place).is_some() || files::find(self, &parent, name).is_some() {
            return Err(Errno::EXIST);
        }
        self.is_writable(place)?;
        self.may_change(&parent)?;
        if name.contains('\n') {
            return Err(Errno::INVAL);
        }
        self.has_room(place)?;
        self.last_inode += 1;
        let group = Group::new(self.caller.1, 0o755, self.last_inode);
        self.trees[place.tree].groups.insert(place.group.clone(), group);
        self.inherit(place, &parent);
        Ok(())
    }

    pub fn rmdir(&mut self, place: &Place) -> Result<(), Errno> {
        if place.is_root() {
            return Err(Errno::INVAL);
        }
        self.is_writable(place)?;
        let parent = self.parent_directory(place)?;
        let name = group_path::name(&place.group);
        if files::find(self, &parent, name).is_some() {
            return Err(Errno::NOTDIR);
        }
        self.may_enter(place)?;
        self.may_change(&parent)?;
        if !self.children(place).is_empty() || self.is_populated(place) {
            return Err(Errno::BUSY);
        }
        self.trees[place.tree].groups.remove(&place.group);
        Ok(())
    }

    fn parent_directory(&self, place: &Place) -> Result<Place, Errno> {
        let parent = place.parent().ok_or(Errno::EXIST)?;
        if self.group(&parent).is_some() {
            return Ok(parent);
        }
        let name = group_path::name(&parent.group);
        let is_file = parent.parent().is_some_and(|above| files::find(self, &above, name).is_some());
        Err(if is_file { Errno::NOTDIR } else { Errno::NOENT })
    }

    /// v2's limits on the number of groups; a v1 memory group without any memory has none for a child either.
    fn has_room(&self, place: &Place) -> Result<(), Errno> {
        match self.version(place) {
            Version::V2 => core_v2::has_room(self, place),
            Version::V1 => {
                let starved = files::has_controller(self, place, Controller::Memory)
                    && place
                        .parent()
                        .is_some_and(|parent| self.value(&parent, "memory.limit_in_bytes") == "0");
                if starved { Err(Errno::NOMEM) } else { Ok(()) }
            }
        }
    }

    /// What a new v1 group takes over from its parent.
    fn inherit(&mut self, place: &Place, parent: &Place) {
        if self.version(place) == Version::V2 {
            return;
        }
        let inherited = [
            "cgroup.clone_children",
            "notify_on_release",
            "memory.swappiness",
            "cpuset.memory_spread_page",
            "cpuset.memory_spread_slab",
        ];
        for name in inherited {
            if files::find(self, place, name).is_some() {
                let value = self.value(parent, name).to_owned();
                self.set(place, name, value);
            }
        }
        if files::has_controller(self, place, Controller::Cpuset) {
            cpuset_v1::clone_from_parent(self, place, parent);
        }
        if files::has_controller(self, place, Controller::Devices) {
            devices::take_over(self, place, parent);
        }
    }

    /// chown(2) and chmod(2) of the group's directory or one of its files.
    pub fn set_ownership(&mut self, place: &Place, file: Option<&str>, to: Ownership) -> Result<(), Errno> {
        self.may_enter(place)?;
        let (name, mut owner) = match file {
            None => (None, self.group(place).ok_or(Errno::NOENT)?.owner),
            Some(name) => {
                let file = files::find(self, place, name).ok_or(Errno::NOENT)?;
                (Some(file.name), files::owner(self, place, file).ok_or(Errno::NOENT)?)
            }
        };
        self.is_writable(place)?;
        let uid = self.caller.1;
        if uid != 0 && (to.uid.is_some() || to.gid.is_some_and(|gid| gid != uid) || owner.uid != uid) {
            return Err(Errno::PERM);
        }
        owner.uid = to.uid.unwrap_or(owner.uid);
        owner.gid = to.gid.unwrap_or(owner.gid);
        owner.mode = to.mode.unwrap_or(owner.mode);
        if let Some(group) = self.group_mut(place) {
            match name {
                Some(name) => {
                    group.files.insert(name, owner);
                }
                None => group.owner = owner,
            }
        }
        Ok(())
    }
}
