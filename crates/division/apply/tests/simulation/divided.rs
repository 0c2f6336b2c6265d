//! Groups in a service's group on the kernel in memory: what stands in the way of them, and what others did below.

use std::collections::BTreeMap;

use apply::Divided;
use fake::Fake;
use kernel::{Hierarchy, Host, Kernel};
use plan::Inside;

use crate::world::CPUS;

const SERVICE: &str = "system.slice/one.service";

/// A service with a process in its own group.
struct Service {
    fake: Fake,
    host: Host,
    pid: u32,
}

impl Service {
    fn new() -> Service {
        let fake = Fake::v2(CPUS, 1);
        let at = fake.hierarchies().unwrap().remove(0);
        fake.write(&at, "", "cgroup.subtree_control", "+pids +cpu").unwrap();
        fake.mkdir(&at, "system.slice").unwrap();
        fake.write(&at, "system.slice", "cgroup.subtree_control", "+pids +cpu").unwrap();
        fake.mkdir(&at, SERVICE).unwrap();
        let host = Host::new(Box::new(fake.clone())).unwrap();
        let pid = fake.spawn(1).unwrap();
        let service = Service { fake, host, pid };
        service.enter(service.pid, "");
        service
    }

    fn at(&self) -> Hierarchy {
        self.fake.hierarchies().unwrap().remove(0)
    }

    fn path(name: &str) -> String {
        units::group_path::join(SERVICE, name)
    }

    fn enter(&self, pid: u32, name: &str) {
        self.fake.write(&self.at(), &Service::path(name), "cgroup.procs", &pid.to_string()).unwrap();
    }

    fn holds(&self, name: &str, file: &str) -> String {
        let text = self.fake.read(&self.at(), &Service::path(name), file).unwrap();
        text.trim_end().to_owned()
    }

    fn groups(&self) -> Vec<String> {
        let mut names = self.fake.children(&self.at(), SERVICE).unwrap();
        names.sort();
        names
    }

    fn make(&self, inside: &Inside) {
        self.divided(|divided| divided.make(inside).unwrap());
    }

    fn divided<T>(&self, act: impl FnOnce(&Divided<'_>) -> T) -> T {
        act(&Divided::new(&self.host, &self.host.hierarchies()[0], SERVICE).unwrap())
    }
}

fn inside() -> Inside {
    let write = |file: &str, text: &str| (file.to_owned(), text.to_owned());
    let maintenance = vec![write("pids.max", "50"), write("cpu.weight", "20")];
    Inside::new(BTreeMap::from([("maintenance".to_owned(), maintenance)]))
}

#[test]
fn a_group_that_was_made_without_its_values_gets_them() {
    let service = Service::new();
    service.make(&inside());
    service.fake.write(&service.at(), &Service::path("maintenance"), "pids.max", "max").unwrap();
    service.make(&inside());
    assert_eq!(service.holds("maintenance", "pids.max"), "50");
    // as after a kill between the directory and its values
    service.divided(|divided| divided.end(&inside(), None).unwrap());
    service.fake.mkdir(&service.at(), &Service::path("maintenance")).unwrap();
    service.make(&inside());
    assert_eq!((service.holds("maintenance", "cpu.weight").as_str(), service.groups().len()), ("20", 2));
}

/// systemd before 254 moves a service's first process into the service's own group, which takes none once it hands down
/// controllers (EBUSY): the start would fail.
#[test]
fn a_service_that_starts_is_divided_once_its_processes_are_there() {
    let service = Service::new();
    let started = Inside { starts_in_main: true, ..inside() };
    service.fake.end(service.pid);
    service.make(&inside());
    assert_eq!(service.holds("", "cgroup.subtree_control"), "");
    let first = service.fake.spawn(1).unwrap();
    service.enter(first, "");
    service.make(&inside());
    assert_eq!(service.holds("main", "cgroup.procs"), first.to_string());
    assert_eq!(service.holds("maintenance", "pids.max"), "50");
    // where systemd starts it in `main` it may be divided before
    service.fake.end(first);
    service.divided(|divided| divided.end(&inside(), None).unwrap());
    assert_eq!(service.groups(), [""; 0]);
    service.make(&started);
    assert_eq!(service.holds("maintenance", "pids.max"), "50");
}

/// The user of a service that systemd delegated makes groups beside ours, which hand down the same controllers.
#[test]
fn groups_that_the_services_user_made_do_not_keep_an_undo() {
    let service = Service::new();
    let before = service.holds("", "cgroup.subtree_control");
    service.make(&inside());
    for name in ["own", "own/deeper"] {
        service.fake.mkdir(&service.at(), &Service::path(name)).unwrap();
    }
    for name in ["own", "own/deeper"] {
        let path = Service::path(name);
        service.fake.write(&service.at(), &path, "cgroup.subtree_control", "+pids").unwrap();
    }
    service.divided(|divided| divided.end(&inside(), None).unwrap());
    assert_eq!(service.groups(), ["own"], "it is theirs");
    assert_eq!(service.holds("", "cgroup.subtree_control"), before);
    assert_eq!(service.holds("", "cgroup.procs"), service.pid.to_string());
}
