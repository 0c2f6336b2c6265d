//! Rules of a layout that running processes fit and that are not in force for them: `apply` changes groups, and moves
//! no process by a rule. Only looks.

use std::collections::{BTreeMap, BTreeSet};

use answers::layouts::Misplaced;
use classify::{ClassifyOptions, Decision, Done, Goal, Placer, Rules};
use kernel::Host;
use layout::Desired;
use system::{Accounts, ProcessReader};
use units::hint::{Command, toml, toml_key};

use super::Layout;
use crate::output;

/// The most processes that are named.
const NAMED: usize = 5;

/// The processes for which a rule of the layout is not in force. What was put into another group of the layout by hand stays
/// there; in a group that the layout does not know it may just have been started.
pub fn misplaced(desired: &Desired, host: &Host) -> Vec<Misplaced> {
    let all = desired.all_rules();
    if all.is_empty() {
        return Vec::new();
    }
    let names = Accounts::new();
    let (rules, _) = Rules::compile(&all, &names);
    let placer = Placer::new(host, desired, &names);
    let options = ClassifyOptions { dry_run: true, respect_manual_moves: true };
    let mut reader = ProcessReader::new();
    let one = |pid: u32| {
        // of all processes, some end meanwhile
        let mut process = reader.process(pid).ok()?;
        let mut found = placer.classify(&rules, &mut process, options).ok()?;
        if matches!(found.explained.decision, Decision::Stays { .. }) && !is_in(desired, host, pid) {
            let options = ClassifyOptions { respect_manual_moves: false, ..options };
            found = placer.classify(&rules, &mut process, options).ok()?;
        }
        let is_made = |goal: &&Goal| {
            let is_known = desired.groups.iter().any(|group| group.name == goal.group);
            is_known || goal.pattern.name().is_none() || host.existing(&goal.group).is_ok()
        };
        let missing = found.goals.iter().find(|goal| !is_made(goal));
        let reason = match &found.done {
            Done::WouldMove => missing.map(|goal| format!("there is no group '{}'", goal.group)),
            Done::Failed(error) => Some(error.to_string()),
            _ => return None,
        };
        let unit = match &found.done {
            Done::Failed(classify::Error::Kernel(kernel::Error::OfUnit { unit, .. })) => Some(unit.clone()),
            _ => None,
        };
        let groups = found.goals.iter().map(|goal| goal.group.to_string()).collect();
        Some(Misplaced { pid, program: found.program.to_string(), groups, reason, unit })
    };
    ProcessReader::all().unwrap_or_default().into_iter().filter_map(one).collect()
}

/// Is the process in a group of the layout, in any hierarchy?
fn is_in(desired: &Desired, host: &Host, pid: u32) -> bool {
    let groups = host.kernel().groups_of(host.hierarchies(), pid).unwrap_or_default();
    let mut names = host.hierarchies().iter().zip(groups).filter_map(|(at, path)| {
        let path = at.below_mount(&path?)?;
        (!path.is_empty()).then(|| host.named(at, &path))
    });
    names.any(|name| desired.groups.iter().any(|group| group.name.to_string() == name))
}

/// Warns of them.
pub fn warn(misplaced: &[Misplaced], layout: &Layout<'_>) {
    if misplaced.is_empty() {
        return;
    }
    let name = |one: &Misplaced| {
        let reason = one.reason.as_ref().map_or_else(String::new, |reason| format!(" ({reason})"));
        format!("{} {} → {}{reason}", one.pid, one.program, one.groups.join(", "))
    };
    let mut named: Vec<String> = misplaced.iter().take(NAMED).map(name).collect();
    if misplaced.len() > NAMED {
        named.push(format!("and {} more", misplaced.len() - NAMED));
    }
    let (count, verb) = match misplaced.len() {
        1 => ("1 running process fits a rule".to_owned(), "is"),
        count => (format!("{count} running processes fit rules"), "are"),
    };
    output::warning(&format!(
        "{count} of the layout and {verb} not in the group that it names: {}",
        named.join("; ")
    ));
    let movable: Vec<String> =
        misplaced.iter().filter(|one| one.reason.is_none()).map(|one| one.pid.to_string()).collect();
    let command = Command::ringfence("classify --rules").arg(layout.path.display().to_string());
    match movable.len() {
        0 => {}
        1..=NAMED => output::error(&format!("hint: {}\n", command.args(movable))),
        _ => output::error(&format!("hint: {}\n", command.arg("--all"))),
    }
    bind(misplaced);
}

/// The lines by which the layout has the services that the processes belong to as groups.
fn bind(misplaced: &[Misplaced]) {
    let mut by_group: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for one in misplaced {
        if let ([group], Some(unit)) = (one.groups.as_slice(), &one.unit) {
            by_group.entry(group).or_default().insert(unit);
        }
    }
    for (group, units) in by_group {
        let what = if units.len() == 1 { "make the group the service" } else { "give each service a group" };
        let lines = |(index, unit): (usize, &&str)| {
            let name = if units.len() == 1 { group.to_owned() } else { format!("{group}-{index}") };
            format!("\n  [groups.{}]\n  unit = {}", toml_key(&name), toml(unit))
        };
        let lines: String = (1..).zip(&units).map(lines).collect();
        output::error(&format!("hint: {what}, in place of the rule:{lines}\n"));
    }
}
