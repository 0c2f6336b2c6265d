//! libcgroup's commands by their old names, on the same kernel, layout and apply code as `ringfence` itself. What a
//! script can see (flags, files read, standard output, exit status) is the reference's; its bugs are not copied.
//! [`cset`] is the same for another program's commands.

mod failure;
mod group_list;
mod machine;

mod answer;
mod arguments;
mod assignments;
mod configuration;
mod core_files;
mod file_view;
mod raw;
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

pub mod cset;

use std::{ffi::OsString, path::PathBuf};

use clap::{ArgMatches, Command};
use kernel::Host;

use failure::Failure;

/// One command: its definition, from which arguments, `--help` and the manual page come, and what it does.
struct Tool {
    name: &'static str,
    /// The first lines of its help, as the reference has them.
    usage: &'static str,
    definition: fn() -> Command,
    run: fn(&ArgMatches) -> Result<u8, Failure>,
}

/// In the order of the manual.
const TOOLS: &[Tool] = &[
    Tool {
        name: "cgcreate",
        usage: "cgcreate [-h] [-f mode] [-d mode] [-s mode] [-t <tuid>:<tgid>] [-a <agid>:<auid>] -g <controllers>:<path> [-g ...]",
        definition: cgcreate::definition,
        run: cgcreate::run,
    },
    Tool {
        name: "cgdelete",
        usage: "cgdelete [-h] [-r] [[-g] <controllers>:<path>] ...",
        definition: cgdelete::definition,
        run: cgdelete::run,
    },
    Tool {
        name: "cgset",
        usage: "cgset [-r <name=value>] <cgroup_path> ...\n   or: cgset --copy-from <source_cgroup_path> <cgroup_path> ...",
        definition: cgset::definition,
        run: cgset::run,
    },
    Tool {
        name: "cgxset",
        usage: "cgxset [-1 | -2] [-i] [-r <name=value>] <cgroup_path> ...\n   or: cgxset --copy-from <source_cgroup_path> <cgroup_path> ...",
        definition: cgxset::definition,
        run: cgxset::run,
    },
    Tool {
        name: "cgget",
        usage: "cgget [-nv] [-r <name>] [-g <controllers>] [-a] <path> ...\n   or: cgget [-nv] [-r <name>] -g <controllers>:<path> ...",
        definition: cgget::definition,
        run: cgget::run,
    },
    Tool {
        name: "cgxget",
        usage: "cgxget [-1 | -2] [-i] [-nv] [-r <name>] [-g <controllers>] [-a] <path> ...",
        definition: cgxget::definition,
        run: cgxget::run,
    },
    Tool {
        name: "lscgroup",
        usage: "lscgroup [-h] [[-g] <controllers>:<path>] [...]",
        definition: lscgroup::definition,
        run: lscgroup::run,
    },
    Tool {
        name: "lssubsys",
        usage: "lssubsys [-i] [-m] [-M] [controller] [...]\n   or: lssubsys [-a] [-i] [-m] [-M]",
        definition: lssubsys::definition,
        run: lssubsys::run,
    },
    Tool {
        name: "cgsnapshot",
        usage: "cgsnapshot [-h] [-s] [-t] [-b FILE] [-w FILE] [-f FILE] [controller] [...]",
        definition: cgsnapshot::definition,
        run: cgsnapshot::run,
    },
    Tool {
        name: "cgexec",
        usage: "cgexec [-h] [-g <controllers>:<path>] [--sticky] command [arguments] ...",
        definition: cgexec::definition,
        run: cgexec::run,
    },
    Tool {
        name: "cgclassify",
        usage: "cgclassify [[-g] <controllers>:<path>] [--sticky | --cancel-sticky] <list of pids>",
        definition: cgclassify::definition,
        run: cgclassify::run,
    },
    Tool {
        name: "cgconfigparser",
        usage: "cgconfigparser [-h] [-f mode] [-d mode] [-s mode] [-t <tuid>:<tgid>] [-a <agid>:<auid>] [-l FILE] [-L DIR] ...",
        definition: cgconfigparser::definition,
        run: cgconfigparser::run,
    },
    Tool {
        name: "cgrulesengd",
        usage: "cgrulesengd [options]",
        definition: cgrulesengd::definition,
        run: cgrulesengd::run,
    },
    Tool {
        name: "cgclear",
        usage: "cgclear [-h] [-l FILE] [-L DIR] [-e]",
        definition: cgclear::definition,
        run: cgclear::run,
    },
];

impl Tool {
    fn command(&self) -> Command {
        let template = "{usage-heading} {usage}\n{about-with-newline}\n{all-args}{after-help}";
        (self.definition)().name(self.name).override_usage(self.usage).help_template(template)
    }
}

/// The names that are answered to.
pub fn names() -> impl Iterator<Item = &'static str> {
    TOOLS.iter().map(|tool| tool.name)
}

/// The definition of the command of that name, for manual pages and completions.
pub fn definition(name: &str) -> Option<Command> {
    TOOLS.iter().find(|tool| tool.name == name).map(Tool::command)
}

/// Runs the command of that name with its arguments (without the name) and gives its exit status; `None` if there is
/// no such command.
pub fn run(name: &str, args: impl IntoIterator<Item = OsString>) -> Option<u8> {
    let tool = TOOLS.iter().find(|tool| tool.name == name)?;
    let args = std::iter::once(OsString::from(tool.name)).chain(args);
    let outcome = match tool.command().try_get_matches_from(args) {
        Ok(matches) => (tool.run)(&matches),
        Err(error) => Err(Failure::arguments(&error)),
    };
    Some(outcome.unwrap_or_else(|failure| failure.reported(tool.name)))
}

/// The directories that an argument `CONTROLLERS:PATH` means on a host, whether or not they are there.
///
/// # Errors
/// Why it means none, in words.
pub fn directories(host: &Host, argument: &str) -> Result<Vec<PathBuf>, String> {
    let targets = group_list::targets(host, &[argument]).map_err(|failure| failure.message)?;
    Ok(targets.iter().map(|target| target.seat(host).directory()).collect())
}
