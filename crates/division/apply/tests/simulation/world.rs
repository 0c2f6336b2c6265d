//! What there is before the first apply, and what others do meanwhile: their groups, values and tasks. Everything that has
//! nothing to do with Ringfence happens in a second kernel as well, where Ringfence never was.

use fake::Fake;
use kernel::{Hierarchy, Kernel};
use settings::Version;

use crate::random::Random;

/// Which kind of kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    V1,
    V2,
    V2Exclusive,
    V2Firm,
    Hybrid,
}

pub const CPUS: usize = 4;

impl Kind {
    pub fn random(random: &mut Random) -> Kind {
        random.pick(&[Kind::V1, Kind::V1, Kind::V2, Kind::V2, Kind::V2Exclusive, Kind::V2Firm, Kind::Hybrid])
    }

    /// A kernel on which others were before: groups `old`, `old/in` and `live`, with values and tasks.
    pub fn kernel(self, random: &mut Random) -> Fake {
        let fake = match self {
            Kind::V1 => Fake::v1(CPUS, 1),
            Kind::V2 => Fake::v2(CPUS, 1),
            Kind::V2Exclusive => Fake::v2_with_exclusive_cpus(CPUS, 1),
            Kind::V2Firm => Fake::v2_with_firm_partitions(CPUS, 1),
            Kind::Hybrid => Fake::hybrid(CPUS, 1),
        };
        let others = random.chance(70);
        for at in fake.hierarchies().unwrap().iter().filter(|_| others) {
            if at.version == Version::V2 {
                let all = ["", "+cpu", "+memory", "+cpu +memory +pids", "+io"];
                let _ = fake.write(at, "", "cgroup.subtree_control", random.pick(&all));
            }
            for group in ["old", "old/in", "live"] {
                fake.mkdir(at, group).unwrap();
            }
            for (file, texts) in VALUES {
                for group in ["old", "live", "old/in"] {
                    if random.chance(40) {
                        let _ = fake.write(at, group, file, random.pick(texts)); // where that file is
                    }
                }
            }
        }
        if others {
            for group in ["live", "live", "old/in"] {
                let pid = fake.spawn(1).unwrap();
                for at in fake.hierarchies().unwrap() {
                    let _ = fake.write(&at, group, "cgroup.procs", &pid.to_string());
                }
            }
        }
        fake
    }

    /// Has memory the files of v1?
    pub fn has_v1_memory(self) -> bool {
        self == Kind::V1
    }
}

/// Files that others write, with texts; those that a kernel lacks are left out.
pub const VALUES: [(&str, &[&str]); 11] = [
    ("cpuset.mems", &["0"]),
    ("cpuset.cpus", &["0-3", "0-1", "1"]),
    ("cpu.shares", &["2048", "300", "1024"]),
    ("cpu.weight", &["300", "77"]),
    ("cpu.cfs_quota_us", &["50000", "-1"]),
    ("cpu.max", &["20000 100000", "max 100000"]),
    ("memory.limit_in_bytes", &["67108864", "-1"]),
    ("memory.max", &["67108864", "max"]),
    ("pids.max", &["77", "max"]),
    ("io.max", &["254:0 riops=77", "254:0 riops=max"]),
    ("blkio.throttle.read_iops_device", &["254:0 77", "254:0 0"]),
];

/// One thing that others do.
#[derive(Debug, Clone)]
pub enum Event {
    Write {
        tree: usize,
        group: String,
        file: &'static str,
        text: &'static str,
    },
    Make {
        tree: usize,
        group: String,
    },
    Remove {
        tree: usize,
        group: String,
    },
    Spawn,
    Move {
        pid: u32,
        tree: usize,
        group: String,
    },
    End {
        pid: u32,
    },
    /// A process that forks whenever somebody looks at it.
    Storm {
        tree: usize,
        group: String,
    },
    Cpu {
        cpu: usize,
        online: bool,
    },
}

impl Event {
    /// Something that could happen now. `made` are the tasks that events made.
    pub fn random(random: &mut Random, fake: &Fake, made: &[u32]) -> Event {
        let hierarchies = fake.hierarchies().unwrap();
        let at = random.pick(&hierarchies);
        let groups: Vec<String> = fake.descendants(&at, "").unwrap();
        let group = |random: &mut Random| match groups.is_empty() {
            true => String::new(),
            false => random.pick(&groups),
        };
        match random.below(14) {
            12 => Event::Storm { tree: at.id, group: group(random) },
            13 => Event::Cpu { cpu: CPUS - 1, online: random.chance(60) },
            0..4 => {
                let here: Vec<_> = VALUES.iter().filter(|(file, _)| has(fake, &at, &groups, file)).collect();
                let Some((file, texts)) = here.get(random.below(here.len().max(1))) else {
                    return Event::Spawn;
                };
                Event::Write { tree: at.id, group: group(random), file, text: random.pick(texts) }
            }
            4 => {
                let above = group(random);
                let group = if above.is_empty() { "theirs".to_owned() } else { format!("{above}/theirs") };
                Event::Make { tree: at.id, group }
            }
            5 => Event::Remove { tree: at.id, group: group(random) },
            6 | 7 => Event::Spawn,
            8 if !made.is_empty() => Event::End { pid: random.pick(made) },
            _ if !made.is_empty() => {
                Event::Move { pid: random.pick(made), tree: at.id, group: group(random) }
            }
            _ => Event::Spawn,
        }
    }
}

fn has(fake: &Fake, at: &Hierarchy, groups: &[String], file: &str) -> bool {
    groups.first().is_some_and(|group| fake.read(at, group, file).is_ok())
}
