//! The one gate to a [`Machine`]: what every reader and merge passes through before it hands one out. Ties the
//! CPUs to their nodes and L3 groups, and refuses parts that contradict each other. Never guesses.

use units::CpuSet;

use crate::{LogicalCpu, MAX_CPUS, MAX_NODES, Machine, TopologyError};

/// Fills in each CPU's node and L3 group and checks that everything agrees. `name` is for the error.
///
/// # Errors
/// [`TopologyError::Contradiction`] for the first thing that does not agree.
pub(crate) fn finish(mut machine: Machine, name: &str) -> Result<Machine, TopologyError> {
    let result = order(&machine)
        .and_then(|()| tie_nodes(&mut machine))
        .and_then(|()| tie_l3(&mut machine))
        .and_then(|()| siblings_agree(&machine))
        .and_then(|()| texts_are_plain(&machine));
    match result {
        Ok(()) => Ok(machine),
        Err(what) => Err(TopologyError::Contradiction { name: name.to_owned(), what }),
    }
}

fn order(machine: &Machine) -> Result<(), String> {
    if machine.cpus.is_empty() {
        return Err("no CPU is listed".to_owned());
    }
    ascending("CPU", MAX_CPUS, machine.cpus.iter().map(|cpu| cpu.id))?;
    ascending("node", MAX_NODES, machine.nodes.iter().map(|node| node.id))?;
    let firsts = machine.l3.iter().flatten().map(|group| group.cpus.first().unwrap_or(MAX_CPUS));
    ascending("L3 group's first CPU", MAX_CPUS, firsts)?;
    match machine.nodes.iter().find_map(|node| {
        let length = node.distances.as_ref()?.len();
        (length != machine.nodes.len()).then_some((node.id, length))
    }) {
        Some((node, length)) => {
            Err(format!("node {node} has {length} distances, but there are {} nodes", machine.nodes.len()))
        }
        None => Ok(()),
    }
}

fn ascending(what: &str, most: usize, ids: impl Iterator<Item = usize>) -> Result<(), String> {
    let mut previous = None;
    for id in ids {
        if id >= most {
            return Err(format!("{what} {id} is beyond {}, the largest that Linux numbers", most - 1));
        }
        if previous.is_some_and(|previous| previous >= id) {
            return Err(format!("{what} {id} is listed twice or out of order"));
        }
        previous = Some(id);
    }
    Ok(())
}

fn tie_nodes(machine: &mut Machine) -> Result<(), String> {
    let Machine { cpus, nodes, .. } = machine;
    for node in nodes.iter() {
        let (id, field): (_, fn(&mut LogicalCpu) -> &mut Option<usize>) = (node.id, |cpu| &mut cpu.node);
        tie(cpus, &node.cpus, id, field, &|id| format!("node {id}"))?;
    }
    let in_node = |cpu: &LogicalCpu, id| {
        nodes.iter().any(|node: &crate::Node| node.id == id && node.cpus.contains(cpu.id))
    };
    match cpus.iter().find_map(|cpu| cpu.node.filter(|&id| !in_node(cpu, id)).map(|id| (cpu.id, id))) {
        Some((cpu, id)) => Err(format!("CPU {cpu} says it is in node {id}, which does not list it")),
        None => Ok(()),
    }
}

fn tie_l3(machine: &mut Machine) -> Result<(), String> {
    let groups = machine.l3.as_deref().unwrap_or_default();
    for (index, group) in groups.iter().enumerate() {
        tie(&mut machine.cpus, &group.cpus, index, |cpu| &mut cpu.l3, &|index| format!("L3 group {index}"))?;
    }
    let in_group = |cpu: &LogicalCpu, index: usize| {
        groups.get(index).is_some_and(|group: &crate::L3Group| group.cpus.contains(cpu.id))
    };
    match machine.cpus.iter().find_map(|cpu| cpu.l3.filter(|&i| !in_group(cpu, i)).map(|i| (cpu.id, i))) {
        Some((cpu, index)) => {
            Err(format!("CPU {cpu} says it is in L3 group {index}, which does not list it"))
        }
        None => Ok(()),
    }
}

/// Writes `owner` into `field` of every CPU in `members`.
fn tie(
    cpus: &mut [LogicalCpu],
    members: &CpuSet,
    owner: usize,
    field: fn(&mut LogicalCpu) -> &mut Option<usize>,
    called: &dyn Fn(usize) -> String,
) -> Result<(), String> {
    for id in members.iter() {
        let place = cpus
            .binary_search_by_key(&id, |cpu| cpu.id)
            .map_err(|_| format!("{} lists CPU {id}, which does not exist", called(owner)))?;
        let cpu = &mut cpus[place];
        if !cpu.online {
            return Err(format!("{} lists CPU {id}, which is offline", called(owner)));
        }
        match field(cpu).replace(owner) {
            Some(other) if other != owner => {
                return Err(format!("CPU {id} is in both {} and {}", called(other), called(owner)));
            }
            _ => {}
        }
    }
    Ok(())
}

fn siblings_agree(machine: &Machine) -> Result<(), String> {
    for cpu in &machine.cpus {
        let Some(siblings) = &cpu.siblings else { continue };
        if !siblings.contains(cpu.id) {
            return Err(format!("CPU {} is not among its own siblings {siblings}", cpu.id));
        }
        for id in siblings.iter() {
            let other = machine
                .cpu(id)
                .filter(|other| other.online)
                .ok_or_else(|| format!("CPU {} has CPU {id} as sibling, which is not online", cpu.id))?;
            if other.siblings.as_ref() != Some(siblings) {
                return Err(format!("CPUs {} and {id} do not agree on their siblings", cpu.id));
            }
            if other.package != cpu.package {
                return Err(format!("siblings {} and {id} are not in the same package", cpu.id));
            }
        }
    }
    Ok(())
}

/// A name that reaches a terminal or a line-based listing must not break out of its line or reorder it.
fn texts_are_plain(machine: &Machine) -> Result<(), String> {
    let texts = machine.model_name.iter().chain(&machine.smt_control);
    match texts.into_iter().find(|text| units::printable(text) != text.as_str()) {
        Some(text) => Err(format!("'{}' holds characters that steer a terminal", text.escape_default())),
        None => Ok(()),
    }
}
