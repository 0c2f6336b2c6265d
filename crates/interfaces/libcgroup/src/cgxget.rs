//! `cgxget`: as cgget, where `-1` and `-2` say of which cgroup version the names are, whatever the host has.

use clap::{Arg, ArgAction, ArgMatches, Command};
use settings::Version;

use crate::{
    arguments::command,
    cgget::{self, Names},
    failure::Failure,
};

pub(crate) fn definition() -> Command {
    let flag = |name: &'static str, letter: char, help: &'static str| {
        Arg::new(name).short(letter).long(name).action(ArgAction::SetTrue).help(help)
    };
    cgget::asking(command("cgxget", "Print what groups hold, in the names of one cgroup version"))
        .arg(flag("v1", '1', "Names are of cgroup v1").conflicts_with("v2"))
        .arg(flag("v2", '2', "Names are of cgroup v2"))
        .arg(flag("ignore-unmappable", 'i', "Leave out what can't be converted"))
}

pub(crate) fn run(matches: &ArgMatches) -> Result<u8, Failure> {
    let version = match (matches.get_flag("v1"), matches.get_flag("v2")) {
        (true, _) => Some(Version::V1),
        (_, true) => Some(Version::V2),
        _ => None,
    };
    cgget::print(matches, &Names { version, ignore: matches.get_flag("ignore-unmappable") })
}
