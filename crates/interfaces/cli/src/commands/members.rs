//! `where GROUP`: the processes of a group and of those below it, a line each. Reads only.

use std::{collections::BTreeMap, fmt::Write};

use kernel::{GroupName, Host, Process};
use serde::Serialize;
use units::{CpuSet, printable};

use super::{cpu::allowed, group, host};
use crate::{failure::Failure, output};

#[derive(Serialize)]
struct Member {
    process: Process,
    /// The lowest group that it is in, of those below the named one.
    group: String,
    /// What its own affinity and its groups leave it.
    cpus: Option<CpuSet>,
}

/// Of each of these groups.
pub fn members(names: &[&str], as_json: bool) -> Result<(), Failure> {
    let host = host()?;
    let mut rows = Vec::new();
    let mut text = String::new();
    for name in names {
        let name = group(name)?;
        let members = of(&host, &name)?;
        text.push_str(&shown(&name, &members));
        rows.push(serde_json::json!({ "group": name.to_string(), "processes": members }));
    }
    if as_json { output::json(&rows) } else { output::text(&text) }
}

fn of(host: &Host, name: &GroupName) -> Result<Vec<Member>, Failure> {
    if !name.path().is_empty() {
        host.existing(name)?;
    }
    let prefix = if name.path().is_empty() { "/".to_owned() } else { format!("{name}/") };
    let mut groups: Vec<(String, GroupName)> = vec![(name.to_string(), name.clone())];
    // in the order of their names, so that what is below comes later
    for below in host.list(name)?.into_keys() {
        let path = format!("{prefix}{below}");
        // others' groups may have names that a group of ours may not have
        groups.extend(group(&path).ok().map(|group| (path, group)));
    }
    let mut members: BTreeMap<u32, String> = BTreeMap::new();
    for (path, group) in &groups {
        let tasks = host.seats(group).into_iter().flat_map(|seat| host.tasks_in(&seat));
        members.extend(tasks.map(|pid| (pid, path.clone())));
    }
    let member = |(pid, group): (u32, String)| {
        let process = host.kernel().process(pid).ok()?; // it ended meanwhile
        Some(Member { cpus: allowed(host, pid), process, group })
    };
    Ok(members.into_iter().filter_map(member).collect())
}

fn shown(name: &GroupName, members: &[Member]) -> String {
    let mut text = format!("{}\n", printable(&name.to_string()));
    if members.is_empty() {
        text.push_str("  no processes\n");
    }
    let rows: Vec<[String; 4]> = members
        .iter()
        .map(|Member { process, group, cpus }| {
            let below =
                if *group == name.to_string() { String::new() } else { printable(group).into_owned() };
            let cpus = cpus.as_ref().map_or_else(|| "-".to_owned(), CpuSet::to_string);
            [process.pid.to_string(), printable(&process.comm).into_owned(), cpus, below]
        })
        .collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let (pids, names, lists) = (width(0), width(1), width(2));
    for ([pid, comm, cpus, below], member) in rows.iter().zip(members) {
        let last = member.process.last_cpu;
        let line = format!("  {pid:>pids$}  {comm:names$}  CPUs {cpus:lists$}  last on {last}  {below}");
        let _ = writeln!(text, "{}", line.trim_end()); // a String takes everything
    }
    text
}
