//! Processes of a server in groups by their roles. Each is moved as it is seen in the server's own group with a title that says
//! its role, which it has a moment after its start.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use kernel::{GroupName, Host, Seat, What};
use layout::Role;
use system::ProcessReader;
use workloads::Divided;

use crate::{Error, groups::Groups};

/// From one look to the next, at least.
const EVERY: Duration = Duration::from_millis(20);
/// How long a process stays in sight that has a title of its own and no group: the title may say another role in its first seconds.
const YOUNG: Duration = Duration::from_secs(2);

/// What was seen of the processes of one run's servers.
#[derive(Default)]
pub(super) struct Seen {
    reader: ProcessReader,
    looked: Option<Instant>,
    /// By server: since when each process in its group has a title of its own.
    titled: BTreeMap<u32, BTreeMap<u32, Instant>>,
}

impl Seen {
    /// Is it time for the next look?
    pub(super) fn is_due(&mut self) -> bool {
        let now = Instant::now();
        let is_due = self.looked.is_none_or(|looked| now.duration_since(looked) >= EVERY);
        if is_due {
            self.looked = Some(now);
        }
        is_due
    }

    /// Moves the processes of a server whose own group is `group` and that have another by their role.
    pub(super) fn divide(
        &mut self,
        host: &Host,
        groups: &Groups,
        group: &str,
        divided: &Divided<'_>,
    ) -> Result<(), Error> {
        let name = groups.name(group)?;
        let Some(seat) = host.seats(&name).into_iter().next() else { return Ok(()) };
        for (pid, group) in self.misplaced(host, &seat, divided) {
            self.move_into(host, &groups.name(group)?, pid)?;
        }
        Ok(())
    }

    /// Processes of the server that are in its own group, and have another by their role.
    fn misplaced<'d>(&mut self, host: &Host, seat: &Seat<'_>, divided: &Divided<'d>) -> Vec<(u32, &'d str)> {
        let now = Instant::now();
        let here = host.tasks_in(seat);
        let titled = self.titled.entry(divided.server).or_default();
        // the number of one that ended may be another's
        titled.retain(|pid, _| here.contains(pid));
        let mut found = Vec::new();
        for pid in here {
            if titled.get(&pid).is_some_and(|since| now.duration_since(*since) > YOUNG) {
                continue;
            }
            match role(&mut self.reader, pid, divided.server) {
                // as it was forked
                Some(POSTMASTER) => {}
                role => {
                    titled.entry(pid).or_insert(now);
                    let group = role.and_then(|role| divided.roles.get(role));
                    found.extend(group.map(|group| (pid, group.as_str())));
                }
            }
        }
        found
    }

    fn move_into(&mut self, host: &Host, group: &GroupName, pid: u32) -> Result<(), Error> {
        match host.move_tasks(group, &[pid], What::Process) {
            Err(error) => {
                // a session may be shorter than this look
                let process = self.reader.process(pid);
                process.and_then(|mut process| process.status()).map_or(Ok(()), |_| Err(error.into()))
            }
            Ok(_) => Ok(()),
        }
    }
}

/// What a process has until it sets a title of its own.
const POSTMASTER: &str = "postgresql.postmaster";

/// The role of a process that the server started; `None` also of one that has ended.
fn role(reader: &mut ProcessReader, pid: u32, server: u32) -> Option<&'static str> {
    let mut process = reader.process(pid).ok()?;
    if process.status().ok()?.parent != server {
        return None;
    }
    let executable = process.executable().ok()??.to_vec();
    Role::of(&executable, process.command().ok()?).map(Role::name)
}
