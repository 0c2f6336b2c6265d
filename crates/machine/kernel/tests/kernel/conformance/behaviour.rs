//! Rules that kernels differ in, seen on the world itself: its version says nothing, as fixes travel between them.

use std::cell::OnceCell;

use kernel::What;
use settings::Controller::{Cpuset, Io};

use super::world::{Done, World};

/// What was seen.
#[derive(Default)]
pub struct Behaviour {
    firm: OnceCell<bool>,
    empties: OnceCell<bool>,
    limits_to_one: OnceCell<bool>,
}

/// Does a partition stay one while a sibling lists one of its CPUs?
pub fn is_firm(world: &World) -> bool {
    let look = || {
        if world.cpus() < 8
            || !world.has_file(Cpuset, "cpuset.cpus.partition")
            || world.others(Cpuset, "cpuset.cpus").is_some()
        {
            return false;
        }
        let (group, other) = (world.group(""), world.beside("2"));
        for (group, cpus) in [(&group, "0-1"), (&other, "2")] {
            world.make(group, &[Cpuset]);
            world.write(group, Cpuset, "cpuset.cpus", cpus);
        }
        world.write(&group, Cpuset, "cpuset.cpus.partition", "root");
        world.write(&other, Cpuset, "cpuset.cpus", "1-2");
        let state = world.read(&group, Cpuset, "cpuset.cpus.partition");
        for group in [&group, &other] {
            world.host.delete(group, false).done();
        }
        state == "root"
    };
    *world.behaviour.firm.get_or_init(look)
}

/// Can a v2 cpuset be given an empty list of CPUs while tasks are in it?
pub fn empties(world: &World) -> bool {
    let look = || {
        let group = world.create("", &[Cpuset]);
        world.write(&group, Cpuset, "cpuset.cpus", "0");
        let pid = world.start();
        world.host.move_tasks(&group, &[pid], What::Process).done();
        let taken = world.try_write(&group, Cpuset, "cpuset.cpus", "\n").is_ok();
        world.end(pid);
        world.host.delete(&group, true).done();
        taken
    };
    *world.behaviour.empties.get_or_init(look)
}

/// Can a v2 group be limited to one operation a second?
pub fn limits_to_one(world: &World) -> bool {
    let look = || {
        let group = world.create("", &[Io]);
        let line = format!("{} riops=1", world.disk().unwrap_or_default());
        let taken = world.try_write(&group, Io, "io.max", &line).is_ok();
        world.host.delete(&group, true).done();
        taken
    };
    *world.behaviour.limits_to_one.get_or_init(look)
}
