//! The units of systemd that the layout in effect has as groups: they live elsewhere, and are sampled as our own groups are.

use std::path::PathBuf;

use apply::{Running, State, System as _, Target, running_units};
use kernel::GroupName;
use monitor::Elsewhere;

/// Those that run now, by the records in this state directory; none for a caller who may not read them.
pub fn layout_units(state: PathBuf) -> Elsewhere {
    let state = State::peek(state);
    let (mut seen, mut units) = (None, Vec::new());
    Elsewhere::new(move |host| {
        let system = Running::new();
        let stamp = state.stamp();
        if seen != Some(stamp)
            && let Ok(now) = apply::bound_units(&state, Target { host, system: &system })
        {
            (units, seen) = (now, Some(stamp));
        }
        let running =
            units.iter().flat_map(|(unit, place)| running_units(host, (unit, place), system.unit_files()));
        running.filter_map(|(_, place)| GroupName::new(&format!("/{}", place.path)).ok()).collect()
    })
}
