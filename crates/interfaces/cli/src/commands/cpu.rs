//! `where --cpu`: which groups and tasks may run on a CPU, and which tasks ran there last. Reads only.

use std::{borrow::Cow, collections::BTreeMap, fmt::Write, path::Path};

use kernel::{Host, Process};
use serde::Serialize;
use settings::Controller;
use topology::Machine;
use units::{CpuSet, counted, printable};

use super::{group, host};
use crate::{failure::Failure, output};

#[derive(Serialize)]
struct Group {
    group: String,
    /// The CPUs that its tasks may run on.
    cpus: CpuSet,
}

#[derive(Serialize)]
struct Task {
    /// Of a thread its own number.
    pid: u32,
    process: u32,
    program: String,
    kernel_thread: bool,
    /// In the hierarchy of cpusets, else in the first.
    group: String,
    cpus: CpuSet,
    ran_here_last: bool,
}

pub fn cpu(cpu: u32, as_json: bool) -> Result<(), Failure> {
    let online = Machine::live()?.online();
    let index = usize::try_from(cpu).ok().filter(|cpu| online.contains(*cpu)).ok_or_else(|| {
        Failure::usage(format!("there is no CPU {cpu}")).hint(format!("this machine has CPUs {online}"))
    })?;
    let host = host()?;
    let groups = groups(&host, index)?;
    let tasks = tasks(&host, cpu, index)?;
    if as_json {
        return output::json(&serde_json::json!({ "cpu": cpu, "groups": groups, "tasks": tasks }));
    }
    output::text(&shown(cpu, &groups, &tasks))
}

fn groups(host: &Host, cpu: usize) -> Result<Vec<Group>, Failure> {
    let root = group("/")?;
    let Some(at) = host.hierarchy_of(Controller::Cpuset) else { return Ok(Vec::new()) };
    let effective = settings::lookup("cpuset.cpus.effective");
    let Some(file) = effective.and_then(|found| found.files(at.version).into_iter().next()) else {
        return Ok(Vec::new());
    };
    let mut found = Vec::new();
    for path in host.list(&root)?.keys() {
        // by its path: others' groups may have names that a group of ours may not have. Without a cpuset of its own it has its
        // parent's
        let Ok(text) = host.kernel().read(at, path, &file) else { continue };
        let Ok(cpus) = text.trim().parse::<CpuSet>() else { continue };
        if cpus.contains(cpu) {
            found.push(Group { group: host.named(at, path), cpus });
        }
    }
    Ok(found)
}

/// Every thread that may run there, those that ran there last first.
fn tasks(host: &Host, number: u32, cpu: usize) -> Result<Vec<Task>, Failure> {
    let at = host.hierarchy_of(Controller::Cpuset).or_else(|| host.hierarchies().first());
    let mut found = Vec::new();
    for pid in system::ProcessReader::all().map_err(Failure::new)? {
        for thread in threads(pid) {
            let Ok(process) = host.kernel().process(thread) else { continue }; // it ended meanwhile
            let Some(cpus) = allowed(host, thread) else { continue };
            if !cpus.contains(cpu) {
                continue;
            }
            let group = at.and_then(|at| {
                let path = host.kernel().group_of(at, thread).ok()?;
                Some(at.below_mount(&path).map_or(path, |below| host.named(at, &below)))
            });
            let ran_here_last = process.last_cpu == number;
            let Process { tgid, comm, kernel_thread, .. } = process;
            found.push(Task {
                pid: thread,
                process: tgid,
                program: comm,
                kernel_thread,
                group: group.unwrap_or_default(),
                cpus,
                ran_here_last,
            });
        }
    }
    found.sort_by_key(|task| (!task.ran_here_last, task.kernel_thread, task.pid));
    Ok(found)
}

/// Of a process that ended, none.
fn threads(pid: u32) -> Vec<u32> {
    let entries = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// The CPUs that a thread may run on.
pub(super) fn allowed(host: &Host, thread: u32) -> Option<CpuSet> {
    let status = host.kernel().outside(Path::new(&format!("/proc/{thread}/status"))).ok()?;
    status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?.trim().parse().ok()
}

fn shown(cpu: u32, groups: &[Group], tasks: &[Task]) -> String {
    let mut text = format!("CPU {cpu}\n");
    let groups: Vec<(Cow<'_, str>, &CpuSet)> =
        groups.iter().map(|group| (printable(&group.group), &group.cpus)).collect();
    let width = groups.iter().map(|(group, _)| group.chars().count()).max().unwrap_or(0);
    if !groups.is_empty() {
        text.push_str("groups that may run here:\n");
    }
    for (group, cpus) in groups {
        let _ = writeln!(text, "  {group:width$}  CPUs {cpus}"); // a String takes everything
    }
    let (last, rest): (Vec<&Task>, Vec<&Task>) = tasks.iter().partition(|task| task.ran_here_last);
    let (kernel, programs): (Vec<&Task>, Vec<&Task>) = last.into_iter().partition(|task| task.kernel_thread);
    let _ = writeln!(
        text,
        "ran here last: {} and {} of the kernel",
        counted(programs.len(), "thread"),
        kernel.len()
    );
    let mut by_process: BTreeMap<(u32, Cow<'_, str>, Cow<'_, str>), usize> = BTreeMap::new();
    for task in &programs {
        let names = (printable(&task.program), printable(&task.group));
        *by_process.entry((task.process, names.0, names.1)).or_default() += 1;
    }
    let widest = by_process.keys().map(|(_, program, _)| program.chars().count()).max().unwrap_or(0);
    for ((process, program, group), count) in by_process {
        let threads = if count > 1 { format!("  ({})", counted(count, "thread")) } else { String::new() };
        let _ = writeln!(text, "  {process:>7}  {program:widest$}  {group}{threads}");
    }
    let _ = writeln!(text, "may run here, ran elsewhere last: {}", counted(rest.len(), "thread"));
    text
}
