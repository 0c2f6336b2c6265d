//! The latencies of elastic groups, as their sources report them to the daemon.

use apply::{Measured, Says};

use super::{Bounds, Family, Writer, families};

/// Their families. A source that did not answer yet has no series of its own but its target.
pub fn write_latencies(all: &[Measured], bounds: Bounds, to: &mut Writer<'_>) {
    let all = &all[..all.len().min(bounds.groups)];
    let gauge = |family: &Family, to: &mut Writer<'_>, of: fn(&Measured) -> Option<f64>| {
        let known: Vec<(&Measured, f64)> = all.iter().filter_map(|one| Some((one, of(one)?))).collect();
        if !known.is_empty() {
            to.begin(family);
        }
        known.into_iter().for_each(|(one, value)| to.sample(&[("group", &one.group)], value));
    };
    gauge(&families::LATENCY, to, |one| match one.says {
        Says::Measures { p99 } => Some(p99),
        _ => None,
    });
    gauge(&families::LATENCY_TARGET, to, |one| Some(one.target));
    gauge(&families::LATENCY_SOURCE_UP, to, |one| match one.says {
        Says::Begins => None,
        Says::Stopped { .. } => Some(0.0),
        Says::Measures { .. } | Says::Nothing => Some(1.0),
    });
}
