//! `cgexec`: becomes a program inside groups.

use std::ffi::OsString;

use clap::{Arg, ArgMatches, Command, value_parser};
use kernel::{GroupName, Host, Program, ProgramEnd, Real, Seat, describe};

use crate::{
    arguments::{command, flag, groups, ignore_default, long_flag, texts},
    failure::{Failure, NO_GROUP, NOT_EXECUTED, SYSTEM},
    group_list::targets,
    machine,
    rules::ByRules,
};

pub(crate) fn definition() -> Command {
    command("cgexec", "Run the task in given control group(s)")
        .arg(groups("The group, and the controllers whose hierarchies are meant [default: as the rules say]"))
        .arg(long_flag("sticky", "Accepted: the rules daemon leaves what was put into a group by hand"))
        .arg(flag("replace-idle", 'r', "Replace a scope's idle process; accepted and ignored"))
        .arg(ignore_default())
        .arg(
            Arg::new("command")
                .value_name("COMMAND")
                .required(true)
                .num_args(1..)
                .trailing_var_arg(true)
                .value_parser(value_parser!(OsString))
                .help("The program and its arguments"),
        )
        .after_help(
            "The exit status is the program's; 255 if it can't be executed.\nExample: cgexec -g cpu,memory:db/oltp1 pgbench -S -T 30",
        )
}

pub(crate) fn run(matches: &ArgMatches) -> Result<u8, Failure> {
    let words: Vec<OsString> = matches.get_many("command").into_iter().flatten().cloned().collect();
    let program = Program::new(words.iter().cloned())
        .map_err(|errno| Failure::usage(format!("the command can't be used: {}", describe(errno))))?;
    let host = machine::host()?;
    let arguments = texts(matches, "group");
    if arguments.is_empty() {
        // it takes this process's place then, wherever that is
        ByRules::read()?.place_self(&host, &words)?;
    }
    let inside = places(&host, &arguments)?;
    match host.run_at(&Real::new(), &inside, &program)? {
        ProgramEnd::Exited(status) => Ok(u8::try_from(status).unwrap_or(SYSTEM)),
        ProgramEnd::Signalled(signal) => {
            // as on v1, where the program took our place: the process that waits for us sees its signal
            if let Some(signal) = rustix::process::Signal::from_named_raw(signal) {
                let _ = rustix::process::kill_process(rustix::process::getpid(), signal);
            }
            Ok(u8::try_from(128 + signal).unwrap_or(SYSTEM))
        }
        ProgramEnd::NotStarted(errno) => {
            let message = format!("cannot execute '{}': {}", program.name(), describe(errno));
            Err(Failure::new(NOT_EXECUTED, message).hint("is it installed, in PATH, and executable?"))
        }
    }
}

/// Where `-g` arguments lead; `*` is wherever the group is.
///
/// # Errors
/// As [`targets`]; a group that does not exist.
pub(crate) fn places<'h>(host: &'h Host, arguments: &[&str]) -> Result<Vec<(Seat<'h>, GroupName)>, Failure> {
    let mut places = Vec::new();
    for target in targets(host, arguments)? {
        let seat = target.seat(host);
        if target.by_star && !host.kernel().exists(seat.at, &seat.path) {
            host.existing(&target.group).map_err(|error| Failure::from(error).status(NO_GROUP))?;
            continue;
        }
        places.push((seat, target.group));
    }
    Ok(places)
}
