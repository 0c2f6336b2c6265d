//! `apply` beside `cgconfigparser`, on one file that both read: groups in two hierarchies with a value and owners each,
//! made again, and looked at again when all is as requested. What is made is removed between the runs, outside of the times.
//!
//! `cgconfigparser` deletes the groups of its file when it fails, those that were there before too. So the file names
//! nothing but groups below one that is not there before the first run.

use std::{fmt::Write as _, time::Duration};

use kernel::{GroupName, Host, Real};
use settings::{Controller, Version};

use crate::{
    Selection,
    measure::{Done, Numbers, Said, in_turns, run, show},
};

/// The group that all of them are in.
const GROUP: &str = "rf-bench";
const GROUPS: usize = 2_000;
/// Runs per side; the first is not counted.
const RUNS: usize = 9;

/// A row's name, our command, and the largest ratios that we want, fresh and again.
const ROWS: [(&str, &[&str], [f64; 2]); 2] =
    [("apply", &["apply"], [0.5, 0.2]), ("our cgconfigparser", &["cgconfigparser", "-l"], [0.5, 0.5])];

pub fn rows(selection: &Selection) -> Done {
    let peer_name = if selection.before.is_some() { "before" } else { "cgconfigparser" };
    for (name, command, goals) in ROWS.into_iter().filter(|(name, ..)| selection.wants(name)) {
        let [ours, peer] = measure(selection, command)?;
        let pairs = ["fresh", "again"].into_iter().zip(goals).zip(ours.iter().zip(&peer));
        for ((when, goal), (ours, peer)) in pairs {
            let sides = [&Numbers::micros(ours), &Numbers::micros(peer)];
            show(&format!("{name} / {peer_name}, {when}"), sides, 0, selection.goal(goal), "");
        }
    }
    Ok(())
}

/// Makes all groups and applies again: times by side, fresh and again.
fn measure(selection: &Selection, command: &[&str]) -> Done<[[Vec<Duration>; 2]; 2]> {
    let cleared = Cleared::new()?;
    let directory = tempfile::tempdir_in("/var/tmp").said("/var/tmp")?;
    let file = directory.path().join("cgconfig.conf");
    std::fs::write(&file, cleared.file()?).said(file.display())?;
    let state = directory.path().join("state");
    let [shown, state_shown] = [&file, &state].map(|path| path.display().to_string());
    let with_state = |program: &std::path::Path| -> Vec<String> {
        let options = [command, &[&shown, "--state", &state_shown]].concat();
        std::iter::once(program.display().to_string()).chain(options.into_iter().map(str::to_owned)).collect()
    };
    let peers = || ["cgconfigparser", "-l", &shown].map(str::to_owned).to_vec();
    let sides = [with_state(&selection.program), selection.before().map_or_else(peers, with_state)];
    let mut times: [[Vec<Duration>; 2]; 2] = Default::default();
    in_turns(RUNS + 1, 2, |turn, side| {
        for kind in &mut times[side] {
            let time = run(&sides[side])?.time;
            if turn > 0 {
                kind.push(time);
            }
        }
        cleared.clear()?;
        // a generation is the first of its state each time; cgconfigparser has none
        if state.exists() { std::fs::remove_dir_all(&state).said(state.display()) } else { Ok(()) }
    })?;
    Ok(times)
}

/// The host without our groups; they are removed at the end too.
struct Cleared {
    host: Host,
    /// As Ringfence places it, and as libcgroup does: from the hierarchies' roots.
    names: [GroupName; 2],
}

impl Cleared {
    fn new() -> Done<Cleared> {
        let host = Host::new(Box::new(Real::new())).said("this machine")?;
        let name = |name: &str| GroupName::new(name).said(name);
        let names = [name(GROUP)?, name(&format!("/{GROUP}"))?];
        match names.iter().flat_map(|name| host.seats(name)).map(|seat| seat.directory()).next() {
            Some(directory) => Err(format!("{} already exists and would be removed", directory.display())),
            None => Ok(Cleared { host, names }),
        }
    }

    /// The file of libcgroup's own kind.
    fn file(&self) -> Done<String> {
        let named = |controller, [v1, v2]: [&'static str; 2]| {
            let at = self.host.hierarchy_of(controller).ok_or("no hierarchy holds cpu and memory")?;
            Ok::<_, String>(if at.version == Version::V1 { v1 } else { v2 })
        };
        let cpu = named(Controller::Cpu, ["cpu.shares", "cpu.weight"])?;
        let memory = named(Controller::Memory, ["memory.limit_in_bytes", "memory.max"])?;
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

    fn clear(&self) -> Done {
        let mut there = self.names.iter().filter(|name| !self.host.seats(name).is_empty());
        there.try_for_each(|name| self.host.delete(name, true).map(drop).said(name))
    }
}

impl Drop for Cleared {
    fn drop(&mut self) {
        if let Err(error) = self.clear() {
            eprintln!("bench: {error}");
        }
    }
}
