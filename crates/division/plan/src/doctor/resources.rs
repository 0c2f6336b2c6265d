//! Memory, I/O and pressure.

use std::collections::BTreeMap;

use topology::facts::{Disk, Facts};

use super::{Area, FactsExt, Finding, Level, controllers::mount_v2};

pub(super) fn memory(facts: &Facts) -> Vec<Finding> {
    let found = [swap(facts), swap_limits(facts), huge_pages(facts), protection(facts), balancing(facts)];
    found.into_iter().flatten().collect()
}

fn memory_finding(level: Level, what: impl Into<String>) -> Finding {
    Finding::new(Area::Memory, level, what)
}

fn swap(facts: &Facts) -> Option<Finding> {
    let swappiness = facts.memory.swappiness?;
    let swaps: Vec<String> = facts
        .memory
        .swaps
        .iter()
        .map(|swap| format!("{} on {}, {} used", swap.size, swap.name, swap.used))
        .collect();
    Some(memory_finding(
        Level::Ok,
        match swaps.is_empty() {
            true => "swap: none; a group at its memory limit loses caches first, then a process".to_owned(),
            false => format!("swap: {}; swappiness {swappiness}", swaps.join("; ")),
        },
    ))
}

/// A memory limit without one for swap only moves the group's memory to disk.
fn swap_limits(facts: &Facts) -> Option<Finding> {
    let v1_lacks = facts.v1.iter().any(|at| at.memsw == Some(false));
    let v2_lacks =
        facts.child_has("memory.max") == Some(true) && facts.child_has("memory.swap.max") == Some(false);
    (!facts.memory.swaps.is_empty() && (v1_lacks || v2_lacks)).then(|| {
        memory_finding(Level::Attention, "swap is not accounted by group")
            .so("a group at its memory limit goes on into swap without bound")
            .hint("swapaccount=1 on the kernel's command line")
    })
}

fn huge_pages(facts: &Facts) -> Option<Finding> {
    let sizes =
        facts.memory.huge_pages.iter().map(|pages| format!("{} ({} reserved)", pages.size, pages.pages));
    let sizes: Vec<String> = sizes.collect();
    (!sizes.is_empty()).then(|| memory_finding(Level::Ok, format!("huge pages: {}", sizes.join(", "))))
}

fn protection(facts: &Facts) -> Option<Finding> {
    let v2 = facts.v2.as_ref().filter(|_| facts.v2_has("memory"))?;
    (!v2.options.iter().any(|option| option == "memory_recursiveprot")).then(|| {
        // a remount sets all of the mount's options again
        let options: Vec<&str> =
            v2.options.iter().map(String::as_str).chain(["memory_recursiveprot"]).collect();
        memory_finding(Level::Note, "cgroup v2 is mounted without memory_recursiveprot")
            .so("memory.min and memory.low of a group protect it as a whole, but none of the groups below it")
            .hint(format!("mount -o remount,{} {}", options.join(","), v2.at.mount.display()))
    })
}

fn balancing(facts: &Facts) -> Option<Finding> {
    let nodes = facts.memory.nodes.as_ref().filter(|nodes| nodes.len() > 1)?;
    Some(match facts.memory.numa_balancing? {
        0 => memory_finding(Level::Ok, format!("nodes {nodes}; automatic NUMA balancing is off")),
        _ => memory_finding(Level::Note, format!("nodes {nodes}; automatic NUMA balancing is on"))
            .so("pages of tasks that are not bound to one node move between nodes, which costs page faults")
            .hint("sysctl kernel.numa_balancing=0"),
    })
}

pub(super) fn io(facts: &Facts) -> Vec<Finding> {
    let (v1, v2) = (facts.v1_has("blkio"), facts.v2_has("io"));
    if !v1 && !v2 {
        return Vec::new();
    }
    let mut found = weights(facts, v2);
    let cut: Vec<String> = facts
        .disks
        .iter()
        .filter(|disk| !disk.partitions.is_empty())
        .map(|disk| format!("{} ({})", disk.name, disk.partitions.join(", ")))
        .collect();
    if !cut.is_empty() {
        let what = format!("disks with partitions: {}", cut.join("; "));
        found.push(
            Finding::new(Area::Io, Level::Note, what).so("io.max for a partition limits the whole disk"),
        );
    }
    if v1 {
        found.push(
            Finding::new(Area::Io, Level::Note, "I/O is limited by cgroup v1")
                .so("writes through the page cache are not: only direct and synchronous ones are slowed down")
                .hint("cgroup_no_v1=blkio,memory on the kernel's command line leaves both to cgroup v2"),
        );
    }
    found
}

/// Whether weights do anything, by devices alike.
fn weights(facts: &Facts, v2: bool) -> Vec<Finding> {
    let mut alike: BTreeMap<(&str, bool, bool), Vec<&Disk>> = BTreeMap::new();
    // a device without a choice of scheduler passes its requests on to others
    for disk in facts.disks.iter().filter(|disk| disk.offered.len() > 1) {
        let bfq = disk.offered.iter().any(|name| name == "bfq");
        alike.entry((disk.scheduler.as_deref().unwrap_or("none"), disk.iocost, bfq)).or_default().push(disk);
    }
    alike
        .into_iter()
        .map(|((scheduler, iocost, bfq), disks)| weight(facts, v2, scheduler, iocost, bfq, &disks))
        .collect()
}

fn weight(facts: &Facts, v2: bool, scheduler: &str, iocost: bool, bfq: bool, disks: &[&Disk]) -> Finding {
    let names: Vec<&str> = disks.iter().map(|disk| disk.name.as_str()).collect();
    let names = names.join(", ");
    let finding = |level, what| Finding::new(Area::Io, level, what);
    match (scheduler, iocost) {
        ("bfq", true) => {
            return finding(Level::Ok, format!("{names}: io.weight works by iocost, io.bfq.weight by BFQ"));
        }
        ("bfq", false) => return finding(Level::Ok, format!("{names}: io.bfq.weight works by BFQ")),
        (_, true) => return finding(Level::Ok, format!("{names}: io.weight works by iocost")),
        _ => {}
    }
    let root = facts.v2.as_ref().filter(|at| v2 && at.iocost).map(|at| at.at.mount.join("io.cost.qos"));
    let weights = if root.is_some() { "io.weight and io.bfq.weight have" } else { "io.bfq.weight has" };
    let iocost_state = if root.is_some() { ", iocost off" } else { "" };
    let whose = if disks.len() == 1 { "its" } else { "their" };
    let found = finding(Level::Note, format!("{names}: scheduler {scheduler}{iocost_state}"))
        .so(format!("{weights} no effect on {names}: {whose} scheduler is {scheduler}{iocost_state}"));
    let each = |command: String, one: &dyn Fn(&Disk) -> String| match disks {
        [disk] => command.replace("$d", &one(disk)),
        disks => {
            let all: Vec<String> = disks.iter().map(|disk| one(disk)).collect();
            format!("for d in {}; do {command}; done", all.join(" "))
        }
    };
    let to_bfq =
        || each("echo bfq > /sys/block/$d/queue/scheduler".to_owned(), &|disk| disk.name.replace('/', "!"));
    match root {
        Some(qos) => {
            found.hint(each(format!("echo \"$d enable=1\" > {}", qos.display()), &|disk| disk.number.clone()))
        }
        None if bfq => found.hint(to_bfq()),
        None if facts.built("IOSCHED_BFQ") == Some("n") => found,
        None => found.hint(format!("modprobe bfq && {}", to_bfq())),
    }
}

pub(super) fn pressure(facts: &Facts) -> Vec<Finding> {
    let finding = |level, what: String| Finding::new(Area::Pressure, level, what);
    if facts.pressure.readable.is_empty() {
        let found = finding(Level::Note, "no pressure stall information (PSI)".to_owned())
            .so("nothing shows how long tasks wait for CPU, memory and I/O");
        let off = facts.booted("psi").filter(|word| *word != "psi=1");
        return vec![match (off, facts.built("PSI")) {
            (_, Some("n")) => found,
            (Some(word), _) => found.hint(format!("remove {word} from the kernel's command line")),
            (None, _) => found.hint("psi=1 on the kernel's command line"),
        }];
    }
    let resources = facts.pressure.readable.join(", ");
    if facts.v2.is_some() {
        return vec![finding(
            Level::Ok,
            format!("pressure stall information: {resources}; of the machine and of v2 groups"),
        )];
    }
    let machine = format!("pressure stall information: {resources}; of the machine only");
    if facts.v1.is_empty() {
        return vec![finding(Level::Ok, machine)];
    }
    vec![
        finding(Level::Note, machine)
            .so("how long the tasks of one group wait is not known: v1 groups have no pressure files")
            .hint(mount_v2(facts)),
    ]
}
