//! On a real kernel's v2 hierarchy: what the fields' files hold there.

use std::time::{Duration, Instant};

use fake::suite;
use kernel::{GroupName, Hierarchy, Host, Real};
use libtest_mimic::Trial;
use monitor::{Beat, Descriptors, Groups, Options, Reading, Sampler};
use nix::sys::{
    resource::{UsageWho, getrusage},
    time::TimeValLike,
};
use settings::{Controller, Version};

use crate::load::Load;

const NEEDED: [Controller; 3] = [Controller::Cpu, Controller::Memory, Controller::Pids];

pub fn trials() -> Vec<Trial> {
    let host = Host::new(Box::new(Real::new())).ok();
    let has_all =
        |at: &Hierarchy| at.version == Version::V2 && NEEDED.iter().all(|one| at.controllers.contains(one));
    let has_all = host.is_some_and(|host| host.hierarchies().iter().any(has_all));
    let lacks = (!has_all).then_some("cpu, memory and pids on v2");
    let lacks = lacks.or((!rustix::process::geteuid().is_root()).then_some("root"));
    vec![suite::trial("a v2 group's figures agree with other sources", lacks.map(str::to_owned), figures)]
}

/// A group below a parent that gives it controllers; removed when dropped.
struct World {
    host: Host,
    top: String,
}

impl World {
    fn new() -> World {
        let host = Host::new(Box::new(Real::new())).unwrap();
        let world = World { host, top: format!("rf-test-watch-v2-{}", std::process::id()) };
        let kernel = world.host.kernel();
        kernel.write(world.at(), "", "cgroup.subtree_control", "+cpu +memory +pids").unwrap();
        kernel.mkdir(world.at(), &world.top).unwrap();
        world
    }

    fn at(&self) -> &Hierarchy {
        self.host.hierarchies().iter().find(|at| at.version == Version::V2).unwrap()
    }

    fn write(&self, file: &str, text: &str) {
        self.host.kernel().write(self.at(), &self.top, file, text).unwrap();
    }

    fn read(&self, file: &str) -> String {
        self.host.kernel().read(self.at(), &self.top, file).unwrap()
    }

    /// A time of `cpu.stat`, in nanoseconds.
    fn cpu_time(&self, key: &str) -> u64 {
        let stat = self.read("cpu.stat");
        let time = stat.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' ')).unwrap();
        time.parse::<u64>().unwrap() * 1000
    }
}

impl Drop for World {
    fn drop(&mut self) {
        for _ in 0..1000 {
            if self.host.kernel().rmdir(self.at(), &self.top) != Err(rustix::io::Errno::BUSY) {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

fn finished_children() -> u64 {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).unwrap();
    (usage.user_time().num_nanoseconds() + usage.system_time().num_nanoseconds()) as u64
}

fn figures() {
    let world = World::new();
    let groups = Groups::Named(vec![GroupName::new(&world.top).unwrap()]);
    let options = Options { groups, slow_every: 1 };
    let mut sampler = Sampler::new(&world.host, Descriptors::new(), options, true);
    let run = |words: &[&str]| {
        let mut load = Load::new(words);
        let elsewhere = load.used();
        world.write("cgroup.procs", &load.pid().to_string());
        load.go();
        assert!(load.is_done());
        (load, elsewhere)
    };
    let before = finished_children();
    let (load, elsewhere) = run(&["burn", "2000"]);
    load.end();
    let spent = finished_children() - before - elsewhere;
    let table = &sampler.tick(&world.host, Beat::default()).unwrap().groups;
    let usage = table.get(&world.top, "cpu.usage").at().unwrap();
    let difference = usage.abs_diff(spent) as f64 / spent as f64;
    assert!(difference < 0.01, "cpu.usage {usage} ns, getrusage {spent} ns: {difference:.4}");
    world.write("cpu.max", "5000 100000");
    // an emulated CPU that was stopped meanwhile may burn it all between two looks of the kernel
    let deadline = Instant::now() + Duration::from_secs(60);
    while world.cpu_time("throttled_usec") == 0 {
        assert!(Instant::now() < deadline, "never throttled: {}", world.read("cpu.stat"));
        run(&["burn", "40"]).0.end();
    }
    world.write("cpu.max", "max");
    let (load, _) = run(&["take", "16"]);

    sampler.refresh();
    let table = &sampler.tick(&world.host, Beat::default()).unwrap().groups;
    let get = |field: &str| table.get(&world.top, field);
    let number = |field: &str| get(field).at().unwrap_or_else(|| panic!("{field} is missing"));
    assert!((usage..=world.cpu_time("usage_usec")).contains(&number("cpu.usage")));
    assert_eq!(number("cpu.throttled.time"), world.cpu_time("throttled_usec"));
    assert!(number("cpu.throttled.time") > 0);
    assert!((14 << 20..24 << 20).contains(&number("memory.anon")), "{}", number("memory.anon"));
    assert!(number("memory.current") >= number("memory.anon") / 2);
    assert!(number("memory.node.anon") <= 24 << 20);
    assert_eq!(
        (get("pids.current"), get("memory.max"), get("frozen")),
        (Reading::At(1), Reading::Max, Reading::At(0))
    );
    for field in
        ["memory.kernel", "memory.faults", "memory.scanned", "memory.events.oom_kill", "cpu.max.period"]
    {
        number(field);
    }
    load.end();
    world.write("memory.max", "16M");
    // a kernel without swap has no such file
    let _ = world.host.kernel().write(world.at(), &world.top, "memory.swap.max", "0");
    let mut killed = Load::new(&["take", "64"]);
    world.write("cgroup.procs", &killed.pid().to_string());
    killed.go();
    assert!(!killed.is_done(), "64 MiB fit into 16");
    killed.end();
    sampler.refresh();
    let table = &sampler.tick(&world.host, Beat::default()).unwrap().groups;
    assert_eq!(table.get(&world.top, "memory.events.oom_kill"), Reading::At(1));
    assert_eq!(table.get(&world.top, "memory.max"), Reading::At(16 << 20));
    assert_eq!(table.get(&world.top, "pids.current"), Reading::At(0));
}
