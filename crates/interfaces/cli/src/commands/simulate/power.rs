//! Power saving of a layout with `[power] saving = true`.

use std::fmt::Write as _;

use experiment::simulator::{Kind, Load, Saved};
use policy::{
    Scope, Units,
    saving::{Numbers, Saving},
};
use topology::Machine;

/// What general groups request with loads by formula, on average: as much as makes the peaks three quarters of their CPUs.
const SHARE: f64 = 0.5;

/// Power saving at its start.
pub fn saving(machine: &Machine, scope: &Scope) -> Result<Saving, policy::Error> {
    let units = Units::of(machine, &scope.pool)?;
    let named = scope.saving.clone().unwrap_or_default();
    let floor = scope.groups.first().map_or(plan::FLOOR, |group| group.min);
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
