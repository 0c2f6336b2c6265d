//! CPU time of the experiment's processes that are in none of its groups (workloads without a group): it is the
//! experiment's own, not the rest of the machine's.

use std::{collections::BTreeMap, fs, time::Duration};

use units::ProcStat;

/// Process → CPU time of it and of the children it waited for.
pub(crate) type Times = BTreeMap<u32, Duration>;

/// All descendants of this process that are not below the group.
pub(crate) fn times(parent: &str) -> Times {
    let Ok(entries) = fs::read_dir("/proc") else { return Times::new() };
    let mut parents = BTreeMap::new();
    let mut times = Times::new();
    for pid in entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok()) {
        let Ok(text) = fs::read(format!("/proc/{pid}/stat")) else { continue };
        let Some(stat) = ProcStat::parse(&text) else { continue };
        let (Some(parent), Some(own), Some(waited)) = (stat.parent(), stat.ticks(), stat.ticks_waited_for())
        else {
            continue;
        };
        parents.insert(pid, parent);
        let ticks = own + waited;
        times.insert(
            pid,
            Duration::from_millis(ticks * 1000 / rustix::param::clock_ticks_per_second().max(1)),
        );
    }
    let own = std::process::id();
    let descends = |pid: u32| {
        let mut at = pid;
        // a process's parent is older, but numbers are used again
        for _ in 0..64 {
            match parents.get(&at) {
                Some(&above) if above == own => return true,
                Some(&above) if above > 1 => at = above,
                _ => return false,
            }
        }
        false
    };
    let grouped =
        |pid: u32| fs::read_to_string(format!("/proc/{pid}/cgroup")).is_ok_and(|text| text.contains(parent));
    times.retain(|pid, _| descends(*pid) && !grouped(*pid));
    times
}

/// What was used between two looks.
pub(crate) fn used(before: &Times, after: &Times) -> Duration {
    let each =
        after.iter().map(|(pid, now)| now.saturating_sub(before.get(pid).copied().unwrap_or_default()));
    each.sum()
}
