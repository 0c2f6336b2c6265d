//! v1's device rules in a tree: what a new group takes over, what groups below forbid, and what a parent does.

use rustix::io::Errno;
use settings::Controller::Devices;

use super::{
    Case, case,
    world::{World, refused, soon},
};

pub fn cases() -> Vec<Case> {
    let on_v1 = |world: &World| world.on_v1(Devices);
    vec![
        case("everything_is_denied_or_allowed_only_where_no_group_is_below", on_v1, all_at_once),
        case("a_v1_group_may_not_use_what_its_parent_may_not", on_v1, within_parent),
        case("what_is_denied_to_a_v1_group_is_denied_below_it", on_v1, denied_below),
        case("a_device_rule_has_numbers_and_accesses", on_v1, malformed),
    ]
}

fn all_at_once(world: &World) {
    let group = world.create("a", &[Devices]);
    let below = world.create("a/b", &[Devices]);
    for file in ["devices.deny", "devices.allow"] {
        refused(world.try_write(&group, Devices, file, "a"), Errno::INVAL, "while groups below exist");
    }
    world.write(&below, Devices, "devices.deny", "a");
    assert_eq!(world.read(&below, Devices, "devices.list"), "");
    world.host.delete(&below, true).expect("it is empty");
    // a group that was removed may count for a moment yet
    soon(true, || world.try_write(&group, Devices, "devices.deny", "a").is_ok());
    assert_eq!(world.read(&group, Devices, "devices.list"), "");
}

fn within_parent(world: &World) {
    let group = world.create("a", &[Devices]);
    world.write(&group, Devices, "devices.deny", "a");
    world.write(&group, Devices, "devices.allow", "c 1:3 rwm");
    let below = world.create("a/b", &[Devices]);
    assert_eq!(world.read(&below, Devices, "devices.list"), "c 1:3 rwm", "it takes over its parent's");
    for rule in ["a", "c 1:5 r", "c *:* r"] {
        let allowed = world.try_write(&below, Devices, "devices.allow", rule);
        refused(allowed, Errno::PERM, "does not allow that device itself");
    }
    world.write(&group, Devices, "devices.allow", "c 1:5 r");
    assert_eq!(world.read(&below, Devices, "devices.list"), "c 1:3 rwm", "what is allowed stays above");
    world.write(&below, Devices, "devices.allow", "c 1:5 r");
    assert_eq!(world.read(&below, Devices, "devices.list"), "c 1:3 rwm\nc 1:5 r");
}

fn denied_below(world: &World) {
    let group = world.create("a", &[Devices]);
    let below = world.create("a/b", &[Devices]);
    world.write(&below, Devices, "devices.deny", "a");
    world.write(&below, Devices, "devices.allow", "c 1:3 rw");
    world.write(&group, Devices, "devices.deny", "c 1:3 w");
    assert_eq!(world.read(&below, Devices, "devices.list"), "c 1:3 r");
    assert_eq!(world.read(&group, Devices, "devices.list"), "a *:* rwm", "exceptions from all are not shown");
    let allowed = world.try_write(&below, Devices, "devices.allow", "c 1:3 w");
    refused(allowed, Errno::PERM, "does not allow that device itself");
}

fn malformed(world: &World) {
    let group = world.create("a", &[Devices]);
    for rule in ["c 1:3", "c 1:3 x", "d 1:3 r", "c 1 r"] {
        let denied = world.try_write(&group, Devices, "devices.deny", rule);
        refused(denied, Errno::INVAL, "a rule is 'a'");
    }
}
