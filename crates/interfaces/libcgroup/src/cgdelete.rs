//! `cgdelete`: removes groups from the hierarchies that are named; tasks move to the group above.

use clap::{Arg, ArgAction, ArgMatches, Command};
use kernel::{Contents, GroupName};
use units::printable;

use crate::{
    arguments::{command, flag, groups, ignore_default, texts},
    failure::{Failure, SYSTEM},
    group_list::{Target, targets},
    machine,
};

pub(crate) fn definition() -> Command {
    command("cgdelete", "Remove groups; tasks move to the group above")
        .arg(groups("The group, and the controllers that it is removed from; * for all"))
        .arg(flag("recursive", 'r', "Also the groups below").long("recursive"))
        .arg(ignore_default())
        .arg(
            Arg::new("groups")
                .value_name("CONTROLLERS:PATH")
                .action(ArgAction::Append)
                .num_args(0..)
                .help("The same as -g"),
        )
        .after_help("Example: cgdelete -r -g cpu,memory:db")
}

pub(crate) fn run(matches: &ArgMatches) -> Result<u8, Failure> {
    let mut arguments = texts(matches, "group");
    arguments.extend(texts(matches, "groups"));
    let host = machine::host()?;
    let mut targets = targets(&host, &arguments)?;
    // * is wherever the group is
    let is_there = |target: &Target<'_>| {
        let seat = target.seat(&host);
        host.kernel().exists(seat.at, &seat.path)
    };
    let there: Vec<GroupName> =
        targets.iter().filter(|target| is_there(target)).map(|target| target.group.clone()).collect();
    targets.retain(|target| !target.by_star || is_there(target) || !there.contains(&target.group));
    // the reference leaves the root group as it is, and says nothing
    let doomed: Vec<_> = targets
        .iter()
        .filter(|target| !target.group.path().is_empty())
        .map(|target| (target.seat(&host), target.group.clone()))
        .collect();
    let contents = Contents { groups: matches.get_flag("recursive"), tasks_move_up: true };
    host.delete_at(&doomed, contents).map_err(|error| match &error {
        // as the reference: its rmdir(2) finds nothing
        kernel::Error::NoGroup { group, .. } | kernel::Error::NotControlled { group, .. } => {
            let group = printable(group.trim_start_matches('/')).into_owned();
            Failure::new(SYSTEM, format!("cannot remove group '{group}': No such file or directory"))
        }
        _ => Failure::from(error),
    })?;
    Ok(0)
}
