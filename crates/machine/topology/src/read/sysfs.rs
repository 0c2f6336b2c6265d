//! Reads packages, cores, CPUs, L3 caches and NUMA nodes from `/sys/devices/system` and `/proc`, below a root, so
//! that a recorded tree is read as the live one is. What CPUs share is read once for all of them: at 1,024
//! CPUs, a file each for everything would take longer than the rest of a command. The kernel's lists may hold
//! CPUs that are offline (seen in `shared_cpu_list` on 6.1); those are left out.
//!
//! Source: Linux `Documentation/ABI/stable/sysfs-devices-system-cpu`, `…/sysfs-devices-node`.

use std::path::Path;

use units::{Bytes, CpuSet};

use super::tree::Tree;
use crate::{L3Group, LogicalCpu, MAX_NODES, Machine, Node, TopologyError};

const CPU: &str = "sys/devices/system/cpu";
const NODE: &str = "sys/devices/system/node";

/// Everything but the block devices.
pub(super) fn read(root: &Path) -> Result<Machine, TopologyError> {
    let mut tree = Tree::new(root);
    let online = online(&mut tree)?;
    let present = tree.cpus(&format!("{CPU}/present"))?.unwrap_or_default().union(&online);
    let cpu = |id| LogicalCpu { id, online: online.contains(id), ..LogicalCpu::default() };
    let mut cpus: Vec<LogicalCpu> = present.iter().map(cpu).collect();
    packages(&mut tree, &mut cpus, &online)?;
    cores(&mut tree, &mut cpus, &online)?;
    let l3 = l3(&mut tree, &online)?;
    let nodes = nodes(&mut tree, &online)?;
    let isolated = tree.cpus(&format!("{CPU}/isolated"))?;
    // a kernel built without full dynticks has no such file, and no such CPUs
    let nohz_full = tree.cpus(&format!("{CPU}/nohz_full"))?.or(isolated.as_ref().map(|_| CpuSet::new()));
    let smt_control = tree.text(&format!("{CPU}/smt/control"))?.map(str::to_owned);
    let model_name = model_name(&mut tree)?;
    Ok(Machine { model_name, cpus, nodes, l3, smt_control, isolated, nohz_full, ..Machine::default() })
}

fn online(tree: &mut Tree<'_>) -> Result<CpuSet, TopologyError> {
    if let Some(online) = tree.cpus(&format!("{CPU}/online"))? {
        return Ok(online);
    }
    // no sysfs here: /proc lists the CPUs that are online
    let lines = tree.head("proc/cpuinfo", usize::MAX)?.lines();
    let numbers = lines.filter_map(|line| line.strip_prefix("processor")?.trim_start().strip_prefix(':'));
    Ok(numbers.filter_map(|number| number.trim().parse().ok()).collect())
}

/// Each package is read at its first CPU.
fn packages(tree: &mut Tree<'_>, cpus: &mut [LogicalCpu], online: &CpuSet) -> Result<(), TopologyError> {
    let mut done = CpuSet::new();
    for place in 0..cpus.len() {
        let LogicalCpu { id, online: true, .. } = cpus[place] else { continue };
        if done.contains(id) {
            continue;
        }
        let package = tree.number(&format!("{CPU}/cpu{id}/topology/physical_package_id"))?;
        let mut members = tree.cpus(&format!("{CPU}/cpu{id}/topology/package_cpus_list"))?;
        if members.is_none() {
            // the name before Linux 5.3
            members = tree.cpus(&format!("{CPU}/cpu{id}/topology/core_siblings_list"))?;
        }
        let members = members.unwrap_or_else(|| CpuSet::range(id, id)).intersection(online);
        let of_package = cpus.iter_mut().filter(|cpu| members.contains(cpu.id));
        of_package.for_each(|cpu| cpu.package = package);
        done = done.union(&members);
    }
    Ok(())
}

/// Each core is read at its first CPU.
fn cores(tree: &mut Tree<'_>, cpus: &mut [LogicalCpu], online: &CpuSet) -> Result<(), TopologyError> {
    let scales = !tree.names(&format!("{CPU}/cpufreq"))?.is_empty();
    for place in 0..cpus.len() {
        let LogicalCpu { id, online: true, siblings: None, .. } = cpus[place] else { continue };
        let mut siblings = tree.cpus(&format!("{CPU}/cpu{id}/topology/core_cpus_list"))?;
        if siblings.is_none() {
            siblings = tree.cpus(&format!("{CPU}/cpu{id}/topology/thread_siblings_list"))?;
        }
        let siblings = siblings.map(|siblings| siblings.intersection(online));
        let core = tree.number(&format!("{CPU}/cpu{id}/topology/core_id"))?;
        let max_khz: Option<u32> =
            if scales { tree.number(&format!("{CPU}/cpu{id}/cpufreq/cpuinfo_max_freq"))? } else { None };
        let members = siblings.clone().unwrap_or_else(|| CpuSet::range(id, id));
        for member in members.iter() {
            if let Ok(place) = cpus.binary_search_by_key(&member, |cpu| cpu.id) {
                let cpu = &mut cpus[place];
                (cpu.core, cpu.siblings, cpu.max_mhz) =
                    (core, siblings.clone(), max_khz.map(|khz| khz / 1000));
            }
        }
    }
    Ok(())
}

/// Each L3 cache is read at its first CPU; `None` if the kernel lists no cache at all.
fn l3(tree: &mut Tree<'_>, online: &CpuSet) -> Result<Option<Vec<L3Group>>, TopologyError> {
    let mut groups: Vec<L3Group> = Vec::new();
    let (mut done, mut any_cache) = (CpuSet::new(), false);
    for id in online.iter() {
        if done.contains(id) {
            continue;
        }
        let Some(index) = l3_index(tree, id, &mut any_cache)? else { continue };
        let Some(cpus) = tree.cpus(&format!("{index}/shared_cpu_list"))? else { continue };
        let size = match tree.text(&format!("{index}/size"))?.map(str::parse::<Bytes>) {
            Some(Err(_)) => return Err(tree.wrong(&format!("{index}/size"), "a size")),
            size => size.and_then(Result::ok),
        };
        let cache_id = tree.number(&format!("{index}/id"))?;
        let cpus = cpus.intersection(online);
        done = done.union(&cpus);
        groups.push(L3Group { cpus, size, cache_id });
    }
    Ok(any_cache.then_some(groups))
}

/// The directory of a CPU's L3 cache. Sets `any_cache` if the kernel lists one.
fn l3_index(tree: &mut Tree<'_>, cpu: usize, any_cache: &mut bool) -> Result<Option<String>, TopologyError> {
    // on nearly every machine it is the fourth: L1 data, L1 instructions, L2, L3
    for index in [3, 0, 1, 2, 4, 5, 6, 7] {
        let directory = format!("{CPU}/cpu{cpu}/cache/index{index}");
        match tree.number::<u32>(&format!("{directory}/level"))? {
            Some(3) => {
                *any_cache = true;
                return Ok(Some(directory));
            }
            Some(_) => *any_cache = true,
            None if index == 3 => {}
            None => break,
        }
    }
    Ok(None)
}

/// The nodes; without NUMA, one of all CPUs and all memory.
fn nodes(tree: &mut Tree<'_>, online: &CpuSet) -> Result<Vec<Node>, TopologyError> {
    let names = tree.names(NODE)?;
    let mut ids: Vec<usize> =
        names.iter().filter_map(|name| name.strip_prefix("node")?.parse().ok()).collect();
    ids.retain(|id| *id < MAX_NODES);
    ids.sort_unstable();
    if ids.is_empty() {
        let (memory_total, memory_free) = memory(tree, "proc/meminfo")?;
        let cpus = online.clone();
        return Ok(vec![Node { id: 0, cpus, memory_total, memory_free, distances: None }]);
    }
    ids.iter().map(|id| node(tree, *id, &ids, online)).collect()
}

fn node(tree: &mut Tree<'_>, id: usize, ids: &[usize], online: &CpuSet) -> Result<Node, TopologyError> {
    let cpus = tree.cpus(&format!("{NODE}/node{id}/cpulist"))?.unwrap_or_default().intersection(online);
    let (memory_total, memory_free) = memory(tree, &format!("{NODE}/node{id}/meminfo"))?;
    let distances = distances(tree, &format!("{NODE}/node{id}/distance"), ids)?;
    Ok(Node { id, cpus, memory_total, memory_free, distances })
}

/// A node's distances to `ids`. A kernel may list nodes that it shows no directory of; then a distance stands at its
/// node's number.
fn distances(tree: &mut Tree<'_>, path: &str, ids: &[usize]) -> Result<Option<Vec<u32>>, TopologyError> {
    let Some(text) = tree.text(path)? else { return Ok(None) };
    let row: Option<Vec<u32>> = text.split_whitespace().map(|number| number.parse().ok()).collect();
    let row = row.and_then(|row| match row.len() == ids.len() {
        true => Some(row),
        false => ids.iter().map(|id| row.get(*id).copied()).collect(),
    });
    row.map(Some).ok_or_else(|| tree.wrong(path, &format!("{} distances", ids.len())))
}

/// `MemTotal` and `MemFree` of a `meminfo`, the machine's or a node's (`Node 0 MemTotal: 4810964 kB`).
fn memory(tree: &mut Tree<'_>, path: &str) -> Result<(Option<Bytes>, Option<Bytes>), TopologyError> {
    let Some(text) = tree.text(path)? else { return Ok((None, None)) };
    let field = |name: &str| {
        let mut lines = text.lines().filter_map(|line| line.split_once(name));
        let (_, rest) = lines.next()?;
        let kib: u64 = rest.trim().strip_suffix("kB")?.trim_end().parse().ok()?;
        kib.checked_mul(1024).map(Bytes)
    };
    match (field("MemTotal:"), field("MemFree:")) {
        (Some(total), free) => Ok((Some(total), free)),
        (None, _) => Err(tree.wrong(path, "MemTotal in kB")),
    }
}

/// The first CPU's name: all have the same, and the file of a large machine is long and slow to make.
fn model_name(tree: &mut Tree<'_>) -> Result<Option<String>, TopologyError> {
    let head = tree.head("proc/cpuinfo", 1)?;
    let name = head.lines().find_map(|line| line.strip_prefix("model name")?.trim_start().strip_prefix(':'));
    Ok(name.map(|name| name.trim().to_owned()))
}
