//! Reads the table of CPUs that `lscpu -e` prints for people, `lscpu -p` for programs and `lscpu -e -J` as JSON: a row
//! for each CPU, with the columns that its user chose. Knows nothing of memory and distances, and says so by leaving them
//! out. Core and cache numbers are lscpu's own, not the kernel's, and only say which CPUs share one.
//!
//! Source: util-linux `sys-utils/lscpu.c`, `coldescs_cpu` and `get_cell_data()`, 2.23 to 2.41.

use std::collections::BTreeMap;

use serde_json::Value;
use units::CpuSet;

use super::line::{Line, Lines};
use crate::{L3Group, LogicalCpu, MAX_CPUS, MAX_NODES, Machine, Node, TopologyError};

/// A name with spaces in it, the only cell that may have some.
const MODEL: &str = "MODELNAME";

/// Columns besides those of caches.
const COLUMNS: [&str; 17] = [
    "ADDRESS",
    "BOOK",
    "CLUSTER",
    "CONFIGURED",
    "CORE",
    "CPU",
    "DRAWER",
    "MAXMHZ",
    "MHZ",
    "MICROARCHITECTURE",
    "MINMHZ",
    MODEL,
    "NODE",
    "ONLINE",
    "POLARIZATION",
    "SCALMHZ%",
    "SOCKET",
];

/// Does a table of `lscpu -e` begin with this line?
pub(super) fn is_header(line: &str) -> bool {
    let columns: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    columns.len() > 1 && are_columns(&columns)
}

/// Does a table of `lscpu -p` begin with this line, the last of its comments?
pub(super) fn is_comment_header(line: &str) -> bool {
    comment_header(line).is_some_and(|columns| columns.len() > 1 && are_columns(&columns))
}

/// `# CPU,Core,Socket,Node,,L1d,L1i,L2,L3`
fn comment_header(line: &str) -> Option<Vec<String>> {
    let columns = line.trim().strip_prefix('#')?.split(',');
    Some(columns.map(|column| column.trim().to_uppercase()).collect())
}

fn are_columns(columns: &[String]) -> bool {
    let is_known =
        |column: &String| column.is_empty() || COLUMNS.contains(&column.as_str()) || is_caches(column);
    columns.iter().any(|column| column == "CPU") && columns.iter().all(is_known)
}

/// `lscpu -e`.
pub(super) fn read(name: &str, text: &str) -> Result<Machine, TopologyError> {
    let mut lines = Lines::new(name, text);
    let header = lines.expect("a line with the columns' names")?;
    let columns: Vec<String> = header.text.split_whitespace().map(str::to_owned).collect();
    let rows = lines.map(|line| Ok((line, cells(&line, &columns)?)));
    let rows: Vec<Row<'_>> = rows.collect::<Result<_, _>>()?;
    machine(&columns, rows)
}

/// A row's cells. A model's name takes what the cells on both sides of it leave.
fn cells(line: &Line<'_>, columns: &[String]) -> Result<Vec<String>, TopologyError> {
    let words: Vec<&str> = line.text.split_whitespace().collect();
    let extra = words.len().checked_sub(columns.len());
    let model = columns.iter().position(|column| column == MODEL);
    match (extra, model) {
        (Some(0), _) => Ok(words.into_iter().map(str::to_owned).collect()),
        (Some(extra), Some(model)) => {
            let (before, rest) = words.split_at(model);
            let (name, after) = rest.split_at(extra + 1);
            let cells = before.iter().map(|cell| (*cell).to_owned());
            Ok(cells.chain([name.join(" ")]).chain(after.iter().map(|cell| (*cell).to_owned())).collect())
        }
        _ => Err(line.wrong(format!("{} values, as there are columns", columns.len()))),
    }
}

/// `lscpu -p`.
pub(super) fn read_parsable(name: &str, text: &str) -> Result<Machine, TopologyError> {
    let mut columns = None;
    let mut rows: Vec<Row<'_>> = Vec::new();
    for line in Lines::new(name, text) {
        if line.text.trim_start().starts_with('#') {
            columns = comment_header(line.text).filter(|columns| are_columns(columns)).or(columns);
            continue;
        }
        let expected = columns.as_ref().map_or(0, Vec::len);
        let cells: Vec<String> = line.text.split(',').map(|cell| cell.trim().to_owned()).collect();
        if cells.len() != expected {
            return Err(line.wrong(format!("{expected} values, as there are columns")));
        }
        rows.push((line, cells));
    }
    machine(&columns.unwrap_or_default(), rows)
}

/// `{"cpus": [{"cpu": 0, "core": 0, …}, …]}`
pub(super) fn read_json(name: &str, text: &str, cpus: &Value) -> Result<Machine, TopologyError> {
    let first = text.lines().next().unwrap_or_default();
    let line = Line { listing: name, number: 1, text: first };
    let wrong = || line.wrong("a list \"cpus\" of objects with \"cpu\"");
    let objects: Option<Vec<_>> =
        cpus.as_array().and_then(|cpus| cpus.iter().map(Value::as_object).collect());
    let objects = objects.filter(|objects| !objects.is_empty()).ok_or_else(wrong)?;
    let columns: Vec<String> = objects[0].keys().map(|key| key.to_uppercase()).collect();
    if !columns.iter().any(|column| column == "CPU") {
        return Err(wrong());
    }
    let cell = |value: Option<&Value>| match value {
        Some(Value::String(text)) => text.trim().to_owned(),
        Some(Value::Bool(yes)) => if *yes { "yes" } else { "no" }.to_owned(),
        Some(Value::Number(number)) => number.to_string(),
        _ => String::new(),
    };
    let rows =
        objects.iter().map(|object| (line, objects[0].keys().map(|key| cell(object.get(key))).collect()));
    machine(&columns, rows.collect())
}

/// A line with its cells, as many as there are columns.
type Row<'a> = (Line<'a>, Vec<String>);

/// What CPUs share a core, as far as the columns say it.
type CoreKey = [Option<usize>; 5];

/// The columns that tell one core from another.
const OF_CORE: [&str; 5] = ["DRAWER", "BOOK", "SOCKET", "CLUSTER", "CORE"];

/// The table with what was gathered of it.
#[derive(Default)]
struct Gathered {
    cpus: BTreeMap<usize, LogicalCpu>,
    cores: BTreeMap<CoreKey, CpuSet>,
    nodes: BTreeMap<usize, CpuSet>,
    l3: BTreeMap<String, CpuSet>,
    models: Vec<String>,
}

fn machine(columns: &[String], rows: Vec<Row<'_>>) -> Result<Machine, TopologyError> {
    let at = |name: &str| columns.iter().position(|column| column == name);
    let has_cores = at("CORE").is_some();
    let mut gathered = Gathered::default();
    for (line, cells) in &rows {
        gathered.row(
            line,
            &|name| at(name).map_or("", |place| known(&cells[place])),
            l3_of(columns, cells),
        )?;
    }
    let siblings = gathered.cores.values().filter(|_| has_cores);
    for set in siblings {
        for id in set.iter() {
            gathered.cpus.entry(id).and_modify(|cpu| cpu.siblings = Some(set.clone()));
        }
    }
    let mut l3: Vec<L3Group> =
        gathered.l3.into_values().map(|cpus| L3Group { cpus, ..L3Group::default() }).collect();
    l3.sort_by_key(|group| group.cpus.first());
    Ok(Machine {
        model_name: (!gathered.models.is_empty()).then(|| gathered.models.join(" + ")),
        cpus: gathered.cpus.into_values().collect(),
        nodes: (gathered.nodes.into_iter()).map(|(id, cpus)| Node { id, cpus, ..Node::default() }).collect(),
        l3: columns.iter().any(|column| is_caches(column)).then_some(l3),
        ..Machine::default()
    })
}

impl Gathered {
    fn row<'c>(
        &mut self,
        line: &Line<'_>,
        cell: &dyn Fn(&str) -> &'c str,
        l3: Option<&str>,
    ) -> Result<(), TopologyError> {
        let id: usize = line.number(cell("CPU"), "a CPU's number")?;
        if id >= MAX_CPUS || self.cpus.contains_key(&id) {
            return Err(line.wrong(format!("each CPU once, and numbers below {MAX_CPUS}")));
        }
        let number = |name: &str| match cell(name) {
            "" => Ok(None),
            text => line.number(text, &format!("a number as {name}")).map(Some),
        };
        let online = !matches!(cell("ONLINE").to_lowercase().as_str(), "no" | "n" | "0");
        let package = number("SOCKET")?.and_then(|package: usize| u32::try_from(package).ok());
        let max_mhz = cell("MAXMHZ").split('.').next().and_then(|mhz| mhz.parse().ok());
        let known = LogicalCpu { id, online, ..LogicalCpu::default() };
        let cpu = if online { LogicalCpu { package, max_mhz, ..known } } else { known };
        self.cpus.insert(id, cpu);
        if !online {
            return Ok(());
        }
        let mut core = CoreKey::default();
        for (part, name) in core.iter_mut().zip(OF_CORE) {
            *part = number(name)?;
        }
        // without a number it is a core by itself, as far as is known
        if core[4].is_some() {
            self.cores.entry(core).or_default().insert(id);
        }
        if let Some(node) = number("NODE")? {
            if node >= MAX_NODES {
                return Err(line.wrong(format!("a node number below {MAX_NODES}")));
            }
            self.nodes.entry(node).or_default().insert(id);
        }
        if let Some(l3) = l3 {
            self.l3.entry(l3.to_owned()).or_default().insert(id);
        }
        let model = cell(MODEL);
        if !model.is_empty() && !self.models.iter().any(|known| known == model) {
            self.models.push(model.to_owned());
        }
        Ok(())
    }
}

/// A cell's text; empty where lscpu does not know.
fn known(cell: &str) -> &str {
    if matches!(cell, "-" | "?") { "" } else { cell }
}

/// `L1d:L1i:L2:L3`, or one cache. lscpu lists all caches or none.
fn is_caches(column: &str) -> bool {
    let is_one = |name: &str| {
        let level = name.strip_prefix(['L', 'l']);
        level.is_some_and(|level| level.starts_with(|c: char| c.is_ascii_digit()))
    };
    column.split(':').all(is_one)
}

/// The L3 cache of a row: in a column of its own, or in its place in `L1d:L1i:L2:L3`.
fn l3_of<'c>(columns: &[String], cells: &'c [String]) -> Option<&'c str> {
    columns.iter().zip(cells).find_map(|(column, cell)| {
        let place = column.split(':').position(|cache| cache.eq_ignore_ascii_case("L3"))?;
        cell.split(':').nth(place).map(known).filter(|id| !id.is_empty())
    })
}
