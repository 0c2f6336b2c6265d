//! Sampling on the in-memory kernel: v1, v2 and both through the same table.

use std::{thread::sleep, time::Duration};

use fake::Fake;
use kernel::{GroupName, Hierarchy, Host};
use libtest_mimic::Trial;
use monitor::{Beat, Buffer, Files, Groups, Loads, Named, Options, Reading, Sampler, Uncached};
use rustix::io::Errno;
use settings::{Controller, Version};

use crate::trial;

pub fn trials() -> Vec<Trial> {
    vec![
        trial("the same figures are shown on v1, v2 and both", alike),
        trial("groups are named as users name them", names),
        trial("a group that is gone has no row", gone),
        trial("operations are read when bytes moved, or in their turn", operations),
        trial("of figures that nobody wants nothing is read", only),
        trial("waiting is the pressure of v2's groups", pressed),
    ]
}

struct World {
    fake: Fake,
    host: Host,
}

impl World {
    fn new(fake: Fake) -> World {
        let host = Host::new(Box::new(fake.clone())).unwrap();
        World { fake, host }
    }

    /// A group in every hierarchy, on v2 with all controllers.
    fn make(&self, path: &str) {
        for at in self.host.hierarchies() {
            let parent = path.rsplit_once('/').map_or("", |(parent, _)| parent);
            if at.version == Version::V2 {
                let names = at.controllers.iter().filter_map(|one| one.name(Version::V2));
                let all: Vec<String> = names.map(|name| format!("+{name}")).collect();
                self.host.kernel().write(at, parent, "cgroup.subtree_control", &all.join(" ")).unwrap();
            }
            self.host.kernel().mkdir(at, path).unwrap();
        }
    }

    fn write(&self, controller: Controller, path: &str, v1: (&str, &str), v2: (&str, &str)) {
        let at = self.host.hierarchy_of(controller).unwrap();
        let (file, text) = if at.version == Version::V1 { v1 } else { v2 };
        self.host.kernel().write(at, path, file, text).unwrap();
    }

    fn sampler(&self, groups: Groups) -> Sampler<Uncached<Fake>> {
        Sampler::new(&self.host, Uncached(self.fake.clone()), Options { groups, slow_every: 1 }, false)
    }
}

fn worlds() -> [World; 3] {
    [Fake::v1(4, 2), Fake::v2(4, 2), Fake::hybrid(4, 2)].map(World::new)
}

fn alike() {
    for world in worlds() {
        world.make("db");
        let mut sampler = world.sampler(Groups::Ours);
        world.write(Controller::Pids, "db", ("pids.max", "9"), ("pids.max", "9"));
        world.write(
            Controller::Memory,
            "db",
            ("memory.limit_in_bytes", "1048576"),
            ("memory.max", "1048576"),
        );
        world.write(Controller::Cpu, "db", ("cpu.cfs_quota_us", "50000"), ("cpu.max", "50000 100000"));
        let pid = world.fake.spawn(1).unwrap();
        for at in world.host.hierarchies() {
            if at.controllers.contains(&Controller::Pids) {
                world.host.kernel().write(at, "db", "cgroup.procs", &pid.to_string()).unwrap();
            }
        }
        world.write(Controller::Freezer, "db", ("freezer.state", "FROZEN"), ("cgroup.freeze", "1"));
        let table = &sampler.tick(&world.host, Beat::default()).unwrap().groups;
        for (field, expected) in [
            ("pids.current", Reading::At(1)),
            ("pids.max", Reading::At(9)),
            ("memory.max", Reading::At(1 << 20)),
            ("memory.current", Reading::At(0)),
            ("cpu.max.quota", Reading::At(50_000_000)),
            ("cpu.max.period", Reading::At(100_000_000)),
            ("cpu.throttled.periods", Reading::At(0)),
            ("frozen", Reading::At(1)),
        ] {
            let versions: Vec<Version> = world.host.hierarchies().iter().map(|at| at.version).collect();
            assert_eq!(table.get("db", field), expected, "{field} on {versions:?}");
        }
        world.write(Controller::Pids, "db", ("pids.max", "max"), ("pids.max", "max"));
        sampler.refresh();
        let table = &sampler.tick(&world.host, Beat::default()).unwrap().groups;
        assert_eq!(table.get("db", "pids.max"), Reading::Max);
    }
}

fn names() {
    let world = World::new(Fake::v2(4, 2));
    for group in ["db", "db/oltp", "db-2", "web"] {
        world.make(group);
    }
    let rows = |groups| {
        let mut sampler = world.sampler(groups);
        sampler.tick(&world.host, Beat::default()).unwrap().groups.rows().to_vec()
    };
    assert_eq!(rows(Groups::Ours), ["/", "db", "db-2", "db/oltp", "web"]);
    assert_eq!(rows(Groups::Named(vec![GroupName::new("db").unwrap()])), ["db", "db/oltp"]);
    assert_eq!(rows(Groups::Named(vec![GroupName::new("none").unwrap()])), [""; 0]);
}

fn gone() {
    for world in worlds() {
        ["a", "b"].iter().for_each(|group| world.make(group));
        let mut sampler = world.sampler(Groups::Ours);
        assert_eq!(sampler.tick(&world.host, Beat::default()).unwrap().groups.rows().len(), 3);
        world.host.hierarchies().iter().for_each(|at| world.host.kernel().rmdir(at, "a").unwrap());
        sampler.tick(&world.host, Beat::default()).unwrap();
        let rows = sampler.tick(&world.host, Beat::default()).unwrap().groups.rows().to_vec();
        assert_eq!(rows, ["/", "b"]);
    }
}

/// The in-memory kernel's files, but for these two, which it has not, or writes itself: they say what the test wrote.
struct Shown(Uncached<Fake>, [&'static str; 2]);

const BYTES_AND_OPERATIONS: [&str; 2] =
    ["blkio.throttle.io_service_bytes_recursive", "blkio.throttle.io_serviced_recursive"];

impl Files for Shown {
    type Open = Named;

    fn open(&self, at: &Hierarchy, group: &str, file: &str) -> Result<Named, Errno> {
        match self.1.contains(&file) {
            true => Ok(Named::Outside(format!("/shown/{file}"))),
            false => self.0.open(at, group, file),
        }
    }

    fn open_outside(&self, path: &str) -> Result<Named, Errno> {
        self.0.open_outside(path)
    }

    fn read(&self, file: &Named, into: &mut Buffer) -> Result<(), Errno> {
        self.0.read(file, into)
    }

    fn at_most(&self) -> usize {
        usize::MAX
    }
}

fn operations() {
    let world = World::new(Fake::v1(4, 2));
    world.make("db");
    let show = |place: usize, text: &str| {
        world.fake.set_outside(format!("/shown/{}", BYTES_AND_OPERATIONS[place]), text);
    };
    show(0, "8:16 Read 4096\n");
    show(1, "8:16 Read 1\n");
    let files = Shown(Uncached(world.fake.clone()), BYTES_AND_OPERATIONS);
    let groups = Groups::Named(vec![GroupName::new("db").unwrap()]);
    let mut sampler = Sampler::new(&world.host, files, Options { groups, slow_every: 1000 }, false);
    let read = |sampler: &mut Sampler<Shown>| {
        let table = &sampler.tick(&world.host, Beat::default()).unwrap().groups;
        ["io.rbytes", "io.rios"].map(|field| table.get("db", field))
    };
    assert_eq!(read(&mut sampler), [Reading::At(4096), Reading::At(1)], "a device that is new");
    show(1, "8:16 Read 2\n");
    assert_eq!(read(&mut sampler), [Reading::At(4096), Reading::At(1)], "no byte moved");
    show(0, "8:16 Read 8192\n");
    assert_eq!(read(&mut sampler), [Reading::At(8192), Reading::At(2)]);
    show(1, "8:16 Read 3\n");
    sampler.refresh();
    assert_eq!(read(&mut sampler), [Reading::At(8192), Reading::At(3)], "in its turn");
}

fn only() {
    for world in worlds() {
        world.make("db");
        let mut sampler = world.sampler(Groups::Ours);
        sampler.tick(&world.host, Beat::default()).unwrap();
        let all = sampler.open_files();
        sampler.only(&world.host, |field| field.name == "pids.current");
        let table = &sampler.tick(&world.host, Beat::default()).unwrap().groups;
        assert_eq!(table.get("db", "pids.current"), Reading::At(0));
        // the root of v2 has no such file
        assert!((1..=2).contains(&sampler.open_files()) && all > 2, "{all} files before");
    }
}

fn pressed() {
    let world = World::new(Fake::v2(4, 2));
    world.make("db");
    let count = |milliseconds: u64| {
        let microseconds = milliseconds * 1000;
        world.fake.set_outside("/shown/cpu.stat", &format!("usage_usec {microseconds}\n"));
        let pressure = format!("some avg10=0.00 avg60=0.00 avg300=0.00 total={microseconds}\n");
        world.fake.set_outside("/shown/cpu.pressure", &pressure);
    };
    let files = Shown(Uncached(world.fake.clone()), ["cpu.stat", "cpu.pressure"]);
    let mut loads = Loads::new(&world.host, files, vec![GroupName::new("db").unwrap()]);
    let look = |loads: &mut Loads<_>, milliseconds: u64| {
        count(milliseconds);
        sleep(Duration::from_millis(20));
        loads.look(&world.host);
        loads.all().next().unwrap()
    };
    assert!(look(&mut loads, 0).is_none());
    assert!(look(&mut loads, 5).is_some_and(|load| load.used > 0.01));
    let load = look(&mut loads, 10).unwrap();
    assert!(load.waiting > 0.01 && (load.waiting - load.used).abs() < 1e-6, "{load:?}");
}
