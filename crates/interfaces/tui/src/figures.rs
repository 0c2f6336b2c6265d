//! Which figures the screens show, and where each is in a picture. The figures themselves are `watch`'s.

use std::collections::BTreeMap;

use exporters::view::{self, Choice, Heading, Numbers, Picture, Row, Value};
use monitor::{Field, Window};

/// Figures of the tree's rows, in the order of the picture's columns.
const TREE: [&str; 18] = [
    "cpu.usage",
    "cpu.allotment",
    "cpu.throttled",
    "memory.current",
    "memory.limit",
    "io.rbytes",
    "io.wbytes",
    "pids.current",
    "pids.max",
    "cpu.pressure.some",
    "memory.pressure.some",
    "io.pressure.some",
    "memory.events.max",
    "memory.events.oom_kill",
    "pids.events.max",
    "frozen",
    "cpuset.partition",
    "cpuset.cpus",
];

/// What a group's page shows beside these, counted since the group was made: how often a limit was met.
const LIMITS: [(&str, &str); 7] = [
    ("cpu.throttled.periods", "periods stopped by the quota"),
    ("memory.events.high", "throttled by memory.high"),
    ("memory.events.max", "met the limit of memory"),
    ("memory.events.oom", "could not reclaim"),
    ("memory.events.oom_kill", "killed for want of memory"),
    ("memory.swap.events.max", "met the limit of swap"),
    ("pids.events.max", "forks failed by pids.max"),
];

/// What a history keeps.
const PAST: [&str; 4] = ["cpu.usage", "memory.current", "io.rbytes", "io.wbytes"];

/// The machine's.
const MACHINE: [&str; 13] = [
    "machine.cpu.idle/*",
    "machine.cpu.iowait/*",
    "machine.load",
    "machine.memory.total",
    "machine.memory.available",
    "machine.memory.node.total/*",
    "machine.memory.node.free/*",
    "machine.memory.node.file/*",
    "machine.swap.total",
    "machine.swap.free",
    "machine.cpu.pressure.some",
    "machine.memory.pressure.some",
    "machine.io.pressure.some",
];

/// By which the groups can be sorted, with the words of the menu.
pub(crate) const ORDERS: [(&str, &str); 10] = [
    ("cpu.usage", "CPU time used"),
    ("cpu.throttled", "share of time stopped by the quota"),
    ("memory.current", "memory used"),
    ("io.rbytes", "bytes read"),
    ("io.wbytes", "bytes written"),
    ("pids.current", "tasks"),
    ("cpu.pressure.some", "time waiting for a CPU"),
    ("memory.pressure.some", "time waiting for memory"),
    ("io.pressure.some", "time waiting for I/O"),
    ("memory.limit", "memory allotted"),
];

/// The figures that are requested with every sample.
#[derive(Debug, Clone)]
pub struct Figures {
    tree: Vec<Choice>,
    limits: Vec<Choice>,
    history: Vec<Choice>,
    tops: Vec<String>,
}

/// What one sample shows.
#[derive(Debug, Clone)]
pub struct Sight {
    /// The groups as a tree, and the machine.
    pub picture: Picture,
    /// How often the opened group met its limits since it was made, with what that means.
    pub limits: Vec<(&'static str, u64)>,
    /// Interrupts and softirqs per second, by CPU, where they were counted twice.
    pub interrupted: BTreeMap<usize, f64>,
}

impl Figures {
    /// Those of the screens, and `more` that the user named, of these groups and those below them.
    pub fn new(more: &[Choice], tops: &[String]) -> Figures {
        let known = |name: &&str| view::choices(name).unwrap_or_default();
        let mut tree: Vec<Choice> = TREE.iter().flat_map(known).collect();
        tree.extend(more.iter().cloned());
        tree.extend(MACHINE.iter().flat_map(known));
        Figures {
            tree,
            limits: LIMITS.iter().flat_map(|(name, _)| known(name)).collect(),
            history: PAST.iter().flat_map(known).collect(),
            tops: tops.to_vec(),
        }
    }

    /// Must this field of groups be read for any of them?
    pub fn needs(&self, field: &Field) -> bool {
        let all = [&self.tree, &self.limits, &self.history];
        all.into_iter().flatten().any(|choice| choice.of.needs(field))
    }

    /// What the newest sample shows; `open` is the group whose page is open.
    pub fn sight(&self, window: &Window, open: Option<&str>) -> Option<Sight> {
        let picture = Picture::new(window, &self.tree, Numbers::Figures, &self.tops)?;
        let limits = open.map(|group| self.limits(window, group)).unwrap_or_default();
        let limits = limits.into_iter().map(|(_, words, count)| (words, count)).collect();
        Some(Sight { picture, limits, interrupted: BTreeMap::new() })
    }

    /// Only what a history keeps.
    pub fn past(&self, window: &Window) -> Option<Picture> {
        Picture::new(window, &self.history, Numbers::Figures, &self.tops)
    }

    /// How often a group met its limits since it was made: names, what that means, and counts.
    pub fn limits(&self, window: &Window, group: &str) -> Vec<(&'static str, &'static str, u64)> {
        let picture = Picture::new(window, &self.limits, Numbers::Raw, &[group.to_owned()]);
        let row = picture.iter().flat_map(|picture| &picture.rows).find(|row| row.group == group);
        let values = row.map(|row| row.values.as_slice()).unwrap_or_default();
        let shown = values.iter().zip(LIMITS).filter_map(|(value, (name, words))| match value {
            Value::Whole(count) => Some((name, words, *count)),
            _ => None,
        });
        shown.collect()
    }
}

/// A figure of a row; missing if the picture has no such column.
pub(crate) fn of_row(headings: &[Heading], row: &Row, name: &str) -> Value {
    // the columns of the screens' own figures are at their places unless it is a picture of the past
    let place = TREE.iter().position(|known| *known == name);
    let place = place.filter(|place| headings.get(*place).is_some_and(|heading| heading.name == name));
    let place = place.or_else(|| headings.iter().position(|heading| heading.name == name));
    place.and_then(|place| row.values.get(place)).copied().unwrap_or(Value::Missing)
}

/// How many of a picture's columns are the screens' own; what the user named follows.
pub(crate) const OWN: usize = TREE.len();
