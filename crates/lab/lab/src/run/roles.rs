//! Processes of a server in groups by their roles. Each is moved as it is seen in the server's own group: within a few
//! hundredths of a second of its start, or of a title that says its role later.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use kernel::{GroupName, Host, Seat, What};
use layout::Role;
use system::ProcessReader;
use workloads::Divided;

use super::runner::{CellOf, Runner};
use crate::Error;

/// From one look to the next, at least.
const EVERY: Duration = Duration::from_millis(20);
/// How long a process in the server's own group is looked at: its title may say its role late.
const YOUNG: Duration = Duration::from_secs(2);

/// What was seen of the processes of one run's servers.
#[derive(Default)]
pub(super) struct Seen {
    reader: ProcessReader,
    looked: Option<Instant>,
    /// When each process of a server's own group was seen first.
    first: BTreeMap<u32, Instant>,
}

impl Runner<'_> {
    /// Moves what has a role and is not in its group yet.
    pub(super) fn divide(&mut self, cell: CellOf<'_>) -> Result<(), Error> {
        let now = Instant::now();
        if self.seen.looked.is_some_and(|looked| now.duration_since(looked) < EVERY) {
            return Ok(());
        }
        self.seen.looked = Some(now);
        for workload in self.workloads.iter().filter(|workload| workload.is_in(cell)) {
            let (Some(divided), Some(group)) = (workload.driver.divided(), &workload.group) else { continue };
            let host = self.context.host;
            let name = self.groups.name(group)?;
            let Some(seat) = host.seats(&name).into_iter().next() else { continue };
            for (pid, group) in self.seen.misplaced(host, &seat, &divided) {
                move_into(host, &self.groups.name(group)?, pid)?;
            }
        }
        Ok(())
    }
}

impl Seen {
    /// Processes of the server that are in its own group, and have another by their role.
    fn misplaced<'d>(&mut self, host: &Host, seat: &Seat<'_>, divided: &Divided<'d>) -> Vec<(u32, &'d str)> {
        let now = Instant::now();
        let here = host.tasks_in(seat);
        // the number of one that ended may be another's
        self.first.retain(|pid, _| here.contains(pid));
        let young = here.into_iter().filter(|pid| {
            let first = *self.first.entry(*pid).or_insert(now);
            now.duration_since(first) < YOUNG
        });
        let group = |pid: u32| {
            let role = role(&mut self.reader, pid, divided.server)?;
            Some((pid, divided.roles.get(role)?.as_str()))
        };
        young.filter_map(group).collect()
    }
}

/// The role of a process that the server started; `None` also of one that has ended.
fn role(reader: &mut ProcessReader, pid: u32, server: u32) -> Option<&'static str> {
    let mut process = reader.process(pid).ok()?;
    if process.status().ok()?.parent != server {
        return None;
    }
    let executable = process.executable().ok()??.to_vec();
    Role::of(&executable, process.command().ok()?).map(Role::name)
}

fn move_into(host: &Host, group: &GroupName, pid: u32) -> Result<(), Error> {
    match host.move_tasks(group, &[pid], What::Process) {
        // a session may be shorter than this look
        Ok(_) | Err(kernel::Error::NoProcess { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
