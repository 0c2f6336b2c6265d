//! Reads the tree that `lstopo` and `hwloc-ls` print as text. Objects nest by their indentation, or stand in one line
//! with ` + ` between them. A memory node is a leaf beside what is near to it (version 2), or contains it (version 1).
//! Sizes are rounded, and devices have no numbers: those are left out.
//!
//! Source: hwloc `utils/lstopo/lstopo-text.c`, `output_console_obj()`, and `hwloc/traversal.c`, 1.11 to 2.12.

use std::collections::BTreeMap;

use units::{Bytes, CpuSet};

use super::line::{Line, Lines};
use crate::{L3Group, LogicalCpu, MAX_CPUS, MAX_NODES, Machine, Node, TopologyError};

/// Does a tree begin with this line?
pub(super) fn is_root(line: &str) -> bool {
    line.strip_prefix("Machine").is_some_and(|rest| {
        rest.is_empty() || [" (", " L#", " P#"].iter().any(|start| rest.starts_with(start))
    })
}

/// An object of the line, or of a line above that contains it.
struct Object {
    indent: usize,
    kind: Kind,
}

enum Kind {
    Package(Option<u32>),
    /// A position in the list of L3 caches.
    L3(usize),
    /// A position in the list of cores.
    Core(usize),
    Node(usize),
    Other,
    /// A cache in front of memory, which contains a node and no CPU.
    MemCache,
}

#[derive(Default)]
struct Tree {
    above: Vec<Object>,
    cpus: BTreeMap<usize, LogicalCpu>,
    cores: Vec<CpuSet>,
    l3: Vec<L3Group>,
    nodes: BTreeMap<usize, Node>,
    /// The nodes that stand as leaves, each with the objects above it: what is below the last of these is near to it.
    leaves: Vec<(usize, usize)>,
    memory: Option<Bytes>,
}

pub(super) fn read(name: &str, text: &str) -> Result<Machine, TopologyError> {
    let mut tree = Tree::default();
    let mut last = None;
    for line in Lines::new(name, text) {
        tree.line(&line)?;
        last = Some(line);
    }
    match last {
        Some(line) if tree.cpus.is_empty() => Err(line.wrong("an object PU before the end")),
        _ => Ok(tree.machine()),
    }
}

impl Tree {
    fn line(&mut self, line: &Line<'_>) -> Result<(), TopologyError> {
        let indent = line.text.len() - line.text.trim_start().len();
        self.above.retain(|object| object.indent < indent);
        let depth = self.above.len();
        self.leaves.retain(|(at, _)| *at <= depth);
        for text in line.text.trim().split(" + ") {
            let kind = self.object(line, text)?;
            if let Kind::Node(id) = kind {
                // as a leaf it is for all that is in the object above
                self.leaves.push((self.above.len(), id));
            }
            if !matches!(kind, Kind::MemCache) {
                self.above.push(Object { indent, kind });
            }
        }
        Ok(())
    }

    /// An object of a line, from its text: `L3 L#0 (32MB)`, `PU L#1 (P#4)`.
    fn object(&mut self, line: &Line<'_>, text: &str) -> Result<Kind, TopologyError> {
        let kind = text.split([' ', '(']).next().unwrap_or_default();
        Ok(match kind {
            "Machine" => {
                self.memory = size(text);
                Kind::Other
            }
            "Package" | "Socket" => Kind::Package(
                physical(text).or_else(|| index(text, "L#")).and_then(|id| u32::try_from(id).ok()),
            ),
            "L3" => {
                self.l3.push(L3Group { size: size(text), ..L3Group::default() });
                Kind::L3(self.l3.len() - 1)
            }
            "Core" => {
                self.cores.push(CpuSet::new());
                Kind::Core(self.cores.len() - 1)
            }
            "NUMANode" => {
                let id = physical(text).filter(|id| *id < MAX_NODES);
                let id = id.ok_or_else(|| {
                    line.wrong_at(format!("a node's number, as in 'P#0', below {MAX_NODES}"), text)
                })?;
                let node = Node { id, memory_total: size(text), ..Node::default() };
                if self.nodes.insert(id, node).is_some() {
                    return Err(line.wrong("each NUMA node once"));
                }
                Kind::Node(id)
            }
            "PU" => {
                self.cpu(line, text)?;
                Kind::Other
            }
            "MemCache" => Kind::MemCache,
            _ => Kind::Other,
        })
    }

    fn cpu(&mut self, line: &Line<'_>, text: &str) -> Result<(), TopologyError> {
        let id = physical(text).filter(|id| *id < MAX_CPUS);
        let id =
            id.ok_or_else(|| line.wrong_at(format!("a CPU's number, as in 'P#0', below {MAX_CPUS}"), text))?;
        let mut cpu = LogicalCpu { id, online: true, ..LogicalCpu::default() };
        let mut node = self.leaves.last().map(|(_, node)| *node);
        // several leaves of one object: all but the first are memory only
        if let Some((depth, _)) = self.leaves.last() {
            node = self.leaves.iter().find(|(at, _)| at == depth).map(|(_, node)| *node);
        }
        for object in &self.above {
            match object.kind {
                Kind::Package(package) => cpu.package = package,
                Kind::L3(at) => {
                    self.l3[at].cpus.insert(id);
                }
                Kind::Core(at) => {
                    self.cores[at].insert(id);
                }
                Kind::Node(around) => node = Some(around),
                Kind::Other | Kind::MemCache => {}
            }
        }
        if let Some(node) = node.and_then(|node| self.nodes.get_mut(&node)) {
            node.cpus.insert(id);
        }
        match self.cpus.insert(id, cpu) {
            Some(_) => Err(line.wrong("each PU once")),
            None => Ok(()),
        }
    }

    fn machine(mut self) -> Machine {
        for core in &self.cores {
            for id in core.iter() {
                self.cpus.entry(id).and_modify(|cpu| cpu.siblings = Some(core.clone()));
            }
        }
        if self.nodes.is_empty() {
            let cpus = self.cpus.keys().copied().collect();
            self.nodes.insert(0, Node { id: 0, cpus, memory_total: self.memory, ..Node::default() });
        }
        self.l3.retain(|group| !group.cpus.is_empty());
        self.l3.sort_by_key(|group| group.cpus.first());
        Machine {
            cpus: self.cpus.into_values().collect(),
            nodes: self.nodes.into_values().collect(),
            l3: Some(self.l3),
            ..Machine::default()
        }
    }
}

/// The kernel's number: `P#4`.
fn physical(text: &str) -> Option<usize> {
    index(text, "P#")
}

fn index(text: &str, mark: &str) -> Option<usize> {
    let (_, rest) = text.split_once(mark)?;
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest[..end].parse().ok()
}

/// The size in an object's brackets: `(P#0 9946MB)`, `(32MB)`, `(15GB total)`.
fn size(text: &str) -> Option<Bytes> {
    let (_, inner) = text.split_once('(')?;
    let amount = |word: &str| word.ends_with('B').then(|| word.parse::<Bytes>().ok()).flatten();
    inner.trim_end_matches(')').split(' ').find_map(amount)
}
