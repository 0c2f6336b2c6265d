//! Which devices tasks may open, by rules of a layout: v1's files, or v2's programs.

use std::{fs::OpenOptions, time::Duration};

use apply::{Running, State, execute, undo};
use kernel::GroupName;
use settings::Controller;

use crate::{
    groups::{Groups, differences, machine, start},
    pipeline, scenarios,
    world::{meta, target},
};

const NODES: [&str; 3] = ["null", "zero", "full"];

/// The child process: goes into a group, and says which devices it can open to read and to write.
pub fn probe(procs: &str) {
    std::fs::write(procs, "0").unwrap();
    let opened = NODES.iter().map(|node| {
        let opens = |write: bool| {
            let path = format!("/dev/{node}");
            OpenOptions::new().read(!write).write(write).open(path).is_ok()
        };
        format!("{node} {} {}", opens(false), opens(true))
    });
    print!("{}", opened.collect::<Vec<_>>().join(", "));
}

pub fn tasks_may_use_just_the_devices_of_the_layout_and_all_of_them_after_undo() {
    let groups = Groups::new("probed");
    let devices = groups.host.hierarchy_of(Controller::Devices).unwrap();
    groups.make(
        "old",
        &[if devices.controllers.contains(&Controller::Devices) {
            Controller::Devices
        } else {
            Controller::Core
        }],
    );
    let before = groups.picture();
    let directory = tempfile::tempdir().unwrap();
    let state = State::open(directory.path()).unwrap();
    let lock = state.lock(Duration::ZERO).unwrap();
    let (host, system) = (machine(), Running::new());
    let to = target(&host, &system);
    let seen = || {
        let seat = host.seat_in(devices, &GroupName::new(&groups.name("old")).unwrap());
        let procs = seat.directory().join("cgroup.procs");
        let output = start(&format!("probe|{}", procs.display())).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let all = "null true true, zero true true, full true true";
    assert_eq!(seen(), all);
    let layout = scenarios::devices(&groups.prefix);
    execute(&lock, to, &pipeline::plan(&layout, to), &meta("devices")).unwrap();
    assert_eq!(seen(), "null true true, zero true false, full false false");
    assert!(pipeline::plan(&layout, to).steps.is_empty(), "it is as asked");
    // one device more, and back
    let more = (layout.0, layout.1.replace("c 1:5 r\"", "c 1:5 r\", \"c 1:7 w\""));
    execute(&lock, to, &pipeline::plan(&more, to), &meta("more")).unwrap();
    assert_eq!(seen(), "null true true, zero true false, full false true");
    undo(&lock, to, None, &meta("undo")).unwrap();
    assert_eq!(seen(), "null true true, zero true false, full false false");
    undo(&lock, to, None, &meta("undo")).unwrap();
    assert_eq!(seen(), all);
    let rest = differences(&before, &groups.picture());
    assert!(rest.is_empty(), "{rest:#?}");
}
