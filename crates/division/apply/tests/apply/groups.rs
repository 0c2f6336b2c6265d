//! The groups of one test on the machine's own kernel, and processes in them: all called `rf-test-apply-*`, and all gone
//! when the test ends, also by a panic.

use std::{
    os::unix::fs::MetadataExt,
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use kernel::{Access, GroupName, Hierarchy, Host, Kernel, Real};
use rustix::io::Errno;
use settings::{Controller, Version};

use crate::{maker::spoken, scenarios::MOUNT, world::Picture};

/// What starts a process of the tests, in the environment of this program.
pub const CHILD: &str = "RF_APPLY_CHILD";
const HANDED: &str = "cgroup.subtree_control";
/// What the tests' layouts need of it; what else is handed down is others'.
const OURS: [&str; 4] = ["cpu", "cpuset", "memory", "pids"];

/// The machine's host, also where nothing is mounted.
pub fn machine() -> Host {
    Host::even_without_hierarchies(Box::new(Real::new())).unwrap()
}

/// This program as another process, with something to do.
pub fn start(words: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.env(CHILD, words).stdin(Stdio::null());
    command
}

/// Waits for what comes by itself.
pub fn wait_for(what: &str, is: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(120);
    while !is() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A test's groups: all begin with its prefix.
pub struct Groups {
    pub prefix: String,
    pub host: Host,
    /// What v2's directories above ours handed down before.
    handed: Vec<(Hierarchy, String, String)>,
    processes: Vec<Child>,
}

impl Groups {
    pub fn new(test: &str) -> Groups {
        let host = machine();
        if host.needs_unit() {
            systemd::ensure_unit(&host).unwrap();
        }
        let mut handed = Vec::new();
        for at in host.hierarchies().iter().filter(|at| at.version == Version::V2) {
            let base = host.base(at).path();
            // the lowest first: it gives back before the one above can
            let above = std::iter::successors(Some(base), |path| match path.rsplit_once('/') {
                Some((above, _)) => Some(above),
                None => (!path.is_empty()).then_some(""),
            });
            for path in above {
                handed.push((at.clone(), path.to_owned(), handed_down(host.kernel(), at, path)));
            }
        }
        let groups = Groups { prefix: format!("rf-test-apply-{test}-"), host, handed, processes: Vec::new() };
        groups.clear();
        groups
    }

    pub fn name(&self, group: &str) -> String {
        format!("{}{group}", self.prefix)
    }

    fn is_ours(&self, path: &str) -> bool {
        path.split('/').any(|part| part.starts_with(&self.prefix))
    }

    /// Removes the groups, and takes back what was handed down for them.
    pub fn clear(&self) {
        let kernel = Real::new();
        for at in kernel.hierarchies().unwrap() {
            let mut groups = kernel.descendants(&at, "").unwrap_or_default();
            groups.retain(|group| self.is_ours(group));
            for group in groups.iter().rev() {
                let deadline = Instant::now() + Duration::from_secs(5);
                while kernel.rmdir(&at, group) == Err(Errno::BUSY) && Instant::now() < deadline {
                    std::thread::sleep(Duration::from_millis(10));
                }
            }
            if at.mount.starts_with(MOUNT) {
                let _ = rustix::mount::unmount(&at.mount, rustix::mount::UnmountFlags::empty());
                let _ = std::fs::remove_dir(&at.mount); // left by a test that failed
            }
        }
        for (at, path, before) in &self.handed {
            let now = handed_down(&kernel, at, path);
            let was = |name: &&str| before.split_whitespace().any(|word| word == *name);
            for name in now.split_whitespace().filter(|name| !was(name)) {
                let _ = kernel.write(at, path, HANDED, &format!("-{name}")); // nobody else's any more
            }
        }
    }

    /// Makes a group for these controllers.
    pub fn make(&self, group: &str, controllers: &[Controller]) {
        let name = GroupName::new(&self.name(group)).unwrap();
        self.host.create(&name, Some(controllers), &Access::default()).unwrap();
    }

    /// Writes a file of v1, as the version at hand calls it.
    pub fn write(&self, controller: Controller, group: &str, file: &str, text: &str) {
        let name = GroupName::new(&self.name(group)).unwrap();
        let seat = self.host.seat(&name, controller).unwrap();
        self.host.write(&seat, &name, spoken(file, seat.at.version), text).unwrap();
    }

    /// Starts a process of the tests, which is ended with them.
    pub fn start(&mut self, words: &str) -> u32 {
        let child = start(words).stdout(Stdio::null()).spawn().unwrap();
        let pid = child.id();
        self.processes.push(child);
        pid
    }

    /// Puts a process into a group, wherever the group is.
    pub fn put(&self, pid: u32, group: &str) {
        let name = GroupName::new(&self.name(group)).unwrap();
        for seat in self.host.seats(&name) {
            self.host.write(&seat, &name, "cgroup.procs", &pid.to_string()).unwrap();
        }
    }

    /// Ends one of them.
    pub fn end_process(&mut self, pid: u32) {
        for child in self.processes.iter_mut().filter(|child| child.id() == pid) {
            let _ = child.kill(); // it may have ended
            let _ = child.wait();
        }
    }

    pub fn end_processes(&mut self) {
        for mut child in self.processes.drain(..) {
            let _ = child.kill(); // it may have ended
            let _ = child.wait();
        }
    }

    /// All of the groups, what is handed down to them, and what is mounted.
    pub fn picture(&self) -> Picture {
        let kernel = Real::new();
        let mut picture = of_groups(&kernel, &|path| self.is_ours(path));
        for (at, path, _) in &self.handed {
            picture.insert(format!("above {}:{path}", at.id), handed_down(&kernel, at, path));
        }
        let mounts: Vec<String> =
            kernel.hierarchies().unwrap().iter().map(|at| at.mount.display().to_string()).collect();
        picture.insert("mounts".to_owned(), mounts.join(" "));
        picture
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        self.end_processes();
        self.clear();
    }
}

fn handed_down(kernel: &dyn Kernel, at: &Hierarchy, path: &str) -> String {
    let on = kernel.read(at, path, HANDED).unwrap_or_default();
    let ours: Vec<&str> = on.split_whitespace().filter(|name| OURS.contains(name)).collect();
    ours.join(" ")
}

/// What files and owners of groups are; counters that run by themselves are left out.
fn of_groups(kernel: &Real, of: &dyn Fn(&str) -> bool) -> Picture {
    let mut picture = crate::world::picture(kernel, of);
    for at in kernel.hierarchies().unwrap() {
        for group in kernel.descendants(&at, "").unwrap_or_default().into_iter().filter(|group| of(group)) {
            let files = kernel.files(&at, &group).unwrap_or_default();
            for file in files.iter().map(String::as_str).chain(["."]) {
                let about = std::fs::symlink_metadata(at.path(&group).join(file)).unwrap();
                let text = format!("{}:{} {:o}", about.uid(), about.gid(), about.mode());
                picture.insert(format!("owner {}:{group}/{file}", at.id), text);
            }
            if let Ok(Some(filter)) = kernel.device_filter(&at, &group) {
                picture.insert(format!("devices {}:{group}", at.id), filter.access.to_string());
            }
        }
    }
    picture
}

/// What is not the same in two pictures, in words.
pub fn differences(one: &Picture, other: &Picture) -> Vec<String> {
    let keys: std::collections::BTreeSet<&String> = one.keys().chain(other.keys()).collect();
    let differing = keys.into_iter().filter(|key| one.get(*key) != other.get(*key));
    differing.map(|key| format!("{key}: {:?}, {:?}", one.get(key), other.get(key))).collect()
}

/// Is this machine one of the tests' own (`tests/vm`), where the rest of the system may be touched?
pub fn is_ours_alone() -> bool {
    Path::new("/rf-vm/mode").exists()
}

pub fn cpus() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
