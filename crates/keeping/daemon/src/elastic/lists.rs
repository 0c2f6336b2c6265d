//! The CPU lists of groups, from files that stay open: they are compared every second.

use std::os::fd::OwnedFd;

use kernel::{GroupName, Host};
use monitor::{Buffer, Descriptors, Files};
use settings::Controller;
use units::CpuSet;

use crate::watching::few;

/// Of some groups, in their order.
pub(super) struct Lists {
    files: Descriptors,
    open: Vec<Option<OwnedFd>>,
    buffer: Buffer,
}

impl Lists {
    pub fn of(groups: usize) -> Lists {
        Lists { files: few(), open: (0..groups).map(|_| None).collect(), buffer: Buffer::default() }
    }

    /// The list of a group; `None`: there is no such group.
    ///
    /// # Errors
    /// In words: the kernel does not say what it has.
    pub fn read(&mut self, host: &Host, index: usize, group: &GroupName) -> Result<Option<CpuSet>, String> {
        let Lists { files, open, buffer } = self;
        let file = &mut open[index];
        if file.is_none() {
            let seat = host.seat(group, Controller::Cpuset).ok();
            *file = seat.and_then(|seat| files.open(seat.at, &seat.path, plan::CPUS).ok());
        }
        // a group that was removed and made again has another file
        if file.as_ref().is_some_and(|file| files.read(file, buffer).is_err()) {
            *file = None;
        }
        match (file, std::str::from_utf8(buffer.text())) {
            (Some(_), Ok(text)) => Ok(Some(text.trim().parse().unwrap_or_default())),
            _ => cpus_of(host, group),
        }
    }
}

/// `None`: there is no such group.
///
/// # Errors
/// In words: the kernel does not say what it has.
pub(super) fn cpus_of(host: &Host, group: &GroupName) -> Result<Option<CpuSet>, String> {
    match apply::cpus_of(host, group) {
        Ok(cpus) => Ok(Some(cpus)),
        Err(_) if host.seats(group).is_empty() => Ok(None),
        Err(error) => Err(error.to_string()),
    }
}
