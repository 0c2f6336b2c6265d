//! A kernel and a system of which one change fails, or is the last one of its process, or after each of which something
//! is looked at.

use std::{
    collections::BTreeMap,
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use apply::{Running, System};
use fake::Fake;
use kernel::{Hierarchy, Host, Kernel, Ownership as To, Process, Real, bpf::DeviceFilter};
use plan::Owned;
use rustix::io::Errno;
use settings::{Controller, devices::DeviceAccess};
use units::CpuSet;

use crate::world::Picture;

/// What happens at a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It is refused.
    Refuse(Errno),
    /// The process dies before it.
    DieBefore,
    /// The process dies after it.
    DieAfter,
}

type Look = Box<dyn Fn() + Send + Sync>;

/// Counts changes, and knows at which what happens.
#[derive(Default)]
pub struct Faults {
    count: AtomicUsize,
    at: Mutex<Vec<(usize, Fault)>>,
    /// Called after each change.
    look: Option<Look>,
}

impl Faults {
    pub fn at(faults: &[(usize, Fault)]) -> Arc<Faults> {
        Arc::new(Faults { at: Mutex::new(faults.to_vec()), ..Faults::default() })
    }

    /// No fault; `look` is called after each change.
    pub fn looking(look: impl Fn() + Send + Sync + 'static) -> Arc<Faults> {
        Arc::new(Faults { look: Some(Box::new(look)), ..Faults::default() })
    }

    /// Both.
    pub fn at_looking(faults: &[(usize, Fault)], look: impl Fn() + Send + Sync + 'static) -> Arc<Faults> {
        let at = Mutex::new(faults.to_vec());
        Arc::new(Faults { at, look: Some(Box::new(look)), ..Faults::default() })
    }

    pub fn count(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }

    fn change<E>(
        &self,
        act: impl FnOnce() -> Result<(), E>,
        refuse: impl FnOnce(Errno) -> E,
    ) -> Result<(), E> {
        let number = self.count.fetch_add(1, Ordering::SeqCst);
        let fault = self.at.lock().unwrap().iter().find(|(at, _)| *at == number).map(|(_, fault)| *fault);
        match fault {
            Some(Fault::Refuse(errno)) => Err(refuse(errno)),
            Some(Fault::DieBefore) => die(),
            Some(Fault::DieAfter) => {
                let _ = act();
                die()
            }
            None => {
                let done = act();
                self.look.iter().for_each(|look| look());
                done
            }
        }
    }

    fn plain(&self, act: impl FnOnce() -> Result<(), Errno>) -> Result<(), Errno> {
        self.change(act, |errno| errno)
    }
}

/// As `kill -9` from outside: nothing of this process runs any more.
pub fn die() -> ! {
    let own = rustix::process::getpid();
    rustix::process::kill_process(own, rustix::process::Signal::KILL).unwrap();
    loop {
        std::thread::sleep(std::time::Duration::from_secs(1));
    }
}

/// A kernel with faults.
pub struct Faulty<K> {
    pub inner: K,
    pub faults: Arc<Faults>,
}

impl<K: Kernel> Kernel for Faulty<K> {
    fn hierarchies(&self) -> Result<Vec<Hierarchy>, Errno> {
        self.inner.hierarchies()
    }
    fn read(&self, at: &Hierarchy, group: &str, file: &str) -> Result<String, Errno> {
        self.inner.read(at, group, file)
    }
    fn write(&self, at: &Hierarchy, group: &str, file: &str, text: &str) -> Result<(), Errno> {
        self.faults.plain(|| self.inner.write(at, group, file, text))
    }
    fn mkdir(&self, at: &Hierarchy, group: &str) -> Result<(), Errno> {
        self.faults.plain(|| self.inner.mkdir(at, group))
    }
    fn rmdir(&self, at: &Hierarchy, group: &str) -> Result<(), Errno> {
        self.faults.plain(|| self.inner.rmdir(at, group))
    }
    fn children(&self, at: &Hierarchy, group: &str) -> Result<Vec<String>, Errno> {
        self.inner.children(at, group)
    }
    fn descendants(&self, at: &Hierarchy, group: &str) -> Result<Vec<String>, Errno> {
        self.inner.descendants(at, group)
    }
    fn files(&self, at: &Hierarchy, group: &str) -> Result<Vec<String>, Errno> {
        self.inner.files(at, group)
    }
    fn exists(&self, at: &Hierarchy, group: &str) -> bool {
        self.inner.exists(at, group)
    }
    fn inode(&self, at: &Hierarchy, group: &str) -> Result<u64, Errno> {
        self.inner.inode(at, group)
    }
    fn writable(&self, at: &Hierarchy, group: &str) -> bool {
        self.inner.writable(at, group)
    }
    fn set_ownership(&self, at: &Hierarchy, group: &str, file: Option<&str>, to: To) -> Result<(), Errno> {
        self.faults.plain(|| self.inner.set_ownership(at, group, file, to))
    }
    fn group_of(&self, at: &Hierarchy, pid: u32) -> Result<String, Errno> {
        self.inner.group_of(at, pid)
    }
    fn process(&self, pid: u32) -> Result<Process, Errno> {
        self.inner.process(pid)
    }
    fn processes(&self) -> Result<Vec<u32>, Errno> {
        self.inner.processes()
    }
    fn threads(&self, pid: u32) -> Result<Vec<u32>, Errno> {
        self.inner.threads(pid)
    }
    fn signal(&self, pid: u32, signal: i32) -> Result<(), Errno> {
        self.inner.signal(pid, signal)
    }
    fn caller(&self) -> (u32, u32) {
        self.inner.caller()
    }
    fn let_go(&self, mount: &Path) {
        self.inner.let_go(mount);
    }
    fn outside(&self, path: &Path) -> Result<String, Errno> {
        self.inner.outside(path)
    }
    fn device_filter(&self, at: &Hierarchy, group: &str) -> Result<Option<DeviceFilter>, Errno> {
        self.inner.device_filter(at, group)
    }
    fn set_device_filter(&self, at: &Hierarchy, group: &str, to: Option<&DeviceAccess>) -> Result<(), Errno> {
        self.faults.plain(|| self.inner.set_device_filter(at, group, to))
    }
}

type Owners = BTreeMap<(usize, String, Option<String>), Owned>;

/// The system beside a fake kernel, which does not tell owners; or the running one with faults.
pub struct Beside {
    fake: Option<Fake>,
    running: Running,
    faults: Arc<Faults>,
    owners: Mutex<Owners>,
    affinities: Mutex<BTreeMap<u32, CpuSet>>,
}

impl Beside {
    pub fn fake(fake: &Fake, faults: &Arc<Faults>) -> Beside {
        Beside::new(Some(fake.clone()), faults)
    }

    pub fn real(faults: &Arc<Faults>) -> Beside {
        Beside::new(None, faults)
    }

    fn new(fake: Option<Fake>, faults: &Arc<Faults>) -> Beside {
        let (owners, affinities) = Default::default();
        Beside { fake, running: Running::new(), faults: faults.clone(), owners, affinities }
    }

    pub fn give(&self, thread: u32, cpus: &str) {
        self.affinities.lock().unwrap().insert(thread, cpus.parse().unwrap());
    }

    /// Owners that differ from a new group's, of groups that are there.
    pub fn owners(&self, there: &Picture) -> Owners {
        let owners = self.owners.lock().unwrap().clone();
        let kept = owners.into_iter().filter(|((at, group, file), owned)| {
            let shown = file.as_deref().unwrap_or("cgroup.procs");
            there.contains_key(&format!("{at}:{group}/{shown}")) && *owned != usual(file.as_deref())
        });
        kept.collect()
    }

    pub fn affinities(&self) -> BTreeMap<u32, CpuSet> {
        self.affinities.lock().unwrap().clone()
    }
}

fn usual(file: Option<&str>) -> Owned {
    Owned { uid: 0, gid: 0, mode: if file.is_some() { 0o644 } else { 0o755 } }
}

impl System for Beside {
    fn owned(&self, at: &Hierarchy, group: &str, file: Option<&str>) -> Result<Owned, Errno> {
        let Some(fake) = &self.fake else { return self.running.owned(at, group, file) };
        if !fake.exists(at, group) {
            return Err(Errno::NOENT);
        }
        let key = (at.id, group.to_owned(), file.map(str::to_owned));
        Ok(self.owners.lock().unwrap().get(&key).copied().unwrap_or(usual(file)))
    }

    fn own(
        &self,
        at: &Hierarchy,
        group: &str,
        each: &[(Option<&str>, To)],
    ) -> Result<(), (Option<String>, Errno)> {
        for (file, to) in each {
            let refused = |errno| (file.map(str::to_owned), errno);
            let Some(fake) = &self.fake else {
                self.faults.change(|| self.running.own(at, group, &[(*file, *to)]), refused)?;
                continue;
            };
            self.faults.change(|| fake.set_ownership(at, group, *file, *to).map_err(refused), refused)?;
            let key = (at.id, group.to_owned(), file.map(str::to_owned));
            let mut owners = self.owners.lock().unwrap();
            let owned = owners.entry(key).or_insert(usual(*file));
            owned.uid = to.uid.unwrap_or(owned.uid);
            owned.gid = to.gid.unwrap_or(owned.gid);
            owned.mode = to.mode.unwrap_or(owned.mode);
        }
        Ok(())
    }

    fn as_owner(
        &self,
        uid: Option<u32>,
        gid: Option<u32>,
        act: &mut dyn FnMut() -> Result<(), Errno>,
    ) -> Option<Result<(), Errno>> {
        if self.fake.is_some() { None } else { self.running.as_owner(uid, gid, act) }
    }

    fn maker(&self) -> (u32, u32) {
        (0, 0)
    }

    fn affinity(&self, thread: u32) -> Result<CpuSet, Errno> {
        if self.fake.is_none() {
            return self.running.affinity(thread);
        }
        self.affinities.lock().unwrap().get(&thread).cloned().ok_or(Errno::SRCH)
    }

    fn set_affinity(&self, thread: u32, cpus: &CpuSet) -> Result<(), Errno> {
        let Some(fake) = &self.fake else {
            return self.faults.plain(|| self.running.set_affinity(thread, cpus));
        };
        if fake.process(thread)?.bound {
            return Err(Errno::INVAL);
        }
        self.faults.plain(|| {
            self.affinities.lock().unwrap().insert(thread, cpus.clone());
            Ok(())
        })
    }

    fn started(&self, thread: u32) -> Result<u64, Errno> {
        if self.fake.is_some() { Ok(u64::from(thread)) } else { self.running.started(thread) }
    }

    fn mount(
        &self,
        controllers: &[Controller],
        name: Option<&str>,
        path: &Path,
    ) -> Result<(), kernel::Error> {
        let refuse = |errno| kernel::Error::Outside { what: "cannot mount".to_owned(), errno, hint: None };
        self.faults.change(|| self.running.mount(controllers, name, path), refuse)
    }

    fn unmount(&self, path: &Path) -> Result<(), Errno> {
        self.faults.plain(|| self.running.unmount(path))
    }

    fn look(&self) -> Result<Host, kernel::Error> {
        Host::even_without_hierarchies(Box::new(Faulty { inner: Real::new(), faults: self.faults.clone() }))
    }

    fn boot(&self) -> String {
        self.running.boot()
    }

    fn now(&self) -> u64 {
        self.running.now()
    }
}
