//! What pictures lack on cgroup v1: tasks that are in a group in some hierarchies only, CPU time that nobody counts.

use std::collections::BTreeSet;

use exporters::view::{Note, Numbers, Picture, Value, choices, table};
use fake::{Fake, suite};
use kernel::{GroupName, Hierarchy, Host, Kernel, Real};
use libtest_mimic::{Completion, Trial};
use monitor::{Beat, Descriptors, Files, Groups, Options, Sampler, Uncached, Window};
use settings::Controller;

use crate::{load::Load, trial, world::World};

pub fn trials() -> Vec<Trial> {
    let real = |name: &str, case: fn()| match World::has_v1(Controller::Cpuacct) && is_root() {
        true => trial(name, case),
        false => suite::ignorable(name, || Ok(Completion::ignored_with("needs root and cpuacct on v1"))),
    };
    vec![
        trial("tasks are counted over all hierarchies, and where these differ that is said", differing),
        trial("where all hierarchies have the same tasks nothing is said", alike),
        real(
            "tasks of a real group that got a hierarchy later are counted as status counts them",
            real_tasks,
        ),
        real("a group without cpuacct has the reason in its column, and the command in why", uncounted),
    ]
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn picture(host: &Host, files: impl Files, names: &[&str], tops: &[String]) -> Picture {
    let options = Options { groups: Groups::Ours, slow_every: 1 };
    let mut sampler = Sampler::new(host, files, options, false);
    let mut window = Window::new(1);
    (0..2).for_each(|_| window.push(sampler.tick(host, Beat::default()).unwrap()));
    let chosen: Vec<_> = names.iter().flat_map(|name| choices(name).unwrap()).collect();
    let mut picture = Picture::new(&window, &chosen, Numbers::Figures, tops).unwrap();
    exporters::view::complete(&mut picture, host);
    picture
}

fn value(picture: &Picture, group: &str) -> Value {
    picture.rows.iter().find(|row| row.group == group).unwrap().values[0]
}

/// Newcomers' finding A11: a group of cpu with ten tasks gets cpuset and pids later.
fn differing() {
    let fake = Fake::v1(2, 1);
    let host = Host::new(Box::new(fake.clone())).unwrap();
    let at = |controller| host.hierarchy_of(controller).unwrap();
    for group in ["w", "w/below"] {
        [Controller::Cpu, Controller::Cpuset, Controller::Pids]
            .iter()
            .for_each(|controller| fake.mkdir(at(*controller), group).unwrap());
    }
    for number in 0..10 {
        let pid = fake.spawn(1).unwrap();
        let group = if number < 7 { "w" } else { "w/below" };
        fake.write(at(Controller::Cpu), group, "cgroup.procs", &pid.to_string()).unwrap();
    }
    let tasks = monitor::tasks(&host, &GroupName::new("w").unwrap()).unwrap();
    assert_eq!(tasks.len(), 10);
    assert_eq!(tasks.iter().filter(|task| task.group == "w/below").count(), 3);
    let picture = picture(&host, Uncached(fake.clone()), &["pids.current"], &[]);
    assert_eq!([value(&picture, "w"), value(&picture, "w/below")], [Value::At(10.0), Value::At(3.0)]);
    let by_hierarchy = "cpu,cpuacct 10, cpuset 0, pids 0".to_owned();
    assert_eq!(picture.notes[0], Note::Split { group: "w".to_owned(), by_hierarchy });
    assert_eq!(picture.notes[0].to_string(), "tasks of w by hierarchy: cpu,cpuacct 10, cpuset 0, pids 0");
    assert!(table(&picture, ("", "")).ends_with("by hierarchy: cpu,cpuacct 3, cpuset 0, pids 0\n"));
}

fn alike() {
    for fake in [Fake::v1(2, 1), Fake::v2(2, 1)] {
        let host = Host::new(Box::new(fake.clone())).unwrap();
        let pid = fake.spawn(1).unwrap();
        for at in host.hierarchies() {
            if at.version == settings::Version::V2 {
                fake.write(at, "", "cgroup.subtree_control", "+pids").unwrap();
            }
            fake.mkdir(at, "w").unwrap();
            if at.controllers.contains(&Controller::Cpuset) && at.version == settings::Version::V1 {
                fake.write(at, "w", "cpuset.cpus", "0").unwrap();
                fake.write(at, "w", "cpuset.mems", "0").unwrap();
            }
            fake.write(at, "w", "cgroup.procs", &pid.to_string()).unwrap();
        }
        let picture = picture(&host, Uncached(fake.clone()), &["pids.current"], &[]);
        assert_eq!((value(&picture, "w"), picture.notes), (Value::At(1.0), vec![]));
    }
}

/// A group of this machine in some hierarchies.
struct Partial {
    host: Host,
    name: String,
}

impl Partial {
    fn new(name: &str) -> Partial {
        let host = Host::new(Box::new(Real::new())).unwrap();
        Partial { host, name: format!("rf-test-watch-{name}-{}", std::process::id()) }
    }

    fn at(&self, controller: Controller) -> &Hierarchy {
        self.host.hierarchy_of(controller).unwrap()
    }

    fn make(&self, controllers: &[Controller]) {
        controllers.iter().for_each(|one| self.host.kernel().mkdir(self.at(*one), &self.name).unwrap());
    }

    fn put(&self, controller: Controller, load: &Load) {
        let pid = load.pid().to_string();
        self.host.kernel().write(self.at(controller), &self.name, "cgroup.procs", &pid).unwrap();
    }

    fn picture(&self, field: &str) -> Picture {
        picture(&self.host, Descriptors::new(), &[field], std::slice::from_ref(&self.name))
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        for at in self.host.hierarchies() {
            // processes that were killed leave their groups in a moment
            for _ in 0..1000 {
                if self.host.kernel().rmdir(at, &self.name) != Err(rustix::io::Errno::BUSY) {
                    break;
                }
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
        }
    }
}

/// Newcomers' finding A11 on this machine.
fn real_tasks() {
    let group = Partial::new("members");
    group.make(&[Controller::Cpu]);
    let loads = [(); 3].map(|()| Load::new(&["spin"]));
    loads.iter().for_each(|load| group.put(Controller::Cpu, load));
    group.make(&[Controller::Cpuset, Controller::Pids]);
    let name = GroupName::new(&group.name).unwrap();
    // as apply::status does
    let by_status: BTreeSet<u32> =
        group.host.seats(&name).iter().flat_map(|seat| group.host.tasks_in(seat)).collect();
    assert_eq!(by_status.len(), 3);
    assert_eq!(monitor::tasks(&group.host, &name).unwrap().len(), 3);
    let picture = group.picture("pids.current");
    assert_eq!(value(&picture, &group.name), Value::At(3.0));
    let [Note::Split { by_hierarchy: note, .. }] = picture.notes.as_slice() else {
        panic!("{:?}", picture.notes);
    };
    assert!(note.contains("cpu 3") && note.contains("cpuset 0") && note.contains("pids 0"), "{note}");
    drop(loads);
}

/// Newcomers' finding B3.
fn uncounted() {
    let group = Partial::new("uncounted");
    if group.at(Controller::Cpu).id == group.at(Controller::Cpuacct).id {
        return; // one hierarchy counts both
    }
    group.make(&[Controller::Cpu]);
    let load = Load::new(&["spin"]);
    group.put(Controller::Cpu, &load);
    let shown = |group: &Partial| {
        let name = GroupName::new(&group.name).unwrap();
        let span = std::time::Duration::from_millis(100);
        let facts = why::gather(&group.host, Descriptors::new(), &name, &units::CpuSet::new(), span).unwrap();
        (value(&group.picture("cpu.usage"), &group.name), facts.cpu.uncounted)
    };
    let (value, command) = shown(&group);
    assert_eq!(value, Value::Absent("no cpuacct"));
    let create = format!("ringfence create --controllers cpuacct {}", group.name);
    assert_eq!(command.as_deref(), Some(create.as_str()));
    let picture = group.picture("cpu.usage");
    assert_eq!(picture.notes, [Note::Uncounted { group: group.name.clone() }]);
    assert!(picture.notes[0].to_string().ends_with(&create), "{:?}", picture.notes);
    assert!(table(&picture, ("", "")).contains("no cpuacct"));
    // many processes, as the hint once left out how they get there
    let more = [(); 9].map(|()| Load::new(&["spin"]));
    more.iter().for_each(|load| group.put(Controller::Cpu, load));
    let name = GroupName::new(&group.name).unwrap();
    let created = group.host.create(&name, Some(&[Controller::Cpuacct]), &Default::default()).unwrap();
    assert_eq!(group.host.bring_along(&name, &created).moved.len(), 10);
    let (value, command) = shown(&group);
    assert!(matches!(value, Value::At(_)) && command.is_none(), "{value:?}");
}
