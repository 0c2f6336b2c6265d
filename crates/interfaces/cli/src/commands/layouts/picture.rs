//! `status --svg`: the machine's drawing with each CPU in the colour of the groups that have it.

use std::collections::{BTreeMap, BTreeSet};

use apply::GroupStatus;
use topology::{
    Machine,
    print::{Mark, svg as draw},
};
use units::group_path;

/// The drawing. A CPU that a group shares with its parent is the group's; one that several groups have is theirs
/// together, in a colour of its own.
pub fn svg(machine: &Machine, groups: &[GroupStatus]) -> String {
    let labels: BTreeMap<usize, String> =
        machine.online().iter().filter_map(|cpu| Some((cpu, owners(cpu, groups)?))).collect();
    // colours in the order of names, so that the drawing is the same each time
    let all: BTreeSet<&str> = labels.values().map(String::as_str).collect();
    let colours: BTreeMap<&str, usize> = all.into_iter().zip(0..).collect();
    draw(machine, &|cpu| {
        let label = labels.get(&cpu)?;
        Some(Mark { group: *colours.get(label.as_str())?, label })
    })
}

/// The names of the innermost groups that have a CPU.
fn owners(cpu: usize, groups: &[GroupStatus]) -> Option<String> {
    let has = |group: &&GroupStatus| group.cpus.as_ref().is_some_and(|cpus| cpus.contains(cpu));
    let with: Vec<&str> = groups.iter().filter(has).map(|group| group.group.as_str()).collect();
    let is_above = |name: &str| with.iter().any(|other| group_path::is_below(other, name));
    let innermost: Vec<&str> = with.iter().copied().filter(|name| !is_above(name)).collect();
    (!innermost.is_empty()).then(|| innermost.join(" + "))
}
