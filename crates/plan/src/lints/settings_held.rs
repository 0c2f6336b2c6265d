//! Lints of single settings: budgets too small, weights that nothing heeds, and what a version does otherwise than the
//! setting says.

use std::collections::BTreeSet;

use settings::{Fidelity, Kind, Side};
use units::Limit;

use super::Looked;
use crate::{Lint, LintKind, budgets};

/// A thread of 1 kHz needs this share of the time: with less, one that runs out of budget waits for the next period,
/// which is worse than no real-time budget at all.
const LEAST: f64 = 0.02;

/// Real-time budgets too small to be of use.
pub(super) fn real_time(looked: &Looked<'_>, lints: &mut Vec<Lint>) {
    let asked = looked.values.iter().filter(|valued| valued.found.setting.name.starts_with("cpu.rt_"));
    for (valued, share) in budgets::real_time_shares(asked, looked.observed) {
        if share <= 0.0 || share >= LEAST {
            continue;
        }
        let message = format!(
            "the real-time budget of group '{}' is {:.2} % of the time: a thread that runs out of it waits for the next period",
            valued.group,
            share * 100.0
        );
        let lint = Lint::new(LintKind::RealTimeBudget, Some(valued.group), message).at(valued.origin);
        lints.push(
            lint.hint(
                "give at least 2 % for each thread that runs every millisecond (20ms of a period of 1s)",
            ),
        );
    }
}

/// Weights of I/O on a machine where nothing heeds them.
pub(super) fn weights(looked: &Looked<'_>, lints: &mut Vec<Lint>) {
    let Some(devices) = &looked.machine.block_devices else { return };
    let bfq = devices.iter().any(|device| device.scheduler.as_deref() == Some("bfq"));
    if bfq || !looked.observed.io_cost.is_empty() {
        return;
    }
    let weights = looked.values.iter().filter(|valued| matches!(valued.found.setting.kind, Kind::Weights));
    for valued in weights {
        let message = format!(
            "{} of group '{}' has no effect: no block device has the BFQ scheduler or a cost model",
            valued.found.name, valued.group
        );
        let lint = Lint::new(LintKind::WeightWithoutEffect, Some(valued.group), message).at(valued.origin);
        lints.push(
            lint.hint(
                "echo bfq > /sys/block/DEVICE/queue/scheduler, or enable io.cost.qos of the root group",
            ),
        );
    }
}

/// What the version that controls a group does otherwise than its setting says; once for each setting.
pub(super) fn approximate(looked: &Looked<'_>, lints: &mut Vec<Lint>) {
    let mut told: BTreeSet<&str> = BTreeSet::new();
    for valued in looked.values {
        let Side::Has(binding) = valued.found.side(valued.place.version) else { continue };
        let Fidelity::Approximate(difference) = binding.fidelity else { continue };
        let unlimited = matches!(valued.value, settings::Value::Bytes(Limit::Max));
        if !unlimited && told.insert(valued.found.setting.name) {
            let message = format!("{} on cgroup {}: {difference}", valued.found.name, valued.place.version);
            lints.push(Lint::new(LintKind::Approximate, Some(valued.group), message).at(valued.origin));
        }
    }
}
