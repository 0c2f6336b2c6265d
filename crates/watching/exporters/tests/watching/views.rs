//! Pictures of samples of the in-memory kernel: what is chosen, worked out of several fields, in parts and raw.

use exporters::view::{Choice, Numbers, Picture, Value, choices, overview, table};
use fake::Fake;
use kernel::{Host, Kernel};
use libtest_mimic::Trial;
use monitor::{Beat, Groups, Options, Sampler, Uncached, Window};
use settings::{Controller, DeviceNumber, Version};

use crate::trial;

pub fn trials() -> Vec<Trial> {
    vec![
        trial("what a group may use is the least of it and of those above, on v1 and v2", least),
        trial("a figure is shown whole, by its parts, or one part of it", parts),
        trial("raw numbers are as they were read, and what is worked out is missing", raw),
        trial("only the named groups and those below them are shown", shown),
        trial("the overview has every column on every version", columns),
        trial("a device is shown by its number or its name, as it was requested", devices),
        trial("an invalid partition is shown with the kernel's reason", partition),
    ]
}

/// Two samples of groups `db`, `db/a`, with limits at the upper one.
fn window(fake: Fake) -> Window {
    window_of(fake, |_, _| ())
}

/// The same after something more was done.
fn window_of(fake: Fake, more: fn(&Fake, &Host)) -> Window {
    let host = Host::new(Box::new(fake.clone())).unwrap();
    for at in host.hierarchies() {
        for (group, above) in [("db", ""), ("db/a", "db")] {
            if at.version == Version::V2 {
                let names = at.controllers.iter().filter_map(|one| one.name(Version::V2));
                let all: Vec<String> = names.map(|name| format!("+{name}")).collect();
                fake.write(at, above, "cgroup.subtree_control", &all.join(" ")).unwrap();
            }
            fake.mkdir(at, group).unwrap();
        }
    }
    for (controller, v1, v2) in [
        (Controller::Cpu, ("cpu.cfs_quota_us", "50000"), ("cpu.max", "50000 100000")),
        (Controller::Memory, ("memory.limit_in_bytes", "1048576"), ("memory.max", "1048576")),
    ] {
        let at = host.hierarchy_of(controller).unwrap();
        let (file, text) = if at.version == Version::V1 { v1 } else { v2 };
        fake.write(at, "db", file, text).unwrap();
    }
    fake.set_outside("/proc/loadavg", "1.25 0.92 1.19 6/127 27530\n");
    fake.set_outside("/proc/stat", "cpu0 200 0 0 0 0 0 0 0 0 0\ncpu1 7 0 0 0 0 0 0 0 0 0\n");
    more(&fake, &host);
    let options = Options { groups: Groups::Ours, slow_every: 1 };
    let mut sampler = Sampler::new(&host, Uncached(fake), options, false);
    let mut window = Window::new(1);
    (0..2).for_each(|_| window.push(sampler.tick(&host, Beat::default()).unwrap()));
    window
}

fn chosen(names: &[&str]) -> Vec<Choice> {
    names.iter().flat_map(|name| choices(name).unwrap()).collect()
}

fn picture(window: &Window, names: &[&str], numbers: Numbers) -> Picture {
    Picture::new(window, &chosen(names), numbers, &[]).unwrap()
}

fn value(picture: &Picture, group: &str, name: &str) -> Value {
    let column = picture.headings.iter().position(|heading| heading.name == name).unwrap();
    picture.rows.iter().find(|row| row.group == group).unwrap().values[column]
}

fn least() {
    for fake in [Fake::v1(4, 2), Fake::v2(4, 2), Fake::hybrid(4, 2)] {
        let window = window(fake);
        let names = ["cpu.allotment", "memory.limit", "memory.max"];
        let picture = picture(&window, &names, Numbers::Figures);
        for group in ["db", "db/a"] {
            assert_eq!(value(&picture, group, "cpu.allotment"), Value::At(0.5), "{group}");
            assert_eq!(value(&picture, group, "memory.limit"), Value::At(1_048_576.0), "{group}");
        }
        assert_eq!(value(&picture, "db/a", "memory.max"), Value::Max);
        let labels: Vec<(usize, &str)> =
            picture.rows.iter().map(|row| (row.depth, row.label.as_str())).collect();
        assert_eq!(labels, [(0, "/"), (0, "db"), (1, "a")]);
    }
}

fn parts() {
    let window = window(Fake::v1(2, 2));
    let machine = |names: &[&str], numbers| -> Vec<(String, Value)> {
        let picture = picture(&window, names, numbers);
        assert!(picture.rows.is_empty() && picture.headings.is_empty());
        picture.machine.into_iter().map(|(heading, value)| (heading.name, value)).collect()
    };
    let named = |name: &str, value| (name.to_owned(), value);
    let (first, second) = (Value::Whole(2_000_000_000), Value::Whole(70_000_000));
    assert_eq!(
        machine(&["machine.cpu.user/*"], Numbers::Raw),
        [named("machine.cpu.user/0", first), named("machine.cpu.user/1", second)]
    );
    let sum = Value::Whole(2_070_000_000);
    assert_eq!(machine(&["machine.cpu.user"], Numbers::Raw), [named("machine.cpu.user", sum)]);
    assert_eq!(machine(&["machine.cpu.user/1"], Numbers::Raw), [named("machine.cpu.user/1", second)]);
    assert_eq!(machine(&["machine.cpu.user/9"], Numbers::Raw), [named("machine.cpu.user/9", Value::Missing)]);
    // a field of which there is one
    assert_eq!(machine(&["machine.load/*"], Numbers::Figures), [named("machine.load", Value::At(1.25))]);
}

fn raw() {
    let window = window(Fake::v2(2, 1));
    let picture = picture(&window, &["memory.max", "memory.limit", "machine.load"], Numbers::Raw);
    assert_eq!(value(&picture, "db", "memory.max"), Value::Whole(1_048_576));
    assert_eq!(value(&picture, "db", "memory.limit"), Value::Missing);
    assert_eq!(picture.machine[0].1, Value::Whole(125));
}

fn shown() {
    let window = window(Fake::v1(2, 1));
    let names = |tops: &[&str]| -> Vec<String> {
        let tops: Vec<String> = tops.iter().map(|top| (*top).to_owned()).collect();
        let picture = Picture::new(&window, &chosen(&["pids.current"]), Numbers::Figures, &tops).unwrap();
        picture.rows.into_iter().map(|row| row.group).collect()
    };
    assert_eq!(names(&[]), ["/", "db", "db/a"]);
    assert_eq!(names(&["db"]), ["db", "db/a"]);
    assert_eq!(names(&["d", "db/a"]), ["db/a"]);
    assert_eq!(names(&["/"]), ["/", "db", "db/a"]);
}

fn columns() {
    for fake in [Fake::v1(2, 1), Fake::v2(2, 1)] {
        let mut picture = Picture::new(&window(fake), &overview(), Numbers::Figures, &[]).unwrap();
        assert_eq!(picture.headings.len(), overview().len());
        assert!(picture.sort_by("memory.limit"));
        assert!(!picture.sort_by("frozen"));
    }
}

fn devices() {
    let window = window_of(Fake::v2(2, 1), |fake, host| {
        let at = host.hierarchy_of(Controller::Io).unwrap();
        fake.count(at, "db/a", "io.stat", "8:0 rbytes=4096\n8:16 rbytes=512\n").unwrap();
    });
    let sda = DeviceNumber { major: 8, minor: 0 };
    let shown = |choices: &[Choice]| -> Vec<(String, Value)> {
        let mut picture = Picture::new(&window, choices, Numbers::Raw, &[]).unwrap();
        picture.name_devices(choices, |number| (number == sda).then(|| "sda".to_owned()));
        let row = picture.rows.iter().find(|row| row.group == "db/a").unwrap();
        picture.headings.iter().map(|heading| heading.name.clone()).zip(row.values.clone()).collect()
    };
    let named = |name: &str, number| (name.to_owned(), Value::Whole(number));
    assert_eq!(
        shown(&chosen(&["io.rbytes/*"])),
        [named("io.rbytes/sda", 4096), named("io.rbytes/8:16", 512)]
    );
    assert_eq!(shown(&chosen(&["io.rbytes/8:0"])), [named("io.rbytes/8:0", 4096)]);
    let choice = choices("io.rbytes/sda").unwrap().remove(0);
    assert_eq!(choice.device_name(), Some("sda"));
    assert_eq!(shown(&[choice.by_number("sda".to_owned(), sda)]), [named("io.rbytes/sda", 4096)]);
}

fn partition() {
    let window = window_of(Fake::v2(4, 1), |fake, host| {
        let at = host.hierarchy_of(Controller::Cpuset).unwrap();
        for (group, cpus) in [("db", "0-1"), ("db/a", "0-1")] {
            fake.write(at, group, "cpuset.cpus", cpus).unwrap();
        }
        fake.write(at, "db/a", "cpuset.cpus.partition", "root").unwrap();
    });
    let names = ["cpuset.partition", "cpuset.partition.invalid"];
    let figures = picture(&window, &names, Numbers::Figures);
    assert_eq!(value(&figures, "db/a", "cpuset.partition"), Value::At(0.0));
    let reason = value(&figures, "db/a", "cpuset.partition.invalid");
    assert_eq!(reason, Value::Text("Parent is not a partition root"));
    assert_eq!(value(&figures, "db", "cpuset.partition.invalid"), Value::Missing);
    let text = table(&figures, ("", ""));
    assert!(text.contains("Parent is not a partition root"), "{text}");
    let raw = picture(&window, &names, Numbers::Raw);
    assert_eq!(value(&raw, "db/a", "cpuset.partition.invalid"), Value::Whole(3));
}
