//! Which groups are repaired and which are only told of; and by which layout, while the one on the disk is another.

use rustix::process::Signal;

use crate::{
    Case,
    world::{World, eventually},
};

pub fn trials() -> Vec<Case> {
    vec![
        ("a_group_says_itself_how_it_is_kept", per_group),
        ("the_layouts_default_goes_before_the_daemons", by_default),
        ("a_layout_that_cant_be_applied_leaves_the_old_one_kept", refused),
        ("what_is_on_the_disk_does_not_count_before_a_reload", not_reloaded),
    ]
}

fn is_repaired(world: &World, group: &str, value: &str) {
    eventually(&format!("{group} is made {value} again"), || world.limit(group) == value);
}

fn per_group() {
    let mut world = World::new();
    let [repaired, told, left] = ["repaired", "told", "left"].map(|last| world.group_name(last));
    world.write(
        "layout.toml",
        &format!(
            "[groups.{repaired}]\npids.max = 500\nkeep = \"repair\"\n[groups.{told}]\npids.max = 500\n\
             [groups.{left}]\npids.max = 500\nkeep = \"off\"\n"
        ),
    );
    let daemon = world.daemon(&["every=50"]);
    for round in 1..3 {
        for group in [&left, &told, &repaired] {
            world.set_limit(group, "77");
        }
        is_repaired(&world, &repaired, "500");
        daemon.wait_for_log("repaired: the machine matches the layout again", round);
        daemon.wait_for_log(&format!("drift: group {repaired}"), round);
    }
    daemon.wait_for_log(&format!("drift: group {told}"), 1);
    assert_eq!([world.limit(&told), world.limit(&left)], ["77", "77"]);
    let log = daemon.log();
    assert_eq!(log.matches(&format!("drift: group {told}")).count(), 1, "{log}");
    assert!(!log.contains(&format!("group {left}")), "{log}");
    daemon.end();
}

fn by_default() {
    let mut world = World::new();
    let [one, other] = ["one", "other"].map(|last| world.group_name(last));
    world.write(
        "layout.toml",
        &format!(
            "[defaults]\nkeep = \"report\"\n[groups.{one}]\npids.max = 500\n\
             [groups.{other}]\npids.max = 500\nkeep = \"repair\"\n"
        ),
    );
    let daemon = world.daemon(&["every=50", "keep=repair"]);
    world.set_limit(&one, "77");
    world.set_limit(&other, "77");
    is_repaired(&world, &other, "500");
    daemon.wait_for_log(&format!("drift: group {one}"), 1);
    assert_eq!(world.limit(&one), "77");
    daemon.end();
}

fn refused() {
    let mut world = World::new();
    let group = world.group_name("db");
    let layout = |max: u32| format!("[groups.{group}]\npids.max = {max}\n");
    world.write("layout.toml", &layout(500));
    let daemon = world.daemon(&["every=50", "keep=repair"]);
    // it reads well, and no machine has that CPU
    let other = format!("{}[groups.{group}-cpus]\ncpus = \"8191\"\n", layout(400));
    world.write("layout.toml", &other);
    daemon.signal(Signal::HUP);
    daemon.wait_for_log("reload failed, still using the old configuration", 1);
    assert_eq!(world.limit(&group), "500");
    world.set_limit(&group, "77");
    is_repaired(&world, &group, "500");
    world.write("layout.toml", &layout(300));
    daemon.signal(Signal::HUP);
    daemon.wait_for_log("INFO reloaded", 1);
    assert_eq!(world.limit(&group), "300");
    world.set_limit(&group, "77");
    is_repaired(&world, &group, "300");
    daemon.end();
}

fn not_reloaded() {
    let mut world = World::new();
    let group = world.group_name("db");
    let layout = |max: u32| format!("[groups.{group}]\npids.max = {max}\n");
    world.write("layout.toml", &layout(500));
    let daemon = world.daemon(&["every=50", "keep=repair"]);
    for text in [layout(400), "[nonsense".to_owned()] {
        world.write("layout.toml", &text);
        world.set_limit(&group, "77");
        is_repaired(&world, &group, "500");
    }
    daemon.end();
}
