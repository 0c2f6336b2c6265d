//! Arguments that several commands take, each defined once. They are read as optparse reads them: long names may be
//! shortened, options may stand behind names, and `--` ends them.

use std::ffi::OsString;

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};

pub(crate) fn command(about: &'static str) -> Command {
    Command::new("").about(about).args_override_self(true).infer_long_args(true)
}

/// Those before the command.
pub(crate) fn global() -> [Arg; 3] {
    [
        flag("machine", "machine", "Print for programs").short('m'),
        option("tohex", "tohex", "CPUSPEC", "Convert a CPUSPEC to hexadecimal").short('x'),
        option("log", "log", "FILE", "Accepted; nothing is logged there").short('l'),
    ]
}

pub(crate) fn flag(id: &'static str, long: &'static str, help: &'static str) -> Arg {
    Arg::new(id).long(long).action(ArgAction::SetTrue).help(help)
}

pub(crate) fn option(id: &'static str, long: &'static str, value: &'static str, help: &'static str) -> Arg {
    Arg::new(id).long(long).value_name(value).allow_hyphen_values(false).help(help)
}

pub(crate) fn verbose() -> Arg {
    Arg::new("verbose")
        .long("verbose")
        .short('v')
        .action(ArgAction::Count)
        .help("List tasks, and do not cut lines; twice for more")
}

/// Names of cpusets, or a program with its arguments.
pub(crate) fn words(value: &'static str, help: &'static str) -> Arg {
    Arg::new("words").value_name(value).num_args(0..).value_parser(value_parser!(OsString)).help(help)
}

/// A user and a group for what is started.
pub(crate) fn identity() -> [Arg; 2] {
    [
        option("user", "user", "USER", "Start the program as this user, by name or number"),
        option("group", "group", "GROUP", "Start the program as this group, by name or number"),
    ]
}

pub(crate) fn text<'m>(matches: &'m ArgMatches, id: &str) -> Option<&'m str> {
    matches.get_one::<String>(id).map(String::as_str)
}

pub(crate) fn all(matches: &ArgMatches) -> Vec<OsString> {
    matches.get_many::<OsString>("words").into_iter().flatten().cloned().collect()
}

/// The words as names.
pub(crate) fn names(words: &[OsString]) -> Vec<String> {
    words.iter().map(|word| word.to_string_lossy().into_owned()).collect()
}
