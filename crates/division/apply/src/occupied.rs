//! Groups that an undo leaves as processes are in them, in words.

use std::collections::{BTreeMap, BTreeSet};

use kernel::Host;
use units::hint::Command;

use crate::performer::name;

/// Groups that stay as processes are in them, by name: their directories, with the processes in each.
#[derive(Default)]
pub(crate) struct Occupied(BTreeMap<String, BTreeMap<String, Vec<u32>>>);

impl Occupied {
    pub fn add(&mut self, group: String, directory: String, tasks: Vec<u32>) {
        self.0.entry(group).or_default().insert(directory, tasks);
    }

    pub fn leave(&mut self, group: &str, directory: &str) {
        let Some(directories) = self.0.get_mut(group) else { return };
        directories.remove(directory);
        if directories.is_empty() {
            self.0.remove(group);
        }
    }

    /// A line each, with what to do.
    pub fn lines(&self, host: &Host) -> Vec<String> {
        self.0.iter().map(|(group, directories)| line(host, group, directories)).collect()
    }
}

/// The most processes that are named.
const NAMED: usize = 5;

fn line(host: &Host, group: &str, directories: &BTreeMap<String, Vec<u32>>) -> String {
    let tasks: BTreeSet<u32> = directories.values().flatten().copied().collect();
    let noun = if tasks.len() == 1 { "process" } else { "processes" };
    let places = directories.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
    let some: Vec<String> = tasks.iter().take(NAMED).map(u32::to_string).collect();
    let dots = if tasks.len() > NAMED { ", …" } else { "" };
    let out = match dots {
        "" => Command::ringfence("move /").args(&some).to_string(),
        _ => {
            let files = directories.keys().map(|directory| format!("{directory}/cgroup.procs"));
            Command::ringfence("move /").printed_by(Command::new("cat").args(files)).to_string()
        }
    };
    let frozen = host.frozen_by(&name(group)).map(|by| {
        let thaw = Command::ringfence("thaw").group(by);
        format!("; it is frozen until: {thaw}")
    });
    format!(
        "group '{group}' stays: {} {noun} in {places} ({}{dots}); its limits are lifted, and the next undo or apply removes it once it is empty: {out}{}",
        tasks.len(),
        some.join(", "),
        frozen.unwrap_or_default()
    )
}
