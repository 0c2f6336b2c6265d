//! What this machine lacks for a case, beside root.

use std::path::Path;

use settings::{Controller, Version};

use crate::{divided, host};

/// A machine of its own: nobody else needs its clock, CPUs and units.
pub fn vm() -> Option<String> {
    (!crate::is_vm()).then(|| "a machine of its own".to_owned())
}

/// What only a host has.
pub fn host(what: &str) -> Option<String> {
    crate::is_vm().then(|| what.to_owned())
}

pub fn systemd() -> Option<String> {
    (!Path::new("/run/systemd/system").is_dir()).then(|| "systemd".to_owned())
}

/// That CPUs, memory and interrupts may go and come.
pub fn hotplug() -> Option<String> {
    std::env::var_os("RF_HOTPLUG").is_none().then(|| "RF_HOTPLUG".to_owned())
}

pub fn cpuset(version: Version) -> Option<String> {
    let is_there = host::host().hierarchy_of(Controller::Cpuset).is_some_and(|at| at.version == version);
    (!is_there).then(|| format!("cpuset on {version}"))
}

pub fn cores() -> Option<String> {
    (divided::cores().len() < divided::CORES).then(|| format!("{} cores", divided::CORES))
}
