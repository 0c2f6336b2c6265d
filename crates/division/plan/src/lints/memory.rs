//! Lints of memory: limits below the use, and more given than there is.

use layout::MemoryAmount;
use settings::{GroupName, NamedSetting, Value, Version};
use units::{Bytes, Limit, group_path};

use super::Looked;
use crate::{Against, Lint, LintKind, Problem, values::Valued};

/// Limits below what is used now.
pub(super) fn below_usage(looked: &Looked<'_>, lints: &mut Vec<Lint>) {
    for (valued, limit) in amounts(looked, "memory.max") {
        let file = match valued.place.version {
            Version::V1 => "memory.usage_in_bytes",
            Version::V2 => "memory.current",
        };
        let actual = match valued.actual {
            Some(Value::Bytes(actual)) => actual,
            _ => Limit::Max,
        };
        let used = looked.observed.file(&valued.place, file).and_then(|text| text.trim().parse().ok());
        let Some(used) = used.filter(|used| *used > limit.0 && actual > Limit::At(limit)).map(Bytes) else {
            continue;
        };
        let (happens, hint) = match valued.place.version {
            Version::V1 => (
                "the kernel refuses it unless it can reclaim the rest",
                "give it more, or wait until the group uses less",
            ),
            Version::V2 => (
                "the rest is reclaimed, and where that can't be, the apply fails and is rolled back",
                "set memory.high first, and wait until the group uses less",
            ),
        };
        let message = format!(
            "group '{}' uses {} of memory, more than memory.max = {limit}: {happens}",
            valued.group,
            used.rounded()
        );
        let lint = Lint::new(LintKind::BelowUsage, Some(valued.group), message).at(valued.origin);
        lints.push(lint.hint(hint));
    }
}

/// Less than this starts no program: a C library alone needs that much.
const LEAST: Bytes = Bytes(1 << 20);

/// Limits that no program can run with, mostly as the unit was forgotten.
pub(super) fn too_small(looked: &Looked<'_>, lints: &mut Vec<Lint>) {
    for valued in looked.values {
        if let Some((message, hint)) = starving(&valued.found, &valued.value, valued.group) {
            let lint = Lint::new(LintKind::TooSmall, Some(valued.group), message).at(valued.origin);
            lints.push(lint.hint(hint));
        }
    }
}

/// What is wrong with a limit of memory that no program can run with, and a hint; `None` for any other value.
pub fn starving(found: &NamedSetting, value: &Value, group: &GroupName) -> Option<(String, String)> {
    let is_limit = matches!(found.setting.name, "memory.max" | "memory.high");
    let Value::Bytes(Limit::At(Bytes(number))) = *value else { return None };
    if !is_limit || Bytes(number) >= LEAST {
        return None;
    }
    let (name, bytes) = (&found.name, units::counted(number, "byte"));
    let message = format!("{name} of group '{group}' is {bytes}: no program can run with that");
    let hint = match number {
        0 => "max lifts the limit".to_owned(),
        1..=4095 => format!("did you mean {number}G or {number}M?"),
        _ => "K, M and G are powers of 1024".to_owned(),
    };
    Some((message, hint))
}

/// A group that is slowed down only above the limit where it is killed.
pub(super) fn high_above_max(looked: &Looked<'_>, lints: &mut Vec<Lint>) {
    for (high, bytes) in amounts(looked, "memory.high") {
        let same = |other: &Valued<'_>| other.group == high.group;
        let Some((_, max)) = amounts(looked, "memory.max").find(|(other, max)| same(other) && *max < bytes)
        else {
            continue;
        };
        let message = format!(
            "memory.high of group '{}' is {bytes}, above its memory.max = {max}: it is never met",
            high.group
        );
        let lint = Lint::new(LintKind::HighAboveMax, Some(high.group), message).at(high.origin);
        lints.push(lint.hint("let memory.high be below memory.max, or leave it out"));
    }
}

/// Guaranteed memory above what there is; and limits that leave the reserve no room.
pub(super) fn over_capacity(looked: &Looked<'_>, problems: &mut Vec<Problem>, lints: &mut Vec<Lint>) {
    let Some(total) = looked.memory.map(|total| total.0) else { return };
    for name in ["memory.min", "memory.low"] {
        let guarantees: Vec<(&Valued<'_>, Bytes)> =
            amounts(looked, name).filter(|(valued, _)| is_top(valued, looked, name)).collect();
        let sum: u64 = guarantees.iter().fold(0, |sum, (_, bytes)| sum.saturating_add(bytes.0));
        if let Some((first, _)) = guarantees.first().filter(|_| sum > total) {
            let message = format!(
                "{name} of all groups is {} together, more than the machine's {}: none of them is guaranteed it",
                Bytes(sum).rounded(),
                Bytes(total).rounded()
            );
            let lint = Lint::new(LintKind::OverCapacity, None, message).at(first.origin);
            lints.push(lint.hint(format!("let it be {} less", enough(sum - total))));
        }
    }
    for name in ["memory.max", "memory.high"] {
        for (valued, limit) in amounts(looked, name).filter(|(_, limit)| limit.0 > total) {
            let message = format!(
                "{} of group '{}' is {limit}, more than the machine's {}: it limits nothing",
                valued.found.name,
                valued.group,
                Bytes(total).rounded()
            );
            let lint = Lint::new(LintKind::OverCapacity, Some(valued.group), message).at(valued.origin);
            lints.push(lint.hint("a percentage of the machine's memory is taken too, such as 50%"));
        }
    }
    reserve(looked, total, problems);
}

/// An amount that is to be taken away, for reading: rounded up, so that it is enough.
fn enough(bytes: u64) -> Bytes {
    let unit = if bytes > 1 << 30 { 1 << 20 } else { 1 << 10 };
    Bytes(bytes.checked_next_multiple_of(unit).unwrap_or(bytes))
}

/// What the layout reserves must be left by limits and guarantees.
fn reserve(looked: &Looked<'_>, total: u64, problems: &mut Vec<Problem>) {
    let Some(reserve) = &looked.desired.reserve.memory else { return };
    let reserved = match reserve.value {
        MemoryAmount::Bytes(bytes) => bytes.0,
        MemoryAmount::Percent(percent) => {
            u64::try_from(u128::from(total) * u128::from(percent.0) / 10_000).unwrap_or(u64::MAX)
        }
    };
    let groups = looked.desired.groups.iter().filter_map(|group| {
        let of_group = |name: &'static str| {
            let own = amounts(looked, name).filter(|(valued, _)| *valued.group == group.name);
            own.filter(|(valued, _)| is_top(valued, looked, name))
                .map(|(valued, bytes)| (bytes.0, valued))
                .next()
        };
        // a limit stands for all that a group can take, a guarantee for what it takes at least
        ["memory.max", "memory.min", "memory.low"].into_iter().find_map(of_group)
    });
    let groups: Vec<(u64, &Valued<'_>)> = groups.collect();
    let sum: u64 = groups.iter().fold(0, |sum, (bytes, _)| sum.saturating_add(*bytes));
    let over = sum.saturating_add(reserved).saturating_sub(total);
    if over == 0 {
        return;
    }
    let against = groups.iter().map(|(bytes, valued)| Against {
        origin: Some(valued.origin.clone()),
        what: format!("'{}' may have {}", valued.group, Bytes(*bytes).rounded()),
    });
    problems.push(Problem::Unsatisfied {
        message: format!(
            "{} of memory are to be reserved, but the groups may have {} of the machine's {}: {} too much",
            Bytes(reserved).rounded(),
            Bytes(sum).rounded(),
            Bytes(total).rounded(),
            enough(over)
        ),
        origin: reserve.origin.clone(),
        against: against.collect(),
        missing: 0,
        hint: format!("take {} from the groups or from the reserve", enough(over)),
    });
}

/// The requested values of a setting that is an amount of memory.
fn amounts<'l>(looked: &'l Looked<'_>, name: &'static str) -> impl Iterator<Item = (&'l Valued<'l>, Bytes)> {
    let named = looked.values.iter().filter(move |valued| valued.found.setting.name == name);
    named.filter_map(|valued| match valued.value {
        Value::Bytes(Limit::At(bytes)) => Some((valued, bytes)),
        _ => None,
    })
}

/// Does no group above it bound the same? What is inside another group's limit is counted there.
fn is_top(valued: &Valued<'_>, looked: &Looked<'_>, name: &str) -> bool {
    let above = |other: &Valued<'_>| {
        other.place.hierarchy == valued.place.hierarchy
            && group_path::is_below(&valued.place.path, &other.place.path)
    };
    !looked.values.iter().any(|other| other.found.setting.name == name && above(other))
}
