//! The device rules of a v2 group, as a BPF program on its directory that is made from them here (`program`: the
//! instructions, `calls`: bpf(2)).
//!
//! What a program does can't be read back, so its rules are stored in an extended attribute of the group's
//! directory; a reader checks that the program attached is the one of these rules. A group without a record of its
//! own has the rules of the nearest group above with one, as on v1 a new group copies its parent's.

mod calls;
mod program;

use std::os::fd::BorrowedFd;

use rustix::{fs::XattrFlags, io::Errno};
use settings::devices::DeviceAccess;

/// The record: `allow` or `deny` for devices that no exception names, then an exception a line.
pub const RECORD: &str = "trusted.ringfence.devices";
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
pub fn read(group: BorrowedFd<'_>) -> Result<Option<DeviceFilter>, Errno> {
    let ours = match calls::ours(group) {
        // no such programs on this kernel, so there is none here
        Err(Errno::INVAL | Errno::NOSYS) => Vec::new(),
        // before the record is read: without the right it looks absent
        ours => ours?,
    };
    let Some(access) = record(group)? else { return Ok(None) };
    let expected = calls::Program::load(&program::instructions(&access))?;
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
pub fn write(group: BorrowedFd<'_>, access: Option<&DeviceAccess>) -> Result<(), Errno> {
    let old = calls::ours(group)?;
    let Some(access) = access else {
        old.iter().try_for_each(|program| program.detach(group))?;
        return set_record(group, None);
    };
    let program = calls::Program::load(&program::instructions(access))?;
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
