//! Prints a machine for people: a head of counts, then a line for each node, L3 cache and block device. What the
//! source does not say is a question mark, explained below the tables.

use units::{Bytes, CpuSet};

use super::table::{
    Side::{Left, Right},
    Table,
};
use crate::{BlockDevice, Machine};

const UNKNOWN: &str = "?";

/// The view that `ringfence topology` prints by default.
pub fn text(machine: &Machine) -> String {
    let parts = [head(machine), nodes(machine), distances(machine), l3(machine), block(machine)];
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    let mut out = parts.join("\n");
    if out.split_whitespace().any(|word| word == UNKNOWN) {
        out += &format!("\n{UNKNOWN}: not reported by {}\n", plain(&machine.source_name()));
    }
    out
}

fn head(machine: &Machine) -> String {
    let mut lines = vec![
        ("model", machine.model_name.clone().unwrap_or(UNKNOWN.to_owned())),
        ("CPUs", format!("{} online: {}", machine.online().len(), machine.online())),
    ];
    if !machine.offline().is_empty() {
        lines.push(("offline", machine.offline().to_string()));
    }
    lines.extend([
        ("packages", shown(machine.package_count())),
        ("cores", shown(machine.core_count())),
        ("SMT", smt(machine)),
        ("isolated", set(machine.isolated.as_ref())),
        ("nohz_full", set(machine.nohz_full.as_ref())),
        ("memory", machine.memory_total().map_or(UNKNOWN.to_owned(), Bytes::rounded)),
    ]);
    if machine.l3.is_none() && machine.stated.l3_size.is_some() {
        let count = shown(machine.stated.l3_count);
        lines.push(("L3 caches", format!("{count} of {}", amount(machine.stated.l3_size))));
    }
    lines.into_iter().map(|(label, value)| format!("{label:<10} {value}\n")).collect()
}

fn smt(machine: &Machine) -> String {
    let Some(most) = machine.threads_per_core() else { return UNKNOWN.to_owned() };
    let state = match (most, core_sizes(machine)) {
        (1, _) => "off, 1 CPU a core".to_owned(),
        (_, Some(sizes)) => {
            let sizes: Vec<String> = sizes.iter().map(usize::to_string).collect();
            format!("on, {} CPUs a core", sizes.join(" or "))
        }
        (most, None) if all_cores_have(machine, most) => format!("on, {most} CPUs a core"),
        (most, None) => format!("on, up to {most} CPUs a core"),
    };
    match machine.smt_control.as_deref() {
        Some(control) if !matches!(control, "on" | "off") => format!("{state} (control: {control})"),
        _ => state,
    }
}

/// How many CPUs cores have, ascending; `None` if that is not known of each.
fn core_sizes(machine: &Machine) -> Option<Vec<usize>> {
    let mut sizes: Vec<usize> = machine.cores()?.iter().map(|core| core.cpus.len()).collect();
    sizes.sort_unstable();
    sizes.dedup();
    Some(sizes)
}

/// By the counts alone: do as many cores with `most` CPUs each have as many CPUs as there are?
fn all_cores_have(machine: &Machine, most: usize) -> bool {
    machine.core_count().is_none_or(|cores| cores * most == machine.cpus.len())
}

fn nodes(machine: &Machine) -> String {
    if machine.nodes.is_empty() {
        return "NUMA nodes ?\n".to_owned();
    }
    let mut table = Table::new(&[
        ("NODE", Right),
        ("SIZE", Right),
        ("FREE", Right),
        ("PACKAGES", Right),
        ("CORES", Right),
        ("CPUS", Left),
    ]);
    for node in &machine.nodes {
        let packages = machine.packages().map(|packages| {
            let here = packages.iter().filter(|package| !package.cpus.is_disjoint(&node.cpus));
            let ids: Vec<String> = here.map(|package| package.id.to_string()).collect();
            if ids.is_empty() { "none".to_owned() } else { ids.join(",") }
        });
        let cores = machine
            .cores()
            .map(|cores| cores.iter().filter(|core| !core.cpus.is_disjoint(&node.cpus)).count());
        table.row(vec![
            node.id.to_string(),
            amount(node.memory_total),
            amount(node.memory_free),
            shown(packages),
            shown(cores),
            set(Some(&node.cpus)),
        ]);
    }
    table.print()
}

/// Left out for a single node, whose distance to itself says nothing.
fn distances(machine: &Machine) -> String {
    if machine.nodes.len() < 2 {
        return String::new();
    }
    let ids: Vec<String> = machine.nodes.iter().map(|node| node.id.to_string()).collect();
    let columns = ids.iter().map(|id| (id.as_str(), Right));
    let mut table = Table::new(&[("DISTANCE", Right)].into_iter().chain(columns).collect::<Vec<_>>());
    for node in &machine.nodes {
        let Some(distances) = &node.distances else { return "distances  ?\n".to_owned() };
        let cells = distances.iter().map(u32::to_string);
        table.row([node.id.to_string()].into_iter().chain(cells).collect());
    }
    table.print()
}

fn l3(machine: &Machine) -> String {
    let groups = machine.l3_groups().unwrap_or_default();
    if groups.is_empty() {
        return String::new();
    }
    let mut table = Table::new(&[("L3", Right), ("SIZE", Right), ("NODES", Right), ("CPUS", Left)]);
    for (index, group) in groups.iter().enumerate() {
        let nodes = machine.nodes_of_cpus(&group.cpus);
        table.row(vec![index.to_string(), amount(group.size), shown(nodes), set(Some(&group.cpus))]);
    }
    table.print()
}

/// Devices that hold nothing (unused loop devices) are left out, as lsblk does.
fn block(machine: &Machine) -> String {
    let Some(devices) = &machine.block_devices else { return String::new() };
    let devices: Vec<&BlockDevice> = devices.iter().filter(|device| device.size.0 > 0).collect();
    if devices.is_empty() {
        return String::new();
    }
    let mut table = Table::new(&[
        ("DEVICE", Left),
        ("MAJ:MIN", Right),
        ("SIZE", Right),
        ("ROTATES", Left),
        ("SCHEDULER", Left),
        ("MADE OF", Left),
    ]);
    for (index, device) in devices.iter().enumerate() {
        let last = devices.get(index + 1).is_none_or(|next| next.partition_of.is_none());
        let branch = match (&device.partition_of, last) {
            (None, _) => "",
            (Some(_), false) => "├─",
            (Some(_), true) => "└─",
        };
        table.row(vec![
            format!("{branch}{}", plain(&device.name)),
            format!("{}:{}", device.major, device.minor),
            device.size.rounded(),
            device.rotational.map_or(UNKNOWN, |rotates| if rotates { "yes" } else { "no" }).to_owned(),
            device.scheduler.as_deref().map_or(UNKNOWN.to_owned(), plain),
            made_of(device),
        ]);
    }
    table.print()
}

fn made_of(device: &BlockDevice) -> String {
    let mapper = device.mapper_name.as_ref().map(|name| format!("as {}", plain(name)));
    let parts = (!device.made_of.is_empty()).then(|| plain(&device.made_of.join(",")));
    let file = device.backing_file.as_deref().map(plain);
    [parts, file, mapper].into_iter().flatten().collect::<Vec<_>>().join(" ")
}

fn shown(value: Option<impl ToString>) -> String {
    value.map_or(UNKNOWN.to_owned(), |value| value.to_string())
}

fn amount(bytes: Option<Bytes>) -> String {
    bytes.map_or(UNKNOWN.to_owned(), Bytes::rounded)
}

fn set(cpus: Option<&CpuSet>) -> String {
    match cpus {
        None => UNKNOWN.to_owned(),
        Some(cpus) if cpus.is_empty() => "none".to_owned(),
        Some(cpus) => cpus.to_string(),
    }
}

/// A file's or device's name may hold anything; a terminal must not obey it.
fn plain(name: &str) -> String {
    units::printable(name).into_owned()
}
