//! Sampling on the in-memory kernel: v1, v2 and both through the same table.

use kernel::{Fake, GroupName, Host};
use libtest_mimic::Trial;
use settings::{Controller, Version};
use watch::{Anew, Beat, Groups, Options, Reading, Sampler};

use crate::trial;

pub fn trials() -> Vec<Trial> {
    vec![
        trial("the same figures are told on v1, v2 and both", alike),
        trial("groups are named as users name them", names),
        trial("a group that is gone has no row", gone),
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

    fn sampler(&self, groups: Groups) -> Sampler<Anew<Fake>> {
        Sampler::new(&self.host, Anew(self.fake.clone()), Options { groups, slow_every: 1 }, false)
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
