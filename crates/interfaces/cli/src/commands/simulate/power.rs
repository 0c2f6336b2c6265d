//! Power saving of a layout with `[power] saving = true`.

use std::fmt::Write as _;

use layout::{CpuDemand, Desired};
use policy::{
    Units,
    saving::{Numbers, Saving},
};
use simulator::{Kind, Load, Saved};
use topology::Machine;
use units::CpuSet;

/// CPUs that general groups have where the layout has no floor.
const FLOOR: usize = 1;

/// What general groups request with loads by formula, on average: as much as makes the peaks three quarters of their CPUs.
const SHARE: f64 = 0.5;

/// The layout's general groups: those without CPUs of their own, and with none above or below that has some.
pub fn general(desired: &Desired) -> Vec<String> {
    let has = |group: &&layout::Group| group.demands.cpus.is_some();
    let owners: Vec<String> = desired.groups.iter().filter(has).map(|group| group.name.to_string()).collect();
    let names = desired.groups.iter().filter(|group| !has(group)).map(|group| group.name.to_string());
    let related = |one: &str, other: &str| {
        units::group_path::is_below(one, other) || units::group_path::is_below(other, one)
    };
    let names: Vec<String> = names.filter(|name| !owners.iter().any(|owner| related(owner, name))).collect();
    // what a group used is in the figure of the group above it
    let inside = |name: &&String| names.iter().any(|above| units::group_path::is_below(name, above));
    names.iter().filter(|name| !inside(name)).cloned().collect()
}

/// Power saving at its start; `taken` are CPUs that groups have for themselves.
pub fn saving(desired: &Desired, machine: &Machine, taken: &CpuSet) -> Result<Saving, policy::Error> {
    let named = desired.groups.iter().filter_map(|group| group.demands.cpus.as_ref());
    let named = named.fold(taken.clone(), |all, cpus| match &cpus.value {
        CpuDemand::These(cpus) => all.union(cpus),
        CpuDemand::OfNodes(nodes) => all.union(&machine.cpus_of_nodes(nodes)),
        _ => all,
    });
    let units = Units::of(machine, &machine.online().difference(taken))?;
    let floor = desired.power.floor.as_ref().map_or(FLOOR, |floor| floor.value);
    Saving::new(machine, units, &named, floor, Numbers::default())
}

/// Loads by formula for general groups as one.
pub fn loads(saving: &Saving, kinds: &[Kind], seed: u64) -> Vec<Load> {
    let cpus = (saving.units().len() * saving.units().width()) as f64;
    kinds.iter().map(|kind| kind.load(&[(cpus * SHARE, cpus)], cpus, seed)).collect()
}

/// The table of power saving.
pub fn table(outcomes: &[Saved]) -> String {
    let mut out = format!(
        "{:<12} {:>7} {:>5} {:>7} {:>10} {:>8}\n",
        "power saving", "lost %", "CPUs", "idle", "from-to", "changes"
    );
    for one in outcomes {
        let span = format!("{}-{}", one.least_idle, one.most_idle);
        // a String takes everything
        let _ = writeln!(
            out,
            "{:<12} {:>7.2} {:>5} {:>7.1} {:>10} {:>8}",
            one.load, one.lost_percent, one.cpus, one.idle, span, one.changes
        );
    }
    out
}
