//! cset's commands `shield`, `set` and `proc` by their old names, on the same kernel and apply code as `ringfence` itself, and so
//! on cgroup v2 too, where cset does not run (`shield` not below systemd). What a script can see (flags, standard output, exit status)
//! is cset's; its bugs are not copied.
//!
//! A cpuset of cset is a group that has a cpuset: `/one/two` is the group `one/two`. The root set is the root of the hierarchy
//! that has the controller.

mod failure;
mod out; // how it prints

mod cpus; // CPUSPEC, MEMSPEC
mod sets; // the tree of cpusets
mod write; // and what is changed of it

mod tasks; // those of a set, as a table; PIDSPEC
mod transfer; // from one set to another

mod proc;
mod set;
mod shield;

mod arguments;

use std::ffi::OsString;

use clap::{ArgMatches, Command};

use failure::Failure;
use out::Out;

/// One of its commands.
struct Tool {
    name: &'static str,
    definition: fn() -> Command,
    run: fn(&ArgMatches, Out) -> Result<(), Failure>,
}

const TOOLS: [Tool; 3] = [
    Tool { name: "shield", definition: shield::definition, run: shield::run },
    Tool { name: "set", definition: set::definition, run: set::run },
    Tool { name: "proc", definition: proc::definition, run: proc::run },
];

/// The release whose command line this is, as `--version` shows it.
const VERSION: &str = concat!("1.6, as ringfence ", env!("CARGO_PKG_VERSION"), " has it");

/// The name that is answered to.
pub const NAME: &str = "cset";

/// The whole definition, for the help, manual pages and completions.
pub fn definition() -> Command {
    let command = Command::new(NAME)
        .version(VERSION)
        .about("Create cpusets, shield CPUs and move tasks, with the command line of cset")
        .args(arguments::global())
        .arg_required_else_help(true)
        .infer_subcommands(true)
        .after_help(
            "Commands may be shortened as long as they are unambiguous: sh, se, p. CPUSPEC, MEMSPEC and PIDSPEC are lists \
             such as 1,3,5-7.\n\n\
             Exit status: 0 done; 1 unknown command; 2 refused, with the reason behind **>.\n\n\
             Examples:\n  cset set -c 1-3 -s db\n  cset proc -s db -e -- pgbench -S\n  cset shield -c 2-3 -k on\n  \
             cset shield --reset",
        );
    TOOLS.iter().fold(command, |command, tool| command.subcommand((tool.definition)().name(tool.name)))
}

/// Runs it with its arguments (without the name) and gives its exit status.
pub fn run(args: impl IntoIterator<Item = OsString>) -> u8 {
    let args = std::iter::once(OsString::from(NAME)).chain(args);
    let matches = match definition().try_get_matches_from(args) {
        Ok(matches) => matches,
        Err(error) => return failure::usage(&error),
    };
    let out = Out { machine: matches.get_flag("machine") };
    let done = match (matches.get_one::<String>("tohex"), matches.subcommand()) {
        (Some(spec), _) => cpus::to_hex(spec).map(|hex| out.plain(&hex)),
        (None, Some((name, of_tool))) => match TOOLS.iter().find(|tool| tool.name == name) {
            Some(tool) => (tool.run)(of_tool, out),
            None => Ok(()), // clap has no other
        },
        (None, None) => {
            return failure::usage(&definition().error(
                clap::error::ErrorKind::MissingSubcommand,
                "no command is named: shield, set or proc",
            ));
        }
    };
    done.map_or_else(|failure| failure.reported(out), |()| 0)
}
