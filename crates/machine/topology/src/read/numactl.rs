//! Reads what `numactl --hardware` prints: nodes with their CPUs, size, free memory and distances. Knows nothing
//! of packages and cores, and says so by leaving them out.
//!
//! Source: numactl `numactl.c`, `hardware()` and `print_distances()`, versions 0.8 to 2.0.19.

use units::{Bytes, CpuSet, NodeSet};

use super::line::{Line, Lines};
use crate::{LogicalCpu, MAX_NODES, Machine, Node, NumactlStyle, TopologyError, print};

const NO_DISTANCES: &str = "No distance information available.";

pub(super) fn read(name: &str, text: &str) -> Result<Machine, TopologyError> {
    let mut lines = Lines::new(name, text);
    let ids = available(&lines.expect("'available: N nodes (LIST)'")?)?;
    let mut nodes = ids.iter().map(|id| node(id, &mut lines)).collect::<Result<Vec<_>, _>>()?;
    let numactl_style = distances(&mut nodes, &mut lines)?;
    lines.end()?;

    let online = nodes.iter().fold(CpuSet::new(), |all, node| all.union(&node.cpus));
    let cpus = online.iter().map(|id| LogicalCpu { id, online: true, ..LogicalCpu::default() }).collect();
    Ok(Machine { cpus, nodes, numactl_style, ..Machine::default() })
}

/// `available: 4 nodes (0-3)`
fn available(line: &Line<'_>) -> Result<NodeSet, TopologyError> {
    let (count, list) = line
        .after("available:")?
        .trim()
        .strip_suffix(')')
        .and_then(|rest| rest.split_once(" nodes ("))
        .ok_or_else(|| line.wrong("'available: N nodes (LIST)'"))?;
    let count: usize = line.number(count, "the number of nodes")?;
    let ids: NodeSet = list.parse().map_err(|_| line.wrong_at("a list of nodes", list))?;
    if ids.last().is_some_and(|last| last >= MAX_NODES) {
        return Err(line.wrong_at(format!("node numbers below {MAX_NODES}"), list));
    }
    if ids.len() != count {
        return Err(line.wrong_at(format!("a list of {count} nodes"), list));
    }
    Ok(ids)
}

/// The three lines of a node.
fn node(id: usize, lines: &mut Lines<'_>) -> Result<Node, TopologyError> {
    let prefixes = ["cpus", "size", "free"].map(|what| format!("node {id} {what}:"));
    let [cpus, size, free] = &prefixes;
    let line = lines.expect(&format!("'{cpus}…'"))?;
    let cpus = cpu_numbers(&line, line.after(cpus)?)?;
    let line = lines.expect(&format!("'{size}…'"))?;
    let memory_total = memory(&line, line.after(size)?)?;
    let line = lines.expect(&format!("'{free}…'"))?;
    let memory_free = memory(&line, line.after(free)?)?;
    Ok(Node { id, cpus, memory_total, memory_free, distances: None })
}

/// `0 4 8`, or with `--cpu-compress` `0-3, 8 (5)`.
fn cpu_numbers(line: &Line<'_>, text: &str) -> Result<CpuSet, TopologyError> {
    if let Some((list, _count)) = text.split_once('(') {
        let list: String = list.chars().filter(|c| *c != ' ').collect();
        return line.cpu_list(&list);
    }
    let mut cpus = CpuSet::new();
    for number in text.split_whitespace() {
        let cpu: usize = line.number(number, "a CPU number")?;
        if !cpus.insert(cpu) {
            return Err(line.wrong_at("each CPU once, and a number that Linux has", number));
        }
    }
    line.known_cpus(cpus, text)
}

/// `32649 MB`, which numactl rounds down to MiB, or that it does not know.
fn memory(line: &Line<'_>, text: &str) -> Result<Option<Bytes>, TopologyError> {
    let text = text.trim();
    if text == "<not available>" {
        return Ok(None);
    }
    let expected = "a size as in '32768 MB'";
    let number = text.strip_suffix(" MB").ok_or_else(|| line.wrong_at(expected, text))?;
    let mib: u64 = line.number(number, expected)?;
    mib.checked_mul(1 << 20).map(|bytes| Some(Bytes(bytes))).ok_or_else(|| line.wrong_at(expected, text))
}

/// The distance table, and how wide it is.
fn distances(nodes: &mut [Node], lines: &mut Lines<'_>) -> Result<Option<NumactlStyle>, TopologyError> {
    let title = lines.expect("'node distances:'")?;
    match title.text.trim_end() {
        "node distances:" => {}
        NO_DISTANCES => return Ok(None),
        _ => return Err(title.wrong("'node distances:'")),
    }
    let header = lines.expect("'node' and the nodes' numbers")?;
    let ids: Vec<usize> = nodes.iter().map(|node| node.id).collect();
    let listed = numbers(&header, header.after("node ")?)?;
    if !listed.iter().map(|&id| id as usize).eq(ids.iter().copied()) {
        return Err(header.wrong("'node' and the nodes' numbers as above"));
    }
    for (row, node) in nodes.iter_mut().enumerate() {
        let line = lines.expect(&format!("'{}:' and its distances", ids[row]))?;
        let values = line
            .text
            .trim_start()
            .strip_prefix(&format!("{}:", ids[row]))
            .ok_or_else(|| line.wrong(format!("'{}:' and its distances", ids[row])))?;
        let values = numbers(&line, values)?;
        if values.len() != ids.len() {
            return Err(line.wrong(format!("{} distances", ids.len())));
        }
        node.distances = Some(values);
    }
    Ok(style(header.text, &ids))
}

fn numbers(line: &Line<'_>, text: &str) -> Result<Vec<u32>, TopologyError> {
    text.split_whitespace().map(|number| line.number(number, "a number")).collect()
}

/// The style whose header this is. Blanks at a line's end are often lost on the way, so they decide nothing.
fn style(header: &str, ids: &[usize]) -> Option<NumactlStyle> {
    [NumactlStyle::Classic, NumactlStyle::Wide, NumactlStyle::Narrow]
        .into_iter()
        .find(|style| print::numactl_header(*style, ids).trim_end() == header.trim_end())
}
