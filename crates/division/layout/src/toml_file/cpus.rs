//! What `cpus` and `mems` take.

use settings::GroupName;
use settings::Hundredths;
use toml::de::DeValue;
use units::{IdSet, Limit, NodeSet};

use super::{Reader, Value};
use crate::demand::{CpuAmount, CpuDemand, CpuSpec, MemDemand, Near, Placement, Pool, Smt};
use crate::diagnostic::Diagnostic;
use crate::keys;
use crate::names::cut;
use crate::origin::Spanned;

const PLACEMENTS: [(&str, Placement); 2] = [("pack", Placement::Pack), ("spread", Placement::Spread)];
const SMTS: [(&str, Smt); 3] =
    [("whole-cores", Smt::WholeCores), ("threads", Smt::Threads), ("any", Smt::Any)];
const POOLS: [(&str, Pool); 2] = [("shared", Pool::Shared), ("exclusive", Pool::Exclusive)];

/// As cgroup v2's weights.
const MOST_WEIGHT: u32 = 10_000;

impl Reader<'_> {
    pub(super) fn cpus(&mut self, value: &Value<'_>) -> Option<Spanned<CpuDemand>> {
        let demand = match value.get_ref() {
            DeValue::Integer(_) => CpuDemand::Some(some(CpuAmount::Count(self.count(value, 1)?))),
            DeValue::String(text) => match text.trim() {
                "all" => CpuDemand::All,
                text if text.ends_with('%') => CpuDemand::Some(some(self.percent(value, text)?)),
                text => CpuDemand::These(self.list(value, text, "CPUs", "\"0-3,8\"")?),
            },
            DeValue::Table(_) => self.cpu_table(value)?,
            _ => {
                self.wrong_type(value, "a number of CPUs, a string such as \"0-7\" or \"25%\", or a table");
                return None;
            }
        };
        Some(Spanned::new(demand, self.origin(value)))
    }

    fn cpu_table(&mut self, value: &Value<'_>) -> Option<CpuDemand> {
        let entries = self.table(value, "in 'cpus'", keys::CPU_SPEC)?;
        let (mut count, mut cores, mut min, mut max, mut like) = (None, None, None, None, None);
        let mut spec = some(CpuAmount::Count(1));
        let before = self.report.errors();
        for (key, value) in &entries {
            match &**key.get_ref() {
                "count" => count = self.amount(value),
                "cores" => cores = self.count(value, 1),
                "min" => min = self.count(value, 1),
                "max" => max = self.count(value, 1),
                "weight" => spec.weight = self.weight(value),
                "node" => spec.nodes = self.nodes(value),
                "near" => spec.near = self.near(value),
                "placement" => spec.placement = self.placement(value),
                "smt" => spec.smt = self.smt(value),
                "pool" => spec.pool = self.pool(value),
                _ => like = self.group_name(value),
            }
        }
        if self.report.errors() > before {
            return None;
        }
        if let Some(like) = like {
            if entries.len() > 1 {
                self.wrong(
                    value,
                    "'like' stands alone".to_owned(),
                    "a group with the same CPUs can't want others",
                );
                return None;
            }
            return Some(CpuDemand::Like(like));
        }
        if spec.weight.is_some() {
            if min.is_none() || max.is_none() {
                let hint = "add min and max, such as { min = 2, max = 8, weight = 300 }";
                self.wrong(value, "'weight' needs 'min' and 'max'".to_owned(), hint);
                return None;
            }
            if spec.pool.replace(Pool::Exclusive) == Some(Pool::Shared) {
                let hint = "remove one: an elastic group has CPUs of its own";
                self.wrong(value, "'weight' does not go with pool = \"shared\"".to_owned(), hint);
                return None;
            }
        }
        if let Some(cores) = cores {
            return self.whole_cores(value, cores, &[count.is_some(), min.is_some(), max.is_some()], spec);
        }
        match (count, min, max) {
            (Some(_), Some(_), _) | (Some(_), _, Some(_)) => {
                let hint = "give count, or min and max";
                self.wrong(value, "'count' does not go with 'min' and 'max'".to_owned(), hint);
                return None;
            }
            (None, Some(min), Some(max)) if min > max => {
                self.wrong(value, format!("min {min} is above max {max}"), "");
                return None;
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
            self.wrong(value, "'cores' does not go with 'count', 'min' and 'max'".to_owned(), hint);
            return None;
        }
        if matches!(spec.smt, Some(Smt::Threads | Smt::Any)) {
            let hint = "leave out smt, or give count instead of cores";
            self.wrong(value, "'cores' are whole cores".to_owned(), hint);
            return None;
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
                self.wrong(value, "the number of CPUs is missing".to_owned(), hint);
                None
            }
        }
    }

    pub(super) fn mems(&mut self, value: &Value<'_>) -> Option<Spanned<MemDemand>> {
        let demand = match value.get_ref() {
            DeValue::String(text) => match text.trim() {
                "local" => MemDemand::Local,
                "all" => MemDemand::All,
                text => {
                    let example = "\"0-1\", \"local\" or \"all\"";
                    MemDemand::These(self.list(value, text, "nodes", example)?)
                }
            },
            DeValue::Table(_) => {
                let entries = self.table(value, "in 'mems'", keys::MEM_SPEC)?;
                let Some((_, like)) = entries.first() else {
                    self.wrong(value, "the nodes are missing".to_owned(), "\"local\", \"0-1\" or \"all\"");
                    return None;
                };
                MemDemand::Like(self.group_name(like)?)
            }
            DeValue::Integer(number) => {
                let hint = format!("for node {number} put it in quotes: \"{number}\"");
                self.wrong(value, "a number alone could mean a node or how many".to_owned(), &hint);
                return None;
            }
            _ => {
                self.wrong_type(value, "\"local\", \"all\", a list of nodes such as \"0-1\", or a table");
                return None;
            }
        };
        Some(Spanned::new(demand, self.origin(value)))
    }

    /// `8` or `"25%"`.
    fn amount(&mut self, value: &Value<'_>) -> Option<CpuAmount> {
        match value.get_ref() {
            DeValue::String(text) if text.trim().ends_with('%') => self.percent(value, text.trim()),
            DeValue::String(text) => {
                let hint =
                    format!("without quotes if it is a number of CPUs, {}% if it is a share", cut(text));
                self.wrong(value, "expected a number or a percentage".to_owned(), &hint);
                None
            }
            _ => self.count(value, 1).map(CpuAmount::Count),
        }
    }

    fn percent(&mut self, value: &Value<'_>, text: &str) -> Option<CpuAmount> {
        self.share(value, text).map(CpuAmount::Percent)
    }

    /// A percentage above 0 up to 100.
    pub(super) fn share(&mut self, value: &Value<'_>, text: &str) -> Option<Hundredths> {
        let number = text.strip_suffix('%').unwrap_or(text).trim_end();
        match number.parse::<Hundredths>() {
            Ok(share) if (1..=10_000).contains(&share.0) => Some(share),
            Ok(_) => {
                self.wrong(value, format!("{text} is out of range"), "above 0% up to 100%");
                None
            }
            Err(reason) => {
                self.wrong(value, reason, "a percentage such as \"25%\" or \"12.5%\"");
                None
            }
        }
    }

    fn nodes(&mut self, value: &Value<'_>) -> Option<NodeSet> {
        match value.get_ref() {
            DeValue::Integer(_) => Some(self.count(value, 0)?).map(|node| NodeSet::range(node, node)),
            DeValue::Array(nodes) if !nodes.is_empty() => {
                let nodes: Vec<_> = nodes.iter().map(|node| self.count(node, 0)).collect();
                nodes.into_iter().collect()
            }
            DeValue::String(text) => self.list(value, text.trim(), "nodes", "\"0-1\""),
            _ => {
                self.wrong_type(value, "a node's number, a list such as \"0-1\", or an array of numbers");
                None
            }
        }
    }

    fn list<K>(&mut self, value: &Value<'_>, text: &str, what: &str, example: &str) -> Option<IdSet<K>> {
        match text.parse::<IdSet<K>>() {
            Ok(set) if set.is_empty() => {
                self.wrong(
                    value,
                    format!("the list of {what} is empty"),
                    "remove the line if the group needs none",
                );
                None
            }
            Ok(set) => Some(set),
            Err(error) => {
                self.wrong(value, error.to_string(), &format!("a list of {what} such as {example}"));
                None
            }
        }
    }

    fn near(&mut self, value: &Value<'_>) -> Vec<Near> {
        let texts = self.texts(value, "a string such as \"node:0\"");
        texts.into_iter().filter_map(|(text, value)| self.near_one(text, value)).collect()
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
            Some(("group", name)) => return self.checked_name(name, value).map(Near::Group),
            _ => None,
        };
        if near.is_none() {
            let hint = "\"node:0\", \"device:/dev/nvme0n1\", \"device:8:16\" or \"group:oltp1\"";
            self.wrong(value, format!("'{}' is nothing to be near to", cut(text)), hint);
        }
        near
    }

    pub(super) fn group_name(&mut self, value: &Value<'_>) -> Option<GroupName> {
        let text = self.text(value, "the name of a group")?;
        self.checked_name(text, value)
    }

    fn checked_name(&mut self, name: &str, value: &Value<'_>) -> Option<GroupName> {
        match GroupName::new(name) {
            Ok(name) => Some(name),
            Err(error) => {
                let diagnostic = Diagnostic::error(error.to_string()).at(self.origin(value));
                self.error(diagnostic.hint(error.hint()));
                None
            }
        }
    }

    fn weight(&mut self, value: &Value<'_>) -> Option<u32> {
        let weight = self.number(value, 1)?;
        let fits = u32::try_from(weight).ok().filter(|weight| *weight <= MOST_WEIGHT);
        if fits.is_none() {
            self.wrong(value, format!("{weight} is out of range"), &format!("1 to {MOST_WEIGHT}"));
        }
        fits
    }

    pub(super) fn placement(&mut self, value: &Value<'_>) -> Option<Placement> {
        self.word(value, &PLACEMENTS)
    }

    pub(super) fn smt(&mut self, value: &Value<'_>) -> Option<Smt> {
        self.word(value, &SMTS)
    }

    pub(super) fn pool(&mut self, value: &Value<'_>) -> Option<Pool> {
        self.word(value, &POOLS)
    }
}

/// An amount without wishes.
fn some(amount: CpuAmount) -> CpuSpec {
    CpuSpec { amount, nodes: None, near: Vec::new(), placement: None, smt: None, pool: None, weight: None }
}
