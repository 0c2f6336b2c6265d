//! `create`, `delete`, `list`.

use std::{collections::BTreeMap, fmt::Write};

use kernel::{Access, Brought, Created, GroupName, Host};
use settings::{AdminFiles, Controller, Version};
use units::{
    group_path,
    hint::{self, Command},
    printable,
};

use super::{group, host};
use crate::{
    args,
    failure::{ATTENTION, Failure},
    output,
};

fn who(owner: Option<&str>) -> Result<kernel::Who, Failure> {
    let Some(owner) = owner else { return Ok(kernel::Who::default()) };
    let (uid, gid) = system::Accounts::new().owner(owner)?;
    Ok(kernel::Who { uid, gid })
}

pub fn create(args: &args::Create, json: bool) -> Result<(), Failure> {
    let name = group(&args.group)?;
    if name.path().is_empty() {
        return Err(
            Failure::usage("the root group is always there").hint("name a group of your own: db/oltp1")
        );
    }
    let (named, controllers): (Vec<&str>, Vec<&str>) =
        args.controllers.iter().map(String::as_str).partition(|name| name.starts_with("name="));
    let named: Vec<&str> = named.into_iter().filter_map(|name| name.strip_prefix("name=")).collect();
    let controllers = self::controllers(&controllers)?;
    let access = Access {
        tasks: who(args.tasks.as_deref())?,
        admin: who(args.admin.as_deref())?,
        admin_files: AdminFiles::Own,
        directory_mode: args.directory_mode,
        file_mode: args.file_mode,
        tasks_mode: args.tasks_mode,
    };
    let is_other = |number: Option<u32>| number.is_some_and(|number| number != 0);
    let gives_tasks = is_other(access.tasks.uid) || is_other(access.tasks.gid);
    let host = host()?;
    // a group of a unit's name would hide the unit from every other command
    if let Some(unit) = host.is_unit_name(&name).then(|| host.unit_group(name.path()).ok()).flatten() {
        kernel::refuse_foreign(&unit, kernel::Change::Create)?;
    }
    if let Some(unit) = super::units::in_unit_of_layout(&host, &name) {
        let what = format!("group '{name}' would not be in the unit: {unit} in the layout in effect");
        return Err(
            Failure::new(what).hint(format!("add [groups.{}] to the layout", hint::toml_key(name.path())))
        );
    }
    let by_controller = || make(&host, &name, controllers.as_deref(), &access);
    let by_name = || host.create_named(&name, &named, &access).map_err(Failure::from);
    let created = match (named.is_empty(), &controllers) {
        (true, _) => by_controller(),
        (false, None) => by_name(), // named hierarchies alone mean just these
        (false, Some(_)) => by_controller().and_then(|created| Ok(created.and(by_name()?))),
    };
    let mut created = created.map_err(|failure| {
        let hint = is_refused(&failure).then(|| create_instead(&host, &name, args));
        failure.maybe_hint(hint)
    })?;
    host.fill_cpusets(&mut created);
    let brought = host.bring_along(&name, &created);
    for ((controllers, other), pids) in &brought.elsewhere {
        let all = pids.iter().map(u32::to_string);
        let (noun, stay) = if pids.len() == 1 { ("process", "stays") } else { ("processes", "stay") };
        output::warning(&format!(
            "{} {noun} of '{name}' {stay} in group '{}' of {controllers}: that group's limits still apply\nhint: {}",
            pids.len(),
            printable(other),
            Command::ringfence("move").group(&name).args(all)
        ));
    }
    if json {
        let mut row = serde_json::json!(created);
        row["moved"] = serde_json::json!(brought.moved);
        output::json(&row)?;
    }
    if gives_tasks && !json && host.seats(&name).iter().any(|seat| seat.at.version == Version::V2) {
        output::warning(&format!(
            "on cgroup v2 an owner of tasks can't move processes into '{name}' from a group that is not theirs: the kernel also \
             requires write access to cgroup.procs of the common ancestor\nhint: {}, as root; or `tasks` in a layout, with ringfenced running",
            Command::ringfence("move").group(&name).arg("PID")
        ));
    }
    for directory in created.empty_cpusets.iter().filter(|_| !json) {
        let lists = host.missing_lists(&name).into_iter();
        let fill = lists.map(|(group, lists)| Command::ringfence("set").group(group).args(lists));
        output::warning(&format!("{} takes no task yet\nhint: {}", directory.display(), hint::all(fill)));
    }
    brought.refused.values().next().map_or(Ok(()), |first| Err(not_brought(&name, &brought, first)))
}

/// Was it another user than root whom the kernel refused?
fn is_refused(failure: &Failure) -> bool {
    failure.denied && !failure.missing && !rustix::process::geteuid().is_root()
}

/// The command that makes the group where the caller may, and the one of root that makes it as it was asked for.
fn create_instead(host: &Host, name: &GroupName, args: &args::Create) -> String {
    let with = |controllers: &[&str]| {
        let mode = |mode: Option<u32>| mode.map(|mode| format!("{mode:04o}"));
        let options = [
            ("--controllers", (!controllers.is_empty()).then(|| controllers.join(","))),
            ("--tasks", args.tasks.clone()),
            ("--admin", args.admin.clone()),
            ("--directory-mode", mode(args.directory_mode)),
            ("--file-mode", mode(args.file_mode)),
            ("--tasks-mode", mode(args.tasks_mode)),
        ];
        let given = options.into_iter().filter_map(|(option, value)| Some([option.to_owned(), value?]));
        Command::ringfence("create").group(name).args(given.flatten())
    };
    let typed: Vec<&str> = args.controllers.iter().map(String::as_str).collect();
    let as_root = with(&typed).sudo();
    match host.creatable(name) {
        // another owner is for root to give
        allowed
            if !allowed.is_empty() && typed.is_empty() && args.tasks.is_none() && args.admin.is_none() =>
        {
            format!("{}\nin all hierarchies: {as_root}", with(&allowed))
        }
        _ => as_root.into(),
    }
}

/// The group was made, and not all of its processes are in it there.
fn not_brought(name: &GroupName, brought: &Brought, first: &kernel::Error) -> Failure {
    let refused = units::counted(brought.refused.len(), "process");
    let message = format!("the group was made, without {refused} that it has in other hierarchies: {first}");
    let again = Command::ringfence("move").group(name).args(brought.refused.keys().map(u32::to_string));
    let hint = match first.hint() {
        Some(hint) => format!("{hint}\nthen: {again}"),
        None => again.to_string(),
    };
    Failure::new(message).hint(hint).code(ATTENTION)
}

/// Makes a group; on a systemd host asks systemd first for the delegated unit that it goes below.
pub fn make(
    host: &Host,
    name: &GroupName,
    controllers: Option<&[Controller]>,
    access: &Access,
) -> Result<Created, Failure> {
    if host.needs_unit() && !name.is_from_root() {
        systemd::ensure_unit(host)?;
    }
    Ok(host.create(name, controllers, access)?)
}

fn controllers(names: &[&str]) -> Result<Option<Vec<Controller>>, Failure> {
    let known = || {
        let both = |controller: &Controller| [controller.name(Version::V1), controller.name(Version::V2)];
        Controller::ALL.iter().flat_map(both).flatten()
    };
    let one = |name: &&str| match *name {
        "core" | "unified" => Ok(Controller::Core),
        name => Controller::from_name(name).ok_or_else(|| {
            let near = units::nearest(name, known()).join(" or ");
            let hint = if near.is_empty() {
                "ringfence doctor lists them".to_owned()
            } else {
                format!("did you mean {near}?")
            };
            Failure::usage(format!("unknown controller '{name}'")).hint(hint)
        }),
    };
    if names.is_empty() { Ok(None) } else { names.iter().map(one).collect::<Result<_, _>>().map(Some) }
}

pub fn delete(args: &args::Delete, json: bool) -> Result<(), Failure> {
    let names: Vec<GroupName> = args.groups.iter().map(|name| group(name)).collect::<Result<_, _>>()?;
    let host = host()?;
    let deleted = host.delete_all(&names, args.recursive).map_err(|error| {
        let failure = Failure::from(error);
        let there = names.iter().filter(|name| !host.seats(name).is_empty());
        let again = Command::ringfence("delete").args(args.recursive.then_some("--recursive"));
        let again = there.fold(again, |again, name| again.group(name)).sudo();
        let hint = is_refused(&failure).then(|| again.into());
        failure.maybe_hint(hint)
    })?;
    if json { output::json(&serde_json::json!({ "deleted": deleted })) } else { Ok(()) }
}

pub fn list(args: &args::List, json: bool) -> Result<(), Failure> {
    let below = args.group.as_deref().map_or(Ok(GroupName::base()), group)?;
    let host = host()?;
    if !below.path().is_empty() {
        host.existing(&below)?;
    }
    let groups = host.list(&below)?;
    let labels: Vec<String> = host.hierarchies().iter().map(kernel::Hierarchy::label).collect();
    let prefix = match below.path() {
        "" if below.is_from_root() => "/".to_owned(),
        "" => String::new(),
        _ => format!("{below}/"),
    };
    if json {
        let named: BTreeMap<String, Vec<&String>> = groups
            .iter()
            .map(|(name, ids)| (format!("{prefix}{name}"), ids.iter().map(|&id| &labels[id]).collect()))
            .collect();
        return output::json(&serde_json::json!({ "groups": named }));
    }
    let mut text = String::with_capacity(groups.len() * 16);
    for (name, ids) in &groups {
        let name = printable(name);
        if args.tree {
            let depth = name.matches('/').count();
            let last = group_path::name(&name);
            let places: Vec<&str> = ids.iter().map(|&id| labels[id].as_str()).collect();
            let _ = writeln!(text, "{:indent$}{last}  [{}]", "", places.join(" "), indent = depth * 2);
        } else {
            let _ = writeln!(text, "{}{name}", printable(&prefix));
        }
    }
    output::text(&text)
}
