//! The kernel's own view of groups and processes, read without the program, and the comparison of both.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use serde_json::Value;

use crate::desk::Desk;

/// A mounted hierarchy: its controllers on v1, or none for v2, and where.
#[derive(Debug, Clone)]
struct Mount {
    /// As the second field of /proc/PID/cgroup.
    controllers: String,
    path: PathBuf,
}

/// One row on its way.
pub struct Stage<'d> {
    pub desk: &'d mut Desk,
    mounts: Vec<Mount>,
    /// The processes that the row started.
    pub pids: Vec<u32>,
}

/// A setting: its name, its controller, and its file on v1 and v2.
const FILES: [(&str, &str, &str, &str); 5] = [
    ("pids.max", "pids", "pids.max", "pids.max"),
    ("memory.max", "memory", "memory.limit_in_bytes", "memory.max"),
    ("cpu.weight", "cpu", "cpu.shares", "cpu.weight"),
    ("cpu.max", "cpu", "cpu.cfs_quota_us", "cpu.max"),
    ("cpuset.cpus", "cpuset", "cpuset.cpus", "cpuset.cpus"),
];

impl<'d> Stage<'d> {
    pub fn new(desk: &'d mut Desk) -> Stage<'d> {
        Stage { desk, mounts: mounts(), pids: Vec::new() }
    }

    /// A process that sleeps, in a group if one is named.
    pub fn sleeper(&mut self, name: &'static str, group: &str) -> u32 {
        let pid = self.desk.scene.start(name, &["sleep", "300"]);
        self.free(pid);
        self.pids.push(pid);
        if !group.is_empty() {
            self.desk.scene.ok(&format!("move {group} {pid}"));
        }
        pid
    }

    /// Takes a process out of the groups that this program runs in: they are somebody's choice, and stay.
    pub fn free(&self, pid: u32) {
        for mount in &self.mounts {
            let _ = fs::write(mount.path.join("cgroup.procs"), pid.to_string()); // it may be there already
        }
    }

    pub fn layout(&self, text: &str) {
        self.desk.write("l.toml", text);
    }

    /// Writes a layout, and applies it.
    pub fn apply(&self, text: &str) {
        self.layout(text);
        self.desk.ends("apply {d}/l.toml {s}", 0);
    }

    pub fn fill(&self, text: &str) -> String {
        self.desk.scene.fill(text)
    }

    /// The mount that has a controller: of v1, or v2's if none of v1 has it.
    fn mount_of(&self, controller: &str) -> &Mount {
        let v1 = self.mounts.iter().find(|at| at.controllers.split(',').any(|name| name == controller));
        v1.or_else(|| self.mounts.iter().find(|at| at.controllers.is_empty()))
            .unwrap_or_else(|| panic!("{controller} is mounted nowhere"))
    }

    /// Where the hierarchy of a controller is mounted.
    pub fn mount(&self, controller: &str) -> &Path {
        &self.mount_of(controller).path
    }

    pub fn is_v1(&self, controller: &str) -> bool {
        !self.mount_of(controller).controllers.is_empty()
    }

    /// A group's directory in the hierarchy that has a controller.
    pub fn directory(&self, group: &str, controller: &str) -> PathBuf {
        let base =
            if Path::new("/run/systemd/system").is_dir() { "ringfence.slice/ringfence.service" } else { "" };
        self.mount_of(controller).path.join(base).join(self.fill(group))
    }

    /// The file of a setting.
    pub fn file(&self, group: &str, setting: &str) -> PathBuf {
        let (_, controller, v1, v2) = FILES.iter().find(|(name, ..)| *name == setting).unwrap();
        self.directory(group, controller).join(if self.is_v1(controller) { v1 } else { v2 })
    }

    /// What it holds; "" without it.
    pub fn holds(&self, group: &str, setting: &str) -> String {
        fs::read_to_string(self.file(group, setting)).unwrap_or_default().trim_end().to_owned()
    }

    /// Is that what a group has that nobody set?
    pub fn is_unlimited(&self, group: &str, setting: &str) -> bool {
        let text = self.holds(group, setting);
        match setting {
            "cpu.weight" => matches!(text.as_str(), "1024" | "100"),
            "cpu.max" => text == "-1" || text.starts_with("max"),
            "memory.max" => text == "max" || text.parse::<u64>().is_ok_and(|bytes| bytes > 1 << 60),
            _ => text == "max",
        }
    }

    /// Writes a file by hand.
    pub fn by_hand(&self, group: &str, setting: &str, text: &str) {
        let file = self.file(group, setting);
        fs::write(&file, text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    }

    /// A controller of each hierarchy in which the group has a directory; any one of v2.
    pub fn hierarchies_of(&self, group: &str) -> Vec<String> {
        let first = |mount: &Mount| match mount.controllers.split(',').next() {
            Some("") | None => "memory".to_owned(),
            Some(first) => first.to_owned(),
        };
        let with_controllers = self.mounts.iter().filter(|mount| !mount.controllers.starts_with("name="));
        let mut all: Vec<String> = with_controllers.map(first).collect();
        all.retain(|controller| self.directory(group, controller).exists());
        all.sort();
        all.dedup();
        all
    }

    /// Moves a process by hand, in the hierarchy of one controller; "" is the root.
    pub fn move_by_hand(&self, pid: u32, group: &str, controller: &str) {
        let at = &self.mount_of(controller).path;
        let directory = if group.is_empty() { at.clone() } else { self.directory(group, controller) };
        fs::write(directory.join("cgroup.procs"), pid.to_string()).unwrap();
    }

    /// The group of a process in the hierarchy of a controller, as the kernel names it.
    pub fn group_of(&self, pid: u32, controller: &str) -> String {
        let controllers = &self.mount_of(controller).controllers;
        groups_of(pid).remove(controllers).unwrap_or_else(|| panic!("{pid} is in no group of {controller}"))
    }

    /// Is the process in that group for the sake of this controller?
    pub fn is_in(&self, pid: u32, group: &str, controller: &str) -> bool {
        let ending = format!("/{}", self.fill(group));
        self.group_of(pid, controller).ends_with(&ending)
    }

    /// A line of /proc/PID/status.
    pub fn status_line(&self, pid: u32, key: &str) -> String {
        let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
        line.unwrap_or_default().trim().to_owned()
    }

    /// The CPUs that a process may run on, as sched_getaffinity(2) gives them.
    pub fn cpus(&self, pid: u32) -> String {
        self.status_line(pid, "Cpus_allowed_list")
    }

    /// `status` as JSON, with its exit status.
    pub fn status(&self) -> (i32, Value) {
        let (code, out, error) = self.desk.run("status --json {s}");
        assert!(code == 0 || code == 3, "status ended with {code}: {out}{error}");
        (code, serde_json::from_str(&out).unwrap_or_else(|_| panic!("{out}{error}")))
    }

    /// The steps that `plan` has for the layout.
    pub fn planned(&self) -> Vec<Value> {
        let plan = self.desk.json("plan --json {d}/l.toml {s}", 0);
        plan["steps"].as_array().cloned().unwrap_or_default()
    }

    /// What `status` says of one group; `None` if it says nothing.
    pub fn status_of(&self, group: &str) -> Option<Value> {
        let name = self.fill(group);
        let all = self.status().1["groups"].as_array().cloned().unwrap_or_default();
        all.into_iter().find(|status| status["group"] == name.as_str())
    }

    pub fn drifts(&self, group: &str) -> Vec<Value> {
        let status = self.status_of(group);
        status.and_then(|status| status["drift"].as_array().cloned()).unwrap_or_default()
    }

    /// Everything that `status`, `where` and `get` report now is true of the processes.
    pub fn truth(&self) {
        self.where_is_true();
        let (code, status) = self.status();
        let groups = status["groups"].as_array().cloned().unwrap_or_default();
        let has_drift = groups.iter().any(|group| group["drift"] != Value::Array(Vec::new()));
        let misplaced = status["misplaced"].as_array().is_some_and(|misplaced| !misplaced.is_empty());
        assert_eq!(
            code == 3,
            has_drift || status["drift"] == true || misplaced,
            "exit status {code} of {status:#}"
        );
        groups.iter().for_each(|group| self.group_is_true(group));
    }

    fn where_is_true(&self) {
        if self.pids.is_empty() {
            return;
        }
        let words: Vec<String> = self.pids.iter().map(u32::to_string).collect();
        let answer = self.desk.json(&format!("where --json {}", words.join(" ")), 0);
        let answers = answer.as_array().unwrap();
        assert_eq!(answers.len(), self.pids.len());
        for (answer, pid) in answers.iter().zip(&self.pids) {
            assert_eq!(answer["process"]["pid"], *pid);
            let reported = answer["hierarchies"].as_object().unwrap();
            for (controllers, group) in groups_of(*pid) {
                let Some(mount) = self.mounts.iter().find(|at| at.controllers == controllers) else {
                    continue;
                };
                let keys = if controllers.is_empty() { "unified" } else { controllers.as_str() };
                // controllers that are mounted together have one name, in the order of ours
                let set = |words: &str| words.split(',').map(str::to_owned).collect::<BTreeSet<String>>();
                let of_mount = |(label, _): &(&String, &Value)| set(label) == set(keys);
                let found = reported.iter().find(of_mount);
                let (_, one) = found.unwrap_or_else(|| panic!("'{keys}' is not in {reported:?}"));
                let path = PathBuf::from(one["path"].as_str().unwrap());
                assert_eq!(path, mount.path.join(group.trim_start_matches('/')), "{keys} of {pid}");
            }
        }
    }

    fn group_is_true(&self, status: &Value) {
        let group = status["group"].as_str().unwrap();
        let texts = |value: &Value| -> Vec<PathBuf> {
            value.as_array().unwrap().iter().map(|one| PathBuf::from(one.as_str().unwrap())).collect()
        };
        let directories = texts(&status["directories"]);
        let drifts = status["drift"].as_array().unwrap();
        for directory in &directories {
            let says_gone = drifts
                .iter()
                .filter(|drift| drift["drift"] == "gone" || drift["is_there"] == false)
                .any(|drift| drift["directory"] == directory.to_str().unwrap());
            assert_eq!(says_gone, !directory.is_dir(), "{}: {drifts:?}", directory.display());
        }
        for setting in status["settings"].as_array().unwrap() {
            let file = setting["file"].as_str().unwrap();
            let now = fs::read_to_string(file).ok();
            let now = now.as_deref().map(|text| text.trim_end_matches('\n'));
            let actual = setting["actual"].as_str();
            let is_line = |actual: &str| now.is_some_and(|now| now.lines().any(|line| line == actual));
            assert!(
                actual == now || actual.is_some_and(is_line),
                "{file} holds {now:?}, status says {actual:?}"
            );
            let is_drift =
                drifts.iter().any(|drift| drift["file"] == file || drift["drift"] == "invalid-partition");
            assert!(setting["as_requested"] == true || is_drift, "{file}: {setting} and {drifts:?}");
        }
        self.tasks_are_true(group, status, &directories, drifts);
        for setting in ["pids.max", "memory.max", "cpu.weight"] {
            self.get_is_true(group, setting);
        }
    }

    /// Every process that is in one of the group's directories is named, and no other; without a drift each of them is in
    /// all of those directories and on the CPUs of the group.
    fn tasks_are_true(&self, group: &str, status: &Value, directories: &[PathBuf], drifts: &[Value]) {
        let named: BTreeSet<u64> =
            status["tasks"].as_array().unwrap().iter().map(|task| task["pid"].as_u64().unwrap()).collect();
        let listed = |directory: &Path| -> BTreeSet<u64> {
            let text = fs::read_to_string(directory.join("cgroup.procs")).unwrap_or_default();
            text.lines().filter_map(|line| line.parse().ok()).collect()
        };
        let everywhere: BTreeSet<u64> =
            self.mounts.iter().flat_map(|at| listed(&at.path.join(group))).collect();
        let below_unit: BTreeSet<u64> = directories.iter().flat_map(|directory| listed(directory)).collect();
        let all: BTreeSet<u64> = everywhere.union(&below_unit).copied().collect();
        assert_eq!(named, all, "the processes of {group}");
        if !drifts.is_empty() {
            return;
        }
        for directory in directories {
            assert_eq!(
                listed(directory),
                all,
                "{group} is as asked, but its tasks are not all in {}",
                directory.display()
            );
        }
        let Some(cpus) = status["cpus"].as_str() else { return };
        for pid in all {
            let own = self.cpus(u32::try_from(pid).unwrap());
            let part = ids(&own).is_subset(&ids(cpus));
            assert!(part, "{pid} of {group} runs on {own}, status says {cpus}");
        }
    }

    fn get_is_true(&self, group: &str, setting: &str) {
        let Ok(text) = fs::read_to_string(self.file(group, setting)) else { return };
        let answer = self.desk.json(&format!("get --json {group} {setting}"), 0);
        let value = &answer["settings"][0]["value"];
        let text = text.trim_end();
        match value.as_u64() {
            // shares are weights on another scale
            _ if setting == "cpu.weight" && self.is_v1("cpu") => {
                let (shares, weight): (f64, f64) = (text.parse().unwrap(), value.as_f64().unwrap());
                assert!(
                    (shares / 10.24 - weight).abs() <= 1.0,
                    "{group} has {shares} shares, get says {value}"
                );
            }
            _ if setting == "cpu.weight" => {
                assert_eq!(value.as_f64(), text.parse().ok(), "weight of {group}")
            }
            Some(number) => assert_eq!(number.to_string(), text, "{setting} of {group}"),
            None => {
                assert!(self.is_unlimited(group, setting), "{setting} of {group} is {text}, get says {value}")
            }
        }
    }
}

/// The groups of a process by controllers ("" is v2), as /proc/PID/cgroup has them.
fn groups_of(pid: u32) -> BTreeMap<String, String> {
    let text = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap();
    let line = |line: &str| {
        let mut fields = line.splitn(3, ':').skip(1);
        (fields.next().unwrap().to_owned(), fields.next().unwrap().to_owned())
    };
    text.lines().map(line).collect()
}

fn mounts() -> Vec<Mount> {
    let text = fs::read_to_string("/proc/self/mounts").unwrap();
    let mut mounts: Vec<Mount> = Vec::new();
    for line in text.lines() {
        let fields: Vec<&str> = line.split(' ').collect();
        let controllers = match fields[2] {
            "cgroup2" => String::new(),
            "cgroup" => {
                let is_option = |word: &&str| {
                    matches!(
                        *word,
                        "rw" | "ro" | "nosuid" | "nodev" | "noexec" | "relatime" | "xattr" | "noprefix"
                    ) || word.starts_with("release_agent=")
                        || *word == "clone_children"
                };
                let words: Vec<&str> = fields[3].split(',').filter(|word| !is_option(word)).collect();
                words.join(",")
            }
            _ => continue,
        };
        if !mounts.iter().any(|at| at.controllers == controllers) {
            mounts.push(Mount { controllers, path: fields[1].into() });
        }
    }
    mounts
}

/// The numbers of a list such as `0-3,8`.
pub fn ids(list: &str) -> BTreeSet<usize> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        first.parse::<usize>().unwrap()..=last.parse().unwrap()
    };
    list.split(',').filter(|part| !part.is_empty()).flat_map(range).collect()
}
