//! `cgclassify`: moves running processes into groups, each by itself: one that can't be moved keeps none of the others
//! where it is.

use clap::{Arg, ArgAction, ArgMatches, Command};
use kernel::{GroupName, Host, Seat, What};

use crate::{
    arguments::{command, flag, groups, ignore_default, long_flag, texts},
    cgexec::places,
    failure::{BAD_ARGUMENTS, Failure, SOME_FAILED},
    machine,
    rules::ByRules,
};

pub(crate) fn definition() -> Command {
    command("cgclassify", "Move running processes into groups")
        .arg(groups("The group, and the controllers whose hierarchies are meant [default: as the rules say]"))
        .arg(long_flag("sticky", "Accepted: the rules daemon leaves what was put into a group by hand"))
        .arg(
            long_flag("cancel-sticky", "Accepted: without -g the processes go where the rules say")
                .overrides_with("sticky"),
        )
        .arg(flag("replace-idle", 'r', "Replace a scope's idle process; accepted and ignored"))
        .arg(ignore_default())
        .arg(
            Arg::new("pids")
                .value_name("PID")
                .action(ArgAction::Append)
                .num_args(1..)
                .required_unless_present("group")
                .help("The processes, with all their threads"),
        )
        .after_help("Example: cgclassify -g cpu,memory:db/oltp1 4711 4712")
}

pub(crate) fn run(matches: &ArgMatches) -> Result<u8, Failure> {
    let host = machine::host()?;
    let arguments = texts(matches, "group");
    let way = if arguments.is_empty() {
        ByRules::read().map(Box::new).map(Way::Rules)
    } else {
        places(&host, &arguments).map(Way::Into)
    };
    let way = way.map_err(|failure| match failure.status {
        BAD_ARGUMENTS => failure,
        _ => failure.status(SOME_FAILED),
    })?;
    let mut status = 0;
    for text in texts(matches, "pids") {
        let moved = text
            .parse()
            .map_err(|_| Failure::usage(format!("'{text}' is no process number")))
            .and_then(|pid| way.take(&host, pid));
        if let Err(failure) = moved {
            status = failure.reported("cgclassify");
        }
    }
    Ok(status)
}

/// Where processes are put.
enum Way<'h> {
    Into(Vec<(Seat<'h>, GroupName)>),
    Rules(Box<ByRules>),
}

impl Way<'_> {
    fn take(&self, host: &Host, pid: u32) -> Result<(), Failure> {
        match self {
            Way::Into(into) => host
                .move_into(into, &[pid], What::Process)
                .map(|_| ())
                .map_err(|error| Failure::from(error).status(SOME_FAILED)),
            Way::Rules(rules) => rules.place(host, pid),
        }
    }
}
