//! The groups of a run: made for it, and removed when it ends, however it ends.

use std::{
    iter,
    path::PathBuf,
    time::{Duration, Instant},
};

use kernel::{Access, Error, GroupName, Host, Real, What};
use settings::{Controller, Version};

use crate::measure::{Done, Said, not_interrupted};

/// The group that all others of a run are in, or that is alone.
pub const GROUP: &str = "rf-test-bench";

/// How long processes of a group may take to end before it is removed.
const PATIENCE: Duration = Duration::from_secs(10);

/// Removed with all groups in it when dropped.
pub struct Groups {
    host: Host,
}

/// A group in one hierarchy.
pub struct Place {
    pub directory: PathBuf,
    /// As libcgroup's rules name it: from the root of the hierarchy's mount.
    pub destination: String,
    /// What `/proc/PID/cgroup` of a process in it holds.
    pub line: String,
}

impl Groups {
    /// None is there yet.
    pub fn new() -> Done<Groups> {
        let host = Host::new(Box::new(Real::new())).said("this machine")?;
        let name = group(GROUP)?;
        match host.seats(&name).first() {
            Some(seat) => Err(format!("{} already exists and would be removed", seat.directory().display())),
            None => Ok(Groups { host }),
        }
    }

    pub fn make(&self, name: &str, controllers: &[Controller]) -> Result<(), String> {
        self.host.create(&group(name)?, Some(controllers), &Access::default()).map(drop).said(name)
    }

    /// [`GROUP`] and groups in it, this many together, wherever there are controllers; those that are there stay.
    pub fn make_many(&self, count: usize) -> Result<(), String> {
        for name in iter::once(GROUP.to_owned()).chain((1..count).map(one_of_many)) {
            self.host.create(&group(&name)?, None, &Access::default()).said(&name)?;
            not_interrupted()?;
        }
        Ok(())
    }

    pub fn host(&self) -> &Host {
        &self.host
    }

    /// Moves a process of this run into a group, wherever that is.
    pub fn put(&self, name: &str, pid: u32) -> Result<(), String> {
        self.host.move_tasks(&group(name)?, &[pid], What::Process).map(drop).said(name)
    }

    pub fn place(&self, name: &str, controller: Controller) -> Done<Place> {
        let seat = self.host.seat(&group(name)?, controller).said("a group")?;
        let own = std::fs::read_to_string("/proc/self/cgroup").said("/proc/self/cgroup")?;
        let ours = own.lines().find(|line| kernel::group_in(seat.at, line.as_bytes()).is_some());
        let words = ours.and_then(|line| line.rsplitn(2, ':').last());
        let words = words.ok_or_else(|| format!("{GROUP}: no hierarchy of /proc/self/cgroup holds it"))?;
        let root = seat.at.root.trim_end_matches('/');
        let line = format!("{words}:{root}/{}", seat.path);
        Ok(Place { directory: seat.directory(), destination: seat.path.clone(), line })
    }

    /// Gives a group of the cpuset controller all CPUs and memory nodes, without which it takes no process on v1.
    pub fn fill_cpuset(&self, name: &str) -> Result<(), String> {
        let (name, root) = (group(name)?, GroupName::root());
        let seat = self.host.seat(&name, Controller::Cpuset).said("a group")?;
        if seat.at.version == Version::V2 {
            return Ok(());
        }
        let top = self.host.seat_in(seat.at, &root);
        for (from, to) in [("cpuset.effective_cpus", "cpuset.cpus"), ("cpuset.effective_mems", "cpuset.mems")]
        {
            let value = self.host.read(&top, &root, from).said("a group")?;
            self.host.write(&seat, &name, to, value.trim()).said("a group")?;
        }
        Ok(())
    }
}

/// Of those that [`Groups::make_many`] makes below [`GROUP`], the first is 1.
pub fn one_of_many(number: usize) -> String {
    format!("{GROUP}/g{number:04}")
}

fn group(name: &str) -> Done<GroupName> {
    GroupName::new(name).said("a group")
}

impl Drop for Groups {
    fn drop(&mut self) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let deleted =
                GroupName::new(GROUP).map_err(Error::from).and_then(|name| self.host.delete(&name, true));
            match deleted {
                Ok(_) | Err(Error::NoGroup { .. }) => return,
                Err(error) if Instant::now() > deadline => return eprintln!("bench: {error}"),
                // its last processes are about to end
                Err(_) => std::thread::sleep(Duration::from_millis(20)),
            }
        }
    }
}
