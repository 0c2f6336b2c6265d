//! What a layout in effect keeps off isolated CPUs, row by row.

use std::collections::BTreeMap;

use apply::{GroupStatus, KnobState, KnobStatus};
use monitor::interruptions::{self, Row, RowState};
use plan::doctor::{Area, Finding, Level};
use settings::knobs;
use units::{CpuSet, hint::Command};

/// A row for each state of a knob.
pub fn isolation(knobs: &[KnobStatus]) -> Vec<Row> {
    let mut places: BTreeMap<(&str, &str), (RowState, Vec<&str>)> = BTreeMap::new();
    for KnobStatus { knob, instance, state, .. } in knobs {
        let state = match state {
            KnobState::Done => RowState::Done,
            KnobState::ByKernel => RowState::ByKernel,
            KnobState::Refused => RowState::Refused,
            KnobState::Changed | KnobState::New => RowState::Drift,
        };
        places.entry((knob, state.name())).or_insert((state, Vec::new())).1.push(instance);
    }
    let row = |((name, _), (state, places)): ((&str, &str), (RowState, Vec<&str>))| Row {
        name: name.to_owned(),
        state,
        detail: match places.as_slice() {
            [one] => (*one).to_owned(),
            more => format!("{} places", more.len()),
        },
    };
    places.into_iter().map(row).collect()
}

/// The rows that are set for CPUs, with what only the boot can do; none of CPUs that are not isolated.
pub fn rows_of(groups: &[GroupStatus], cpus: &CpuSet) -> Vec<Row> {
    // a row that several groups request stands with the first
    let knobs = groups.iter().flat_map(|group| &group.knobs).filter(|knob| !knob.cpus.is_disjoint(cpus));
    let mut rows = isolation(&knobs.cloned().collect::<Vec<KnobStatus>>());
    if !rows.is_empty() {
        let line = std::fs::read_to_string("/proc/cmdline").unwrap_or_default();
        let missing = knobs::missing_at_boot(&line, cpus).into_iter();
        rows.extend(missing.map(|missing| Row {
            name: "boot".to_owned(),
            state: RowState::BootOnly,
            detail: missing.word + if missing.is_optional { " (optional)" } else { "" },
        }));
    }
    rows
}

/// The rows in short, as a finding of `doctor`.
pub fn finding(group: &str, cpus: &CpuSet, rows: &[Row]) -> Finding {
    let drifts = rows.iter().any(|row| row.state == RowState::Drift);
    let (level, hint) = match drifts {
        true => (Level::Attention, Command::ringfence("status").arg("-v")),
        false => (Level::Ok, Command::ringfence("isolate check").group(group).args(["--for", "30s"])),
    };
    let consequence = drifts.then(|| "what was changed or came since interrupts these CPUs again".to_owned());
    let what = format!("group '{group}' has CPUs {cpus} isolated: {}", interruptions::in_short(rows));
    Finding { area: Area::Cpus, level, what, consequence, hint: Some(hint.into()) }
}
