//! Lints of single settings: budgets too small, weights that no device uses, and where a version differs from the
//! setting's meaning.

use std::collections::BTreeSet;

use settings::{DeviceNumber, Fidelity, Side, Value, Version};
use units::Limit;

use super::Looked;
use crate::{Lint, LintKind, budgets, values::Valued};

/// A thread of 1 kHz needs this share of the time: with less, one that runs out of budget waits for the next period,
/// which is worse than no real-time budget at all.
const LEAST: f64 = 0.02;

/// Real-time budgets too small to be of use.
pub(super) fn real_time(looked: &Looked<'_>, lints: &mut Vec<Lint>) {
    let requested = looked.values.iter().filter(|valued| valued.found.setting.name.starts_with("cpu.rt_"));
    for (valued, share) in budgets::real_time_shares(requested, looked.observed) {
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

/// Weights of I/O that nothing on the machine uses.
pub(super) fn weights(looked: &Looked<'_>, lints: &mut Vec<Lint>) {
    let Some(known) = &looked.machine.block_devices else { return };
    for valued in looked.values {
        let Value::Weights { default, devices } = &valued.value else { continue };
        let policy = WeightPolicy::of(valued);
        let is_weighted = |number: DeviceNumber| policy.applies_to(number, looked);
        let somewhere = || {
            let listed =
                known.iter().any(|at| is_weighted(DeviceNumber { major: at.major, minor: at.minor }));
            listed || (policy == WeightPolicy::CostModel && !looked.observed.io_cost.is_empty())
        };
        if (default.is_some() && somewhere()) || devices.keys().any(|number| is_weighted(*number)) {
            continue;
        }
        let absence = match default {
            Some(_) => "no block device has".to_owned(),
            None => {
                let numbers = devices.keys().map(|number| format!("{}:{}", number.major, number.minor));
                let verb = if devices.len() == 1 { "is" } else { "are" };
                format!("{} {verb} without", numbers.collect::<Vec<String>>().join(", "))
            }
        };
        let message = format!(
            "{} of group '{}' has no effect: {absence} {}",
            valued.found.name,
            valued.group,
            policy.name()
        );
        let lint = Lint::new(LintKind::WeightWithoutEffect, Some(valued.group), message).at(valued.origin);
        lints.push(lint.hint(policy.hint()));
    }
}

/// What makes a weight of I/O one (`bfq.weight` of block/bfq-cgroup.c, `weight` of block/blk-iocost.c; before Linux
/// 5.0 that of block/cfq-iosched.c, by v1 and v2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WeightPolicy {
    Bfq,
    /// v2's; a CFQ scheduler does it, too.
    CostModel,
    Cfq,
}

impl WeightPolicy {
    fn of(valued: &Valued<'_>) -> WeightPolicy {
        match (valued.found.setting.name, valued.place.version) {
            ("io.bfq.weight", _) => WeightPolicy::Bfq,
            (_, Version::V2) => WeightPolicy::CostModel,
            (_, Version::V1) => WeightPolicy::Cfq,
        }
    }

    /// Of a device that is not described nothing bad is said.
    fn applies_to(self, number: DeviceNumber, looked: &Looked<'_>) -> bool {
        let Some(device) = looked.machine.block_device_numbered(number.major, number.minor) else {
            return true;
        };
        let scheduler = |name: &str| device.scheduler.as_deref() == Some(name);
        let modelled = || looked.observed.io_cost.contains(&format!("{}:{}", number.major, number.minor));
        match self {
            WeightPolicy::Bfq => scheduler("bfq"),
            WeightPolicy::CostModel => modelled() || scheduler("cfq"),
            WeightPolicy::Cfq => scheduler("cfq"),
        }
    }

    fn name(self) -> &'static str {
        match self {
            WeightPolicy::Bfq => "the BFQ scheduler",
            WeightPolicy::CostModel => "a cost model",
            WeightPolicy::Cfq => "the CFQ scheduler",
        }
    }

    fn hint(self) -> &'static str {
        match self {
            WeightPolicy::Bfq => "echo bfq > /sys/block/DEVICE/queue/scheduler",
            WeightPolicy::CostModel => {
                "enable io.cost.qos of the root group, or echo bfq > /sys/block/DEVICE/queue/scheduler and set io.bfq.weight"
            }
            WeightPolicy::Cfq => {
                "echo bfq > /sys/block/DEVICE/queue/scheduler and set io.bfq.weight: Linux 5.0 and later have no CFQ"
            }
        }
    }
}

/// Where the version that controls a group differs from its setting's meaning; once for each setting.
pub(super) fn approximate(looked: &Looked<'_>, lints: &mut Vec<Lint>) {
    let mut reported: BTreeSet<&str> = BTreeSet::new();
    for valued in looked.values {
        let Side::Has(binding) = valued.found.side(valued.place.version) else { continue };
        let Fidelity::Approximate(difference) = binding.fidelity else { continue };
        let unlimited = matches!(valued.value, Value::Bytes(Limit::Max));
        if !unlimited && reported.insert(valued.found.setting.name) {
            let message = format!("{} on cgroup {}: {difference}", valued.found.name, valued.place.version);
            lints.push(Lint::new(LintKind::Approximate, Some(valued.group), message).at(valued.origin));
        }
    }
}
