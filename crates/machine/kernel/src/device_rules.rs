//! Device rules of a group, the same on both cgroup versions: v1 has files for them, v2 takes a program
//! ([`bpf`]).

mod trouble;

use std::{collections::HashMap, os::fd::AsFd};

use crate::bpf::{self, DeviceFilter};
use rustix::{fs::OFlags, io::Errno};
use settings::{
    Version,
    devices::{self, DeviceAccess, Forbidden, Verb},
};
use units::group_path;

use crate::{Error, GroupName, Hierarchy, Host, Op, Real, Seat};
use trouble::Trouble;

impl Real {
    /// [`crate::Kernel::device_filter`] of the running kernel.
    pub(crate) fn read_device_filter(
        &self,
        at: &Hierarchy,
        group: &str,
    ) -> Result<Option<DeviceFilter>, Errno> {
        bpf::read(self.open(at, group, "", OFlags::RDONLY | OFlags::DIRECTORY)?.as_fd())
    }

    /// [`crate::Kernel::set_device_filter`] of the running kernel.
    pub(crate) fn write_device_filter(
        &self,
        at: &Hierarchy,
        group: &str,
        access: Option<&DeviceAccess>,
    ) -> Result<(), Errno> {
        bpf::write(self.open(at, group, "", OFlags::RDONLY | OFlags::DIRECTORY)?.as_fd(), access)
    }
}

impl Host {
    /// What a group may use, as v1's `devices.list` prints it. On v2 this is what we gave it: what programs of
    /// others (systemd's `DeviceAllow=`, a container's) take from that is not seen.
    ///
    /// # Errors
    /// [`Error::Refused`]: no right to ask, or the program is not attached any more.
    pub fn read_devices(&self, seat: &Seat<'_>, group: &GroupName) -> Result<String, Error> {
        const FILE: &str = "devices.list";
        if seat.at.version == Version::V1 {
            return self.read(seat, group, FILE);
        }
        let refused = |trouble| self.refused_devices(Op::Read, seat, group, FILE, None, &trouble);
        match self.device_filter(seat.at, &seat.path) {
            Ok(filter) if filter.attached => Ok(filter.access.list_text()),
            Ok(_) => Err(refused(Trouble::Detached)),
            Err(errno) => Err(refused(Trouble::Kernel(errno))),
        }
    }

    /// Changes what a group may use by one rule (`c 1:3 rwm`, `b *:* r`, `a`), as a write to v1's `devices.allow` or
    /// `devices.deny` does: a deny also reaches the groups below, an allow does not. On v2 also puts back a
    /// program that was taken off meanwhile. Of two callers at once on v2, the earlier one's rule may be lost.
    ///
    /// # Errors
    /// [`Error::Refused`], and nothing was changed.
    pub fn write_devices(
        &self,
        seat: &Seat<'_>,
        group: &GroupName,
        file: &str,
        rule: &str,
    ) -> Result<(), Error> {
        if seat.at.version == Version::V1 {
            return self.write(seat, group, file, rule);
        }
        let done =
            self.device_changes(seat, file, rule).and_then(|changes| self.carry_out(seat.at, &changes));
        done.map_err(|trouble| self.refused_devices(Op::Write, seat, group, file, Some(rule), &trouble))
    }

    /// The rules that hold for a v2 group: its own, or those of the nearest group above that has some.
    ///
    /// # Errors
    /// No right to look, or the kernel has no such programs.
    pub fn device_filter(&self, at: &Hierarchy, path: &str) -> Result<DeviceFilter, Errno> {
        let mut path = path;
        loop {
            if let Some(filter) = self.kernel.device_filter(at, path)? {
                return Ok(filter);
            }
            match group_path::parent(path) {
                Some(above) => path = above,
                None => return Ok(DeviceFilter { access: DeviceAccess::all(), attached: true }),
            }
        }
    }

    fn is_taken_off(&self, at: &Hierarchy, path: &str) -> Result<bool, Errno> {
        Ok(self.kernel.device_filter(at, path)?.is_some_and(|filter| !filter.attached))
    }

    fn own_devices(&self, at: &Hierarchy, path: &str) -> Result<Option<DeviceAccess>, Errno> {
        Ok(self.kernel.device_filter(at, path)?.map(|filter| filter.access))
    }

    /// The records that one rule changes, in the group itself and below it, in an order in which no group may
    /// meanwhile use more than before and after.
    fn device_changes(&self, seat: &Seat<'_>, file: &str, rule: &str) -> Result<Vec<Change>, Trouble> {
        let verb = match file {
            "devices.allow" => Verb::Allow,
            "devices.deny" => Verb::Deny,
            _ => return Err(Trouble::Kernel(Errno::NOENT)),
        };
        let rule = devices::rule(rule).ok_or(Trouble::NotARule)?;
        let (at, path) = (seat.at, seat.path.as_str());
        let below = self.kernel.descendants(at, path)?;
        let above = match group_path::parent(path) {
            Some(above) => Some(self.device_filter(at, above)?.access),
            None => None,
        };
        let inherited = above.clone().unwrap_or_else(DeviceAccess::all);
        let own = self.own_devices(at, path)?;
        let old = own.clone().unwrap_or_else(|| inherited.clone());
        let mut new = old.clone();
        let changed = new.change(verb, &rule, above.as_ref(), !below.is_empty());
        match changed {
            Ok(()) => {}
            // it only puts back a program that was taken off
            Err(Forbidden::HasChildren)
                if self.is_taken_off(at, path)?
                    && new.change(verb, &rule, above.as_ref(), false).is_ok()
                    && new == old => {}
            Err(Forbidden::HasChildren) => return Err(Trouble::HasChildren),
            Err(Forbidden::Parent) => return Err(Trouble::Parent(inherited)),
        }
        // written even if it is the same: the program may have been taken off
        let to = (new != inherited).then(|| new.clone());
        let mut changes = vec![Change { path: path.to_owned(), from: own, to }];
        let mut states = HashMap::from([(path.to_owned(), (old, new.clone()))]);
        for path in below {
            let Some((old_above, new_above)) = group_path::parent(&path).and_then(|above| states.get(above))
            else {
                continue;
            };
            let own = self.own_devices(at, &path)?;
            let old = own.clone().unwrap_or_else(|| old_above.clone());
            let mut now = old.clone();
            if verb == Verb::Deny {
                now.narrow(&rule, &new, new_above);
            }
            let to = (now != *new_above).then(|| now.clone());
            if to != own {
                changes.push(Change { path: path.clone(), from: own, to });
            }
            states.insert(path, (old, now));
        }
        if verb == Verb::Allow {
            changes.reverse(); // a group below first keeps what it has, then the one above gets more
        }
        Ok(changes)
    }

    /// All of the changes or none.
    fn carry_out(&self, at: &Hierarchy, changes: &[Change]) -> Result<(), Trouble> {
        for (done, change) in changes.iter().enumerate() {
            if let Err(errno) = self.kernel.set_device_filter(at, &change.path, change.to.as_ref()) {
                for change in changes[..done].iter().rev() {
                    // the first error is the one to hear of
                    let _ = self.kernel.set_device_filter(at, &change.path, change.from.as_ref());
                }
                return Err(Trouble::Kernel(errno));
            }
        }
        Ok(())
    }

    fn refused_devices(
        &self,
        op: Op,
        seat: &Seat<'_>,
        group: &GroupName,
        file: &str,
        value: Option<&str>,
        trouble: &Trouble,
    ) -> Error {
        let error = self.refused(op, seat, group, Some(file), value, trouble.errno());
        let Error::Refused(mut refusal) = error else { return error };
        refusal.path = seat.directory(); // there is no such file
        if let Some((cause, hint)) = trouble.explained(&seat.directory(), file) {
            (refusal.cause, refusal.hint) = (Some(cause), Some(hint));
        }
        Error::Refused(refusal)
    }
}

/// A record to write.
struct Change {
    path: String,
    /// The rules of its own that the group had.
    from: Option<DeviceAccess>,
    /// Those that it gets; `None` where the group above has the same.
    to: Option<DeviceAccess>,
}
