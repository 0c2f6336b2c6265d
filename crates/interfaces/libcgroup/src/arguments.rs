//! Arguments that several commands take, each defined once.

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};

use crate::machine;

/// A command that reads its arguments as getopt_long(3) does: the last of several counts, long names may be shortened.
pub(crate) fn command(name: &'static str, about: &'static str) -> Command {
    Command::new(name).about(about).args_override_self(true).infer_long_args(true)
}

/// `-g CONTROLLERS:PATH`, repeatable.
pub(crate) fn groups(help: &'static str) -> Arg {
    Arg::new("group").short('g').value_name("CONTROLLERS:PATH").action(ArgAction::Append).help(help)
}

/// `-b`: no other place than our groups' own is ever the default, so there is nothing to ignore.
pub(crate) fn ignore_default() -> Arg {
    flag("ignore-default", 'b', "Ignore a default scope; accepted, there never is one")
}

/// `-v`, which libcgroup does not have.
pub(crate) fn verbose() -> Arg {
    flag("verbose", 'v', "Report on standard error what was converted, rounded or left out").long("verbose")
}

pub(crate) fn flag(name: &'static str, short: char, help: &'static str) -> Arg {
    Arg::new(name).short(short).action(ArgAction::SetTrue).help(help)
}

pub(crate) fn long_flag(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).action(ArgAction::SetTrue).help(help)
}

/// `-a -t -d -f -s`: owners and modes of groups.
pub(crate) fn access() -> [Arg; 5] {
    let owner = |name, short, help| Arg::new(name).short(short).value_name("USER:GROUP").help(help);
    let mode = |name, short, long, help| {
        let mode = Arg::new(name).short(short).long(long).value_name("MODE").help(help);
        mode.value_parser(machine::octal)
    };
    [
        owner("admin", 'a', "Owner of the group's directory and settings; USER or :GROUP alone will do"),
        owner("tasks", 't', "Owner of the files that take tasks"),
        mode("directory-mode", 'd', "dperm", "Octal mode of the directory"),
        mode(
            "file-mode",
            'f',
            "fperm",
            "Octal mode of the settings' files, each as far as its owner may use it",
        ),
        mode("tasks-mode", 's', "tperm", "Octal mode of the files that take tasks"),
    ]
}

/// `-l FILE` and `-L DIRECTORY`, repeatable and mixed.
pub(crate) fn files() -> [Arg; 2] {
    let path = |name, short, long, value, help| {
        let path = Arg::new(name).short(short).long(long).value_name(value).action(ArgAction::Append);
        path.value_parser(value_parser!(std::path::PathBuf)).help(help)
    };
    [
        path("load", 'l', "load", "FILE", "Read this configuration (cgconfig.conf)"),
        path(
            "load-directory",
            'L',
            "load-directory",
            "DIRECTORY",
            "Read the *.conf files of this directory by name",
        ),
    ]
}

/// All values of an argument, as texts.
pub(crate) fn texts<'m>(matches: &'m ArgMatches, name: &str) -> Vec<&'m str> {
    matches.get_many::<String>(name).into_iter().flatten().map(String::as_str).collect()
}
