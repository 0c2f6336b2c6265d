//! Reads hwloc's XML (`lstopo --of xml`), versions 2 and 3, and version 1 as `--export-xml-flags v1` writes it.
//! Each object says its CPUs itself, so that how objects nest, which differs by version, does not matter.
//! An XML that was exported inside a container or cpuset has only the CPUs allowed there.
//!
//! Source: hwloc `hwloc/topology-xml.c`, and "Importing and exporting topologies from/to XML files".

use std::collections::BTreeMap;

use roxmltree::{Document, Node as Element, ParsingOptions};
use units::{Bytes, CpuSet};

use super::line::Line;
use crate::{BlockDevice, L3Group, LogicalCpu, MAX_CPUS, MAX_NODES, Machine, Node, TopologyError};

/// More elements than a machine with 8192 CPUs has; bounds the tree's memory.
const MAX_ELEMENTS: u32 = 1 << 19;

pub(super) fn read(name: &str, text: &str) -> Result<Machine, TopologyError> {
    // the document type is named in every export; entities are only ever expanded within roxmltree's own bounds
    let options = ParsingOptions { allow_dtd: true, nodes_limit: MAX_ELEMENTS, ..ParsingOptions::default() };
    let document = Document::parse_with_options(text, options).map_err(|error| {
        let number = error.pos().row as usize;
        let text = text.lines().nth(number.saturating_sub(1)).unwrap_or_default();
        Line { listing: name, number, text }.wrong(format!("hwloc's XML ({error})"))
    })?;
    let xml = Xml { name, text, document: &document };
    let root = document.root_element();
    if root.tag_name().name() != "topology" {
        return Err(xml.at(root).wrong("'<topology>' as hwloc's XML begins"));
    }
    Gathered::default().gather(&xml, root)
}

/// The document with what an error needs.
struct Xml<'a> {
    name: &'a str,
    text: &'a str,
    document: &'a Document<'a>,
}

impl<'a> Xml<'a> {
    /// The line where an element begins.
    fn at(&self, element: Element<'_, '_>) -> Line<'a> {
        let number = self.document.text_pos_at(element.range().start).row as usize;
        let text = self.text.lines().nth(number.saturating_sub(1)).unwrap_or_default();
        Line { listing: self.name, number, text }
    }

    fn number<T: std::str::FromStr>(
        &self,
        element: Element<'_, '_>,
        attribute: &str,
    ) -> Result<Option<T>, TopologyError> {
        let number = |text: &str| self.at(element).number(text, &format!("a number as {attribute}"));
        element.attribute(attribute).map(number).transpose()
    }

    fn cpus(&self, element: Element<'_, '_>, attribute: &str) -> Result<Option<CpuSet>, TopologyError> {
        let Some(mask) = element.attribute(attribute) else { return Ok(None) };
        let wrong = || self.at(element).wrong_at(format!("a mask of CPUs as {attribute}"), mask);
        let cpus = CpuSet::from_mask(mask).map_err(|_| wrong())?;
        self.at(element).known_cpus(cpus, mask).map(Some)
    }
}

/// What has been gathered on the way through the document.
#[derive(Default)]
struct Gathered {
    model_name: Option<String>,
    cpus: BTreeMap<usize, LogicalCpu>,
    nodes: BTreeMap<usize, Node>,
    l3: Vec<L3Group>,
    devices: Vec<BlockDevice>,
    /// The memory of a machine that names no node (version 1 without NUMA).
    memory: Option<Bytes>,
}

impl Gathered {
    fn gather(mut self, xml: &Xml<'_>, root: Element<'_, '_>) -> Result<Machine, TopologyError> {
        let objects = || root.descendants().filter(|element| element.has_tag_name("object"));
        let of_type = |kind| objects().filter(move |object| object.attribute("type") == Some(kind));
        for pu in of_type("PU") {
            self.pu(xml, pu)?;
        }
        if self.cpus.is_empty() {
            return Err(xml.at(root).wrong("an object of type PU"));
        }
        for object in objects() {
            match object.attribute("type") {
                Some("Machine") => self.memory = xml.number(object, "local_memory")?.map(Bytes),
                Some("Package" | "Socket") => self.package(xml, object)?,
                Some("NUMANode" | "Node") => self.node(xml, object)?,
                Some("L3Cache") => self.l3(xml, object)?,
                Some("Cache") if object.attribute("depth") == Some("3") => self.l3(xml, object)?,
                Some("Core") => self.core(xml, object)?,
                Some("OSDev") => self.device(xml, object)?,
                _ => {}
            }
        }
        self.model_name = root
            .descendants()
            .find(|info| info.has_tag_name("info") && info.attribute("name") == Some("CPUModel"))
            .and_then(|info| info.attribute("value"))
            .map(|model| model.trim().to_owned());
        self.one_node_if_none();
        distances(xml, root, &mut self.nodes)?;
        Ok(self.machine())
    }

    fn pu(&mut self, xml: &Xml<'_>, pu: Element<'_, '_>) -> Result<(), TopologyError> {
        let id: usize = xml
            .number(pu, "os_index")?
            .filter(|&id| id < MAX_CPUS)
            .ok_or_else(|| xml.at(pu).wrong(format!("a PU with an os_index below {MAX_CPUS}")))?;
        // version 1 lists CPUs that are switched off, and says so
        let online = xml.cpus(pu, "online_cpuset")?.is_none_or(|online| online.contains(id));
        let cpu = LogicalCpu { id, online, ..LogicalCpu::default() };
        match self.cpus.insert(id, cpu) {
            Some(_) => Err(xml.at(pu).wrong("each PU once")),
            None => Ok(()),
        }
    }

    /// The object's CPUs that are online.
    fn members(&self, xml: &Xml<'_>, object: Element<'_, '_>) -> Result<CpuSet, TopologyError> {
        let cpus =
            xml.cpus(object, "cpuset")?.ok_or_else(|| xml.at(object).wrong("an object with a cpuset"))?;
        Ok(cpus.iter().filter(|id| self.cpus.get(id).is_some_and(|cpu| cpu.online)).collect())
    }

    /// The object's online CPUs, to be written to.
    fn each(&mut self, members: &CpuSet, write: impl Fn(&mut LogicalCpu)) {
        for id in members.iter() {
            self.cpus.entry(id).and_modify(&write);
        }
    }

    fn package(&mut self, xml: &Xml<'_>, object: Element<'_, '_>) -> Result<(), TopologyError> {
        let id = xml.number(object, "os_index")?;
        let members = self.members(xml, object)?;
        self.each(&members, |cpu| cpu.package = id);
        Ok(())
    }

    fn core(&mut self, xml: &Xml<'_>, object: Element<'_, '_>) -> Result<(), TopologyError> {
        let id = xml.number(object, "os_index")?;
        let members = self.members(xml, object)?;
        self.each(&members, |cpu| {
            cpu.core = id;
            cpu.siblings = Some(members.clone());
        });
        Ok(())
    }

    fn node(&mut self, xml: &Xml<'_>, object: Element<'_, '_>) -> Result<(), TopologyError> {
        let id: usize = xml
            .number(object, "os_index")?
            .filter(|&id| id < MAX_NODES)
            .ok_or_else(|| xml.at(object).wrong(format!("a node with an os_index below {MAX_NODES}")))?;
        let cpus = self.members(xml, object)?;
        let memory_total = xml.number(object, "local_memory")?.map(Bytes);
        let node = Node { id, cpus, memory_total, ..Node::default() };
        match self.nodes.insert(id, node) {
            Some(_) => Err(xml.at(object).wrong("each NUMA node once")),
            None => Ok(()),
        }
    }

    fn l3(&mut self, xml: &Xml<'_>, object: Element<'_, '_>) -> Result<(), TopologyError> {
        let cpus = self.members(xml, object)?;
        let size = xml.number(object, "cache_size")?.map(Bytes);
        let cache_id = xml.number(object, "os_index")?;
        if self.l3.len() == MAX_CPUS {
            return Err(xml.at(object).wrong(format!("at most {MAX_CPUS} L3 caches")));
        }
        if !cpus.is_empty() {
            self.l3.push(L3Group { cpus, size, cache_id });
        }
        Ok(())
    }

    /// A block device has a number; network and other devices have none.
    fn device(&mut self, xml: &Xml<'_>, object: Element<'_, '_>) -> Result<(), TopologyError> {
        let info = |name: &str| {
            let infos = object.children().filter(|child| child.has_tag_name("info"));
            infos.filter(|info| info.attribute("name") == Some(name)).find_map(|info| info.attribute("value"))
        };
        let Some((number, name)) = info("LinuxDeviceID").zip(object.attribute("name")) else {
            return Ok(());
        };
        let wrong = || xml.at(object).wrong_at("a device number as in '8:16'", number);
        let (major, minor) = number.split_once(':').ok_or_else(wrong)?;
        let (major, minor) = (major.parse().map_err(|_| wrong())?, minor.parse().map_err(|_| wrong())?);
        // hwloc writes the size in KiB
        let size = info("Size").and_then(|size| size.parse::<u64>().ok()?.checked_mul(1024));
        let name = name.strip_prefix("/dev/").unwrap_or(name).to_owned();
        self.devices.push(BlockDevice {
            name,
            major,
            minor,
            size: Bytes(size.unwrap_or(0)),
            ..BlockDevice::default()
        });
        Ok(())
    }

    /// Without NUMA all memory is as near to every CPU; version 2 writes one node then, version 1 none.
    fn one_node_if_none(&mut self) {
        if self.nodes.is_empty() {
            let cpus = self.cpus.values().filter(|cpu| cpu.online).map(|cpu| cpu.id).collect();
            self.nodes.insert(0, Node { id: 0, cpus, memory_total: self.memory, ..Node::default() });
        }
    }

    fn machine(mut self) -> Machine {
        // a node of memory only says the CPUs near it; those belong to the node with the lower number
        let mut taken = CpuSet::new();
        for node in self.nodes.values_mut() {
            node.cpus = node.cpus.difference(&taken);
            taken = taken.union(&node.cpus);
        }
        self.l3.sort_by_key(|group| group.cpus.first());
        Machine {
            model_name: self.model_name,
            cpus: self.cpus.into_values().collect(),
            nodes: self.nodes.into_values().collect(),
            l3: Some(self.l3),
            block_devices: Some(self.devices),
            ..Machine::default()
        }
    }
}

/// The matrix of node distances, if there is one that is sure to be of nodes.
fn distances(
    xml: &Xml<'_>,
    root: Element<'_, '_>,
    nodes: &mut BTreeMap<usize, Node>,
) -> Result<(), TopologyError> {
    let tagged = |tag: &'static str| root.descendants().filter(move |element| element.has_tag_name(tag));
    // bit 2 of the kind: latencies, not bandwidths
    let latency = |matrix: &Element<'_, '_>| {
        matrix.attribute("type") == Some("NUMANode")
            && matrix.attribute("kind").and_then(|kind| kind.parse::<u32>().ok()).is_some_and(|k| k & 4 != 0)
    };
    if let Some(matrix) = tagged("distances2").find(latency) {
        let indexes: Vec<usize> = numbers(xml, matrix, "indexes")?;
        let values: Vec<u32> = numbers(xml, matrix, "u64values")?;
        return fill(nodes, &indexes, &values).ok_or_else(|| {
            xml.at(matrix).wrong(format!("a distance from each of {} nodes to each", nodes.len()))
        });
    }
    // version 1 says a depth, not a type: only a single matrix of the right size is sure to be of nodes
    let count = nodes.len();
    let sized = |matrix: &Element<'_, '_>| matrix.attribute("nbobjs") == Some(count.to_string().as_str());
    let mut matrices = tagged("distances").filter(sized);
    if let (Some(matrix), None) = (matrices.next(), matrices.next())
        && count > 1
    {
        let in_order: Vec<usize> = tagged("object")
            .filter(|object| matches!(object.attribute("type"), Some("NUMANode" | "Node")))
            .filter_map(|object| object.attribute("os_index")?.parse().ok())
            .collect();
        let values = latencies(matrix).ok_or_else(|| xml.at(matrix).wrong("latencies that are numbers"))?;
        return fill(nodes, &in_order, &values)
            .ok_or_else(|| xml.at(matrix).wrong(format!("a latency from each of {count} nodes to each")));
    }
    Ok(())
}

/// The numbers in all children of one tag.
fn numbers<T: std::str::FromStr>(
    xml: &Xml<'_>,
    matrix: Element<'_, '_>,
    tag: &str,
) -> Result<Vec<T>, TopologyError> {
    matrix
        .children()
        .filter(|child| child.has_tag_name(tag))
        .flat_map(|child| child.text().unwrap_or_default().split_whitespace().map(move |text| (child, text)))
        .map(|(child, text)| xml.at(child).number(text, &format!("a number in {tag}")))
        .collect()
}

/// Version 1 keeps latencies relative to a base.
fn latencies(matrix: Element<'_, '_>) -> Option<Vec<u32>> {
    let decimal = |text: &str| text.parse::<f64>().ok().filter(|value| value.is_finite());
    let base = decimal(matrix.attribute("latency_base")?)?;
    matrix
        .children()
        .filter(|child| child.has_tag_name("latency"))
        .map(|child| {
            let value = (decimal(child.attribute("value")?)? * base).round();
            (0.0..=f64::from(u32::MAX)).contains(&value).then_some(value as u32)
        })
        .collect()
}

/// Writes the matrix, whose rows and columns are in `indexes`' order, to the nodes in theirs.
fn fill(nodes: &mut BTreeMap<usize, Node>, indexes: &[usize], values: &[u32]) -> Option<()> {
    let count = nodes.len();
    let places: Vec<usize> =
        nodes.keys().map(|id| indexes.iter().position(|index| index == id)).collect::<Option<_>>()?;
    if indexes.len() != count || values.len() != count * count {
        return None;
    }
    for (node, row) in nodes.values_mut().zip(&places) {
        node.distances = Some(places.iter().map(|column| values[row * count + column]).collect());
    }
    Some(())
}
