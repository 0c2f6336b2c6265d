//! `cgxset`: `cgset` with names of one version of cgroup, which are converted where the host has the other.

use clap::{ArgMatches, Command};
use settings::Version;

use crate::{
    arguments::{command, flag},
    assignments::{self, Names},
    failure::Failure,
};

pub(crate) fn definition() -> Command {
    let about = "Change groups' settings by names of cgroup v1 or v2, all of them or none";
    assignments::arguments(command("cgxset", about))
        .arg(flag("v1", '1', "The names are those of cgroup v1").long("v1").overrides_with("v2"))
        .arg(flag("v2", '2', "The names are those of cgroup v2").long("v2"))
        .arg(
            flag("ignore-unmappable", 'i', "Leave out what this host's version has not")
                .long("ignore-unmappable"),
        )
        .after_help("Example: cgxset -1 -r cpu.shares=512 db/oltp1")
}

pub(crate) fn run(matches: &ArgMatches) -> Result<u8, Failure> {
    let only = match (matches.get_flag("v1"), matches.get_flag("v2")) {
        (true, _) => Some(Version::V1),
        (_, true) => Some(Version::V2),
        _ => None,
    };
    assignments::run(matches, Names { only, ignore_unmappable: matches.get_flag("ignore-unmappable") })
}
