//! What is applied while it is broken off: groups that are there before, some of them named by the layout and some not,
//! and the layout.

use settings::{
    Controller::{Core, Cpu, Cpuset, Devices, Memory, Pids},
    Version,
};

use crate::{groups::Groups, pipeline::Layout};

/// One of them.
pub struct Scenario {
    pub name: &'static str,
    /// Makes what is there before. Groups whose name begins with `live` are not the layout's.
    pub settle: fn(&mut Groups),
    /// The layout, for groups of a prefix.
    pub layout: fn(&str) -> Layout,
    pub least_steps: usize,
}

impl Scenario {
    pub fn called(name: &str) -> &'static Scenario {
        ALL.iter().find(|scenario| scenario.name == name).unwrap()
    }
}

pub static SETS: Scenario = Scenario { name: "sets", settle: settle_sets, layout: sets, least_steps: 30 };
pub static DEVICES: Scenario =
    Scenario { name: "devices", settle: settle_devices, layout: devices, least_steps: 6 };
pub static MOUNTS: Scenario =
    Scenario { name: "mounts", settle: settle_mounts, layout: mounts, least_steps: 8 };
const ALL: [&Scenario; 3] = [&SETS, &DEVICES, &MOUNTS];

/// `old`, which the layout changes, and `live`, which it does not, both with a process. On v2 the memory controller is
/// enabled by the layout only.
pub fn settle_sets(groups: &mut Groups) {
    let has_memory = groups.host.hierarchy_of(Memory).is_some_and(|at| at.version == Version::V1);
    let controllers = if has_memory { &[Cpu, Cpuset, Pids, Memory][..] } else { &[Cpu, Cpuset, Pids] };
    for group in ["old", "live", "live/below"] {
        groups.make(group, controllers);
        groups.write(Cpuset, group, "cpuset.mems", "0");
        groups.write(Cpuset, group, "cpuset.cpus", "0-1");
        groups.write(Cpu, group, "cpu.shares", "2048");
        groups.write(Pids, group, "pids.max", "100");
        if has_memory {
            groups.write(Memory, group, "memory.limit_in_bytes", "67108864");
        }
    }
    for group in ["old", "live/below"] {
        let pid = groups.start("idle");
        groups.put(pid, group);
    }
}

pub fn sets(prefix: &str) -> Layout {
    let mut text = String::new();
    for (group, cpus, weight, memory, pids) in [
        ("old", "1", 30, "32M", "\"max\""),
        ("a", "0-1", 50, "128M", "50"),
        ("a/b", "0", 60, "64M", "40"),
        ("c", "0", 70, "128M", "30"),
        ("d", "1", 80, "16M", "20"),
    ] {
        text += &format!(
            "[groups.\"{prefix}{group}\"]\ncpus = \"{cpus}\"\nmems = \"0\"\ncpu.weight = {weight}\n\
             memory.max = \"{memory}\"\npids.max = {pids}\n\
             tasks = {{ user = 1000, group = 1000 }}\nadmin = {{ user = 1001, group = 1001 }}\n"
        );
    }
    ("layout.toml", text)
}

fn settle_devices(groups: &mut Groups) {
    let devices = groups.host.hierarchy_of(Devices).unwrap();
    let holder = if devices.version == Version::V2 { Core } else { Devices };
    for group in ["old", "live"] {
        groups.make(group, &[holder]);
        let pid = groups.start("idle");
        groups.put(pid, group);
    }
}

pub fn devices(prefix: &str) -> Layout {
    let mut text = String::new();
    for group in ["old", "a", "c"] {
        text += &format!(
            "[groups.\"{prefix}{group}\"]\ndevices.deny = \"a\"\n\
             devices.allow = [\"c 1:3 rwm\", \"c 1:5 r\"]\n"
        );
    }
    ("layout.toml", text)
}

/// Where hierarchies are mounted; the directory is there.
pub const MOUNT: &str = "/tmp/rf-test-mounts";

pub fn settle_mounts(_: &mut Groups) {
    std::fs::create_dir_all(MOUNT).unwrap();
}

pub fn mounts(prefix: &str) -> Layout {
    let text = format!(
        "mount {{\n  cpu = {MOUNT}/cpu;\n  cpuacct = {MOUNT}/cpu;\n  cpuset = {MOUNT}/cpuset;\n  \
         pids = {MOUNT}/pids;\n  \"name=rf-test\" = {MOUNT}/named;\n}}\n\
         group {prefix}a {{\n  perm {{\n    task {{ uid = 1000; gid = 1000; }}\n    admin {{ uid = 0; gid = 0; }}\n  }}\n  \
         cpu {{ cpu.shares = 300; }}\n  cpuset {{ cpuset.cpus = 0; cpuset.mems = 0; }}\n  pids {{ pids.max = 50; }}\n}}\n"
    );
    ("cgconfig.conf", text)
}
