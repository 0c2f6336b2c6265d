//! Prints the per-CPU listing: for every online CPU its physical id, siblings, core id and cores, as
//! `/proc/cpuinfo` counts them.

use std::collections::BTreeMap;

use crate::{LogicalCpu, Machine, TopologyError};

/// The label of the first line, as `/proc/cpuinfo` pads it.
pub(crate) const MODEL: &str = "model name      : ";
/// The labels of the rows, in order.
pub(crate) const ROWS: [&str; 5] = [
    "processors  (OS CPU count)          ",
    "physical id (processor socket)      ",
    "siblings    (logical CPUs/socket)   ",
    "core id     (# assigned to a core)  ",
    "cpu cores   (physical cores/socket) ",
];

/// The listing.
///
/// # Errors
/// [`TopologyError::Missing`], naming what, if packages, core ids or siblings are not known of each online CPU.
pub fn cpus(machine: &Machine) -> Result<String, TopologyError> {
    let online: Vec<&LogicalCpu> = machine.cpus.iter().filter(|cpu| cpu.online).collect();
    let rows = rows(machine, &online).ok_or_else(|| TopologyError::Missing {
        format: "cpus",
        missing: format!("the {} of each CPU", missing(&online)),
        source_name: machine.source_name(),
    })?;
    let mut out = machine.model_name.as_ref().map_or(String::new(), |name| format!("{MODEL}{name}\n"));
    for (label, values) in ROWS.iter().zip(rows) {
        out += &format!("{label}{}\n", values.join(" "));
    }
    Ok(out)
}

/// The five rows' values; `None` if something is not known.
fn rows(machine: &Machine, online: &[&LogicalCpu]) -> Option<[Vec<String>; 5]> {
    let sizes: BTreeMap<u32, usize> =
        machine.packages()?.into_iter().map(|package| (package.id, package.cpus.len())).collect();
    let mut cores: BTreeMap<u32, usize> = BTreeMap::new();
    for core in machine.cores()? {
        *cores.entry(core.package?).or_default() += 1;
    }
    let column = |value: &dyn Fn(&LogicalCpu) -> Option<String>| -> Option<Vec<String>> {
        online.iter().map(|cpu| value(cpu)).collect()
    };
    Some([
        column(&|cpu| Some(cpu.id.to_string()))?,
        column(&|cpu| Some(cpu.package?.to_string()))?,
        column(&|cpu| Some(sizes.get(&cpu.package?)?.to_string()))?,
        column(&|cpu| Some(cpu.core?.to_string()))?,
        column(&|cpu| Some(cores.get(&cpu.package?)?.to_string()))?,
    ])
}

fn missing(online: &[&LogicalCpu]) -> String {
    let lacks = |known: fn(&LogicalCpu) -> bool| !online.iter().all(|cpu| known(cpu));
    let parts = [
        ("package", lacks(|cpu| cpu.package.is_some())),
        ("core id", lacks(|cpu| cpu.core.is_some())),
        ("SMT siblings", lacks(|cpu| cpu.siblings.is_some())),
    ];
    let names: Vec<&str> = parts.iter().filter(|(_, lacks)| *lacks).map(|(name, _)| *name).collect();
    match names.as_slice() {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        names => names.concat(),
    }
}
