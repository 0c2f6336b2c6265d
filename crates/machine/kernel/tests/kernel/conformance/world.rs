//! A kernel to test, real or fake, with the means that cases need: groups under a name of their own, and processes
//! that can be started and ended.

use std::{
    cell::RefCell,
    collections::HashMap,
    path::Path,
    sync::atomic::{AtomicU32, Ordering},
    time::{Duration, Instant},
};

use fake::Fake;
use kernel::{Created, Error, GroupName, Hierarchy, Host, Kernel, Real, Refusal, Seat};
use rustix::io::Errno;
use settings::{Controller, Version};

use super::{
    behaviour::Behaviour,
    machine::{self, Machine, OtherUser},
};

/// The user who is not root.
pub const NOBODY: u32 = 65534;

/// Which kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorldKind {
    FakeV1,
    FakeV2,
    FakeV2Exclusive,
    FakeV2Firm,
    FakeHybrid,
    Real,
}

impl WorldKind {
    pub const ALL: [WorldKind; 6] = [
        WorldKind::FakeV1,
        WorldKind::FakeV2,
        WorldKind::FakeV2Exclusive,
        WorldKind::FakeV2Firm,
        WorldKind::FakeHybrid,
        WorldKind::Real,
    ];

    pub fn name(self) -> &'static str {
        match self {
            WorldKind::FakeV1 => "fake-v1",
            WorldKind::FakeV2 => "fake-v2",
            WorldKind::FakeV2Exclusive => "fake-v2-exclusive",
            WorldKind::FakeV2Firm => "fake-v2-firm",
            WorldKind::FakeHybrid => "fake-hybrid",
            WorldKind::Real => "real",
        }
    }
}

/// Where processes come from.
enum Means {
    Fake(Fake),
    Real(RefCell<Machine>),
}

pub struct World {
    pub host: Host,
    means: Means,
    /// The name of the case's top group.
    top: String,
    /// `cgroup.subtree_control` of a real v2 root as it was.
    before: String,
    /// The files of a new group, once looked at.
    files: RefCell<HashMap<Controller, Vec<String>>>,
    /// What the kernel does, once looked at.
    pub behaviour: Behaviour,
}

static COUNT: AtomicU32 = AtomicU32::new(0);

impl World {
    /// A fresh fake, or the machine's kernel.
    ///
    /// # Errors
    /// Why the real kernel can't be tested here.
    pub fn new(kind: WorldKind) -> Result<World, String> {
        let fake = match kind {
            WorldKind::FakeV1 => Fake::v1(8, 4),
            WorldKind::FakeV2 => Fake::v2(8, 4),
            WorldKind::FakeV2Exclusive => Fake::v2_with_exclusive_cpus(8, 4),
            WorldKind::FakeV2Firm => Fake::v2_with_firm_partitions(8, 4),
            WorldKind::FakeHybrid => Fake::hybrid(8, 4),
            WorldKind::Real => return World::real(),
        };
        let host = Host::new(Box::new(fake.clone())).map_err(|error| error.to_string())?;
        Ok(World {
            host,
            means: Means::Fake(fake),
            top: "rf-test-conf a $(touch x)".to_owned(),
            before: String::new(),
            files: RefCell::default(),
            behaviour: Behaviour::default(),
        })
    }

    fn real() -> Result<World, String> {
        let kernel = Real::new();
        if kernel.caller().1 != 0 {
            return Err("it takes root to make groups".to_owned());
        }
        let host = Host::new(Box::new(kernel)).map_err(|error| error.to_string())?;
        if host.needs_unit() {
            return Err("systemd owns the hierarchies".to_owned());
        }
        if let Some(at) = host.hierarchies().iter().find(|at| at.read_only) {
            return Err(format!("{} is mounted read-only", at.mount.display()));
        }
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let top = format!("rf-test-conf-{}-{number}", std::process::id());
        let v2 = host.hierarchies().iter().find(|at| at.version == Version::V2);
        let before =
            v2.and_then(|at| host.kernel().read(at, "", "cgroup.subtree_control").ok()).unwrap_or_default();
        Ok(World {
            host,
            means: Means::Real(RefCell::new(Machine::default())),
            top,
            before,
            files: RefCell::default(),
            behaviour: Behaviour::default(),
        })
    }

    /// The fake kernel, if it is one.
    pub fn fake(&self) -> Option<&Fake> {
        match &self.means {
            Means::Fake(fake) => Some(fake),
            Means::Real(_) => None,
        }
    }

    pub fn kernel(&self) -> &dyn Kernel {
        self.host.kernel()
    }

    /// A group of this case: "" is the top one.
    pub fn group(&self, name: &str) -> GroupName {
        let path = if name.is_empty() { self.top.clone() } else { format!("{}/{name}", self.top) };
        GroupName::new(&path).expect("a name that the kernel takes")
    }

    /// A top-level group beside [`World::group`]'s.
    pub fn beside(&self, name: &str) -> GroupName {
        GroupName::new(&format!("{}-{name}", self.top)).expect("a name that the kernel takes")
    }

    /// The version that a controller is on.
    pub fn version(&self, controller: Controller) -> Option<Version> {
        self.host.hierarchy_of(controller).map(|at| at.version)
    }

    pub fn has(&self, controller: Controller) -> bool {
        let at = self.host.hierarchy_of(controller);
        at.is_some_and(|at| controller == Controller::Core || at.controllers.contains(&controller))
    }

    pub fn on_v1(&self, controller: Controller) -> bool {
        self.has(controller) && self.version(controller) == Some(Version::V1)
    }

    pub fn on_v2(&self, controller: Controller) -> bool {
        self.has(controller) && self.version(controller) == Some(Version::V2)
    }

    /// Does a new group have this file? Makes and removes one to see.
    pub fn has_file(&self, controller: Controller, file: &str) -> bool {
        let mut known = self.files.borrow_mut();
        let files = known.entry(controller).or_insert_with(|| {
            if !self.has(controller) {
                return Vec::new();
            }
            let group = self.create("", &[controller]);
            let seat = self.seat(&group, controller);
            let files = self.kernel().files(seat.at, &seat.path).expect("the files of a group");
            self.host.delete(&group, true).expect("an empty group can be deleted");
            files
        });
        files.iter().any(|name| name == file)
    }

    /// Top-level groups of others' in a controller's hierarchy whose `file` holds something.
    pub fn others(&self, controller: Controller, file: &str) -> Option<String> {
        let at = self.host.hierarchy_of(controller)?;
        let mut names = self.kernel().children(at, "").unwrap_or_default();
        names.retain(|name| !name.starts_with(&self.top));
        names.retain(|name| self.kernel().read(at, name, file).is_ok_and(|text| !text.trim().is_empty()));
        (!names.is_empty()).then(|| format!("{file} of others' groups may overlap: {}", names.join(", ")))
    }

    pub fn cpus(&self) -> usize {
        let online = self.kernel().outside(Path::new("/sys/devices/system/cpu/online")).unwrap_or_default();
        online.trim().parse::<units::CpuSet>().map_or(1, |cpus| cpus.len())
    }

    /// A whole disk's number.
    pub fn disk(&self) -> Option<String> {
        if self.fake().is_some() {
            return Some("254:0".to_owned());
        }
        let number = |name| std::fs::read_to_string(format!("/sys/block/{name}/dev")).ok();
        ["vda", "sda", "nvme0n1", "xvda"].into_iter().find_map(number).map(|text| text.trim().to_owned())
    }

    /// Makes a group for the given controllers.
    pub fn create(&self, name: &str, controllers: &[Controller]) -> GroupName {
        let group = self.group(name);
        self.make(&group, controllers);
        group
    }

    pub fn make(&self, group: &GroupName, controllers: &[Controller]) -> Created {
        self.host.create(group, Some(controllers), &Default::default()).done()
    }

    pub fn seat(&self, group: &GroupName, controller: Controller) -> Seat<'_> {
        self.host.seat(group, controller).done()
    }

    /// A file's content without the newline at its end.
    pub fn read(&self, group: &GroupName, controller: Controller, file: &str) -> String {
        let seat = self.seat(group, controller);
        let text = self.host.read(&seat, group, file).done();
        text.strip_suffix('\n').unwrap_or(&text).to_owned()
    }

    pub fn try_write(
        &self,
        group: &GroupName,
        controller: Controller,
        file: &str,
        text: &str,
    ) -> Result<(), Error> {
        self.host.write(&self.seat(group, controller), group, file, text)
    }

    /// Writes what the kernel takes.
    pub fn write(&self, group: &GroupName, controller: Controller, file: &str, text: &str) {
        self.try_write(group, controller, file, text).done();
    }

    /// Gives a new v1 cpuset a CPU and a node, without which it takes no task.
    pub fn fill(&self, group: &GroupName) {
        for at in self.host.hierarchies().iter().filter(|at| at.version == Version::V1) {
            let seat = self.host.seat_in(at, group);
            if at.controllers.contains(&Controller::Cpuset) && self.kernel().exists(at, &seat.path) {
                for file in ["cpuset.cpus", "cpuset.mems"] {
                    self.host.write(&seat, group, file, "0").done();
                }
            }
        }
    }

    /// The hierarchies that a group is in.
    pub fn hierarchies_of(&self, group: &GroupName) -> Vec<&Hierarchy> {
        self.host.seats(group).into_iter().map(|seat| seat.at).collect()
    }

    /// Is the process in the group, wherever the group is?
    pub fn is_in(&self, pid: u32, group: &GroupName) -> bool {
        self.hierarchies_of(group)
            .iter()
            .all(|at| self.kernel().group_of(at, pid).as_deref() == Ok(&format!("/{}", group.path())))
    }

    /// Starts a process of the caller's.
    pub fn start(&self) -> u32 {
        self.start_as(0)
    }

    /// Starts a process of another user's.
    pub fn start_as(&self, uid: u32) -> u32 {
        match &self.means {
            Means::Fake(fake) => {
                let pid = fake.spawn(fake.caller().0).expect("the caller can fork");
                fake.set_process(pid, |process| process.uid = uid);
                pid
            }
            Means::Real(machine) => {
                let pid = machine.borrow_mut().start(uid);
                // its user changes between fork and exec
                while self.kernel().process(pid).is_ok_and(|process| process.uid != uid) {
                    std::thread::sleep(Duration::from_millis(1));
                }
                pid
            }
        }
    }

    /// Lets a process start one more thread; returns all of its threads, the process itself first.
    pub fn add_thread(&self, pid: u32) -> Vec<u32> {
        match &self.means {
            Means::Fake(fake) => drop(fake.spawn_thread(pid).expect("a process can have threads")),
            Means::Real(machine) => machine.borrow_mut().tell(pid, "thread"),
        }
        self.kernel().threads(pid).expect("the process runs")
    }

    /// Lets a process take memory and use it.
    pub fn allocate(&self, pid: u32, bytes: u64) {
        match &self.means {
            Means::Fake(fake) => fake.allocate(pid, bytes).expect("the process runs"),
            Means::Real(machine) => machine.borrow_mut().tell(pid, &format!("eat {bytes}")),
        }
    }

    pub fn set_policy(&self, pid: u32, policy: u32) -> Result<(), Errno> {
        match &self.means {
            Means::Fake(fake) => fake.set_policy(pid, policy),
            Means::Real(_) => machine::set_policy(pid, policy),
        }
    }

    /// Starts a process that forks processes that fork, for a second.
    pub fn start_storm(&self) -> u32 {
        match &self.means {
            Means::Fake(fake) => fake.spawn_storm(fake.caller().0, 200).expect("the caller can fork"),
            Means::Real(machine) => {
                let pid = machine.borrow_mut().start(0);
                machine.borrow_mut().order(pid, "storm 1000");
                pid
            }
        }
    }

    /// Waits until a storm is over; returns all processes that came of it, itself included.
    pub fn after_storm(&self, root: u32) -> Vec<u32> {
        match &self.means {
            Means::Fake(fake) => {
                let mut members = vec![root];
                while {
                    let before = members.len();
                    for pid in fake.processes().expect("a list of processes") {
                        let parent = fake.process(pid).map(|process| process.parent);
                        if parent.is_ok_and(|parent| members.contains(&parent)) && !members.contains(&pid) {
                            members.push(pid);
                        }
                    }
                    members.len() > before
                } {}
                members
            }
            Means::Real(machine) => {
                machine.borrow_mut().await_answer(root);
                machine::process_group(root)
            }
        }
    }

    /// Ends a process and waits for it.
    pub fn end(&self, pid: u32) {
        match &self.means {
            Means::Fake(fake) => fake.end(pid),
            Means::Real(machine) => machine.borrow_mut().end(pid),
        }
    }

    /// Was the process ended by the kernel (or is it about to)?
    pub fn has_ended(&self, pid: u32) -> bool {
        match &self.means {
            Means::Fake(fake) => fake.process(pid).is_err(),
            Means::Real(machine) => machine.borrow_mut().has_ended(pid),
        }
    }

    /// Makes the calls inside as another user.
    pub fn as_user<T>(&self, uid: u32, calls: impl FnOnce() -> T) -> T {
        match &self.means {
            Means::Fake(fake) => {
                fake.set_uid(uid);
                let result = calls();
                fake.set_uid(0);
                result
            }
            Means::Real(_) => {
                let _user = OtherUser::new(uid);
                calls()
            }
        }
    }
}

impl Drop for World {
    /// Runs after a panic, too: lets frozen processes go, ends all, then removes the groups.
    fn drop(&mut self) {
        let Means::Real(machine) = &self.means else { return };
        let kernel = Real::new();
        let tops = |at: &Hierarchy| {
            let mut names = kernel.children(at, "").unwrap_or_default();
            names.retain(|name| *name == self.top || name.starts_with(&format!("{}-", self.top)));
            names
        };
        let hierarchies = self.host.hierarchies();
        hierarchies.iter().for_each(|at| tops(at).iter().for_each(|top| machine::thaw(&kernel, at, top)));
        drop(machine.take());
        hierarchies.iter().for_each(|at| tops(at).iter().for_each(|top| machine::remove(&kernel, at, top)));
        let Some(at) = hierarchies.iter().find(|at| at.version == Version::V2) else { return };
        let now = kernel.read(at, "", "cgroup.subtree_control").unwrap_or_default();
        for name in
            now.split_whitespace().filter(|name| !self.before.split_whitespace().any(|word| word == *name))
        {
            let _ = kernel.write(at, "", "cgroup.subtree_control", &format!("-{name}"));
        }
    }
}

/// What must not be refused.
pub trait Done<T> {
    /// The value of a call that succeeded.
    fn done(self) -> T;
}

impl<T> Done<T> for Result<T, Error> {
    #[track_caller]
    fn done(self) -> T {
        self.unwrap_or_else(|error| panic!("{error}"))
    }
}

/// What the kernel does behind a call's back is there within a second.
#[track_caller]
pub fn soon<T: PartialEq + std::fmt::Debug>(expected: T, now: impl Fn() -> T) {
    let started = Instant::now();
    while now() != expected && started.elapsed() < Duration::from_secs(1) {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(now(), expected);
}

/// The refusal that a call must have met: its errno, and its cause in words with what fixes it.
#[track_caller]
pub fn refused<T: std::fmt::Debug>(result: Result<T, Error>, errno: Errno, cause: &str) -> Refusal {
    let refusal = match result {
        Err(Error::Refused(refusal)) => *refusal,
        other => panic!("should be refused with {errno:?}: {other:?}"),
    };
    assert_eq!(refusal.errno, errno, "{refusal}");
    let words = refusal.cause.clone().unwrap_or_default();
    assert!(!words.is_empty() && words.contains(cause), "the cause should say '{cause}': {refusal}");
    let hint = refusal.hint.as_deref().unwrap_or_else(|| panic!("what fixes it should be said: {refusal}"));
    quoted(hint);
    refusal
}

/// A user who may make groups chooses their names, and root pastes the hint: the name is part of one word of each command.
pub fn quoted(hint: &str) {
    for command in hint.split("ringfence ").skip(1).filter(|command| command.contains("$(touch")) {
        let words = shlex::split(command).unwrap_or_else(|| panic!("not a command: {hint}"));
        let whole: usize = words.iter().map(|word| word.matches("a $(touch x)").count()).sum();
        assert_eq!(whole, command.matches("$(touch x)").count(), "{hint}");
        assert_eq!(command.matches("'").count() % 2, 0, "{hint}");
    }
    let before = hint.split("ringfence ").next().unwrap_or_default();
    assert!(!before.contains("$(") || before.contains('\''), "{hint}");
}
