//! Processes of a group that were killed for want of memory: what the daemon wrote down, and what the kernel's log still has.

use std::path::Path;

use apply::{LineLog, Running, State, System as _};
use kernel::{GroupName, Host};
use monitor::{KernelLog, Kill};
use settings::Controller;
use system::Accounts;
use units::{group_path, printable};

/// More kills than a kernel's log has room for.
const MOST: usize = 10_000;

/// What the daemon wrote down, beside the history: lines of [`Kill`]. As the kernel's log, it is not everybody's to read.
pub fn kill_log(state: &State) -> LineLog {
    LineLog::private(state.directory().join("kills"), "kills")
}

/// Kills of a group's processes.
#[derive(Debug)]
pub struct Kills {
    /// Those of the group and of the groups below it, oldest first.
    pub of_group: Vec<Kill>,
    /// How many kills of this boot are of an unknown group.
    pub of_unknown: usize,
    /// How many processes of the group itself systemd-oomd ended since the group was made; 0 on v1.
    pub by_oomd: u64,
    /// Why the kernel's log can't be read: ENOENT in a container, which has none.
    pub unread: Option<std::io::Error>,
}

/// The kernel's log for who looks again and again: each record is read once.
#[derive(Debug, Default)]
pub struct KernelKills {
    log: Option<KernelLog>,
    kills: Vec<Kill>,
}

impl KernelKills {
    /// What it has had since the first look, oldest first; the last [`MOST`].
    fn look(&mut self) -> std::io::Result<Vec<Kill>> {
        let log = match &mut self.log {
            Some(log) => log,
            none => none.insert(KernelLog::open()?),
        };
        self.kills.extend(log.kills()?);
        self.kills.drain(..self.kills.len().saturating_sub(MOST));
        Ok(self.kills.clone())
    }
}

/// Where the kernel counts the processes that it killed for want of memory since the boot (`oom_kill`).
const COUNTS: &str = "/proc/vmstat";

/// All kills that are known, oldest first, and why the kernel's log can't be read. It is long, and is not read if all kills of this
/// boot were written down.
pub fn all_kills(
    host: &Host,
    state: &State,
    kernel: &mut KernelKills,
) -> (Vec<Kill>, Option<std::io::Error>) {
    let written: Vec<Kill> = kill_log(state).all().unwrap_or_default();
    let counts = host.kernel().outside(Path::new(COUNTS)).unwrap_or_default();
    let count = counts.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok());
    let boot = Running::new().boot();
    let known = written.iter().filter(|kill| kill.boot == boot).count();
    if count.is_some_and(|count: usize| count <= known) {
        return (written, None);
    }
    match kernel.look() {
        Ok(kills) => (joined(written, kills), None),
        Err(error) => (written, Some(error)),
    }
}

impl Kills {
    /// All that is known.
    pub fn of(host: &Host, state: &State, group: &GroupName, kernel: &mut KernelKills) -> Kills {
        let (mut all, unread) = all_kills(host, state, kernel);
        let boot = Running::new().boot();
        let of_unknown = all.iter().filter(|kill| kill.group.is_none() && kill.boot == boot).count();
        // also where it would be: it may have ended with them
        let seat = host.hierarchy_of(Controller::Memory).map(|at| host.seat_in(at, group));
        all.retain(|kill| {
            seat.as_ref().is_some_and(|seat| {
                let path = kill.group.as_deref().and_then(|path| seat.at.below_mount(path));
                path.is_some_and(|path| group_path::is_at_or_below(&path, &seat.path))
            })
        });
        let by_oomd = seat.as_ref().map_or(0, |seat| by_oomd(&seat.directory()));
        Kills { of_group: all, of_unknown, by_oomd, unread }
    }
}

/// systemd-oomd counts there whom it ends (oomd-util.c); nobody else logs its kills as the kernel's.
fn by_oomd(directory: &Path) -> u64 {
    let mut text = [0; 32];
    let length = rustix::fs::getxattr(directory, "user.oomd_kill", &mut text).unwrap_or(0);
    text.get(..length).and_then(|text| std::str::from_utf8(text).ok()?.trim().parse().ok()).unwrap_or(0)
}

/// What happened, in words.
pub fn sentence(host: &Host, kill: &Kill, accounts: &Accounts) -> String {
    let Kill { pid, comm, uid, resident, group, limited, limit, with_group, .. } = kill;
    let user = accounts.user_name(*uid).unwrap_or_else(|| uid.to_string());
    let why = match (limited, group) {
        (Some(path), _) => {
            let limit = limit.map(|limit| format!(" ({limit})")).unwrap_or_default();
            let name = named(host, path).unwrap_or_else(|| path.clone());
            format!("as group '{}' met its limit of memory{limit}", printable(&name))
        }
        (None, Some(_)) => "as the machine had no memory left".to_owned(),
        (None, None) => "and the kernel did not log the group".to_owned(),
    };
    let with = if *with_group { ", with its group (memory.oom.group)" } else { "" };
    format!(
        "process {pid} ({}, user {}) with {} in memory was killed{with}, {why}",
        printable(comm),
        printable(&user),
        resident.rounded(),
    )
}

/// Each once, oldest first.
fn joined(mut written: Vec<Kill>, log: Vec<Kill>) -> Vec<Kill> {
    let key = |kill: &Kill| (kill.boot.clone(), kill.number);
    let known: std::collections::HashSet<_> = written.iter().map(key).collect();
    written.extend(log.into_iter().filter(|kill| !known.contains(&key(kill))));
    written.sort_by_key(|kill| kill.at);
    written
}

/// The group of a path in the memory hierarchy, as commands name it; `None` if it is outside of what is mounted.
pub fn named(host: &Host, path: &str) -> Option<String> {
    let at = host.hierarchy_of(Controller::Memory)?;
    Some(host.named(at, &at.below_mount(path)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kill_that_was_written_down_and_is_in_the_log_is_one() {
        let kill = |boot: &str, number: u64, at: u64| Kill {
            boot: boot.to_owned(),
            number,
            at,
            pid: 7,
            comm: "a".to_owned(),
            uid: 0,
            resident: units::Bytes(1),
            group: None,
            limited: None,
            limit: None,
            with_group: false,
        };
        // the clock was set meanwhile
        let written = vec![kill("old", 5, 10), kill("new", 5, 21)];
        let log = vec![kill("new", 5, 20), kill("new", 9, 15)];
        let expected = [kill("old", 5, 10), kill("new", 9, 15), kill("new", 5, 21)];
        assert_eq!(joined(written, log), expected);
    }
}
