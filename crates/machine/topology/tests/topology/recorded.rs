//! Trees of `/sys` and `/proc` to read: recorded ones, kept as one text each, and made ones of any size.

use std::{collections::BTreeMap, fs, path::Path};

use tempfile::TempDir;

/// Unpacks a tree recorded as `path:line` (as `grep -r '' sys proc` prints files).
pub fn unpack(text: &str) -> TempDir {
    let mut files: BTreeMap<&str, String> = BTreeMap::new();
    for line in text.lines() {
        let (path, content) = line.split_once(':').unwrap();
        *files.entry(path).or_default() += &format!("{content}\n");
    }
    let root = scratch();
    for (path, content) in files {
        put(root.path(), path, &content);
    }
    root
}

/// In memory where there is such a place: a tree of 1,024 CPUs has 9,000 files.
pub fn scratch() -> TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

pub fn put(root: &Path, path: &str, content: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

/// A regular machine: how many of each there are in the one before. Siblings are numbered as Intel's firmware does,
/// the second threads of all cores after the first ones.
#[derive(Clone, Copy)]
pub struct Shape {
    pub packages: usize,
    pub nodes: usize,
    pub l3: usize,
    pub cores: usize,
    pub threads: usize,
}

impl Shape {
    fn all_cores(&self) -> usize {
        self.packages * self.nodes * self.l3 * self.cores
    }

    pub fn cpus(&self) -> usize {
        self.all_cores() * self.threads
    }

    /// The CPUs of `count` cores from core `first` on, as a list.
    pub fn list(&self, first: usize, count: usize) -> String {
        let thread = |thread| {
            let start = thread * self.all_cores() + first;
            format!("{start}-{}", start + count - 1)
        };
        super::cpus(&(0..self.threads).map(thread).collect::<Vec<_>>().join(",")).to_string()
    }

    /// The tree that Linux would show.
    pub fn tree(&self) -> TempDir {
        let root = scratch();
        let cpu = "sys/devices/system/cpu";
        let whole = format!("0-{}\n", self.cpus() - 1);
        put(root.path(), &format!("{cpu}/online"), &whole);
        put(root.path(), &format!("{cpu}/present"), &whole);
        put(root.path(), &format!("{cpu}/isolated"), "\n");
        put(root.path(), "proc/cpuinfo", "processor\t: 0\nmodel name\t: Made Processor\n");
        let (per_node, per_package) = (self.l3 * self.cores, self.nodes * self.l3 * self.cores);
        for id in 0..self.cpus() {
            let core = id % self.all_cores();
            let at = format!("{cpu}/cpu{id}");
            let start = |size: usize| core / size * size;
            for (file, content) in [
                ("topology/physical_package_id", (core / per_package).to_string()),
                ("topology/core_id", (core % per_package).to_string()),
                ("topology/core_cpus_list", self.list(core, 1)),
                ("topology/package_cpus_list", self.list(start(per_package), per_package)),
                ("cache/index3/level", "3".to_owned()),
                ("cache/index3/id", (core / self.cores).to_string()),
                ("cache/index3/size", "32768K".to_owned()),
                ("cache/index3/shared_cpu_list", self.list(start(self.cores), self.cores)),
                ("cpufreq/cpuinfo_max_freq", "3400000".to_owned()),
            ] {
                put(root.path(), &format!("{at}/{file}"), &format!("{content}\n"));
            }
        }
        put(root.path(), &format!("{cpu}/cpufreq/policy0/related_cpus"), "0\n");
        let count = self.packages * self.nodes;
        for id in 0..count {
            let at = format!("sys/devices/system/node/node{id}");
            let row: Vec<&str> = (0..count).map(|other| if other == id { "10" } else { "20" }).collect();
            put(root.path(), &format!("{at}/cpulist"), &format!("{}\n", self.list(id * per_node, per_node)));
            put(root.path(), &format!("{at}/distance"), &format!("{}\n", row.join(" ")));
            let memory = format!("Node {id} MemTotal: 67108864 kB\nNode {id} MemFree: 33554432 kB\n");
            put(root.path(), &format!("{at}/meminfo"), &memory);
        }
        root
    }
}
