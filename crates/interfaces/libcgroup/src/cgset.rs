//! `cgset`: changes settings, all that were given or none.

use clap::{ArgMatches, Command};

use crate::{
    arguments::command,
    assignments::{self, Names},
    failure::Failure,
};

pub(crate) fn definition() -> Command {
    assignments::arguments(command("cgset", "Change groups' settings, all of them or none"))
        .after_help("Example: cgset -r cpuset.cpus=0-3 -r cpuset.mems=0 db/oltp1")
}

pub(crate) fn run(matches: &ArgMatches) -> Result<u8, Failure> {
    assignments::run(matches, Names::default())
}
