//! An elastic group that is a unit of systemd: its processes get more CPUs with their load, also after systemd wrote its own
//! list again.

use std::{fs, sync::Arc};

use libtest_mimic::Trial;
use rustix::process::{Pid, Signal, kill_process};

use crate::{
    units::{Case, NEEDS, Unit, may_use, of_cases, systemctl},
    world::World,
};

pub fn trials(world: &Arc<World>) -> Vec<Trial> {
    let cases: &[Case] =
        &[("an elastic unit is resized over reloads and restarts, and an undo ends it", resized)];
    of_cases(world, NEEDS, cases)
}

fn resized(world: &Arc<World>) {
    let unit = Unit::new(world, "unit-elastic", "");
    let busy = "[Service]\nExecStart=/bin/sh -c 'while :; do :; done & while :; do :; done'\n";
    fs::write(unit.file(), busy).unwrap();
    systemctl(&["daemon-reload"]);
    unit.control("restart");
    let before = allowed(&unit);
    assert!(before >= 2);
    unit.apply("[groups.{g}]\nunit = \"{u}\"\ncpus = { min = 1, max = 2, weight = 100 }\n");
    assert_eq!(allowed(&unit), 1);
    let mut daemon = unit.desk.spawn("daemon --layout {d}/l.toml {s} --no-socket --no-strict");
    let grows = |when: &str| unit.desk.scene.until(when, || allowed(&unit) == 2);
    grows("a second CPU");
    let file = fs::read_to_string(unit.drop_in()).unwrap();
    unit.desk.ends("status {s}", 0);
    systemctl(&["daemon-reload"]);
    grows("a second CPU after a reload");
    unit.desk.ends("apply {d}/l.toml {s}", 0);
    assert_eq!(fs::read_to_string(unit.drop_in()).unwrap(), file, "the load's set is not the file's");
    unit.control("restart");
    grows("a second CPU after a restart");
    unit.desk.ends("elastic {s} --json", 0);
    unit.desk.ends("undo 0 {s}", 0);
    assert_eq!(allowed(&unit), before);
    let pid = Pid::from_raw(daemon.id().cast_signed()).unwrap();
    kill_process(pid, Signal::TERM).unwrap();
    assert!(daemon.wait().unwrap().success());
    assert_eq!(allowed(&unit), before);
}

fn allowed(unit: &Unit) -> usize {
    may_use(unit.pid()).map_or(0, |cpus| cpus.len())
}
