//! `proc`: lists and moves tasks, and starts programs in a cpuset.

use std::{ffi::OsString, os::unix::process::CommandExt, process::Command as Program};

use clap::{ArgMatches, Command};
use system::Accounts;

use crate::cset::{
    arguments::{all, command, flag, identity, names, option, text, verbose, words},
    failure::Failure,
    out::Out,
    sets::{Set, Sets},
    tasks::{is_kernel_thread, is_pidspec, pidspec, table},
    transfer::{Selection, selected},
    write::is_active,
};

/// How wide a line of a table is, unless it is to be whole.
const WIDTH: usize = 78;

pub(crate) fn definition() -> Command {
    let [user, group] = identity();
    command("List and move tasks, and start programs in a cpuset")
        .args([
            flag("list", "list", "List the tasks of a cpuset").short('l'),
            flag("exec", "exec", "Start a program in a cpuset").short('e'),
            user.short('u'),
            group.short('g'),
            flag("move", "move", "Move tasks to a cpuset: those of --pid, or all of --fromset").short('m'),
            option("pid", "pid", "PIDSPEC", "The tasks to move").short('p'),
            flag("threads", "threads", "Also all other threads of their processes"),
            option("set", "set", "CPUSET", "The cpuset").short('s'),
            option("toset", "toset", "CPUSET", "The cpuset that tasks go to").short('t'),
            option("fromset", "fromset", "CPUSET", "The cpuset that tasks come from").short('f'),
            flag("kthread", "kthread", "Move threads of the kernel, too; without --move, only these").short('k'),
            flag("force", "force", "Move all of them, also threads that are bound to CPUs"),
            verbose(),
            words("ARG", "Cpusets, or a program with its arguments; options of the program stand behind --"),
        ])
        .after_help(
            "Examples:\n  cset proc -l -s db\n  cset proc -s db -e -- pgbench -S\n  cset proc -m -p 4711,4712 -t db\n  cset proc -m -f root -t system",
        )
}

pub(crate) fn run(matches: &ArgMatches, out: Out) -> Result<(), Failure> {
    let sets = Sets::new()?;
    let mut given = all(matches);
    let is = |id: &str| matches.get_flag(id);
    let wide = matches.get_count("verbose") > 0;
    if is("exec") {
        let set = match text(matches, "set").or(text(matches, "toset")) {
            Some(name) => sets.unique(name)?,
            None if given.is_empty() => return Err(Failure::new("cpuset not specified")),
            None => sets.unique(&given.remove(0).to_string_lossy())?,
        };
        return start(&sets, &set, &given, matches, out);
    }
    if is("list") || !(is("move") || is("kthread")) {
        let named = text(matches, "set").or(text(matches, "toset")).or(text(matches, "fromset"));
        let several = named.map_or_else(|| names(&given), |name| vec![name.to_owned()]);
        if several.is_empty() {
            return Err(Failure::new("cpuset(s) to list not specified"));
        }
        return list(&sets, &several, wide, out);
    }
    relocate(&sets, matches, &names(&given), out)
}

fn list(sets: &Sets, names: &[String], wide: bool, out: Out) -> Result<(), Failure> {
    let mut found = Vec::new();
    for name in names {
        found.extend(sets.find(name)?);
    }
    for set in &found {
        match sets.tasks(set).is_empty() {
            true => out.info(&sets.summary(set)),
            false => out.info(&table(sets, set, out, " ", (!wide).then_some(WIDTH))),
        }
    }
    Ok(())
}

/// Where tasks come from, where they go to, and which: names may stand in the place of options.
struct Way {
    from: Option<Set>,
    to: Set,
    spec: Option<String>,
}

fn way(sets: &Sets, matches: &ArgMatches, given: &[String]) -> Result<Way, Failure> {
    let option = |id: &str| text(matches, id);
    let named = |id: &str| option(id).map(|name| sets.unique(name)).transpose();
    let (set, from, spec) = (named("set")?, named("fromset")?, option("pid").map(str::to_owned));
    if let Some(to) = named("toset")? {
        let first = given.first().filter(|_| spec.is_none());
        return Ok(match (first, from.or(set)) {
            (Some(first), from) if is_pidspec(first) => Way { from, to, spec: Some(first.clone()) },
            (Some(first), None) => Way { from: Some(sets.unique(first)?), to, spec: None },
            (_, from) => Way { from, to, spec },
        });
    }
    if let Some(to) = set.filter(|_| spec.is_some() || from.is_some()) {
        return Ok(Way { from, to, spec });
    }
    let unique = |name: &String| sets.unique(name);
    match (given, spec) {
        ([], _) => Err(Failure::new("destination cpuset not specified")),
        ([to], spec) => Ok(Way { from, to: unique(to)?, spec }),
        ([from, to, ..], Some(spec)) => {
            Ok(Way { from: Some(unique(from)?), to: unique(to)?, spec: Some(spec) })
        }
        // a set may be called as a number
        ([from, to], None) => match sets.unique(from) {
            Ok(from) => Ok(Way { from: Some(from), to: unique(to)?, spec: None }),
            Err(_) if is_pidspec(from) => Ok(Way { from: None, to: unique(to)?, spec: Some(from.clone()) }),
            Err(failure) => Err(failure),
        },
        ([spec, from, to, ..], None) => {
            Ok(Way { from: Some(unique(from)?), to: unique(to)?, spec: Some(spec.clone()) })
        }
    }
}

fn relocate(sets: &Sets, matches: &ArgMatches, given: &[String], out: Out) -> Result<(), Failure> {
    let Way { from, to, spec } = way(sets, matches, given)?;
    let (kernel_threads, force) = (matches.get_flag("kthread"), matches.get_flag("force"));
    let threads = matches.get_flag("threads");
    is_active(sets, &to)?;
    if let Some(spec) = spec {
        let from = from.as_ref().filter(|_| !force);
        let tasks = pidspec(sets, &spec, from, threads, out)?;
        if tasks.is_empty() {
            out.info("**> no tasks moved");
        } else {
            let list: Vec<String> = tasks.iter().map(u32::to_string).collect();
            out.info(&format!("moving following pidspec: {}", list.join(",")));
            selected(sets, &to, &Selection { from: None, tasks, kernel_threads, force }, out)?;
        }
        out.info("done");
        return Ok(());
    }
    let from = from.ok_or_else(|| Failure::new("origination cpuset not specified"))?;
    let mut tasks = sets.tasks(&from);
    if tasks.is_empty() {
        return Err(Failure::new(format!("no tasks to move from cpuset \"{}\"", from.path())));
    }
    if matches.get_flag("move") {
        out.info(&format!("moving all tasks from {} to {}", from.name(), to.path()));
    } else {
        out.info(&format!("moving all kernel threads from {} to {}", from.path(), to.path()));
        tasks.retain(|task| is_kernel_thread(sets, *task) == Some(true));
    }
    selected(sets, &to, &Selection { from: Some(&from), tasks, kernel_threads, force }, out)?;
    out.info("done");
    Ok(())
}

/// Becomes the program, inside the set.
pub(crate) fn start(
    sets: &Sets,
    set: &Set,
    words: &[OsString],
    matches: &ArgMatches,
    out: Out,
) -> Result<(), Failure> {
    let (name, arguments) = words.split_first().ok_or_else(|| Failure::new("no program is named"))?;
    is_active(sets, set)?;
    let mut program = Program::new(name);
    program.args(arguments);
    identify(&mut program, text(matches, "user"), text(matches, "group"))?;
    let seat = sets.seat(set)?;
    // this process itself goes in, as its children do
    let file = if sets.is_v1() { "tasks" } else { "cgroup.procs" };
    sets.host.write(&seat, &set.group()?, file, "0")?;
    out.info(&format!(
        "--> last message, executed args into cpuset \"{}\", new pid is: {}",
        set.path(),
        std::process::id()
    ));
    Err(Failure::system(&program.exec()))
}

/// A user without a group gets the group `users`, else his own: never that of the caller, which is root's.
fn identify(program: &mut Program, user: Option<&str>, group: Option<&str>) -> Result<(), Failure> {
    let accounts = Accounts::new();
    let number = |noun: &str, name: &str, found: Option<u32>| {
        let found = found.or_else(|| name.parse().ok());
        found.ok_or_else(|| Failure::new(format!("unknown {noun}: \"{}\"", units::printable(name))))
    };
    let failed = |error: system::AccountError| Failure::new(error);
    let uid =
        user.map(|name| number("user", name, accounts.user_number(name).map_err(failed)?)).transpose()?;
    let gid = match (group, uid) {
        (Some(name), _) => Some(number("group", name, accounts.group_number(name).map_err(failed)?)?),
        (None, Some(uid)) if uid != 0 => {
            let of_user = || accounts.primary_group(user?);
            let found = accounts.group_number("users").ok().flatten().or_else(of_user);
            let lacks =
                || Failure::new(format!("user {uid} has no group that is known: name one with --group"));
            Some(found.ok_or_else(lacks)?)
        }
        _ => None,
    };
    gid.map(|gid| program.gid(gid));
    if let (Some(uid), Some(user)) = (uid, user) {
        program.uid(uid).envs(["LOGNAME", "USERNAME", "USER"].map(|name| (name, user)));
    }
    Ok(())
}
