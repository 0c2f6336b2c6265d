//! The groups, processes and files that a row's command meets: the same for both programs, made anew for each, and
//! gone afterwards. Knows the host's v1 hierarchies by their mounts, and touches only groups whose names begin with its
//! own.

use std::{
    collections::BTreeMap,
    fmt::Write,
    fs,
    os::unix::fs::{MetadataExt, chown, symlink},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use tempfile::TempDir;

use super::row::{Row, Step};

/// Those that have the rows' groups.
pub const CONTROLLERS: [&str; 6] = ["cpu", "cpuset", "memory", "pids", "freezer", "devices"];

/// What is compared after a command: contents, owners and modes.
const FILES: [&str; 17] = [
    "cpu.shares",
    "cpu.cfs_quota_us",
    "cpu.cfs_period_us",
    "cpuset.cpus",
    "cpuset.mems",
    "cpuset.cpu_exclusive",
    "memory.limit_in_bytes",
    "memory.soft_limit_in_bytes",
    "memory.memsw.limit_in_bytes",
    "memory.swappiness",
    "pids.max",
    "freezer.state",
    "devices.list",
    "notify_on_release",
    "cpu.stat",
    "cgroup.procs",
    "tasks",
];

/// Of these only owner and mode are compared: where tasks are is told by the process itself, the rest is counted.
const OWNERS_ONLY: [&str; 3] = ["cpu.stat", "cgroup.procs", "tasks"];

pub struct Stage {
    group: String,
    mounts: BTreeMap<String, PathBuf>,
    directory: TempDir,
    child: Option<Child>,
    pid: String,
}

impl Stage {
    /// `{g}` with cpuset's CPU and node 0, `{g}/a` in the same hierarchies, `{g}/b` only in cpu's; then the steps.
    pub fn set(steps: &[Step]) -> Stage {
        let mut stage = Stage {
            group: format!("rf-test-ref-{}", std::process::id()),
            mounts: mounts(),
            directory: tempfile::tempdir().unwrap(),
            child: None,
            pid: String::new(),
        };
        for controller in CONTROLLERS {
            stage.make(&format!("{controller}:{{g}}"));
            stage.make(&format!("{controller}:{{g}}/a"));
        }
        stage.make("cpu:{g}/b");
        stage.write("cpuset:{g}/cpuset.cpus", "0");
        stage.write("cpuset:{g}/cpuset.mems", "0");
        steps.iter().for_each(|step| stage.step(*step));
        stage
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Write(place, text) => self.write(place, text),
            Step::Make(place) => self.make(place),
            Step::Own(place, uid, gid) => chown(self.path(place), Some(uid), Some(gid)).unwrap(),
            Step::File(name, text) => {
                let path = self.directory.path().join(name);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, self.fill(text)).unwrap();
            }
            Step::Start => {
                let mut sleep = Command::new("sleep");
                let child = sleep.arg("60").stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
                self.pid = child.id().to_string();
                self.child = Some(child);
            }
            Step::Move(place) => fs::write(self.path(place).join("tasks"), &self.pid).unwrap(),
        }
    }

    /// `controller:path` as it is mounted.
    fn path(&self, place: &str) -> PathBuf {
        let (controller, path) = place.split_once(':').unwrap();
        self.mounts[controller].join(self.fill(path))
    }

    fn make(&self, place: &str) {
        fs::create_dir(self.path(place)).unwrap();
    }

    fn write(&self, place: &str, text: &str) {
        fs::write(self.path(place), self.fill(text)).unwrap();
    }

    /// A text with the row's names in it.
    pub fn fill(&self, text: &str) -> String {
        let directory = self.directory.path().display().to_string();
        text.replace("{g}", &self.group).replace("{pid}", &self.pid).replace("{dir}", &directory)
    }

    /// What of a command's output is about this stage, without what changes from run to run.
    pub fn own(&self, row: &Row, out: &str) -> String {
        let is_counted = |line: &str| line.starts_with("memory.") && line.contains("usage");
        let named = |part: &str| part.contains(&self.group);
        let everything = !row.line.contains("{g}");
        let mut text = match row.line.split(' ').next().unwrap() {
            "cgsnapshot" => {
                // another's group may be cut short: its owner's name was not known
                let mut is_own = true;
                let mut own = |line: &&str| {
                    is_own = if line.starts_with("group ") { named(line) } else { is_own };
                    is_own
                };
                out.split_inclusive('\n').filter(|line| own(line)).collect()
            }
            "lscgroup" if everything => {
                out.lines().filter(|line| named(line)).map(|line| format!("{line}\n")).collect()
            }
            // a new number for each mount
            "lssubsys" if row.all_mounted => {
                out.lines().map(|line| format!("{}\n", without_number(line))).collect()
            }
            _ => out.split_inclusive('\n').filter(|line| !is_counted(line)).collect::<String>(),
        };
        text = text.replace(&self.directory.path().display().to_string(), "{dir}");
        if self.pid.is_empty() { text } else { text.replace(&self.pid, "PID") }
    }

    /// What of a command's errors is not about others' groups.
    pub fn own_errors(&self, error: &str) -> String {
        let about_others = |line: &&str| line.starts_with("ERROR: can't get ");
        error.lines().filter(|line| !about_others(line)).map(|line| format!("{line}\n")).collect()
    }

    /// All groups of the stage with their owners, modes and contents, and where its process is.
    pub fn state(&self) -> String {
        let mut state = String::new();
        for (controller, mount) in &self.mounts {
            for group in self.groups(mount) {
                let name = group.strip_prefix(mount).unwrap().display();
                let _ = writeln!(state, "{controller}:{name}{}", access(&group));
                for file in FILES {
                    let path = group.join(file);
                    let Ok(text) = fs::read_to_string(&path) else { continue };
                    let text = if OWNERS_ONLY.contains(&file) { "" } else { text.trim_end() };
                    let _ = writeln!(state, "{controller}:{name}/{file}={text}{}", access(&path));
                }
            }
        }
        let place = fs::read_to_string(format!("/proc/{}/cgroup", self.pid)).unwrap_or_default();
        for line in place.lines().filter(|line| line.contains(&self.group)) {
            let _ = writeln!(state, "process:{}", line.split_once(':').unwrap().1);
        }
        state
    }

    /// The directories of one hierarchy whose name begins with the stage's, parents first.
    fn groups(&self, mount: &Path) -> Vec<PathBuf> {
        let top = directories(mount).into_iter();
        let mut found: Vec<PathBuf> =
            top.filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with(&self.group)).collect();
        let mut at = 0;
        while at < found.len() {
            found.extend(directories(&found[at].clone()));
            at += 1;
        }
        found.sort();
        found
    }

    /// Ends the process and removes the groups.
    pub fn clear(&mut self) {
        for mount in self.mounts.values() {
            for group in self.groups(mount) {
                let _ = fs::write(group.join("freezer.state"), "THAWED");
            }
        }
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
        for mount in self.mounts.values() {
            // where the reference follows `..` out of the hierarchy
            let _ = mount.parent().map(|outside| fs::remove_dir(outside.join(format!("{}-new", self.group))));
            for group in self.groups(mount).iter().rev() {
                // a process that ended a moment ago may still hold it
                let gone = (0..100).any(|_| {
                    fs::remove_dir(group).is_ok() || {
                        std::thread::sleep(Duration::from_millis(10));
                        false
                    }
                });
                assert!(gone || std::thread::panicking(), "{} stays", group.display());
            }
        }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.clear();
    }
}

/// `hugetlb 430` as `hugetlb N`; those of lasting hierarchies stay as they are.
fn without_number(line: &str) -> String {
    let passing = ["net_cls", "perf_event", "hugetlb"].iter().any(|name| line.starts_with(name));
    match line.rsplit_once(' ') {
        Some((name, number)) if passing && number.parse::<u32>().is_ok() => format!("{name} N"),
        _ => line.to_owned(),
    }
}

fn access(path: &Path) -> String {
    let about = fs::metadata(path).unwrap();
    match (about.uid(), about.gid(), about.mode() & 0o7777) {
        // as the kernel makes them
        (0, 0, 0o755 | 0o644 | 0o444 | 0o200) => String::new(),
        (uid, gid, mode) => format!(" {uid}:{gid} {mode:o}"),
    }
}

fn directories(at: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(at).into_iter().flatten().filter_map(Result::ok);
    entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
        .collect()
}

/// Where each v1 controller, and v2 as `unified`, is mounted.
fn mounts() -> BTreeMap<String, PathBuf> {
    let text = fs::read_to_string("/proc/self/mounts").unwrap();
    let mut found = BTreeMap::new();
    for line in text.lines() {
        let fields: Vec<&str> = line.split(' ').collect();
        let names: Vec<&str> = match fields[2] {
            "cgroup" => fields[3].split(',').filter(|name| *name != "rw" && *name != "relatime").collect(),
            "cgroup2" => vec!["unified"],
            _ => continue,
        };
        names.into_iter().for_each(|name| drop(found.insert(name.to_owned(), PathBuf::from(fields[1]))));
    }
    found
}

/// Ours under the old names.
pub fn links(program: &str) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    let program = std::path::absolute(program).unwrap();
    let tools =
        "cgclassify cgclear cgconfigparser cgcreate cgdelete cgexec cgget cgset cgsnapshot cgxget cgxset";
    for tool in tools.split(' ').chain(["lscgroup", "lssubsys"]) {
        symlink(&program, directory.path().join(tool)).unwrap();
    }
    directory
}

/// The program in a mount namespace where every controller has a v1 hierarchy, and cpu's is mounted twice.
pub fn with_all_mounted(program: &Path, directory: &str) -> Command {
    let script = "
        mount -t tmpfs none $at || exit 120
        for name in net_cls,net_prio perf_event hugetlb; do
            mkdir $at/$name && mount -t cgroup -o $name none $at/$name || exit 121
        done
        cpu=$(awk '$3 == \"cgroup\" && $4 ~ /(^|,)cpu(,|$)/ { print $2; exit }' /proc/self/mounts)
        mkdir $at/again && mount --bind $cpu $at/again || exit 122
        exec \"$0\" \"$@\"";
    let mut command = Command::new("unshare");
    command
        .args(["--mount", "--propagation", "private", "sh", "-c", script])
        .arg(program)
        .env("at", directory);
    command
}
