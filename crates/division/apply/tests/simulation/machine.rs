//! The machine that commands run on: the kernel in memory with one fault at a time, and a system with clocks and a boot of
//! its own. A process that is killed ends by a panic that nothing in the crate catches.

use std::{
    panic::resume_unwind,
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use apply::{NoUnits, System, UnitFiles};
use fake::Fake;
use kernel::{Hierarchy, Host, Kernel, Ownership, Process};
use plan::Owned;
use rustix::io::Errno;
use settings::Controller;
use units::CpuSet;

use crate::{
    places::{Knobs, Places},
    systemd::Units,
};

/// A worker of the kernel by this name ends once it refused other CPUs.
pub const IDLE_WORKER: &str = "kworker/0:1";

/// What a killed process leaves behind in the place of a result.
pub struct Killed;

/// What happens at a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    Refuse(Errno),
    KillBefore,
    KillAfter,
}

/// Counts the changes of one command, and knows at which what happens.
#[derive(Debug, Default)]
pub struct Faults {
    count: AtomicUsize,
    at: Vec<(usize, Fault)>,
    /// Faults that happened.
    hit: AtomicUsize,
    /// Looks at directories.
    looks: AtomicUsize,
}

impl Faults {
    pub fn at(at: Vec<(usize, Fault)>) -> Arc<Faults> {
        Arc::new(Faults { at, ..Faults::default() })
    }

    pub fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    pub fn looks(&self) -> usize {
        self.looks.load(Ordering::Relaxed)
    }

    fn look(&self) {
        self.looks.fetch_add(1, Ordering::Relaxed);
    }

    pub fn hit(&self) -> bool {
        self.hit.load(Ordering::Relaxed) > 0
    }

    pub fn change<E>(
        &self,
        act: impl FnOnce() -> Result<(), E>,
        refused: impl FnOnce(Errno) -> E,
    ) -> Result<(), E> {
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        let fault = self.at.iter().find(|(at, _)| *at == number).map(|(_, fault)| *fault);
        if fault.is_some() {
            self.hit.fetch_add(1, Ordering::Relaxed);
        }
        match fault {
            None => act(),
            Some(Fault::Refuse(errno)) => Err(refused(errno)),
            // no message: it is no failure of the test
            Some(Fault::KillBefore) => resume_unwind(Box::new(Killed)),
            Some(Fault::KillAfter) => {
                let _ = act();
                resume_unwind(Box::new(Killed))
            }
        }
    }

    pub fn plain(&self, act: impl FnOnce() -> Result<(), Errno>) -> Result<(), Errno> {
        self.change(act, |errno| errno)
    }
}

struct Faulty {
    fake: Fake,
    faults: Arc<Faults>,
    places: Places,
}

impl Kernel for Faulty {
    fn hierarchies(&self) -> Result<Vec<Hierarchy>, Errno> {
        self.fake.hierarchies()
    }
    fn read(&self, at: &Hierarchy, group: &str, file: &str) -> Result<String, Errno> {
        self.fake.read(at, group, file)
    }
    fn write(&self, at: &Hierarchy, group: &str, file: &str, text: &str) -> Result<(), Errno> {
        self.faults.plain(|| {
            let done = self.fake.write(at, group, file, text);
            self.places.partitioned(&self.fake);
            done
        })
    }
    fn mkdir(&self, at: &Hierarchy, group: &str) -> Result<(), Errno> {
        self.faults.plain(|| self.fake.mkdir(at, group))
    }
    fn rmdir(&self, at: &Hierarchy, group: &str) -> Result<(), Errno> {
        self.faults.plain(|| {
            let done = self.fake.rmdir(at, group);
            self.places.partitioned(&self.fake);
            done
        })
    }
    fn children(&self, at: &Hierarchy, group: &str) -> Result<Vec<String>, Errno> {
        self.faults.look();
        self.fake.children(at, group)
    }
    fn descendants(&self, at: &Hierarchy, group: &str) -> Result<Vec<String>, Errno> {
        self.faults.look();
        self.fake.descendants(at, group)
    }
    fn files(&self, at: &Hierarchy, group: &str) -> Result<Vec<String>, Errno> {
        self.fake.files(at, group)
    }
    fn exists(&self, at: &Hierarchy, group: &str) -> bool {
        self.fake.exists(at, group)
    }
    fn inode(&self, at: &Hierarchy, group: &str) -> Result<u64, Errno> {
        self.faults.look();
        self.fake.inode(at, group)
    }
    fn writable(&self, at: &Hierarchy, group: &str) -> bool {
        self.fake.writable(at, group)
    }
    fn set_ownership(
        &self,
        at: &Hierarchy,
        group: &str,
        file: Option<&str>,
        to: Ownership,
    ) -> Result<(), Errno> {
        self.faults.plain(|| self.fake.set_ownership(at, group, file, to))
    }
    fn group_of(&self, at: &Hierarchy, pid: u32) -> Result<String, Errno> {
        self.fake.group_of(at, pid)
    }
    fn process(&self, pid: u32) -> Result<Process, Errno> {
        self.fake.process(pid)
    }
    fn processes(&self) -> Result<Vec<u32>, Errno> {
        self.fake.processes()
    }
    fn threads(&self, pid: u32) -> Result<Vec<u32>, Errno> {
        self.fake.threads(pid)
    }
    fn signal(&self, pid: u32, signal: i32) -> Result<(), Errno> {
        self.fake.signal(pid, signal)
    }
    fn caller(&self) -> (u32, u32) {
        self.fake.caller()
    }
    fn outside(&self, path: &Path) -> Result<String, Errno> {
        self.fake.outside(path)
    }
}

/// Seconds since 1970, which somebody may set, seconds since boot, and which boot it is.
#[derive(Debug, Clone, Copy)]
pub struct Clocks {
    pub wall: u64,
    pub since_boot: u64,
    pub boot: u64,
}

impl Clocks {
    pub fn boot_id(&self) -> String {
        format!("boot-{}", self.boot)
    }
}

/// What a command sees beside the kernel.
pub struct Sim {
    fake: Fake,
    faults: Arc<Faults>,
    clocks: Clocks,
    affinities: Arc<Mutex<std::collections::BTreeMap<u32, CpuSet>>>,
    all: CpuSet,
    knobs: Knobs,
    /// systemd, where there is one.
    pub units: Option<Units>,
}

/// The CPUs of threads that were changed, which outlive the process that changed them.
pub type Affinities = Arc<Mutex<std::collections::BTreeMap<u32, CpuSet>>>;

impl Sim {
    pub fn new(
        fake: &Fake,
        faults: &Arc<Faults>,
        clocks: Clocks,
        affinities: &Affinities,
        cpus: usize,
    ) -> (Host, Sim) {
        Sim::with_places(fake, faults, clocks, affinities, cpus, &Places::default())
    }

    /// On a machine with knobs.
    pub fn with_places(
        fake: &Fake,
        faults: &Arc<Faults>,
        clocks: Clocks,
        affinities: &Affinities,
        cpus: usize,
        places: &Places,
    ) -> (Host, Sim) {
        places.partitioned(fake);
        let kernel = Faulty { fake: fake.clone(), faults: faults.clone(), places: places.clone() };
        let host = Host::even_without_hierarchies(Box::new(kernel)).unwrap();
        let sim = Sim {
            fake: fake.clone(),
            faults: faults.clone(),
            clocks,
            affinities: affinities.clone(),
            all: CpuSet::range(0, cpus - 1),
            knobs: Knobs { places: places.clone(), faults: faults.clone() },
            units: None,
        };
        (host, sim)
    }
}

impl Sim {
    /// fork(2) gives a process its maker's CPUs: done before anybody's are looked at or changed.
    fn inherit(&self) {
        let mut affinities = self.affinities.lock().unwrap();
        for pid in self.fake.processes().unwrap() {
            if !affinities.contains_key(&pid) {
                let parent = self.fake.process(pid).map_or(0, |process| process.parent);
                let cpus = affinities.get(&parent).unwrap_or(&self.all).clone();
                affinities.insert(pid, cpus);
            }
        }
    }
}

impl System for Sim {
    fn owned(&self, at: &Hierarchy, group: &str, file: Option<&str>) -> Result<Owned, Errno> {
        self.fake.owner(at, group, file).map(|(uid, gid, mode)| Owned { uid, gid, mode })
    }
    fn own(
        &self,
        at: &Hierarchy,
        group: &str,
        each: &[(Option<&str>, Ownership)],
    ) -> Result<(), (Option<String>, Errno)> {
        for (file, to) in each {
            let refused = |errno| (file.map(str::to_owned), errno);
            let act = || self.fake.set_ownership(at, group, *file, *to).map_err(refused);
            self.faults.change(act, refused)?;
        }
        Ok(())
    }
    fn maker(&self) -> (u32, u32) {
        (0, 0)
    }
    fn affinity(&self, thread: u32) -> Result<CpuSet, Errno> {
        self.fake.process(thread)?;
        self.inherit();
        Ok(self.affinities.lock().unwrap().get(&thread).cloned().unwrap_or_else(|| self.all.clone()))
    }
    fn set_affinity(&self, thread: u32, cpus: &CpuSet) -> Result<(), Errno> {
        let process = self.fake.process(thread)?;
        if process.bound {
            if process.comm == IDLE_WORKER {
                self.fake.end(thread);
            }
            return Err(Errno::INVAL);
        }
        self.inherit();
        self.faults.plain(|| {
            self.affinities.lock().unwrap().insert(thread, cpus.clone());
            Ok(())
        })
    }
    fn started(&self, thread: u32) -> Result<u64, Errno> {
        self.fake.process(thread).map(|_| u64::from(thread))
    }
    fn ticks(&self) -> u64 {
        self.fake.processes().unwrap().into_iter().max().map_or(0, |last| u64::from(last) + 1)
    }
    fn mount(&self, _: &[Controller], _: Option<&str>, _: &Path) -> Result<(), kernel::Error> {
        Err(kernel::Error::Outside { what: "cannot mount".to_owned(), errno: Errno::PERM, hint: None })
    }
    fn unmount(&self, _: &Path) -> Result<(), Errno> {
        Err(Errno::PERM)
    }
    fn look(&self) -> Result<Host, kernel::Error> {
        let (fake, faults, places) = (self.fake.clone(), self.faults.clone(), self.knobs.places.clone());
        let kernel = Faulty { fake, faults, places };
        Host::even_without_hierarchies(Box::new(kernel))
    }
    fn unit_files(&self) -> &dyn UnitFiles {
        match &self.units {
            Some(units) => units,
            None => &NoUnits,
        }
    }
    fn knobs(&self) -> &dyn apply::MachineKnobs {
        &self.knobs
    }
    fn boot(&self) -> String {
        self.clocks.boot_id()
    }
    fn now(&self) -> u64 {
        self.clocks.wall
    }
    fn uptime(&self) -> u64 {
        self.clocks.since_boot * 1000
    }
}
