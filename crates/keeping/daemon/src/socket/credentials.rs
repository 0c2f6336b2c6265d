//! Who is at the other end of a connection, as the kernel reports it (SO_PEERCRED and SO_PEERGROUPS, unix(7)): what the
//! process was when it connected. Nothing that the peer says of itself is believed.

use apply::By;
use system::ProcessReader;

use super::peer_groups;

/// A peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    /// Its effective user.
    pub uid: u32,
    /// Its effective group.
    pub gid: u32,
    /// Its process; 0 if that is in another PID namespace.
    pub pid: u32,
    /// Its supplementary groups.
    pub groups: Vec<u32>,
}

impl Peer {
    /// The peer of a connection.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn of(stream: &tokio::net::UnixStream) -> std::io::Result<Peer> {
        let credentials = stream.peer_cred()?;
        let pid = credentials.pid().and_then(|pid| u32::try_from(pid).ok()).unwrap_or(0);
        // on a kernel without SO_PEERGROUPS they give no right
        let groups = peer_groups::of(stream).unwrap_or_default();
        Ok(Peer { uid: credentials.uid(), gid: credentials.gid(), pid, groups })
    }

    /// Is it in this group of the system?
    pub fn is_in(&self, group: u32) -> bool {
        self.gid == group || self.groups.contains(&group)
    }

    /// May it do everything?
    pub fn is_root(&self) -> bool {
        self.uid == 0
    }

    /// For the history. The command line is what the process shows now: empty if its number is another user's by now.
    pub fn by(&self) -> By {
        let mut reader = ProcessReader::new();
        let command = reader.process(self.pid).ok().and_then(|mut process| {
            let same = process.status().is_ok_and(|status| status.uid == self.uid);
            same.then(|| process.command().map(words).ok()).flatten()
        });
        let login = std::fs::read_to_string(format!("/proc/{}/loginuid", self.pid)).ok();
        let login = login.filter(|login| command.is_some() && login.trim() != "4294967295");
        By {
            uid: self.uid,
            login: login.map(|login| login.trim().to_owned()),
            pid: self.pid,
            command: command.unwrap_or_default(),
        }
    }
}

/// A command line is as long as its writer likes, and the history is not.
const LONGEST: usize = 1024;

fn words(command: &[u8]) -> String {
    let words = command[..command.len().min(LONGEST)].split(|byte| *byte == 0).map(String::from_utf8_lossy);
    words.collect::<Vec<_>>().join(" ").trim_end().to_owned()
}
