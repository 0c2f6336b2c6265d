//! Groups of a test on this machine, removed when it ends.

use kernel::{GroupName, Hierarchy, Host, Real};
use monitor::{Beat, Descriptors, Groups, Options, Reading, Sampler};
use settings::{Controller, Version};

/// A group `rf-test-watch-…` of its own, with what is below it.
pub struct World {
    pub host: Host,
    pub top: String,
}

impl World {
    pub fn new(name: &str) -> World {
        let host = Host::new(Box::new(Real::new())).unwrap();
        let top = format!("rf-test-watch-{name}-{}", std::process::id());
        let world = World { host, top };
        world.make("");
        world
    }

    /// Does v1 hold it, so that the test can run?
    pub fn has_v1(controller: Controller) -> bool {
        let host = Host::new(Box::new(Real::new())).ok();
        host.is_some_and(|host| host.hierarchy_of(controller).is_some_and(|at| at.version == Version::V1))
    }

    /// The hierarchies that groups are made in.
    fn hierarchies(&self) -> impl Iterator<Item = &Hierarchy> {
        self.host.hierarchies().iter().filter(|at| at.name.is_none() && at.version == Version::V1)
    }

    fn path(&self, below: &str) -> String {
        if below.is_empty() { self.top.clone() } else { format!("{}/{below}", self.top) }
    }

    /// Makes a group in every v1 hierarchy, with its parent's CPUs and nodes.
    pub fn make(&self, below: &str) {
        let path = self.path(below);
        for at in self.hierarchies() {
            self.host.kernel().mkdir(at, &path).unwrap();
            if at.controllers.contains(&Controller::Cpuset) {
                for file in ["cpuset.cpus", "cpuset.mems"] {
                    let parent = path.rsplit_once('/').map_or("", |(parent, _)| parent);
                    let all = self.host.kernel().read(at, parent, file).unwrap();
                    self.host.kernel().write(at, &path, file, all.trim()).unwrap();
                }
            }
        }
    }

    pub fn remove(&self, below: &str) {
        self.hierarchies().for_each(|at| self.host.kernel().rmdir(at, &self.path(below)).unwrap());
    }

    fn at(&self, controller: Controller) -> &Hierarchy {
        self.host.hierarchy_of(controller).unwrap()
    }

    pub fn write(&self, controller: Controller, below: &str, file: &str, text: &str) {
        self.host.kernel().write(self.at(controller), &self.path(below), file, text).unwrap();
    }

    pub fn read(&self, controller: Controller, below: &str, file: &str) -> String {
        self.host.kernel().read(self.at(controller), &self.path(below), file).unwrap()
    }

    /// Puts a process of this test into a group, in all hierarchies.
    pub fn put(&self, below: &str, pid: u32) {
        for at in self.hierarchies() {
            self.host.kernel().write(at, &self.path(below), "cgroup.procs", &pid.to_string()).unwrap();
        }
    }

    pub fn name(&self, below: &str) -> String {
        self.path(below)
    }

    pub fn options(&self, slow_every: u64) -> Options {
        Options { groups: Groups::Named(vec![GroupName::new(&self.top).unwrap()]), slow_every }
    }

    pub fn sampler(&self, slow_every: u64) -> Sampler<Descriptors> {
        Sampler::new(&self.host, Descriptors::new(), self.options(slow_every), true)
    }

    /// One figure from a sample taken now, of whatever pace.
    pub fn now(&self, sampler: &mut Sampler<Descriptors>, below: &str, field: &str) -> Reading {
        sampler.refresh();
        self.next(sampler, below, field)
    }

    /// One figure from the next sample.
    pub fn next(&self, sampler: &mut Sampler<Descriptors>, below: &str, field: &str) -> Reading {
        sampler.tick(&self.host, Beat::default()).unwrap().groups.get(&self.name(below), field)
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // processes that were killed leave their groups in a moment
        for _ in 0..1000 {
            let mut left = false;
            for at in self.host.hierarchies() {
                let below = self.host.kernel().descendants(at, &self.top).unwrap_or_default();
                for group in below.iter().rev().map(String::as_str).chain([self.top.as_str()]) {
                    let removed = self.host.kernel().rmdir(at, group);
                    left |= removed == Err(rustix::io::Errno::BUSY);
                }
            }
            if !left {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }
}
