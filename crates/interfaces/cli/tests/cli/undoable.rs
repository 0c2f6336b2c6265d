//! Groups that are there, a layout that changes them, and how every file of them was before: what a change that is undone
//! has to come back to.

use std::{
    collections::BTreeMap,
    fs,
    io::Write,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Arc,
};

use rustix::mount::{MountFlags, UnmountFlags};

use crate::{
    desk::Desk,
    world::{Need, World},
};

const LAYOUT: &str = "[groups.\"{g}/old\"]\npids.max = 100\nmemory.max = \"64M\"\ncpu.weight = 300\n\
    tasks = { user = 1001, group = 1001 }\n\
    [groups.\"{g}/new\"]\ncpus = \"0\"\nmems = \"local\"\npids.max = 50\nmemory.max = \"32M\"\n\
    tasks = { user = 1000, group = 1000 }\n[groups.\"{g}/new/below\"]\npids.max = 20\n";

/// Files of all groups of a test, with their owners; counters that run by themselves are left out.
pub type Picture = BTreeMap<PathBuf, String>;

pub struct Stage {
    pub desk: Desk,
    world: Arc<World>,
    /// The test's group in each hierarchy.
    roots: Vec<PathBuf>,
    before: Picture,
}

impl Stage {
    pub fn new(world: &Arc<World>, name: &str) -> Stage {
        let mut desk = Desk::new(world, name);
        desk.write("l.toml", LAYOUT);
        desk.write("none.conf", "");
        desk.scene.start("{pid}", &["sleep", "3600"]);
        desk.scene.ok("create {g}/old -c cpu,cpuset,memory,pids");
        desk.scene.ok("set {g}/old pids.max=7 cpu.weight=50");
        desk.scene.ok("move {g}/old {pid}");
        let world = world.clone();
        let mut stage = Stage { desk, world, roots: Vec::new(), before: Picture::new() };
        stage.look_again();
        assert!(stage.before.len() > 30, "{:?}", stage.before);
        stage
    }

    /// Takes what there is now for what was before.
    pub fn look_again(&mut self) {
        self.roots = roots(&self.desk.scene.group);
        self.before = picture(&self.roots);
    }

    pub fn has_v1(&self, controller: &'static str) -> bool {
        self.world.has(Need::V1(controller))
    }

    pub fn picture(&self) -> Picture {
        picture(&self.roots)
    }

    /// What is not as before.
    pub fn differing(&self) -> Option<String> {
        let now = picture(&self.roots);
        let paths = self.before.keys().chain(now.keys());
        let mut differing = paths.filter(|path| self.before.get(*path) != now.get(*path));
        let first = differing.next()?;
        Some(format!("{}: {:?}, {:?}", first.display(), self.before.get(first), now.get(first)))
    }

    pub fn words(&self, line: &str) -> Vec<String> {
        let words = format!("{} {}", self.desk.scene.program(), self.desk.scene.fill(line));
        words.split_whitespace().map(str::to_owned).collect()
    }
}

/// Is this one of the tests' own machines, where everything takes its time?
pub fn is_emulated() -> bool {
    Path::new("/rf-vm").exists()
}

/// Does this command line end well? busybox has programs of these names that know less.
pub fn works(words: &[&str]) -> bool {
    let mut command = Command::new(words[0]);
    let status = command.args(&words[1..]).stdin(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

/// Is everything tried, and not only a sample?
pub fn all_of_them() -> bool {
    std::env::var_os("RF_ALL").is_some()
}

/// A file system for the state, in `{d}/disk`.
pub struct Disk(PathBuf);

impl Disk {
    pub fn of(stage: &Stage, kind: &str, options: &str) -> Disk {
        let path = stage.desk.path("disk");
        fs::create_dir_all(&path).unwrap();
        let options = std::ffi::CString::new(options).unwrap();
        rustix::mount::mount("rf-test", &path, kind, MountFlags::empty(), options.as_c_str()).unwrap();
        Disk(path)
    }

    pub fn fill(&self) {
        let mut file = fs::File::create(self.0.join("full")).unwrap();
        while file.write_all(&[1; 4096]).is_ok() {}
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = rustix::mount::unmount(&self.0, UnmountFlags::DETACH);
    }
}

/// The directories of a group, wherever they are.
fn roots(group: &str) -> Vec<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    let fields = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    let mounts = fields
        .filter(|fields| matches!(fields[2], "cgroup" | "cgroup2"))
        .map(|fields| PathBuf::from(fields[1]));
    let mut roots: Vec<PathBuf> =
        mounts.flat_map(|mount| below(&mount)).filter(|path| path.ends_with(group)).collect();
    // one hierarchy may be mounted twice
    roots.sort();
    roots.dedup();
    roots
}

/// A directory and all below it.
pub fn below(directory: &Path) -> Vec<PathBuf> {
    let mut all = vec![directory.to_owned()];
    let mut next = 0;
    while let Some(path) = all.get(next) {
        next += 1;
        let entries = fs::read_dir(path).into_iter().flatten().filter_map(Result::ok);
        let directories: Vec<PathBuf> = entries
            .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
            .map(|entry| entry.path())
            .collect();
        all.extend(directories);
    }
    all
}

fn picture(roots: &[PathBuf]) -> Picture {
    let mut picture = Picture::new();
    for directory in roots.iter().flat_map(|root| below(root)) {
        let files =
            fs::read_dir(&directory).into_iter().flatten().filter_map(Result::ok).map(|entry| entry.path());
        for path in files.chain([directory.clone()]) {
            let Ok(about) = fs::symlink_metadata(&path) else { continue };
            let is_counter = path.file_name().and_then(|name| name.to_str()).is_none_or(counts);
            let text = if is_counter { String::new() } else { fs::read_to_string(&path).unwrap_or_default() };
            picture.insert(path, format!("{}:{} {:o} {text}", about.uid(), about.gid(), about.mode()));
        }
    }
    picture
}

/// Does the file tell what is used, or what happened, rather than what was set?
fn counts(file: &str) -> bool {
    let ends = [".current", ".peak", ".pressure", "failcnt", ".load"].iter().any(|end| file.ends_with(end));
    ends && file != "cgroup.pressure"
        || file.contains("usage")
        || file.contains("stat") && file != "freezer.state"
}
