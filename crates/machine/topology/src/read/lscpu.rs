//! Reads the summary that `lscpu` prints, old form and new, also as JSON (`-J`): counts, CPUs online and offline, the
//! CPUs of each node. It does not say which CPU is in which package, core or (mostly) L3 group, and those are left out.
//! `lscpu_table` reads what `-e` and `-p` print.
//!
//! Source: util-linux `sys-utils/lscpu.c`, `print_summary()`, and `lib/cpuset.c`, `cpulist_create()`, 2.19 to 2.41.

use serde::Deserialize;

use units::{Bytes, CpuSet};

use super::line::{Line, Lines};
use crate::{L3Group, LogicalCpu, MAX_CPUS, MAX_NODES, Machine, Node, Stated, TopologyError};

/// A label with its value, and the line where it stands.
type Field<'a> = (Line<'a>, String, String);

/// What the lines say, with the line where a later check may point to it.
#[derive(Default)]
struct Seen<'a> {
    count: Option<(Line<'a>, usize)>,
    online: Option<CpuSet>,
    offline: CpuSet,
    node_count: Option<(Line<'a>, usize)>,
    nodes: Vec<Node>,
    /// Of a machine with two kinds of CPU, lscpu prints a section for each.
    models: Vec<String>,
    stated: Stated,
}

pub(super) fn read(name: &str, text: &str) -> Result<Machine, TopologyError> {
    machine(name, &fields(name, text))
}

/// An entry of `lscpu -J`, with those of its section.
#[derive(Deserialize)]
struct Entry {
    field: String,
    #[serde(default)]
    data: Option<serde_json::Value>,
    #[serde(default)]
    children: Vec<Entry>,
}

/// `{"lscpu": [{"field": "CPU(s):", "data": "2"}, …]}`
pub(super) fn read_json(
    name: &str,
    text: &str,
    entries: serde_json::Value,
) -> Result<Machine, TopologyError> {
    let first = text.lines().next().unwrap_or_default();
    let whole = Line { listing: name, number: 1, text: first };
    let entries: Vec<Entry> = serde_json::from_value(entries)
        .map_err(|error| whole.wrong(format!("entries with \"field\" and \"data\" ({error})")))?;
    let (mut fields, mut lines) = (Vec::new(), Lines::new(name, text));
    flatten(entries, &mut lines, whole, &mut fields);
    machine(name, &fields)
}

/// The entries in their order, each with the line where its field stands.
fn flatten<'a>(entries: Vec<Entry>, lines: &mut Lines<'a>, above: Line<'a>, fields: &mut Vec<Field<'a>>) {
    let mut at = above;
    for Entry { field, data, children } in entries {
        let label = field.trim().trim_end_matches(':').to_owned();
        // all entries may stand in one line
        let named = |line: &Line<'_>| line.text.contains(&label);
        if !named(&at) {
            at = lines.find(named).unwrap_or(at);
        }
        let value = match data {
            Some(serde_json::Value::String(text)) => text.trim().to_owned(),
            Some(serde_json::Value::Number(number)) => number.to_string(),
            _ => String::new(),
        };
        fields.push((at, label, value));
        flatten(children, lines, at, fields);
    }
}

fn machine(name: &str, fields: &[Field<'_>]) -> Result<Machine, TopologyError> {
    let mut seen = Seen::default();
    let mut last = None;
    for (line, label, value) in fields {
        take(&mut seen, line, label, value)?;
        last = Some(*line);
    }
    let (count_line, count) =
        seen.count.ok_or_else(|| end(name, last, "a line 'CPU(s): N' before the end"))?;
    let online =
        seen.online.ok_or_else(|| end(name, last, "a line 'On-line CPU(s) list: LIST' before the end"))?;
    let present = online.union(&seen.offline);
    if present.len() != count {
        return Err(count_line.wrong_at(
            format!("{} CPUs, as the lists of on-line and off-line CPUs hold", present.len()),
            &count.to_string(),
        ));
    }
    if let Some((line, count)) = seen.node_count
        && count != seen.nodes.len()
    {
        let listed = format!("{}, as there are lines 'NUMA nodeN CPU(s)'", seen.nodes.len());
        return Err(line.wrong_at(listed, &count.to_string()));
    }
    seen.nodes.sort_by_key(|node| node.id);
    // on some machines (s390) the kernel counts CPUs to a node that may come some day
    seen.nodes.iter_mut().for_each(|node| node.cpus = node.cpus.intersection(&online));
    Ok(Machine {
        model_name: (!seen.models.is_empty()).then(|| seen.models.join(" + ")),
        l3: one_l3(&seen.stated, &online),
        cpus: cpus(&present, &online, &seen.stated),
        nodes: seen.nodes,
        stated: seen.stated,
        ..Machine::default()
    })
}

/// The labels with their values. On a terminal lscpu breaks long values and indents what follows.
fn fields<'a>(name: &'a str, text: &'a str) -> Vec<Field<'a>> {
    let mut fields: Vec<Field<'a>> = Vec::new();
    for line in Lines::new(name, text) {
        match (line.text.split_once(':'), fields.last_mut()) {
            (Some((label, value)), _) => {
                fields.push((line, label.trim().to_owned(), value.trim().to_owned()));
            }
            (None, Some((.., value))) if line.text.starts_with(' ') => value.push_str(line.text.trim()),
            (None, _) => {}
        }
    }
    fields
}

fn end(name: &str, last: Option<Line<'_>>, expected: &str) -> TopologyError {
    TopologyError::Listing {
        name: name.to_owned(),
        line: last.map_or(1, |line| line.number),
        expected: expected.to_owned(),
        found: "the end".to_owned(),
    }
}

/// One line; labels that say nothing of the topology are skipped.
fn take<'a>(seen: &mut Seen<'a>, line: &Line<'a>, label: &str, value: &str) -> Result<(), TopologyError> {
    // 0 is how lscpu says that it does not know
    let count = || Ok(Some(line.number(value, "a number")?).filter(|count: &u32| *count > 0));
    match label {
        "CPU(s)" => seen.count = Some((*line, line.number(value, "a number")?)),
        "On-line CPU(s) list" => seen.online = Some(cpu_list(line, value)?),
        "Off-line CPU(s) list" => seen.offline = cpu_list(line, value)?,
        "Thread(s) per core" => seen.stated.threads_per_core = seen.stated.threads_per_core.max(count()?),
        // the second kind of CPU is in the same package
        "Core(s) per socket" => {
            let sum =
                [seen.stated.cores_per_package, count()?].into_iter().flatten().reduce(u32::saturating_add);
            seen.stated.cores_per_package = sum;
        }
        "Socket(s)" | "CPU socket(s)" => seen.stated.packages = seen.stated.packages.max(count()?),
        "NUMA node(s)" => seen.node_count = Some((*line, line.number(value, "a number")?)),
        "Model name" if !matches!(value, "" | "-") => {
            if !seen.models.iter().any(|known| known == value) {
                seen.models.push(value.to_owned());
            }
        }
        "L3 cache" | "L3" => l3(seen, line, value)?,
        _ => {
            let id = label.strip_prefix("NUMA node").and_then(|rest| rest.strip_suffix(" CPU(s)"));
            if let Some(id) = id {
                seen.nodes.push(node(seen, line, id, value)?);
            }
        }
    }
    Ok(())
}

/// `NUMA node4 CPU(s): 0,81-89,120-129`
fn node(seen: &Seen<'_>, line: &Line<'_>, id: &str, cpus: &str) -> Result<Node, TopologyError> {
    let id: usize = line.number(id, "'NUMA nodeN CPU(s)'")?;
    if id >= MAX_NODES {
        return Err(line.wrong(format!("a node number below {MAX_NODES}")));
    }
    if seen.nodes.iter().any(|node| node.id == id) {
        return Err(line.wrong("each node once"));
    }
    Ok(Node { id, cpus: cpu_list(line, cpus)?, ..Node::default() })
}

/// A list as util-linux writes it: `0-62:2` is every second number, for which the kernel writes `0-62:1/2`.
fn cpu_list(line: &Line<'_>, text: &str) -> Result<CpuSet, TopologyError> {
    if !text.contains(':') {
        return line.cpu_list(text);
    }
    let kernels = |part: &str| match part.split_once(':') {
        Some((range, stride)) if !stride.contains('/') => format!("{range}:1/{stride}"),
        _ => part.to_owned(),
    };
    line.cpu_list(&text.split(',').map(kernels).collect::<Vec<_>>().join(","))
}

/// Old: `24576K`, of each cache. From 2.37: `300 MiB (1 instance)`, of all of them together.
fn l3(seen: &mut Seen<'_>, line: &Line<'_>, value: &str) -> Result<(), TopologyError> {
    let Some((sum, instances)) = value.split_once(" (") else {
        seen.stated.l3_size = Some(line.bytes(value)?);
        return Ok(());
    };
    let count: u32 = line.number(instances.split(' ').next().unwrap_or_default(), "a number of instances")?;
    if count == 0 || count as usize > MAX_CPUS {
        return Err(line.wrong_at("a number of instances from 1", instances));
    }
    seen.stated.l3_count = Some(count);
    // a sum such as `1.1 GiB` is rounded, so one cache's size is unknown
    if !sum.contains('.') {
        seen.stated.l3_size = Some(Bytes(line.bytes(sum)?.0 / u64::from(count)));
    }
    Ok(())
}

/// A single L3 is shared by all CPUs that are online; of several, lscpu does not say who shares which.
fn one_l3(stated: &Stated, online: &CpuSet) -> Option<Vec<L3Group>> {
    (stated.l3_count == Some(1) && !online.is_empty())
        .then(|| vec![L3Group { cpus: online.clone(), size: stated.l3_size, cache_id: None }])
}

/// With one thread a core, each CPU is a core by itself; with more, lscpu does not say which ones share.
fn cpus(present: &CpuSet, online: &CpuSet, stated: &Stated) -> Vec<LogicalCpu> {
    let alone = stated.threads_per_core == Some(1);
    let cpu = |id| {
        let online = online.contains(id);
        let siblings = (alone && online).then(|| CpuSet::range(id, id));
        LogicalCpu { id, online, siblings, ..LogicalCpu::default() }
    };
    present.iter().map(cpu).collect()
}
