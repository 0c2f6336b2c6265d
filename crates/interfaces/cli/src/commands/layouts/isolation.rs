//! What a layout in effect keeps off isolated CPUs, row by row.

use std::collections::BTreeMap;

use apply::{KnobState, KnobStatus};
use interruptions::{Row, RowState};

/// A row for each state of a knob.
pub fn isolation(knobs: &[KnobStatus]) -> Vec<Row> {
    let mut places: BTreeMap<(&str, &str), (RowState, Vec<&str>)> = BTreeMap::new();
    for KnobStatus { knob, instance, state, .. } in knobs {
        let state = match state {
            KnobState::Done => RowState::Done,
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
