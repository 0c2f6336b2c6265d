//! libcgroup's commands by their old names, on the same kernel, layout and apply code as `ringfence` itself. What a
//! script can see (flags, files read, standard output, exit status) is the reference's; its faults are not kept.

mod failure;
mod group_list;
mod machine;

mod answer;
mod arguments;
mod assignments;
mod configuration;
mod held;
mod rules;

mod cgclassify;
mod cgclear;
mod cgconfigparser;
mod cgcreate;
mod cgdelete;
mod cgexec;
mod cgget;
mod cgrulesengd;
mod cgset;
mod cgsnapshot;
mod cgxget;
mod cgxset;
mod lscgroup;
mod lssubsys;

use std::{ffi::OsString, path::PathBuf};

use clap::{ArgMatches, Command};
use kernel::Host;

use failure::Failure;

/// One command: its definition, from which arguments, `--help` and the manual page come, and what it does.
struct Tool {
    name: &'static str,
    definition: fn() -> Command,
    run: fn(&ArgMatches) -> Result<u8, Failure>,
}

/// In the order of the manual.
const TOOLS: &[Tool] = &[
    Tool { name: "cgcreate", definition: cgcreate::definition, run: cgcreate::run },
    Tool { name: "cgdelete", definition: cgdelete::definition, run: cgdelete::run },
    Tool { name: "cgset", definition: cgset::definition, run: cgset::run },
    Tool { name: "cgxset", definition: cgxset::definition, run: cgxset::run },
    Tool { name: "cgget", definition: cgget::definition, run: cgget::run },
    Tool { name: "cgxget", definition: cgxget::definition, run: cgxget::run },
    Tool { name: "lscgroup", definition: lscgroup::definition, run: lscgroup::run },
    Tool { name: "lssubsys", definition: lssubsys::definition, run: lssubsys::run },
    Tool { name: "cgsnapshot", definition: cgsnapshot::definition, run: cgsnapshot::run },
    Tool { name: "cgexec", definition: cgexec::definition, run: cgexec::run },
    Tool { name: "cgclassify", definition: cgclassify::definition, run: cgclassify::run },
    Tool { name: "cgconfigparser", definition: cgconfigparser::definition, run: cgconfigparser::run },
    Tool { name: "cgrulesengd", definition: cgrulesengd::definition, run: cgrulesengd::run },
    Tool { name: "cgclear", definition: cgclear::definition, run: cgclear::run },
];

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

/// The directories that an argument `CONTROLLERS:PATH` means on a host, whether or not they are there.
///
/// # Errors
/// Why it means none, in words.
pub fn directories(host: &Host, argument: &str) -> Result<Vec<PathBuf>, String> {
    let targets = group_list::targets(host, &[argument]).map_err(|failure| failure.message)?;
    Ok(targets.iter().map(|target| target.seat(host).directory()).collect())
}
