//! Memory that a move leaves behind: the kernel charges a page to the group that its first user was in, and a move
//! changes that on v1 only where `memory.move_charge_at_immigrate` asks for it, on v2 never (cgroup-v2.rst, "Memory
//! Ownership"). Only reads.

use std::{collections::BTreeMap, path::Path};

use serde::Serialize;
use settings::{Controller, Version};
use units::Bytes;

use crate::{GroupName, Host, Moved};

/// Memory of moved processes that stays charged to the group that they were in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LeftBehind {
    /// That group.
    pub group: String,
    /// About how much: what the processes have in memory, and not more than the group is charged with.
    pub bytes: Bytes,
    /// How many of the processes were there.
    pub processes: usize,
}

/// Less is not worth a word: a process that only waits has some.
const LEAST: u64 = 1 << 20;
/// v1's `memory.move_charge_at_immigrate`: what is private moves along.
const MOVES_PRIVATE: u64 = 1;
/// And pages of files and shared memory.
const MOVES_SHARED: u64 = 2;

impl Host {
    /// What a move into `group` left charged elsewhere. Empty where the group is not under the memory controller.
    pub fn left_behind(&self, group: &GroupName, moved: &Moved) -> Vec<LeftBehind> {
        let Some(at) = self.hierarchy_of(Controller::Memory) else { return Vec::new() };
        let into = self.seat_in(at, group);
        let number = |path: &str, file: &str| -> Option<u64> {
            self.kernel().read(at, path, file).ok()?.trim().parse().ok()
        };
        let (moving, usage) = match at.version {
            Version::V1 => {
                (number(&into.path, "memory.move_charge_at_immigrate").unwrap_or(0), "memory.usage_in_bytes")
            }
            Version::V2 => (0, "memory.current"),
        };
        let mut sources: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
        for (pid, from) in moved.memory_from.iter().filter(|(_, from)| **from != into.path) {
            sources.entry(from).or_default().push(*pid);
        }
        let left = sources.into_iter().map(|(from, pids)| {
            let resident = self.resident(&pids, moving);
            // the root group counts the whole machine, if it counts at all
            let charged = if from.is_empty() { None } else { number(from, usage) };
            let bytes = match (resident, charged) {
                (Some(resident), charged) => resident.min(charged.unwrap_or(u64::MAX)),
                (None, charged) => charged.unwrap_or(0),
            };
            LeftBehind { group: self.named(at, from), bytes: Bytes(bytes), processes: pids.len() }
        });
        left.filter(|left| left.bytes.0 >= LEAST).collect()
    }

    /// What the processes have in memory and `moving` leaves where it is: private pages, and shared memory, which they
    /// mostly have in common. Pages of files are not theirs alone. `None` if no process can be read.
    fn resident(&self, pids: &[u32], moving: u64) -> Option<u64> {
        let texts = pids.iter().filter_map(|pid| {
            let text = self.kernel().outside(Path::new(&format!("/proc/{pid}/status"))).ok()?;
            Some((kib(&text, "RssAnon:"), kib(&text, "RssShmem:")))
        });
        let texts: Vec<(u64, u64)> = texts.collect();
        let private = texts.iter().fold(0, |sum: u64, (private, _)| sum.saturating_add(*private));
        let shared = texts.iter().map(|(_, shared)| *shared).max()?;
        let stays = |bit: u64, bytes: u64| if moving & bit == 0 { bytes } else { 0 };
        Some(stays(MOVES_PRIVATE, private).saturating_add(stays(MOVES_SHARED, shared)))
    }
}

/// A line of `/proc/PID/status`, in bytes; 0 without it.
fn kib(text: &str, key: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(key));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    number.unwrap_or(0).saturating_mul(1024)
}
