//! `cgcreate`: makes all of the groups or none.

use apply::System;
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use kernel::{Access, Host, Ownership, Wanted, What};
use settings::{AdminFiles, Controller};

use crate::{
    arguments::{access, command, flag, groups, ignore_default, texts},
    failure::{Failure, SYSTEM},
    group_list::{Target, targets},
    machine,
};

/// The files that put tasks into a group.
const TASK_FILES: [&str; 3] = ["cgroup.procs", "cgroup.threads", "tasks"];

pub(crate) fn definition() -> Command {
    command("cgcreate", "Make groups")
        .arg(
            groups("The group, and the controllers that it is made for; * for all, none for cgroup v2 alone")
                .required(true),
        )
        .args(access())
        .arg(
            Arg::new("pid")
                .short('p')
                .value_name("PID")
                .action(ArgAction::Append)
                .value_parser(value_parser!(u32).range(1..))
                .help("Put this process into the groups"),
        )
        .arg(ignore_default())
        .arg(flag(
            "scope",
            'c',
            "Make it in a scope delegated by systemd; accepted, on a systemd host all are",
        ))
        .arg(flag("set-default", 'S', "Make the scope the default; accepted, see -b"))
        .after_help("Example: cgcreate -t oracle:dba -g cpuset,memory:db/oltp1")
}

pub(crate) fn run(matches: &ArgMatches) -> Result<u8, Failure> {
    let host = machine::host()?;
    let targets = targets(&host, &texts(matches, "group"))?;
    let owners = Access {
        tasks: machine::who(matches.get_one("tasks"))?,
        admin: machine::who(matches.get_one("admin"))?,
        admin_files: AdminFiles::Every,
        ..Access::default()
    };
    // the root group is always there
    let wanted: Vec<Wanted<'_>> =
        targets.iter().filter(|target| !target.group.path().is_empty()).map(wanted).collect();
    if host.needs_unit() && wanted.iter().any(|wanted| !wanted.group.is_from_root()) {
        systemd::ensure_unit(&host)?;
    }
    host.create_at(&wanted, &owners)?;
    let modes = Modes::of(matches);
    for target in targets.iter().filter(|target| !target.group.path().is_empty()) {
        modes.give(&host, target)?;
    }
    let pids: Vec<u32> = matches.get_many("pid").into_iter().flatten().copied().collect();
    if !pids.is_empty() {
        let into: Vec<_> = targets.iter().map(|target| (target.seat(&host), target.group.clone())).collect();
        host.move_into(&into, &pids, What::Process)?;
    }
    Ok(0)
}

fn wanted<'h>(target: &Target<'h>) -> Wanted<'h> {
    // v1 needs none named; a group of v2 alone is given none
    let controllers: Vec<Controller> = target.controllers.clone();
    Wanted { at: target.at, controllers, group: target.group.clone(), optional: target.by_star }
}

/// The modes from the options. That of a file is cut to what its owner may do: 0777 makes no number executable.
struct Modes {
    directory: Option<u32>,
    files: Option<u32>,
    tasks: Option<u32>,
}

impl Modes {
    fn of(matches: &ArgMatches) -> Modes {
        let mode = |name| matches.get_one::<u32>(name).copied();
        Modes { directory: mode("directory-mode"), files: mode("file-mode"), tasks: mode("tasks-mode") }
    }

    fn give(&self, host: &Host, target: &Target<'_>) -> Result<(), Failure> {
        if self.directory.or(self.files).or(self.tasks).is_none() {
            return Ok(());
        }
        let (running, seat) = (apply::Running::new(), target.seat(host));
        let refused = |file: Option<&str>, errno| {
            Failure::from(host.refused(kernel::Op::Own, &seat, &target.group, file, None, errno))
        };
        let files = host.kernel().files(seat.at, &seat.path).map_err(|errno| refused(None, errno))?;
        let mut each: Vec<(Option<&str>, Ownership)> = Vec::new();
        for file in &files {
            let tasks = TASK_FILES.contains(&file.as_str());
            let Some(mode) = (if tasks { self.tasks } else { self.files }) else { continue };
            let owned =
                running.owned(seat.at, &seat.path, Some(file)).map_err(|errno| refused(Some(file), errno))?;
            let owner = owned.mode >> 6 & 0o7;
            let mode = Some(mode & (owner | owner << 3 | owner << 6));
            each.push((Some(file), Ownership { mode, ..Ownership::default() }));
        }
        if let Some(mode) = self.directory {
            each.push((None, Ownership { mode: Some(mode), ..Ownership::default() }));
        }
        running
            .own(seat.at, &seat.path, &each)
            .map_err(|(file, errno)| refused(file.as_deref(), errno).status(SYSTEM))
    }
}
