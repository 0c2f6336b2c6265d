//! libcgroup's commands by their old names, on the same kernel, layout and apply code as `ringfence` itself. What a
//! script can see (flags, files read, standard output, exit status) is the reference's; its faults are not kept.

mod failure;

use std::ffi::OsString;

use clap::{ArgMatches, Command};

use failure::Failure;

/// One command: its definition, from which arguments, `--help` and the manual page come, and what it does.
struct Tool {
    name: &'static str,
    definition: fn() -> Command,
    run: fn(&ArgMatches) -> Result<u8, Failure>,
}

/// In the order of the manual.
const TOOLS: &[Tool] = &[];

/// The names that are answered to.
pub fn names() -> impl Iterator<Item = &'static str> {
    TOOLS.iter().map(|tool| tool.name)
}

/// The definition of the command of that name, for manual pages and completions.
pub fn definition(name: &str) -> Option<Command> {
    TOOLS.iter().find(|tool| tool.name == name).map(|tool| (tool.definition)().name(tool.name))
}

/// Runs the command of that name with its arguments (without the name) and gives its exit status; `None` if there is
/// no such command.
pub fn run(name: &str, args: impl IntoIterator<Item = OsString>) -> Option<u8> {
    let tool = TOOLS.iter().find(|tool| tool.name == name)?;
    let args = std::iter::once(OsString::from(tool.name)).chain(args);
    let outcome = match (tool.definition)().name(tool.name).try_get_matches_from(args) {
        Ok(matches) => (tool.run)(&matches),
        Err(error) => Err(Failure::arguments(&error)),
    };
    Some(outcome.unwrap_or_else(|failure| failure.told(tool.name)))
}
