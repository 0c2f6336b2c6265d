//! Study S2's rule as it is published, `oracle blkio /iothrottle`, with its own user and group: only in a VM, where
//! nobody else is called so.

use std::{fs, os::unix::process::CommandExt, process::Command};

use kernel::GroupName;
use settings::Controller;

use crate::{
    Case,
    world::{Running, World, eventually},
};

const UID: u32 = 54_321;

pub const TRIALS: &[Case] = &[("study_2s_rule_as_published_takes_what_runs_and_what_comes", verbatim)];

/// The user, until the end of the case.
struct Oracle(String);

impl Oracle {
    fn add() -> Oracle {
        let before = fs::read_to_string("/etc/passwd").unwrap();
        fs::write("/etc/passwd", format!("{before}oracle:x:{UID}:{UID}::/:/bin/sh\n")).unwrap();
        Oracle(before)
    }

    fn start(program: &std::path::Path) -> Running {
        Running(Command::new(program).arg("600").uid(UID).gid(UID).spawn().unwrap())
    }
}

impl Drop for Oracle {
    fn drop(&mut self) {
        let _ = fs::write("/etc/passwd", &self.0);
    }
}

fn verbatim() {
    let world = World::new();
    let (_oracle, program) = (Oracle::add(), world.copy("sleep", "sleep"));
    let group = GroupName::new("iothrottle").unwrap();
    world.host.create(&group, Some(&[Controller::Io]), &kernel::Access::default()).unwrap();
    world.write("cgrules.conf", "oracle blkio /iothrottle\n");
    let is_in =
        |process: &Running| world.place_by(Controller::Io, process.pid()).as_deref() == Some("iothrottle");
    let before: Vec<Running> = (0..4).map(|_| Oracle::start(&program)).collect();
    let others = Running::start(&program, &["600"]);
    assert!(!before.iter().any(is_in));
    let daemon = world.daemon(&[]);
    assert!(before.iter().all(is_in), "at once, it is ready\n{}", daemon.log());
    let new: Vec<Running> = (0..20).map(|_| Oracle::start(&program)).collect();
    eventually("every new one in the group", || new.iter().all(is_in));
    assert!(!is_in(&others));
    daemon.end();
    drop((before, new));
    world.host.delete(&group, true).unwrap();
}
