//! Memory limits on v1 and v2 of a machine without swap. A limit counts whole pages. v1 refuses one below the
//! use; v2 takes it and kills.

use rustix::io::Errno;
use settings::{Controller::Memory, Version};

use crate::{
    files,
    numbers::{self, MAX_PAGES, PAGE},
    state::{File, Place, State, file},
};

const LIMIT: &str = "memory.limit_in_bytes";
const BOTH: &str = "memory.memsw.limit_in_bytes";
/// "No limit" as v1 prints it.
const UNLIMITED: &str = "9223372036854771712";

/// Each is there once for the group and once, with `total_`, for all below it.
const V1_STAT: [&str; 19] = [
    "cache",
    "rss",
    "rss_huge",
    "shmem",
    "mapped_file",
    "dirty",
    "writeback",
    "workingset_refault_anon",
    "workingset_refault_file",
    "swap",
    "pgpgin",
    "pgpgout",
    "pgfault",
    "pgmajfault",
    "inactive_anon",
    "active_anon",
    "inactive_file",
    "active_file",
    "unevictable",
];
const EVENTS: &str = "low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\noom_group_kill 0";
const V2_STAT: &str = "anon 0\nfile 0\nkernel 0\nkernel_stack 0\npagetables 0\nsec_pagetables 0\npercpu 0\nsock 0\n\
    vmalloc 0\nshmem 0\nfile_mapped 0\nfile_dirty 0\nfile_writeback 0\nswapcached 0\nanon_thp 0\nfile_thp 0\n\
    shmem_thp 0\ninactive_anon 0\nactive_anon 0\ninactive_file 0\nactive_file 0\nunevictable 0\n\
    slab_reclaimable 0\nslab_unreclaimable 0\nslab 0\nworkingset_refault_anon 0\nworkingset_refault_file 0\n\
    workingset_activate_anon 0\nworkingset_activate_file 0\nworkingset_restore_anon 0\nworkingset_restore_file 0\n\
    workingset_nodereclaim 0\npgscan 0\npgsteal 0\npgscan_kswapd 0\npgscan_direct 0\npgsteal_kswapd 0\n\
    pgsteal_direct 0\npgfault 0\npgmajfault 0\npgrefill 0\npgactivate 0\npgdeactivate 0\npglazyfree 0\n\
    pglazyfreed 0\nthp_fault_alloc 0\nthp_collapse_alloc 0";

pub(super) const V1_FILES: &[File] = &[
    file(LIMIT, Memory, UNLIMITED).everywhere().writes(set_limit),
    file(BOTH, Memory, UNLIMITED).everywhere().writes(set_limit),
    file("memory.soft_limit_in_bytes", Memory, UNLIMITED).everywhere().writes(|state, place, file, text| {
        let pages = numbers::pages(text, "-1")?;
        state.set(place, file.name, (pages * PAGE).to_string());
        Ok(())
    }),
    file("memory.usage_in_bytes", Memory, "0").everywhere().reads(show_usage),
    file("memory.memsw.usage_in_bytes", Memory, "0").everywhere().reads(show_usage),
    file("memory.max_usage_in_bytes", Memory, "0").everywhere().unmodelled(),
    file("memory.failcnt", Memory, "0").everywhere().unmodelled(),
    file("memory.swappiness", Memory, "60").everywhere().writes(|state, place, file, text| {
        match numbers::unsigned(text)? {
            amount @ 0..=200 => state.set(place, file.name, amount.to_string()),
            _ => return Err(Errno::INVAL),
        }
        Ok(())
    }),
    file("memory.oom_control", Memory, "0").everywhere().reads(show_oom).writes(
        |state, place, file, text| {
            match numbers::unsigned(text)? {
                flag @ (0 | 1) if !place.is_root() => state.set(place, file.name, flag.to_string()),
                _ => return Err(Errno::INVAL),
            }
            Ok(())
        },
    ),
    file("memory.use_hierarchy", Memory, "1").everywhere().writes(|_, _, _, text| {
        match numbers::unsigned(text)? {
            1 => Ok(()),
            _ => Err(Errno::INVAL),
        }
    }),
    file("memory.force_empty", Memory, "")
        .everywhere()
        .writes(|_, place, _, _| if place.is_root() { Err(Errno::INVAL) } else { Ok(()) })
        .write_only(),
    file("memory.stat", Memory, "").everywhere().reads(show_v1_stat).counted(),
];

pub(super) const V2_FILES: &[File] = &[
    file("memory.min", Memory, "0").writes(set_amount),
    file("memory.low", Memory, "0").writes(set_amount),
    file("memory.high", Memory, "max").writes(set_amount),
    file("memory.max", Memory, "max").writes(set_max),
    file("memory.swap.high", Memory, "max").writes(set_amount),
    file("memory.swap.max", Memory, "max").writes(set_amount),
    file("memory.swap.current", Memory, "0"),
    file("memory.current", Memory, "0").reads(show_usage),
    file("memory.peak", Memory, "0"),
    file("memory.events", Memory, EVENTS),
    file("memory.events.local", Memory, EVENTS),
    file("memory.oom.group", Memory, "0").writes(|state, place, file, text| match numbers::unsigned(text)? {
        flag @ (0 | 1) => {
            state.set(place, file.name, flag.to_string());
            Ok(())
        }
        _ => Err(Errno::INVAL),
    }),
    file("memory.reclaim", Memory, "").everywhere().writes(reclaim).write_only(),
    file("memory.stat", Memory, V2_STAT).everywhere(),
];

/// What the tasks of the group and below it use, in bytes: charged where they were when they took it.
fn usage(state: &State, place: &Place) -> u64 {
    let charges = state.tasks.values().flat_map(|task| &task.charges);
    charges.filter(|(at, _)| place.holds(at)).map(|(_, bytes)| bytes).sum()
}

fn show_usage(state: &State, place: &Place, _: &'static File) -> Result<String, Errno> {
    Ok(format!("{}\n", usage(state, place)))
}

fn show_v1_stat(state: &State, place: &Place, file: &'static File) -> Result<String, Errno> {
    let counted = state.value(place, file.name);
    if !counted.is_empty() {
        return Ok(format!("{counted}\n"));
    }
    let zeros = |prefix: &str| V1_STAT.map(|name| format!("{prefix}{name} 0\n")).concat();
    let least = |file| place.upward().map(|place| bytes(state, &place, file)).min().unwrap_or(u64::MAX);
    let limits =
        format!("hierarchical_memory_limit {}\nhierarchical_memsw_limit {}\n", least(LIMIT), least(BOTH));
    Ok(zeros("") + &limits + &zeros("total_"))
}

/// No file: how often the kernel killed in a group.
pub(crate) const OOM_KILLS: &str = "oom_kills";

fn show_oom(state: &State, place: &Place, file: &'static File) -> Result<String, Errno> {
    let (disabled, kills) = (state.value(place, file.name), state.number(place, OOM_KILLS));
    Ok(format!("oom_kill_disable {disabled}\nunder_oom 0\noom_kill {kills}\n"))
}

fn bytes(state: &State, place: &Place, file: &str) -> u64 {
    state.value(place, file).parse().unwrap_or(u64::MAX)
}

/// v1's limit on memory, and that on memory and swap together, which must not be the smaller one.
fn set_limit(state: &mut State, place: &Place, file: &'static File, text: &str) -> Result<(), Errno> {
    if place.is_root() {
        return Err(Errno::INVAL);
    }
    let limit = numbers::pages(text, "-1")? * PAGE;
    let crossed = if file.name == LIMIT {
        limit > bytes(state, place, BOTH)
    } else {
        limit < bytes(state, place, LIMIT)
    };
    if crossed {
        return Err(Errno::INVAL);
    }
    if limit < usage(state, place) {
        return Err(Errno::BUSY);
    }
    state.set(place, file.name, limit.to_string());
    Ok(())
}

fn set_amount(state: &mut State, place: &Place, file: &'static File, text: &str) -> Result<(), Errno> {
    let text = match numbers::pages(text, "max")? {
        MAX_PAGES => "max".to_owned(),
        pages => (pages * PAGE).to_string(),
    };
    state.set(place, file.name, text);
    Ok(())
}

/// Tasks are killed, the largest first, until the rest fits.
fn set_max(state: &mut State, place: &Place, file: &'static File, text: &str) -> Result<(), Errno> {
    set_amount(state, place, file, text)?;
    let limit = bytes(state, place, file.name);
    while usage(state, place) > limit {
        let used = |pid: &u32| {
            let charges = state.tasks.get(pid).map(|task| task.charges.as_slice()).unwrap_or_default();
            charges.iter().filter(|(at, _)| place.holds(at)).map(|(_, bytes)| *bytes).sum::<u64>()
        };
        let Some(largest) = state.tasks.keys().copied().max_by_key(used) else { break };
        let killed = state.tasks.get(&largest).map_or(largest, |task| task.process.tgid);
        state.end(killed);
        count_kill(state, place);
    }
    Ok(())
}

fn count_kill(state: &mut State, place: &Place) {
    for name in ["memory.events", "memory.events.local"] {
        let counts = state.value(place, name).lines().map(|line| match line.split_once(' ') {
            Some((word @ ("oom" | "oom_kill"), count)) => {
                format!("{word} {}", count.parse::<u64>().unwrap_or(0) + 1)
            }
            _ => line.to_owned(),
        });
        let text = counts.collect::<Vec<_>>().join("\n");
        state.set(place, name, text);
    }
}

/// Nothing that tasks use can be reclaimed without swap.
fn reclaim(_: &mut State, _: &Place, _: &'static File, text: &str) -> Result<(), Errno> {
    match numbers::amount(text)? {
        0 => Ok(()),
        _ => Err(Errno::AGAIN),
    }
}

/// A task takes memory; it is charged to the group that the task is in. `false` if no memory controller is there.
pub(super) fn charge(state: &mut State, pid: u32, bytes: u64) -> bool {
    let file = |version| if version == Version::V1 { "memory.usage_in_bytes" } else { "memory.current" };
    let trees = 0..state.trees.len();
    let place = trees.filter_map(|tree| state.place_of(pid, tree)).find_map(|place| {
        let charged = |place: &Place| files::find(state, place, file(state.version(place))).is_some();
        place.upward().find(charged)
    });
    let (Some(place), Some(task)) = (place, state.tasks.get_mut(&pid)) else { return false };
    task.charges.push((place, bytes));
    true
}
