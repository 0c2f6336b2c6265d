//! The order in which the kernel takes values that go back.

use plan::{Action, ReadFile, Step};
use settings::{Law, Version};
use units::CpuSet;

/// Values that go back, in the order that the kernel takes. `now`: what a file contains.
pub(crate) fn in_order(values: Vec<Step>, now: ReadFile<'_>) -> Vec<Step> {
    let mut values = plan::in_order(values, now);
    values.sort_by_key(cpuset_order);
    values
}

/// The order that the kernel takes: what is exclusive is released before lists change, from the deepest group up; lists
/// grow from the top down and shrink from the deepest up; then groups become exclusive again. All else comes behind.
pub(crate) fn cpuset_order(step: &Step) -> (u8, isize) {
    let (Action::Write { place, file, text }, before) = (&step.action, &step.before) else { return (4, 0) };
    let depth = isize::try_from(place.path.matches('/').count()).unwrap_or(isize::MAX);
    let set = |text: &str| text.trim().parse::<CpuSet>().unwrap_or_default();
    match file.as_str() {
        "cpuset.cpu_exclusive" | "cpuset.mem_exclusive" | "cpuset.cpus.partition" => match text.trim() {
            "0" | "member" => (0, -depth),
            _ => (3, depth),
        },
        "cpuset.cpus" | "cpuset.mems" => {
            match set(before.as_deref().unwrap_or_default()).is_subset(&set(text)) {
                true => (1, depth),
                false => (2, -depth),
            }
        }
        _ => (4, spill_order(place.version, file, before.as_deref(), text)),
    }
}

/// Of swap and memory, swap goes first, but for memory that rises.
fn spill_order(version: Version, file: &str, before: Option<&str>, text: &str) -> isize {
    let spills = settings::pairs(version).filter(|(_, pair)| pair.law == Law::Spill);
    let amount = |text: &str| text.trim().parse::<u64>().unwrap_or(u64::MAX);
    let rises = || amount(text) > before.map_or(0, amount);
    let order = spills.filter_map(|(first, pair)| match file {
        file if file == first => Some(1),
        file if file == pair.other && rises() => Some(0),
        _ => None,
    });
    order.min().unwrap_or(2)
}
