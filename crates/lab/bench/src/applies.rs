//! `apply` beside `cgconfigparser`, on one file that both read: groups in two hierarchies with a value and owners each,
//! made again, and looked at again when all is as requested. What is made is removed between the runs, outside of the times.
//!
//! `cgconfigparser` deletes the groups of its file when it fails, those that were there before too. So the file names
//! nothing but groups below one that is not there before the first run.

use std::{
    fmt::Write,
    path::{Path, PathBuf},
    time::Duration,
};

use kernel::{GroupName, Host, Real};
use settings::{Controller, Version};

use crate::measure::{Times, timed};

/// The group that all of them are in.
const GROUP: &str = "rf-bench";
const GROUPS: usize = 2_000;
/// Runs per side; the first is not counted.
const RUNS: usize = 9;

/// One row's times.
pub struct Pair {
    pub ours: Times,
    pub peer: Times,
}

/// Makes all groups and applies again, by `command`: the times of the first, and of the second. Its peer is another
/// program with the same arguments, or libcgroup's.
pub fn measure(command: &[&str], peer: Option<&[&str]>) -> Result<[Pair; 2], String> {
    let cleared = Cleared::new()?;
    let directory = tempfile::tempdir_in("/var/tmp").map_err(|error| format!("/var/tmp: {error}"))?;
    let file = directory.path().join("cgconfig.conf");
    std::fs::write(&file, cleared.file()?).map_err(|error| format!("{}: {error}", file.display()))?;
    let state = directory.path().join("state");
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<String>>();
    let [shown, state_shown] = [&file, &state].map(|path| path.display().to_string());
    let with_state = |command: &[&str]| words(&[command, &[&shown, "--state", &state_shown]].concat());
    let ours = with_state(command);
    let peer = peer.map_or_else(|| words(&["cgconfigparser", "-l", &shown]), with_state);

    // by side, then fresh and again
    let mut times: [[Vec<Duration>; 2]; 2] = Default::default();
    for run in 0..=RUNS {
        for side in [run % 2, 1 - run % 2] {
            for kind in &mut times[side] {
                let time = timed([&ours, &peer][side])?;
                if run > 0 {
                    kind.push(time);
                }
            }
            cleared.clear()?;
            forget(&state)?;
        }
    }
    let [[fresh, again], [peer_fresh, peer_again]] = times;
    let pair = |ours, peer| Pair { ours: Times::of(ours), peer: Times::of(peer) };
    Ok([pair(fresh, peer_fresh), pair(again, peer_again)])
}

/// A generation is the first of its state each time.
fn forget(state: &Path) -> Result<(), String> {
    match std::fs::remove_dir_all(state) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(format!("{}: {error}", state.display()))
        }
        _ => Ok(()),
    }
}

/// The host without our groups; they are removed at the end too.
struct Cleared {
    host: Host,
    /// As Ringfence places it, and as libcgroup does: from the hierarchies' roots.
    names: [GroupName; 2],
}

impl Cleared {
    fn new() -> Result<Cleared, String> {
        let host = Host::new(Box::new(Real::new())).map_err(|error| error.to_string())?;
        let name = |name: &str| GroupName::new(name).map_err(|error| error.to_string());
        let names = [name(GROUP)?, name(&format!("/{GROUP}"))?];
        let there: Vec<PathBuf> =
            names.iter().flat_map(|name| host.seats(name)).map(|seat| seat.directory()).collect();
        match there.first() {
            Some(directory) => Err(format!("{} already exists and would be removed", directory.display())),
            None => Ok(Cleared { host, names }),
        }
    }

    /// The file of libcgroup's own kind.
    fn file(&self) -> Result<String, String> {
        let [cpu, memory] = [
            (Controller::Cpu, "cpu.shares", "cpu.weight"),
            (Controller::Memory, "memory.limit_in_bytes", "memory.max"),
        ]
        .map(|(controller, v1, v2)| match self.host.hierarchy_of(controller)?.version {
            Version::V1 => Some(v1),
            Version::V2 => Some(v2),
        });
        let missing = "no hierarchy holds cpu and memory";
        let (cpu, memory) = (cpu.ok_or(missing)?, memory.ok_or(missing)?);
        let mut text = String::new();
        for index in 0..GROUPS {
            let (share, mebibytes) = (100 + index % 900, 64 + index % 64);
            let _ = write!(
                text,
                "group {GROUP}/g{index:04} {{\n\
                 \tperm {{\n\
                 \t\ttask {{ uid = daemon; gid = daemon; }}\n\
                 \t\tadmin {{ uid = bin; gid = bin; }}\n\
                 \t}}\n\
                 \tcpu {{ {cpu} = {share}; }}\n\
                 \tmemory {{ {memory} = {mebibytes}M; }}\n\
                 }}\n"
            );
        }
        Ok(text)
    }

    fn clear(&self) -> Result<(), String> {
        for name in self.names.iter().filter(|name| !self.host.seats(name).is_empty()) {
            self.host.delete(name, true).map_err(|error| error.to_string())?;
        }
        Ok(())
    }
}

impl Drop for Cleared {
    fn drop(&mut self) {
        if let Err(error) = self.clear() {
            eprintln!("bench: {error}");
        }
    }
}
