//! What the machine consists of, as JSON.

use std::collections::BTreeMap;

use topology::Machine;
use units::CpuSet;

use crate::api::machine::{self as api, L3, MachineCpu, Node, Package};

/// The machine; `hostname`: its name.
pub fn machine(machine: &Machine, hostname: &str) -> api::Machine {
    let mut packages: BTreeMap<u32, CpuSet> = BTreeMap::new();
    for cpu in &machine.cpus {
        if let Some(package) = cpu.package {
            packages.entry(package).or_default().insert(cpu.id);
        }
    }
    let cores = cores(machine);
    let l3 = machine.l3.iter().flatten().enumerate();
    api::Machine {
        hostname: hostname.to_owned(),
        model: machine.model_name.clone(),
        packages: packages
            .into_iter()
            .map(|(id, cpus)| Package { id: id as usize, cpus: cpus.to_string() })
            .collect(),
        nodes: machine
            .nodes
            .iter()
            .map(|node| Node {
                id: node.id,
                cpus: node.cpus.to_string(),
                memory_total_bytes: node.memory_total.map(|bytes| bytes.0),
            })
            .collect(),
        l3: l3
            .map(|(id, cache)| L3 {
                id,
                cpus: cache.cpus.to_string(),
                size_bytes: cache.size.map(|bytes| bytes.0),
            })
            .collect(),
        cpus: machine
            .cpus
            .iter()
            .map(|cpu| MachineCpu {
                id: cpu.id,
                online: cpu.online,
                package: cpu.package,
                node: cpu.node,
                l3: cpu.l3,
                core: cores.get(&cpu.id).copied(),
                max_mhz: cpu.max_mhz.map(|mhz| mhz as usize),
            })
            .collect(),
        isolated_at_boot: set(machine.isolated.as_ref()),
        nohz_full: set(machine.nohz_full.as_ref()),
    }
}

fn set(cpus: Option<&CpuSet>) -> String {
    cpus.map(ToString::to_string).unwrap_or_default()
}

/// A number for each core, by its CPUs: the kernel's own numbers are not unique beyond a package.
fn cores(machine: &Machine) -> BTreeMap<usize, u32> {
    let mut cores = BTreeMap::new();
    let mut next = 0;
    for cpu in &machine.cpus {
        if cores.contains_key(&cpu.id) {
            continue;
        }
        let Some(siblings) = cpu.siblings.as_ref().filter(|siblings| siblings.contains(cpu.id)) else {
            continue;
        };
        for sibling in siblings.iter() {
            cores.insert(sibling, next);
        }
        next += 1;
    }
    cores
}
