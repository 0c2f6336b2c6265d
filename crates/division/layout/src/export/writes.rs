//! The files of one cgroup version that demands become, without a machine: what needs one is reported as lost.

use std::collections::HashMap;

use settings::{Clash, Controller, Facts, Joined, Value, Version};

use crate::assigned::Assigned;
use crate::demand::{CpuDemand, MemDemand};
use crate::desired::{Demands, Desired, Group};
use crate::diagnostic::Diagnostic;
use crate::names::cut;
use crate::needs;
use crate::origin::Origin;

/// One file of a group and what is written to it, one line a write.
pub(super) struct FileText {
    /// Whose section it belongs to.
    pub controller: Controller,
    pub file: String,
    pub text: String,
}

/// libcgroup knows no units: what it makes is a group beside the unit's own.
pub(super) fn unit_lost(demands: &Demands) -> Option<Diagnostic> {
    let unit = demands.unit.as_ref()?;
    let message = format!("libcgroup has no units of systemd: this does not limit {}", unit.value);
    let hint = "ringfence export --to systemd writes drop-in files";
    Some(Diagnostic::warning(message).at(unit.origin.clone()).hint(hint))
}

/// A group in a service is a part of that one's drop-in file, which Ringfence alone writes and follows.
pub(super) fn role_lost(group: &Group, desired: &Desired) -> Option<Diagnostic> {
    let unit = desired.units().above(group)?.0.demands.unit.as_ref()?;
    let message = format!(
        "group '{}' is in {}, which only ringfence apply divides: it is left out",
        group.name, unit.value
    );
    Some(Diagnostic::warning(message).at(group.origin.clone()).hint("ringfence export --to toml keeps it"))
}

/// Files in the order in which they are written.
pub(super) fn writes(
    demands: &Demands,
    version: Version,
    facts: &dyn Facts,
    lost: &mut Vec<Diagnostic>,
) -> Vec<FileText> {
    let mut files = Vec::new();
    let cpuset =
        |file: &str, text: String| FileText { controller: Controller::Cpuset, file: file.to_owned(), text };
    match demands.cpus.as_ref().map(|cpus| (&cpus.value, &cpus.origin)) {
        Some((CpuDemand::These(cpus), _)) => files.push(cpuset("cpuset.cpus", cpus.to_string())),
        Some((_, origin)) => lost.push(unresolved("which CPUs these are", origin)),
        None => {}
    }
    match demands.mems.as_ref().map(|mems| (&mems.value, &mems.origin)) {
        Some((MemDemand::These(nodes), _)) => files.push(cpuset("cpuset.mems", nodes.to_string())),
        Some((_, origin)) => lost.push(unresolved("which nodes these are", origin)),
        None => {}
    }
    if demands.exclusive {
        files.push(match version {
            Version::V1 => cpuset("cpuset.cpu_exclusive", "1".to_owned()),
            Version::V2 => cpuset("cpuset.cpus.partition", "root".to_owned()),
        });
    }
    let before = lost.len();
    let mut values: Vec<(&Assigned, Value)> = Vec::new();
    for assigned in &demands.settings {
        match assigned.found.parse(&assigned.text, facts) {
            Ok(value) => values.push((assigned, value)),
            Err(error) => lost.push(not_there(&error.to_string(), error.hint(), assigned)),
        }
        if let Some(most) = &assigned.most {
            let message = format!(
                "{} stays at {}: only ringfenced moves it up to {most}",
                assigned.found.name, assigned.text
            );
            lost.push(Diagnostic::warning(message).at(assigned.origin.clone()));
        }
    }
    files.extend(of_settings(&values, version, lost));
    let line = |lost: &Diagnostic| lost.origin.as_ref().map(|origin| (origin.line, origin.column));
    lost[before..].sort_by_key(line);
    files
}

/// In the layout's order, but what is worked out from another limit behind that one.
fn of_settings(values: &[(&Assigned, Value)], version: Version, lost: &mut Vec<Diagnostic>) -> Vec<FileText> {
    let rows: HashMap<&str, usize> =
        settings::all().enumerate().map(|(row, setting)| (setting.name, row)).collect();
    let each =
        values.iter().enumerate().map(|(index, (assigned, value))| (index, (), &assigned.found, value));
    let (mut joined, clashes) = settings::join(each);
    for Clash { first, second } in clashes {
        let [one, other] = [first, second].map(|index| values[index].0);
        let message = format!("{} contradicts {}, which counts here", other.found.name, one.found.name);
        lost.push(not_there(&message, None, other));
    }
    joined.sort_by_key(|one| rows.get(one.found.setting.name));
    let mut files: Vec<(usize, FileText)> = Vec::new();
    for Joined { found, value, of } in &joined {
        let assigned = values[of[0]].0;
        let binding = found.side(version).binding();
        let beside = binding.map_or(&[][..], |binding| binding.files);
        let behind = files.iter().filter(|(_, file)| beside.contains(&file.file.as_str()));
        let turn = behind.map(|(turn, _)| *turn).fold(of[0], usize::max);
        let earlier = |file: &str| {
            let before = files.iter().find(|(_, before)| before.file == file);
            before.map(|(_, before)| before.text.clone())
        };
        match found.encode(version, value, &earlier) {
            Ok(writes) => {
                let controller = match binding {
                    Some(binding) if binding.controller != Controller::Core => binding.controller,
                    _ => needs::controller(found),
                };
                for write in writes {
                    add(
                        &mut files,
                        (turn, FileText { controller, file: write.file, text: write.text.trim().to_owned() }),
                    );
                }
            }
            Err(error) => lost.push(not_there(&error.to_string(), error.hint(), assigned)),
        }
    }
    files.sort_by_key(|(turn, _)| *turn);
    files.into_iter().map(|(_, file)| file).collect()
}

fn not_there(message: &str, hint: Option<String>, assigned: &Assigned) -> Diagnostic {
    Diagnostic::warning(message).at(assigned.origin.clone()).maybe_hint(hint)
}

/// Several lines to one file stay one entry.
fn add(files: &mut Vec<(usize, FileText)>, (turn, new): (usize, FileText)) {
    match files.iter_mut().find(|(_, file)| file.file == new.file) {
        Some((_, file)) => file.text = format!("{}\n{}", file.text, new.text),
        None => files.push((turn, new)),
    }
}

fn unresolved(what: &str, origin: &Origin) -> Diagnostic {
    let warning = Diagnostic::warning(format!("{what} is not known without a machine")).at(origin.clone());
    warning.hint("let the planner resolve it first: ringfence plan")
}

/// A warning as comments, in lines that begin with `indent#`.
pub(super) fn comment(indent: &str, warning: &Diagnostic) -> String {
    let hint = warning.hint.as_ref().map_or(String::new(), |hint| format!(" ({hint})"));
    let text = format!("{}{hint}", warning.message);
    text.lines().map(|line| format!("{indent}# not here: {}\n", cut_line(line))).collect()
}

fn cut_line(line: &str) -> String {
    let parts: Vec<&str> = line.split(char::is_control).collect();
    let line = parts.join(" ");
    if line.chars().count() > 300 { cut(&line) } else { line }
}
