//! What the daemon counts, as metrics.

use exporters::metrics::{Family, Writer, families};

use super::Shared;
use crate::Figures;

/// Counters without labels, by their names in [`Figures`].
const COUNTERS: &[(&Family, &str)] = &[
    (&families::EVENTS, "events"),
    (&families::OVERRUNS, "overruns"),
    (&families::SCANS, "scans"),
    (&families::DECISIONS, "decisions"),
    (&families::SWEPT, "swept"),
    (&families::DRIFTS_FOUND, "drifts"),
    (&families::REPAIRS, "repairs"),
    (&families::TAKEOVERS, "takeovers"),
    (&families::RESIZING_ENDED, "given_up"),
    (&families::GATES, "gates"),
    (&families::GATES_LATE, "gates_late"),
];

/// Counters that differ by a label: its name, and by its values the names in [`Figures`].
type Labelled = (&'static Family, &'static str, &'static [(&'static str, &'static str)]);
const LABELLED: &[Labelled] = &[
    (
        &families::CLASSIFIED,
        "outcome",
        &[
            ("moved", "moved"),
            ("there", "there"),
            ("by_hand", "by_hand"),
            ("missed", "missed"),
            ("failed", "failed"),
        ],
    ),
    (&families::RESIZES, "result", &[("written", "resizes"), ("refused", "resizes_refused")]),
    (
        &families::QUOTA_RESIZES,
        "result",
        &[("written", "quota_resizes"), ("refused", "quota_resizes_refused")],
    ),
    (
        &families::MEMORY_RESIZES,
        "result",
        &[("written", "memory_resizes"), ("refused", "memory_resizes_refused")],
    ),
    (
        &families::KILLED,
        "by",
        &[
            ("limit", "killed_at_a_limit"),
            ("machine", "killed_on_the_machine"),
            ("unknown", "killed_unknown"),
        ],
    ),
    (&families::RELOADS, "result", &[("followed", "reloads"), ("refused", "refused")]),
    (
        &families::GATE_DECISIONS,
        "outcome",
        &[("moved", "gate_moved"), ("left", "gate_left"), ("let_go", "gate_let_go")],
    ),
];

const MICRO: f64 = 1e-6;

/// Counters and what became of samples.
pub(super) fn write(shared: &Shared, to: &mut Writer<'_>) {
    let figures = shared.counters.figures();
    let count =
        |name: &str| figures.counts.iter().find(|(known, _)| *known == name).map_or(0, |(_, count)| *count);
    to.one(&families::RULES, shared.followed().rules.len());
    for (family, name) in COUNTERS {
        to.one(family, count(name));
    }
    for (family, label, values) in LABELLED {
        // none is another answer than not known
        if family.name == families::KILLED.name && count("kills_are_read") == 0 {
            continue;
        }
        to.begin(family);
        for (value, name) in *values {
            to.sample(&[(label, value)], count(name));
        }
    }
    to.one(&families::GATE_SECONDS, count("gate_usec") as f64 * MICRO);
    latency(&figures, to);
    let Some((recorded, up)) = shared.recorded() else { return };
    to.one(&families::RECORDER_UP, u8::from(up));
    to.one(&families::RECORDER_SAMPLES, recorded.samples);
    to.one(&families::RECORDER_LOST, recorded.lost);
    to.one(&families::RECORDER_MISSED, recorded.missed);
    to.one(&families::RECORDER_BYTES, recorded.bytes);
}

fn latency(figures: &Figures, to: &mut Writer<'_>) {
    to.begin(&families::MOVE_SECONDS);
    // the last one takes all above
    let Some(((_, above), buckets)) = figures.latency.split_last() else { return };
    let buckets: Vec<(f64, u64)> =
        buckets.iter().map(|(bound, count)| (*bound as f64 * MICRO, *count)).collect();
    to.histogram(&buckets, *above, figures.latency_sum as f64 * MICRO);
}
