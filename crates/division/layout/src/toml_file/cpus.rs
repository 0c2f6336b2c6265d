//! What `cpus` and `mems` take.

use std::num::NonZeroUsize;

use serde_json::{Value as Json, json};
use settings::GroupName;
use settings::Hundredths;
use toml::de::DeValue;
use units::{IdSet, Limit, NodeSet};

use crate::demand::{CpuAmount, CpuDemand, CpuSpec, MemDemand, Near, Placement, Pool, Smt};
use crate::names::cut;
use crate::reader::{
    Keyed as _, Number, Reader, Takes, Value, array, keyed, one_or_more, table, takes_text, text,
};

/// As cgroup v2's weights.
const MOST_WEIGHT: u32 = 10_000;

keyed! {
    /// CPUs as a table.
    #[derive(Default)]
    pub(crate) struct CpuTable in "in 'cpus'" {
        /// How many logical CPUs, or which share of those not reserved.
        #[takes(r#"8 · "25%""#)]
        count: Option<CpuAmount>,
        /// How many whole cores, instead of count: with all their SMT siblings, also where cores have different numbers of
        /// CPUs; of equally near ones the largest.
        #[takes("3")]
        cores: Option<NonZeroUsize>,
        /// The least number of CPUs; with max instead of count.
        #[takes("2")]
        min: Option<NonZeroUsize>,
        /// The largest number of CPUs; as many as are free, up to that.
        #[takes("8")]
        max: Option<NonZeroUsize>,
        /// With min and max: the group is elastic, with CPUs of its own between these, and this is its share beside other
        /// elastic groups. ringfenced resizes it with its load; without the daemon it has min (docs/elastic.md).
        #[takes("300")]
        weight: Option<Number<1, MOST_WEIGHT>>,
        /// Only CPUs of these NUMA nodes; alone: all of them.
        #[takes(r#"0 · "0-1" · [0, 2]"#)]
        node: Option<NodeSet>,
        /// As near as can be to a node, a block device or another group's CPUs; the first counts most.
        #[takes(r#""node:0" · "device:/dev/nvme0n1" · ["group:oltp1", "node:1"]"#)]
        near: Vec<Near>,
        /// On as few nodes and caches as can be, or evenly over all.
        #[takes(r#""pack" · "spread""#)]
        placement: Option<Placement>,
        /// SMT siblings: all of a core or none; each CPU on a core of its own while there are any; as it comes.
        #[takes(r#""whole-cores" · "threads" · "any""#)]
        smt: Option<Smt>,
        /// Whether other groups of the layout may be given the same CPUs. `exclusive = true` of the group also makes the kernel
        /// hold to it.
        #[takes(r#""shared" · "exclusive""#)]
        pool: Option<Pool>,
        /// The same CPUs as another group; stands alone.
        #[takes(r#""oltp2""#)]
        like: Option<GroupName>,
    }
}

keyed! {
    /// Memory nodes as a table.
    #[derive(Default)]
    pub(crate) struct MemTable in "in 'mems'" {
        /// The same nodes as another group; stands alone.
        #[takes(r#""oltp2""#)]
        like: Option<GroupName>,
    }
}

impl Takes for CpuDemand {
    fn schema() -> Json {
        json!({ "anyOf": [NonZeroUsize::schema(), String::schema(), CpuTable::schema()] })
    }

    fn read(reader: &mut Reader<'_>, value: &Value<'_>) -> Option<CpuDemand> {
        Some(match value.get_ref() {
            DeValue::Integer(_) => CpuDemand::Some(some(CpuAmount::Count(reader.count(value, 1)?))),
            DeValue::String(text) => match text.trim() {
                "all" => CpuDemand::All,
                text if text.ends_with('%') => {
                    CpuDemand::Some(some(CpuAmount::Percent(reader.share(value, text)?)))
                }
                text => CpuDemand::These(reader.list(value, text, "CPUs", "\"0-3,8\"")?),
            },
            DeValue::Table(_) => reader.cpu_table(value)?,
            _ => {
                return reader
                    .refuse_type(value, "a number of CPUs, a string such as \"0-7\" or \"25%\", or a table");
            }
        })
    }

    fn write(&self) -> Option<String> {
        match self {
            CpuDemand::All | CpuDemand::General => Some(text("all")),
            CpuDemand::These(cpus) => Some(text(&cpus.to_string())),
            CpuDemand::OfNodes(nodes) => {
                CpuTable { node: Some(nodes.clone()), ..CpuTable::default() }.write()
            }
            CpuDemand::Like(name) => CpuTable { like: Some(name.clone()), ..CpuTable::default() }.write(),
            CpuDemand::Some(spec) => {
                let pairs = CpuTable::from(spec).pairs();
                match (pairs.as_slice(), spec.amount) {
                    ([(_, amount)], CpuAmount::Count(_) | CpuAmount::Percent(_)) => Some(amount.clone()),
                    _ => Some(table(&pairs)),
                }
            }
        }
    }
}

impl From<&CpuSpec> for CpuTable {
    fn from(spec: &CpuSpec) -> CpuTable {
        let CpuSpec { amount, nodes, near, placement, smt, pool, weight } = spec.clone();
        let weight = weight.map(Number);
        let mut table = CpuTable { weight, node: nodes, near, placement, smt, pool, ..CpuTable::default() };
        match amount {
            // cores are whole
            CpuAmount::Cores(cores) => (table.cores, table.smt) = (NonZeroUsize::new(cores), None),
            CpuAmount::Between { min, max } => {
                (table.min, table.max) = (NonZeroUsize::new(min), max.at().and_then(NonZeroUsize::new));
            }
            amount => table.count = Some(amount),
        }
        table
    }
}

impl Takes for MemDemand {
    fn schema() -> Json {
        json!({ "anyOf": [String::schema(), MemTable::schema()] })
    }

    fn read(reader: &mut Reader<'_>, value: &Value<'_>) -> Option<MemDemand> {
        match value.get_ref() {
            DeValue::String(text) => match text.trim() {
                "local" => Some(MemDemand::Local),
                "all" => Some(MemDemand::All),
                text => {
                    let example = "\"0-1\", \"local\" or \"all\"";
                    reader.list(value, text, "nodes", example).map(MemDemand::These)
                }
            },
            DeValue::Table(_) => {
                let before = reader.report.errors();
                let like = MemTable::read(reader, value)?.like;
                if like.is_none() && reader.report.errors() == before {
                    reader.wrong(value, "the nodes are missing".to_owned(), "\"local\", \"0-1\" or \"all\"");
                }
                like.map(MemDemand::Like)
            }
            DeValue::Integer(number) => {
                let hint = format!("for node {number} put it in quotes: \"{number}\"");
                reader.refuse(value, "a number alone could mean a node or how many".to_owned(), &hint)
            }
            _ => reader.refuse_type(value, "\"local\", \"all\", a list of nodes such as \"0-1\", or a table"),
        }
    }

    fn write(&self) -> Option<String> {
        match self {
            MemDemand::Local => Some(text("local")),
            MemDemand::All => Some(text("all")),
            MemDemand::These(nodes) => Some(text(&nodes.to_string())),
            MemDemand::Like(name) => MemTable { like: Some(name.clone()) }.write(),
        }
    }
}

impl Takes for CpuAmount {
    fn schema() -> Json {
        let percentage = json!({ "type": "string", "pattern": "^[0-9.]+ *%$" });
        json!({ "anyOf": [NonZeroUsize::schema(), percentage] })
    }

    /// `8` or `"25%"`.
    fn read(reader: &mut Reader<'_>, value: &Value<'_>) -> Option<CpuAmount> {
        match value.get_ref() {
            DeValue::String(text) if text.trim().ends_with('%') => {
                reader.share(value, text.trim()).map(CpuAmount::Percent)
            }
            DeValue::String(text) => {
                let hint =
                    format!("without quotes if it is a number of CPUs, {}% if it is a share", cut(text));
                reader.refuse(value, "expected a number or a percentage".to_owned(), &hint)
            }
            _ => reader.count(value, 1).map(CpuAmount::Count),
        }
    }

    fn write(&self) -> Option<String> {
        match self {
            CpuAmount::Count(count) | CpuAmount::Cores(count) => Some(count.to_string()),
            CpuAmount::Percent(share) => Some(text(&format!("{share}%"))),
            CpuAmount::Between { .. } => None,
        }
    }
}

impl Takes for NodeSet {
    fn schema() -> Json {
        let number = usize::schema();
        json!({ "anyOf": [number, String::schema(), { "type": "array", "items": number }] })
    }

    fn read(reader: &mut Reader<'_>, value: &Value<'_>) -> Option<NodeSet> {
        match value.get_ref() {
            DeValue::Integer(_) => reader.count(value, 0).map(|node| NodeSet::range(node, node)),
            DeValue::Array(nodes) if !nodes.is_empty() => {
                let nodes: Vec<_> = nodes.iter().map(|node| reader.count(node, 0)).collect();
                nodes.into_iter().collect()
            }
            DeValue::String(text) => reader.list(value, text.trim(), "nodes", "\"0-1\""),
            _ => reader.refuse_type(value, "a node's number, a list such as \"0-1\", or an array of numbers"),
        }
    }

    fn write(&self) -> Option<String> {
        match (self.len(), self.first()) {
            (1, Some(node)) => Some(node.to_string()),
            _ => Some(text(&self.to_string())),
        }
    }
}

impl Takes for Vec<Near> {
    fn schema() -> Json {
        one_or_more(String::schema())
    }

    fn read(reader: &mut Reader<'_>, value: &Value<'_>) -> Option<Vec<Near>> {
        let texts = reader.texts(value, "a string such as \"node:0\"");
        Some(texts.into_iter().filter_map(|(text, value)| reader.near_one(text, value)).collect())
    }

    fn write(&self) -> Option<String> {
        let near = self.iter().map(|near| match near {
            Near::Node(node) => text(&format!("node:{node}")),
            Near::Device(device) => text(&format!("device:{device}")),
            Near::Group(name) => text(&format!("group:{name}")),
        });
        match near.collect::<Vec<String>>().as_slice() {
            [] => None,
            [one] => Some(one.clone()),
            several => Some(array(several)),
        }
    }
}

takes_text!(GroupName, "the name of a group", group_name);

fn group_name(text: &str) -> Result<GroupName, (String, String)> {
    GroupName::new(text).map_err(|error| (error.to_string(), error.hint()))
}

impl Reader<'_> {
    fn cpu_table(&mut self, value: &Value<'_>) -> Option<CpuDemand> {
        let before = self.report.errors();
        let table = CpuTable::read(self, value)?;
        if self.report.errors() > before {
            return None;
        }
        let CpuTable { count, cores, min, max, weight, node, near, placement, smt, pool, like } = table;
        let (amount, weight) = (CpuAmount::Count(1), weight.map(|weight| weight.0));
        let mut spec = CpuSpec { amount, nodes: node, near, placement, smt, pool, weight };
        let [cores, min, max] = [cores, min, max].map(|count| count.map(NonZeroUsize::get));
        if let Some(like) = like {
            if matches!(value.get_ref(), DeValue::Table(table) if table.len() > 1) {
                return self.refuse(
                    value,
                    "'like' stands alone".to_owned(),
                    "a group with the same CPUs can't want others",
                );
            }
            return Some(CpuDemand::Like(like));
        }
        if spec.weight.is_some() {
            if min.is_none() || max.is_none() {
                let hint = "add min and max, such as { min = 2, max = 8, weight = 300 }";
                return self.refuse(value, "'weight' needs 'min' and 'max'".to_owned(), hint);
            }
            if spec.pool.replace(Pool::Exclusive) == Some(Pool::Shared) {
                let hint = "remove one: an elastic group has CPUs of its own";
                return self.refuse(value, "'weight' does not go with pool = \"shared\"".to_owned(), hint);
            }
        }
        if let Some(cores) = cores {
            return self.whole_cores(value, cores, &[count.is_some(), min.is_some(), max.is_some()], spec);
        }
        match (count, min, max) {
            (Some(_), Some(_), _) | (Some(_), _, Some(_)) => {
                let hint = "give count, or min and max";
                return self.refuse(value, "'count' does not go with 'min' and 'max'".to_owned(), hint);
            }
            (None, Some(min), Some(max)) if min > max => {
                return self.refuse(value, format!("min {min} is above max {max}"), "");
            }
            (Some(amount), ..) => spec.amount = amount,
            (None, None, None) => return self.cpus_of_nodes(value, spec),
            (None, min, max) => {
                let max = max.map_or(Limit::Max, Limit::At);
                spec.amount = CpuAmount::Between { min: min.unwrap_or(1), max };
            }
        }
        Some(CpuDemand::Some(spec))
    }

    /// `cores = 3`; `others`: are there other amounts?
    fn whole_cores(
        &mut self,
        value: &Value<'_>,
        cores: usize,
        others: &[bool],
        mut spec: CpuSpec,
    ) -> Option<CpuDemand> {
        if others.contains(&true) {
            let hint = "give cores alone, or count, or min and max";
            return self.refuse(value, "'cores' does not go with 'count', 'min' and 'max'".to_owned(), hint);
        }
        if matches!(spec.smt, Some(Smt::Threads | Smt::Any)) {
            let hint = "leave out smt, or give count instead of cores";
            return self.refuse(value, "'cores' are whole cores".to_owned(), hint);
        }
        (spec.amount, spec.smt) = (CpuAmount::Cores(cores), Some(Smt::WholeCores));
        Some(CpuDemand::Some(spec))
    }

    /// Without an amount, only nodes can be meant: all of their CPUs.
    fn cpus_of_nodes(&mut self, value: &Value<'_>, spec: CpuSpec) -> Option<CpuDemand> {
        let bare = CpuSpec { nodes: spec.nodes.clone(), ..some(spec.amount) } == spec;
        match spec.nodes {
            Some(nodes) if bare => Some(CpuDemand::OfNodes(nodes)),
            _ => {
                let hint = "add count = 8, or min and max; { node = 0 } alone is all CPUs of node 0";
                self.refuse(value, "the number of CPUs is missing".to_owned(), hint)
            }
        }
    }

    /// A percentage above 0 up to 100.
    pub(super) fn share(&mut self, value: &Value<'_>, text: &str) -> Option<Hundredths> {
        let number = text.strip_suffix('%').unwrap_or(text).trim_end();
        match number.parse::<Hundredths>() {
            Ok(share) if (1..=10_000).contains(&share.0) => Some(share),
            Ok(_) => self.refuse(value, format!("{text} is out of range"), "above 0% up to 100%"),
            Err(reason) => self.refuse(value, reason, "a percentage such as \"25%\" or \"12.5%\""),
        }
    }

    fn list<K>(&mut self, value: &Value<'_>, text: &str, what: &str, example: &str) -> Option<IdSet<K>> {
        match text.parse::<IdSet<K>>() {
            Ok(set) if set.is_empty() => self.refuse(
                value,
                format!("the list of {what} is empty"),
                "remove the line if the group needs none",
            ),
            Ok(set) => Some(set),
            Err(error) => {
                self.refuse(value, error.to_string(), &format!("a list of {what} such as {example}"))
            }
        }
    }

    fn near_one(&mut self, text: &str, value: &Value<'_>) -> Option<Near> {
        let near = match text.split_once(':') {
            Some(("node", node)) => {
                let digits = !node.is_empty() && node.bytes().all(|b| b.is_ascii_digit());
                let node = node.parse().ok().filter(|node| digits && *node <= units::MAX_ID);
                node.map(Near::Node)
            }
            Some(("device", device)) => {
                let number = device.parse::<settings::DeviceNumber>().is_ok();
                (number || device.starts_with('/')).then(|| Near::Device(device.to_owned()))
            }
            Some(("group", name)) => {
                let name = group_name(name).map_err(|(message, hint)| self.wrong(value, message, &hint));
                return name.ok().map(Near::Group);
            }
            _ => None,
        };
        if near.is_none() {
            let hint = "\"node:0\", \"device:/dev/nvme0n1\", \"device:8:16\" or \"group:oltp1\"";
            self.wrong(value, format!("'{}' is nothing to be near to", cut(text)), hint);
        }
        near
    }
}

/// An amount without wishes.
fn some(amount: CpuAmount) -> CpuSpec {
    CpuSpec { amount, nodes: None, near: Vec::new(), placement: None, smt: None, pool: None, weight: None }
}
