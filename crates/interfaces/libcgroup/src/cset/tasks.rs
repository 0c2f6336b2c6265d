//! The tasks of a set as a table, and PIDSPEC: which tasks are meant.

use std::{collections::BTreeSet, path::Path};

use apply::{Running, System};
use kernel::Process;
use system::Accounts;
use units::ProcStat;

use crate::cset::{
    failure::Failure,
    out::Out,
    sets::{Set, Sets},
};

/// How a table is cut: to lines of at most this many characters, or not at all.
pub(crate) type Width = Option<usize>;

/// `/proc/PID/FILE`.
fn file(sets: &Sets, task: u32, name: &str) -> String {
    sets.host.kernel().outside(Path::new(&format!("/proc/{task}/{name}"))).unwrap_or_default()
}

pub(crate) fn process(sets: &Sets, task: u32) -> Option<Process> {
    sets.host.kernel().process(task).ok()
}

/// Is it a thread of the kernel? `None` once it has ended.
pub(crate) fn is_kernel_thread(sets: &Sets, task: u32) -> Option<bool> {
    process(sets, task).map(|process| process.kernel_thread)
}

/// May it run on all CPUs of the root set?
pub(crate) fn is_unbound(sets: &Sets, task: u32) -> bool {
    let all = sets.cpus(&Set::root());
    Running::new().affinity(task).is_ok_and(|cpus| all.is_subset(&cpus))
}

/// A summary line, and the tasks.
pub(crate) fn table(sets: &Sets, set: &Set, out: Out, indent: &str, width: Width) -> String {
    let tasks = sets.tasks(set);
    if out.machine {
        let rows = rows(sets, &tasks, out, "", None);
        let name = set.name();
        let around = [format!("proc_list_start-{name}"), format!("proc_list_stop-{name}")];
        let [first, last] = around;
        return std::iter::once(first).chain(rows).chain([last]).collect::<Vec<_>>().join("\n");
    }
    let heading = [
        sets.summary(set),
        format!("{indent}USER       PID  PPID SPPr TASK NAME"),
        format!("{indent}-------- ----- ----- ---- ---------"),
    ];
    heading.into_iter().chain(rows(sets, &tasks, out, indent, width)).collect::<Vec<_>>().join("\n")
}

/// One that has ended since is left out.
fn rows(sets: &Sets, tasks: &[u32], out: Out, indent: &str, width: Width) -> Vec<String> {
    let accounts = Accounts::new();
    let row = |task: &u32| Some(format!("{indent}{}", detail(sets, &accounts, *task, out, width)?));
    tasks.iter().filter_map(row).collect()
}

fn detail(sets: &Sets, accounts: &Accounts, task: u32, out: Out, width: Width) -> Option<String> {
    let process = process(sets, task)?;
    let stat = file(sets, task, "stat");
    let priority = ProcStat::parse(stat.as_bytes()).and_then(|stat| stat.realtime_priority()).unwrap_or(0);
    let user = accounts.user_name(process.uid).unwrap_or_else(|| process.uid.to_string());
    let user: String = user.chars().take(8).collect();
    let name = match process.kernel_thread {
        true => format!("[{}]", process.comm),
        false => file(sets, task, "cmdline").replace('\0', " "),
    };
    let fields = [
        format!("{user:<8}"),
        format!("{task:>5}"),
        format!("{:>5}", process.parent),
        format!("{}{}", process.state, scheduled(process.policy, priority)),
        units::printable(&name).into_owned(),
    ];
    if out.machine {
        return Some(fields.iter().map(|field| field.trim()).collect::<Vec<_>>().join(";"));
    }
    let line = fields.join(" ");
    Some(match width {
        Some(width) if line.chars().count() >= width => {
            let cut: String = line.chars().take(width.saturating_sub(3)).collect();
            format!("{cut}...")
        }
        _ => line,
    })
}

/// Policy and priority: `oth`, `f50`, `r_1`.
fn scheduled(policy: u32, priority: u32) -> String {
    match policy {
        0 => "oth".to_owned(),
        3 => "bat".to_owned(),
        6 => "ddl".to_owned(),
        1 | 2 => {
            let letter = if policy == 1 { 'f' } else { 'r' };
            if priority < 10 { format!("{letter}_{priority}") } else { format!("{letter}{priority:>2}") }
        }
        5 => "i_0".to_owned(),
        _ => "?_0".to_owned(),
    }
}

/// Tasks by their numbers, `1,2,600-700`: of a range those that are there. `from`: only those in this set; how many are not
/// is said.
pub(crate) fn pidspec(
    sets: &Sets,
    spec: &str,
    from: Option<&Set>,
    threads: bool,
    out: Out,
) -> Result<Vec<u32>, Failure> {
    let inside = from.map(|set| sets.tasks(set));
    let mut skipped = 0;
    let mut found: Vec<u32> = Vec::new();
    for task in numbers(sets, spec)? {
        if inside.as_ref().is_some_and(|inside| !inside.contains(&task)) {
            skipped += 1;
        } else if !found.contains(&task) {
            found.push(task);
        }
    }
    if let Some(from) = from.filter(|_| skipped > 0) {
        let noun = if skipped > 1 { "tasks" } else { "task" };
        out.info(&format!("**> skipped {skipped} {noun}, not in origination set \"{}\"", from.name()));
    }
    if threads {
        let all: BTreeSet<u32> = found.iter().flat_map(|task| siblings(sets, *task)).collect();
        found.extend(all.into_iter().filter(|task| !found.contains(task)).collect::<Vec<_>>());
    }
    Ok(found)
}

/// All threads of the process that a task belongs to.
fn siblings(sets: &Sets, task: u32) -> Vec<u32> {
    let of = process(sets, task).map_or(task, |process| process.tgid);
    sets.host.kernel().threads(of).unwrap_or_default()
}

fn numbers(sets: &Sets, spec: &str) -> Result<Vec<u32>, Failure> {
    let bad = |group: &str| {
        Failure::new(format!("pidspec={} has bad group={}", spec.escape_debug(), group.escape_debug()))
    };
    let mut all = Vec::new();
    for group in spec.split(',').filter(|group| !group.is_empty()) {
        let number = |text: &str| text.parse::<u32>().map_err(|_| bad(group));
        match group.split_once('-') {
            None => all.push(number(group)?),
            Some((first, last)) => {
                let (first, last) = (number(first)?, number(last)?);
                let there = sets.host.kernel().processes().unwrap_or_default();
                let fits = |task: &u32| (first..=last).contains(task);
                let threads =
                    there.iter().flat_map(|task| sets.host.kernel().threads(*task).unwrap_or_default());
                let found: BTreeSet<u32> = threads.filter(fits).collect();
                all.extend(found);
            }
        }
    }
    Ok(all)
}

/// Can it be one?
pub(crate) fn is_pidspec(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || b",-".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policy_and_priority_take_three_characters() {
        let rows = [((0, 0), "oth"), ((1, 99), "f99"), ((1, 1), "f_1"), ((2, 50), "r50"), ((3, 0), "bat")];
        for ((policy, priority), wanted) in rows {
            assert_eq!(scheduled(policy, priority), wanted);
        }
    }
}
