//! `set`: makes, changes, renames, removes and lists cpusets.

use clap::{ArgMatches, Command};
use units::NodeSet;

use crate::cset::{
    arguments::{all, command, flag, names, option, text, verbose, words},
    cpus,
    failure::Failure,
    out::Out,
    sets::{Set, Sets},
    transfer,
    write::{Change, create, delete, is_active, modify},
};

pub(crate) fn definition() -> Command {
    command("Make, change, rename, remove and list cpusets")
        .args([
            flag("list", "list", "List cpusets with those directly below; with -r all below").short('l'),
            option("cpu", "cpu", "CPUSPEC", "Make a cpuset with these CPUs, or give them to one").short('c'),
            option("mem", "mem", "MEMSPEC", "Its memory nodes [default: its parent's]").short('m'),
            option("newname", "newname", "NAME", "Rename the cpuset").short('n'),
            flag("destroy", "destroy", "Remove cpusets; their tasks move to the one above").short('d'),
            option("set", "set", "CPUSET", "The cpuset, by name or path").short('s'),
            flag("recurse", "recurse", "With --list and --destroy: all below").short('r'),
            flag("force", "force", "Remove cpusets that have others below"),
            flag("usehex", "usehex", "List CPUs and memory nodes in hexadecimal").short('x'),
            verbose(),
            flag("cpu_exclusive", "cpu_exclusive", "Its CPUs are its own"),
            flag("mem_exclusive", "mem_exclusive", "Its memory nodes are its own; cgroup v1 only"),
            words("CPUSET", "The same as --set; several for --list and --destroy"),
        ])
        .after_help(
            "Examples:\n  cset set -c 1-3 -s db\n  cset set -l -r\n  cset set -s db -n database\n  cset set -d database",
        )
}

pub(crate) fn run(matches: &ArgMatches, out: Out) -> Result<(), Failure> {
    let sets = Sets::new()?;
    let given = names(&all(matches));
    let named = text(matches, "set").map(str::to_owned);
    let several = named.clone().map_or_else(|| given.clone(), |name| vec![name]);
    let one = named.or_else(|| given.first().cloned());
    let is = |id: &str| matches.get_flag(id);
    if !is("list") {
        if text(matches, "cpu").is_some() || text(matches, "mem").is_some() {
            let name = one.ok_or_else(|| Failure::new("cpuset not specified"))?;
            return make(&sets, &name, matches, out);
        }
        if let Some(new) = text(matches, "newname") {
            let name = one.ok_or_else(|| Failure::new("desired cpuset not specified"))?;
            return rename(&sets, &name, new, out);
        }
        if is("destroy") {
            return destroy(&sets, &several, is("recurse"), is("force"), out);
        }
        if is("cpu_exclusive") || is("mem_exclusive") {
            out.info("Modification of cpu_exclusive and mem_exclusive not implemented.");
            return Ok(());
        }
    }
    let several = if several.is_empty() { vec!["root".to_owned()] } else { several };
    let wide = matches.get_count("verbose") > 0;
    list(&sets, &several, (is("recurse"), is("usehex"), wide), out)
}

fn list(
    sets: &Sets,
    names: &[String],
    (recurse, hex, wide): (bool, bool, bool),
    out: Out,
) -> Result<(), Failure> {
    let mut shown: Vec<Set> = Vec::new();
    for name in names {
        for set in sets.find(name)? {
            let below = sets.below(&set);
            shown.push(set);
            shown.extend(below.iter().cloned());
            if recurse {
                shown.extend(below.iter().flat_map(|set| sets.walk(set)));
            }
        }
    }
    let lines = shown.iter().map(|set| sets.line(set, out, hex, wide));
    let lines: Vec<String> = match out.machine {
        true => ["cpuset_list_start".to_owned()]
            .into_iter()
            .chain(lines)
            .chain(["cpuset_list_end".to_owned()])
            .collect(),
        false => {
            let heading = [
                "",
                "         Name       CPUs-X    MEMs-X Tasks Subs Path",
                " ------------ ---------- - ------- - ----- ---- ----------",
            ];
            heading.into_iter().map(str::to_owned).chain(lines).collect()
        }
    };
    out.info(&lines.join("\n"));
    Ok(())
}

fn make(sets: &Sets, name: &str, matches: &ArgMatches, out: Out) -> Result<(), Failure> {
    let (cpus, mems) = (text(matches, "cpu"), text(matches, "mem"));
    let cpus = cpus.map(|spec| cpus::within("CPUSPEC", spec, &sets.cpus(&Set::root()))).transpose()?;
    let mems: Option<NodeSet> = mems.map(|spec| cpus::read("MEMSPEC", spec)).transpose()?;
    let (cpus, mems) = (cpus.map(|set| set.to_string()), mems.map(|set| set.to_string()));
    let change = Change {
        cpus: cpus.as_deref(),
        mems: mems.as_deref(),
        cpu_exclusive: matches.get_flag("cpu_exclusive").then_some(true),
        mem_exclusive: matches.get_flag("mem_exclusive"),
    };
    let set = match sets.unique(name) {
        Ok(set) => {
            modify(sets, &set, &change)?;
            out.info(&format!("--> modified cpuset \"{name}\""));
            set
        }
        Err(failure) if failure.is_missing => {
            let set = Set::at(name)?;
            create(sets, &set, &change)?;
            out.info(&format!("--> created cpuset \"{name}\""));
            set
        }
        Err(_) => {
            return Err(Failure::new(format!("cpuset \"{name}\" not unique, please specify by path")));
        }
    };
    is_active(sets, &set)
}

/// Another one with the same settings and tasks, as cgroup v2 has no names to change.
fn rename(sets: &Sets, name: &str, new: &str, out: Out) -> Result<(), Failure> {
    let old = sets.unique(name)?;
    let parent = old.parent();
    let path = match new.rsplit_once('/') {
        None => format!("{}/{new}", parent.path().trim_end_matches('/')),
        Some((above, _)) if above.trim_matches('/') == parent.path().trim_matches('/') => new.to_owned(),
        Some(_) => return Err(Failure::new("desired name cannot have different path")),
    };
    let renamed = Set::at(&path)?;
    if sets.find(&renamed.path()).is_ok() {
        return Err(Failure::new(format!("cpuset \"{}\" already exists", renamed.path())));
    }
    if old.is_root() || !sets.below(&old).is_empty() {
        return Err(Failure::new(format!("cpuset \"{}\" has subsets and cannot be renamed", old.path())));
    }
    let directory = sets.seat(&old)?.directory();
    out.info(&format!("--> renaming \"{}\" to \"{}\"", directory.display(), renamed.name()));
    let own = sets.is_cpu_exclusive(&old);
    if own {
        modify(sets, &old, &Change { cpu_exclusive: Some(false), ..Change::default() })?;
    }
    let (cpus, mems) = (sets.cpus(&old).to_string(), sets.mems(&old).to_string());
    let change = Change { cpus: Some(&cpus), mems: Some(&mems), ..Change::default() };
    let made = create(sets, &renamed, &change).and_then(|()| {
        copy_settings(sets, &old, &renamed).inspect_err(|_| {
            // it is new, and nobody's; the refusal is what the user reads
            let _ = delete(sets, &renamed);
        })
    });
    if made.is_err() && own {
        modify(sets, &old, &Change { cpu_exclusive: Some(true), ..Change::default() })?;
    }
    made?;
    transfer::put(sets, &renamed, &sets.tasks(&old), out)?;
    delete(sets, &old)?;
    if own {
        modify(sets, &renamed, &Change { cpu_exclusive: Some(true), ..Change::default() })?;
    }
    Ok(())
}

/// Everything else that the old one was set to.
fn copy_settings(sets: &Sets, old: &Set, new: &Set) -> Result<(), Failure> {
    let (from, to) = (sets.seat(old)?, sets.seat(new)?);
    let kernel = sets.host.kernel();
    let is_set = |file: &String| {
        let own = ["cpuset.cpus", "cpuset.mems", "cpuset.cpus.partition", "cpuset.cpu_exclusive"];
        settings::lookup(file).is_some_and(|found| found.setting.can_be_set())
            && !own.contains(&file.as_str())
    };
    for file in kernel.files(from.at, &from.path).unwrap_or_default().iter().filter(|file| is_set(file)) {
        let read = |seat: &kernel::Seat<'_>| kernel.read(seat.at, &seat.path, file).unwrap_or_default();
        let (text, now) = (read(&from), read(&to));
        if text.trim() == now.trim() {
            continue;
        }
        // of a file of lines by device each write is about one
        let lines: Vec<&str> =
            if settings::is_by_key(file) { text.lines().collect() } else { vec![text.trim()] };
        for line in lines {
            kernel.write(to.at, &to.path, file, line).map_err(|errno| {
                let (path, reason) = (old.path(), std::io::Error::from(errno));
                Failure::new(format!(
                    "cannot rename \"{path}\": {file} can't be {line} in another set: {reason}"
                ))
            })?;
        }
    }
    Ok(())
}

fn destroy(sets: &Sets, names: &[String], recurse: bool, force: bool, out: Out) -> Result<(), Failure> {
    let mut doomed: Vec<Set> = Vec::new();
    for name in names {
        let set = sets.unique(name)?;
        let below = sets.walk(&set);
        if !below.is_empty() && !recurse {
            let message = "has subsets, delete them first, or use --recurse";
            return Err(Failure::new(format!("cpuset \"{}\" {message}", set.path())));
        }
        if !below.is_empty() && !force {
            return Err(Failure::new(format!(
                "cpuset \"{}\" has subsets, use --force to destroy",
                set.path()
            )));
        }
        doomed.push(set);
        doomed.extend(below);
    }
    // those below come first
    doomed.sort_by_key(|set| std::cmp::Reverse(set.path().matches('/').count()));
    doomed.dedup();
    for set in doomed.iter().filter(|set| !set.is_root()) {
        let (tasks, parent) = (sets.tasks(set), set.parent());
        out.info(&format!(
            "--> processing cpuset \"{}\", moving {} tasks to parent \"{}\"...",
            set.name(),
            tasks.len(),
            parent.path()
        ));
        transfer::put(sets, &parent, &tasks, out)?;
        out.info(&format!("--> deleting cpuset \"{}\"", set.path()));
        delete(sets, set)?;
    }
    out.info("done");
    Ok(())
}
