//! What the demonstration asks of the machine: its conditions, computed from what the machine is. Pure.

use std::path::{Path, PathBuf};

use serde::Serialize;
use topology::Machine;
use units::{CpuSet, NodeSet};

use super::Lengths;
use crate::Error;

/// Quotas, in percent of one CPU.
const QUOTAS: [u32; 2] = [50, 25];
/// Processes in one group: three pipes each leave room below the usual limit of 1024 files.
const MOST_WORKERS: usize = 128;
/// Read operations a second (study S2).
const READS_PER_SECOND: u32 = 10;

/// What a condition is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Kind {
    /// CPU workers of two groups, more than there are CPUs.
    Free,
    /// CPU workers of two groups, each group on one CPU.
    Pinned,
    /// CPU workers of one group with a quota.
    Quota {
        /// In percent of one CPU.
        percent: u32,
    },
    /// Direct reads of a block device.
    Reads,
    /// The same with a limit.
    LimitedReads {
        /// Read operations a second.
        per_second: u32,
    },
}

/// One condition: groups, their settings and workloads.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Condition {
    /// What it is about.
    #[serde(flatten)]
    pub kind: Kind,
    /// How long one run takes, in seconds.
    pub seconds: f64,
    /// Its groups; each has the same workload.
    pub groups: Vec<Group>,
    /// CPU workers in each group; 0 if it reads.
    pub workers: usize,
    /// Threads of each CPU worker.
    pub threads: usize,
    /// What is read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<PathBuf>,
}

/// One group of a condition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Group {
    /// The end of its name: `a` of `rf-demo-4711-a`.
    pub letter: char,
    /// The controllers it needs.
    pub controllers: Vec<&'static str>,
    /// Settings and values as on the command line.
    pub settings: Vec<(&'static str, String)>,
    /// The CPUs that the settings leave to it; `None` for all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpus: Option<CpuSet>,
}

/// What the demonstration uses of the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    /// CPUs that this process may run on.
    pub cpus: CpuSet,
    /// A CPU and its memory nodes for each of the two groups; the same twice if there is only one CPU.
    pub pinned: [(usize, NodeSet); 2],
    /// The block device to read, if there is one.
    pub device: Option<PathBuf>,
}

impl Site {
    /// Chooses from the machine what this process may use of it.
    ///
    /// # Errors
    /// [`Error::NoCpu`], or `/proc/self/status` can't be read.
    pub fn of(machine: &Machine, device: Option<PathBuf>) -> Result<Site, Error> {
        let status = std::fs::read_to_string("/proc/self/status")
            .map_err(|source| Error::System { what: "cannot read /proc/self/status", source })?;
        Site::choose(machine, &status, device)
    }

    /// From the text of `/proc/PID/status`.
    pub(super) fn choose(machine: &Machine, status: &str, device: Option<PathBuf>) -> Result<Site, Error> {
        let list = |key: &str| status.lines().find_map(|line| line.strip_prefix(key)).map(str::trim);
        let allowed: Option<CpuSet> = list("Cpus_allowed_list:").and_then(|text| text.parse().ok());
        let cpus =
            allowed.map_or_else(|| machine.online(), |allowed| allowed.intersection(&machine.online()));
        let mems: NodeSet = list("Mems_allowed_list:")
            .and_then(|text| text.parse().ok())
            .filter(|mems: &NodeSet| !mems.is_empty())
            .unwrap_or_else(|| NodeSet::range(0, 0)); // a kernel without NUMA: one node
        let first = cpus.first().ok_or(Error::NoCpu)?;
        let second = second_cpu(machine, &cpus, first);
        let near = |cpu: usize| {
            let node = machine.node_of_cpu(cpu).filter(|node| mems.contains(*node));
            (cpu, node.map_or_else(|| mems.clone(), |node| NodeSet::range(node, node)))
        };
        Ok(Site { pinned: [near(first), near(second)], cpus, device })
    }

    fn is_single(&self) -> bool {
        self.pinned[0].0 == self.pinned[1].0
    }
}

/// Another core before the same core's other thread, since two threads share what a core does; the only CPU if
/// there is no other.
fn second_cpu(machine: &Machine, cpus: &CpuSet, first: usize) -> usize {
    let shares_core =
        |cpu: usize| machine.core_siblings(first).is_some_and(|siblings| siblings.contains(cpu));
    let others = || cpus.iter().filter(|cpu| *cpu != first);
    others().find(|cpu| !shares_core(*cpu)).or_else(|| others().next()).unwrap_or(first)
}

/// The conditions, in the order in which they alternate.
pub(super) fn conditions(site: &Site, lengths: &Lengths) -> Vec<Condition> {
    let mut all = vec![free(site, lengths), pinned(site, lengths)];
    all.extend(QUOTAS.map(|percent| quota(site, lengths, percent)));
    if let Some(device) = &site.device {
        all.push(reads(device, lengths, None));
        all.push(reads(device, lengths, Some(READS_PER_SECOND)));
    }
    all
}

/// Two for each group, so that they compete on its CPU; with a single CPU the groups compete already.
fn workers_of_one_cpu(site: &Site) -> usize {
    if site.is_single() { 1 } else { 2 }
}

fn free(site: &Site, lengths: &Lengths) -> Condition {
    let group = |letter| Group { letter, controllers: vec!["cpu"], settings: Vec::new(), cpus: None };
    let wanted = site.cpus.len() / 2 + 1; // of both groups together more than CPUs
    let workers = wanted.min(MOST_WORKERS);
    let threads = wanted.div_ceil(workers);
    let groups = vec![group('a'), group('b')];
    Condition { kind: Kind::Free, seconds: lengths.compete_seconds, groups, workers, threads, device: None }
}

fn pinned(site: &Site, lengths: &Lengths) -> Condition {
    let group = |letter, (cpu, mems): &(usize, NodeSet)| Group {
        letter,
        controllers: vec!["cpu", "cpuset"],
        settings: vec![("cpuset.cpus", cpu.to_string()), ("cpuset.mems", mems.to_string())],
        cpus: Some(CpuSet::range(*cpu, *cpu)),
    };
    let groups = vec![group('a', &site.pinned[0]), group('b', &site.pinned[1])];
    let workers = workers_of_one_cpu(site);
    Condition {
        kind: Kind::Pinned,
        seconds: lengths.compete_seconds,
        groups,
        workers,
        threads: 1,
        device: None,
    }
}

fn quota(site: &Site, lengths: &Lengths, percent: u32) -> Condition {
    let settings = vec![("cpu.max", format!("{percent}%"))];
    let groups = vec![Group { letter: 'a', controllers: vec!["cpu"], settings, cpus: None }];
    let (kind, seconds) = (Kind::Quota { percent }, lengths.quota_seconds);
    Condition { kind, seconds, groups, workers: workers_of_one_cpu(site), threads: 1, device: None }
}

fn reads(device: &Path, lengths: &Lengths, limit: Option<u32>) -> Condition {
    let limit_of = |limit| ("io.max", format!("{} riops={limit}", device.display()));
    let settings = limit.map(limit_of).into_iter().collect();
    let groups = vec![Group { letter: 'a', controllers: vec!["io"], settings, cpus: None }];
    let (kind, seconds) = match limit {
        None => (Kind::Reads, lengths.read_seconds),
        Some(per_second) => (Kind::LimitedReads { per_second }, lengths.limited_seconds),
    };
    Condition { kind, seconds, groups, workers: 0, threads: 0, device: Some(device.to_owned()) }
}

impl Condition {
    /// Its name for people.
    pub fn name(&self) -> String {
        match self.kind {
            Kind::Free => "CPU, no limit".to_owned(),
            Kind::Pinned => "CPU, pinned".to_owned(),
            Kind::Quota { percent } => format!("CPU, quota of {percent} %"),
            Kind::Reads => "reads, no limit".to_owned(),
            Kind::LimitedReads { per_second } => format!("reads, {per_second} a second"),
        }
    }

    /// What it asks, for people.
    pub fn asked(&self) -> String {
        match self.kind {
            Kind::Free | Kind::Reads => "nothing".to_owned(),
            Kind::Pinned => {
                let cpus: Vec<String> =
                    self.groups.iter().filter_map(|group| Some(group.cpus.as_ref()?.to_string())).collect();
                match &cpus[..] {
                    [one, other] if one == other => format!("a and b on CPU {one}, the only one"),
                    _ => {
                        let each = self
                            .groups
                            .iter()
                            .zip(&cpus)
                            .map(|(group, cpus)| format!("{} on CPU {cpus}", group.letter));
                        each.collect::<Vec<_>>().join(", ")
                    }
                }
            }
            Kind::Quota { percent } => format!("{percent} % of a CPU"),
            Kind::LimitedReads { per_second } => format!("{per_second} a second"),
        }
    }
}
