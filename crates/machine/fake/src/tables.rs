//! The files of groups: one table per controller and version.

use settings::Version;

use crate::{
    core_v1, core_v2, cpu, cpuset_v1, cpuset_v2, devices, freezer, io, memory, pids, realtime, state::File,
};

static V1: &[&[File]] = &[
    core_v1::FILES,
    freezer::FILES,
    cpuset_v1::FILES,
    cpu::V1_FILES,
    realtime::FILES,
    memory::V1_FILES,
    pids::FILES,
    io::V1_FILES,
    devices::FILES,
];
static V2: &[&[File]] =
    &[core_v2::FILES, cpuset_v2::FILES, cpu::V2_FILES, memory::V2_FILES, pids::FILES, io::V2_FILES];

/// The tables of a version.
pub(super) fn of(version: Version) -> &'static [&'static [File]] {
    match version {
        Version::V1 => V1,
        Version::V2 => V2,
    }
}
