//! Device rules of a group, the same on both cgroup versions: v1 has files for them, v2 takes a BPF program that is
//! made from them here (`access`: the rules' meaning, `program`: the instructions, `bpf`: the system calls).
//!
//! What a program does can't be read back, so the rules are kept beside it, in an extended attribute of the group's
//! directory; a reader checks that the program attached is the one of these rules. A group without a record of its
//! own has the rules of the nearest group above with one, as on v1 a new group copies its parent's.

mod access;
mod bpf;
mod program;
mod trouble;

use std::{
    collections::HashMap,
    os::fd::{AsFd, BorrowedFd},
};

use rustix::{
    fs::{OFlags, XattrFlags},
    io::Errno,
};
use settings::Version;

use crate::{Error, GroupName, Hierarchy, Host, Op, Real, Seat};
use trouble::Trouble;
use units::group_path;

pub(crate) use access::rule;
pub use access::{Behavior, DeviceAccess, Forbidden, Verb};

/// The record: `allow` or `deny` for devices that no exception names, then an exception a line.
const RECORD: &str = "trusted.ringfence.devices";
/// The largest value of an extended attribute.
const RECORD_BYTES: usize = 65_536;

/// The device rules that a v2 group was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceFilter {
    /// The rules.
    pub access: DeviceAccess,
    /// Is the program of these rules, and no other of ours, attached to the group?
    pub attached: bool,
}

/// The rules that were given to the group of this directory; `None` if it was given none.
///
/// # Errors
/// `EPERM` without CAP_SYS_ADMIN, `BADMSG` for a record that is none of ours.
pub(crate) fn read(group: BorrowedFd<'_>) -> Result<Option<DeviceFilter>, Errno> {
    let ours = match bpf::ours(group) {
        // no such programs on this kernel, so there is none here
        Err(Errno::INVAL | Errno::NOSYS) => Vec::new(),
        // asked before the record, which looks absent to a caller without the right
        ours => ours?,
    };
    let Some(access) = record(group)? else { return Ok(None) };
    let expected = bpf::Program::load(&program::instructions(&access))?;
    let attached = matches!(ours.as_slice(), [only] if only.tag == expected.tag);
    Ok(Some(DeviceFilter { access, attached }))
}

/// Gives a group rules of its own, or takes them off with `None`. The old rules hold until the new ones do; on
/// failure they stay.
///
/// # Errors
/// `EPERM` without CAP_SYS_ADMIN or where another program is attached as the only one, `EINVAL` or `ENOSYS` on a
/// kernel without CONFIG_CGROUP_BPF, `E2BIG` or `ENOSPC` for too many rules, `EOPNOTSUPP` where a group has no
/// extended attributes.
pub(crate) fn write(group: BorrowedFd<'_>, access: Option<&DeviceAccess>) -> Result<(), Errno> {
    let old = bpf::ours(group)?;
    let Some(access) = access else {
        old.iter().try_for_each(|program| program.detach(group))?;
        return set_record(group, None);
    };
    let program = bpf::Program::load(&program::instructions(access))?;
    let before = raw_record(group)?;
    set_record(group, Some(access.to_string().as_bytes()))?;
    let replaced = program.attach(group, old.first());
    if let Err(errno) = replaced {
        // the first error is the one to hear of
        let _ = set_record(group, before.as_deref());
        return Err(errno);
    }
    old.iter().skip(1).try_for_each(|program| program.detach(group))
}

fn record(group: BorrowedFd<'_>) -> Result<Option<DeviceAccess>, Errno> {
    let Some(bytes) = raw_record(group)? else { return Ok(None) };
    let text = std::str::from_utf8(&bytes).map_err(|_| Errno::BADMSG)?;
    text.parse().map(Some).map_err(|()| Errno::BADMSG)
}

fn raw_record(group: BorrowedFd<'_>) -> Result<Option<Vec<u8>>, Errno> {
    let mut bytes = vec![0; RECORD_BYTES];
    match rustix::fs::fgetxattr(group, RECORD, bytes.as_mut_slice()) {
        Ok(length) => {
            bytes.truncate(length);
            Ok(Some(bytes))
        }
        Err(Errno::NODATA | Errno::OPNOTSUPP) => Ok(None),
        Err(errno) => Err(errno),
    }
}

fn set_record(group: BorrowedFd<'_>, record: Option<&[u8]>) -> Result<(), Errno> {
    match record {
        Some(record) => rustix::fs::fsetxattr(group, RECORD, record, XattrFlags::empty()),
        None => match rustix::fs::fremovexattr(group, RECORD) {
            Err(Errno::NODATA | Errno::OPNOTSUPP) => Ok(()),
            done => done,
        },
    }
}

impl Real {
    /// [`crate::Kernel::device_filter`] of the running kernel.
    pub(crate) fn read_device_filter(
        &self,
        at: &Hierarchy,
        group: &str,
    ) -> Result<Option<DeviceFilter>, Errno> {
        read(self.open(at, group, "", OFlags::RDONLY | OFlags::DIRECTORY)?.as_fd())
    }

    /// [`crate::Kernel::set_device_filter`] of the running kernel.
    pub(crate) fn write_device_filter(
        &self,
        at: &Hierarchy,
        group: &str,
        access: Option<&DeviceAccess>,
    ) -> Result<(), Errno> {
        write(self.open(at, group, "", OFlags::RDONLY | OFlags::DIRECTORY)?.as_fd(), access)
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
    fn device_filter(&self, at: &Hierarchy, path: &str) -> Result<DeviceFilter, Errno> {
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
        let rule = access::rule(rule).ok_or(Trouble::NotARule)?;
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
        new.change(verb, &rule, above.as_ref(), !below.is_empty()).map_err(|forbidden| match forbidden {
            Forbidden::HasChildren => Trouble::HasChildren,
            Forbidden::Parent => Trouble::Parent(inherited.clone()),
        })?;
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
