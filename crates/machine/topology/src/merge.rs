//! Two descriptions of one machine made into one that knows what either knows. Refuses descriptions that
//! contradict each other; what changes while a machine runs (free memory) is the first one's.

use std::fmt::Display;

use units::CpuSet;

use crate::{L3Group, LogicalCpu, Machine, Node, SourceKind, Stated, TopologyError, check};

/// Listings round memory to MiB; more than one apart is another machine.
const ROUNDING: u64 = 1 << 20;

/// lstopo's text rounds large amounts to GiB.
const ROUNDING_OF_LSTOPO: u64 = 1 << 30;

impl Machine {
    /// This machine with everything that `other` knows besides.
    ///
    /// # Errors
    /// [`TopologyError::Merge`] if they do not describe the same machine.
    pub fn merge(self, other: Machine) -> Result<Machine, TopologyError> {
        let (first, second) = (self.source_name(), other.source_name());
        let wrong = |what| TopologyError::Merge { first: first.clone(), second: second.clone(), what };
        let merged = join(self, other).map_err(wrong)?;
        check::finish(merged, &format!("{first} with {second}")).map_err(|error| match error {
            TopologyError::Contradiction { what, .. } => wrong(what),
            error => error,
        })
    }

    /// The names of the sources, for messages.
    pub fn source_name(&self) -> String {
        let names: Vec<&str> = self.sources.iter().map(|source| source.name.as_str()).collect();
        if names.is_empty() { "the description".to_owned() } else { names.join(" + ") }
    }
}

fn join(first: Machine, second: Machine) -> Result<Machine, String> {
    let rounded = [&first, &second].map(is_rounded);
    // first the CPUs: if those differ, everything does
    let cpus = cpus(first.cpus, second.cpus)?;
    Ok(Machine {
        cpus,
        sources: [first.sources.as_slice(), &second.sources].concat(),
        model_name: same("model name", first.model_name, second.model_name)?,
        nodes: nodes(first.nodes, second.nodes, rounded)?,
        l3: l3(first.l3, second.l3)?,
        stated: stated(first.stated, second.stated)?,
        smt_control: first.smt_control.or(second.smt_control),
        isolated: same("isolated CPUs", first.isolated, second.isolated)?,
        nohz_full: same("nohz_full CPUs", first.nohz_full, second.nohz_full)?,
        block_devices: first.block_devices.or(second.block_devices),
        numactl_style: first.numactl_style.or(second.numactl_style),
    })
}

/// Either of the two, which must be equal if both are there.
fn same<T: PartialEq + Display>(
    what: impl Display,
    first: Option<T>,
    second: Option<T>,
) -> Result<Option<T>, String> {
    match (first, second) {
        (Some(first), Some(second)) if first != second => {
            Err(format!("{what} is {first} in one and {second} in the other"))
        }
        (first, second) => Ok(first.or(second)),
    }
}

fn cpus(first: Vec<LogicalCpu>, second: Vec<LogicalCpu>) -> Result<Vec<LogicalCpu>, String> {
    let online =
        |cpus: &[LogicalCpu]| -> CpuSet { cpus.iter().filter(|cpu| cpu.online).map(|cpu| cpu.id).collect() };
    let (here, there) = (online(&first), online(&second));
    if here != there {
        let only = |a: &CpuSet, b: &CpuSet| match a.difference(b) {
            set if set.is_empty() => "none".to_owned(),
            set => set.to_string(),
        };
        return Err(format!(
            "online CPUs only in the first: {}; only in the second: {}",
            only(&here, &there),
            only(&there, &here)
        ));
    }
    let mut all: std::collections::BTreeMap<usize, LogicalCpu> =
        first.into_iter().map(|cpu| (cpu.id, cpu)).collect();
    for cpu in second {
        let id = cpu.id;
        let joined = match all.remove(&id) {
            Some(known) => join_cpu(known, cpu)?,
            None => cpu, // offline: not in a listing of online CPUs
        };
        all.insert(id, joined);
    }
    Ok(all.into_values().collect())
}

fn join_cpu(first: LogicalCpu, second: LogicalCpu) -> Result<LogicalCpu, String> {
    let id = first.id;
    let of = |what| format!("CPU {id}'s {what}");
    Ok(LogicalCpu {
        id,
        online: first.online,
        package: same(of("package"), first.package, second.package)?,
        core: same(of("core id"), first.core, second.core)?,
        siblings: same(of("siblings"), first.siblings, second.siblings)?,
        max_mhz: first.max_mhz.or(second.max_mhz),
        // set from the merged lists
        node: None,
        l3: None,
    })
}

/// Is its memory known from lstopo's text only?
fn is_rounded(machine: &Machine) -> bool {
    let mut of_memory = machine
        .sources
        .iter()
        .filter(|source| !matches!(source.kind, SourceKind::Lscpu | SourceKind::CpuListing));
    !machine.sources.is_empty() && of_memory.all(|source| source.kind == SourceKind::Lstopo)
}

fn nodes(first: Vec<Node>, second: Vec<Node>, rounded: [bool; 2]) -> Result<Vec<Node>, String> {
    if first.is_empty() || second.is_empty() {
        return Ok(if first.is_empty() { second } else { first });
    }
    if first.len() != second.len() {
        return Err(format!("{} nodes in one and {} in the other", first.len(), second.len()));
    }
    first.into_iter().zip(second).map(|(first, second)| join_node(first, second, rounded)).collect()
}

fn join_node(first: Node, second: Node, rounded: [bool; 2]) -> Result<Node, String> {
    let id = first.id;
    if id != second.id {
        return Err(format!("one has a node {id}, the other a node {} in its place", second.id));
    }
    if first.cpus != second.cpus {
        return Err(format!("node {id} has CPUs {} in one and {} in the other", first.cpus, second.cpus));
    }
    if let (Some(a), Some(b)) = (first.memory_total, second.memory_total)
        && a.0.abs_diff(b.0) >= if rounded == [false, false] { ROUNDING } else { ROUNDING_OF_LSTOPO }
    {
        return Err(format!("node {id} has {a} of memory in one and {b} in the other"));
    }
    if first.distances.is_some() && second.distances.is_some() && first.distances != second.distances {
        return Err(format!("node {id}'s distances differ"));
    }
    Ok(Node {
        id,
        cpus: first.cpus,
        memory_total: match rounded {
            [true, false] => second.memory_total.or(first.memory_total),
            _ => first.memory_total.or(second.memory_total),
        },
        memory_free: first.memory_free.or(second.memory_free),
        distances: first.distances.or(second.distances),
    })
}

fn l3(first: Option<Vec<L3Group>>, second: Option<Vec<L3Group>>) -> Result<Option<Vec<L3Group>>, String> {
    let (Some(one), Some(other)) = (&first, &second) else {
        return Ok(first.or(second));
    };
    let differ = one.len() != other.len() || one.iter().zip(other).any(|(a, b)| a.cpus != b.cpus);
    if differ { Err("their L3 groups differ".to_owned()) } else { Ok(first) }
}

fn stated(first: Stated, second: Stated) -> Result<Stated, String> {
    Ok(Stated {
        packages: same("number of packages", first.packages, second.packages)?,
        cores_per_package: same("cores per package", first.cores_per_package, second.cores_per_package)?,
        threads_per_core: same("threads per core", first.threads_per_core, second.threads_per_core)?,
        l3_size: first.l3_size.or(second.l3_size),
        l3_count: same("number of L3 caches", first.l3_count, second.l3_count)?,
    })
}
