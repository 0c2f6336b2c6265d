//! Changes: what would be written is shown, what was written is in the kernel's files, and undo puts it back.

use fake::Fake;
use kernel::{GroupName, Host, Kernel};
use settings::Controller::{Cpu, Cpuset, Freezer, Memory, Pids};

use crate::world::{World, expect, machine};

fn worlds() -> [World; 3] {
    [Fake::v1(32, 2), Fake::v2(32, 2), Fake::hybrid(32, 2)]
        .map(|fake| World::new(fake, &["db", "db/a"], machine(&["synthetic-2x8.json"])))
}

/// Opens the dialog of a change for `db/a`, with this typed.
fn typed(world: &mut World, text: &str) {
    world.press(&["g", "Down", "Down", "e", text]);
}

#[test]
fn a_setting_is_changed_in_place_and_undone() {
    for mut world in worlds() {
        let tasks = |world: &World| world.file(Pids, "db/a", "pids.max", "pids.max");
        typed(&mut world, "pids.max=50");
        let text = world.screen(80, 24);
        assert!(text.contains("/db/a/pids.max") && text.contains("max -> 50"), "{text}");
        assert_eq!(tasks(&world), "max", "it is only proposed");
        world.press(&["Enter"]);
        assert_eq!(tasks(&world), "50");
        let text = world.screen(80, 24);
        assert!(text.contains(" db/a: pids.max max -> 50; u undoes"), "{text}");
        world.press(&["u"]);
        let text = world.screen(80, 24);
        assert!(text.contains("50 -> max"), "{text}");
        assert_eq!(tasks(&world), "50", "it is only proposed");
        world.press(&["Enter"]);
        assert_eq!(tasks(&world), "max");
        world.press(&["u"]);
        assert!(world.screen(80, 24).contains("nothing was changed here that could be undone"));
    }
}

#[test]
fn changes_are_undone_one_by_one_from_the_last() {
    for mut world in worlds() {
        let quota = |world: &World| world.file(Cpu, "db/a", "cpu.cfs_quota_us", "cpu.max");
        let first = quota(&world);
        for text in ["cpu.max=50%", "cpu.max=150%"] {
            typed(&mut world, text);
            world.press(&["Enter"]);
        }
        let after = quota(&world);
        assert!(after.starts_with("150000"), "{after}");
        assert!(
            world.screen(80, 24).contains("2 changes to undo") || world.screen(80, 24).contains("u undoes")
        );
        world.press(&["u", "Enter"]);
        assert!(quota(&world).starts_with("50000"));
        world.press(&["u", "Enter"]);
        assert_eq!(quota(&world), first);
    }
}

#[test]
fn what_the_kernel_rounds_is_told() {
    for mut world in worlds() {
        typed(&mut world, "memory.max=1000001");
        world.press(&["Enter"]);
        let held = world.file(Memory, "db/a", "memory.limit_in_bytes", "memory.max");
        let text = world.screen(80, 24);
        assert_ne!(held, "1000001");
        assert!(text.contains("Done, but not exactly as typed") && text.contains("page"), "{text}");
        world.press(&["Enter"]);
        assert!(!world.screen(80, 24).contains("Done, but"));
    }
}

#[test]
fn what_makes_no_sense_is_refused_while_it_is_typed() {
    for mut world in worlds() {
        typed(&mut world, "cpu.max=fast");
        let text = world.screen(80, 24);
        assert!(text.contains("hint:"), "{text}");
        world.press(&["Enter"]);
        assert!(world.screen(80, 24).contains("cpu.max=fast"), "the dialog stays");
        world.press(&["^U", "50%"]);
        let text = world.screen(80, 24);
        assert!(text.contains("> cpu.max=50%") && text.contains("50000"), "{text}");
        world.press(&["Esc", "e", "memry.max=1G"]);
        let text = world.screen(80, 24);
        assert!(text.contains("unknown setting") && text.contains("memory.max"), "{text}");
    }
}

#[test]
fn what_the_kernel_refuses_is_told_with_its_cause_and_a_hint() {
    for mut world in worlds() {
        let before = world.file(Cpuset, "db/a", "cpuset.cpus", "cpuset.cpus");
        typed(&mut world, "cpuset.cpus=400");
        world.press(&["Enter"]);
        let text = world.screen(80, 24);
        assert!(text.contains("Not done") || text.contains("hint:"), "{text}");
        assert_eq!(world.file(Cpuset, "db/a", "cpuset.cpus", "cpuset.cpus"), before);
        world.press(&["Esc"]);
        // another user may not
        world.fake.set_uid(1000);
        typed(&mut world, "pids.max=5");
        world.press(&["Enter"]);
        let text = world.screen(80, 24);
        assert!(text.contains("Not done"), "{text}");
        assert_eq!(world.file(Pids, "db/a", "pids.max", "pids.max"), "max");
        world.press(&["Esc", "u"]);
        assert!(world.screen(80, 24).contains("nothing was changed"), "what was refused can't be undone");
    }
}

#[test]
fn a_group_is_frozen_after_a_question_and_thawed() {
    for mut world in worlds() {
        let state = |world: &World| {
            let file = world.file(Freezer, "db/a", "freezer.state", "cgroup.freeze");
            matches!(file.as_str(), "FROZEN" | "1")
        };
        world.put("db/a");
        world.press(&["g", "Down", "Down", "f"]);
        let text = world.screen(80, 24);
        assert!(text.contains("Freeze db/a?"), "{text}");
        world.press(&["n"]);
        assert!(!state(&world));
        world.press(&["f", "Enter"]);
        assert!(state(&world));
        let text = world.screen(80, 24);
        let line = text.lines().find(|line| line.starts_with('>')).unwrap().to_owned();
        assert!(line.contains(" F "), "it is seen at once: {text}");
        world.press(&["f"]);
        assert!(world.screen(80, 24).contains("Thaw db/a?"));
        world.press(&["Enter"]);
        assert!(!state(&world));
        // the last change was thawing
        world.press(&["u", "Enter"]);
        assert!(state(&world));
    }
}

#[test]
fn nobody_freezes_himself() {
    for mut world in worlds() {
        let (us, _) = world.fake.caller();
        let host = Host::new(Box::new(world.fake.clone())).unwrap();
        let at = host.hierarchy_of(Freezer).unwrap();
        world.fake.write(at, "db/a", "cgroup.procs", &us.to_string()).unwrap();
        // the group above holds it too
        for down in [&["g", "Down"][..], &["g", "Down", "Down"]] {
            world.press(down);
            world.press(&["f"]);
            let text = world.screen(80, 24);
            assert!(text.contains("itself is in group") && text.contains("hint:"), "{text}");
            world.press(&["Enter"]);
        }
        assert_ne!(world.file(Freezer, "db/a", "freezer.state", "cgroup.freeze"), "FROZEN");
        assert_ne!(world.file(Freezer, "db/a", "freezer.state", "cgroup.freeze"), "1");
    }
}

#[test]
fn a_setting_of_the_page_is_edited_from_its_value() {
    let [_, mut world, _] = worlds();
    world.press(&["Down", "Down", "Enter", "Down", "Down", "Enter"]);
    expect("edit-80x24", &world.screen(80, 24));
    world.press(&["^U", "150%"]);
    expect("edit-plan-80x24", &world.screen(80, 24));
    expect("edit-plan-120x40", &world.screen(120, 40));
    world.press(&["Enter"]);
    let text = world.screen(80, 24);
    assert!(text.contains("150000 100000"), "the page shows it at once: {text}");
}

#[test]
fn what_this_user_may_not_change_is_asked_of_another() {
    let fake = Fake::v2(4, 1);
    let daemon = fake.clone();
    let deputy = move |group: &GroupName, settings: &[(String, String)], _| {
        let at = &daemon.hierarchies().unwrap()[0];
        let [(setting, value)] = settings else { panic!("{settings:?}") };
        daemon.set_uid(0);
        daemon.write(at, &group.to_string(), setting, value).unwrap();
        daemon.set_uid(1000);
        Ok(vec!["ringfenced changed it".to_owned()])
    };
    let mut world = World::with_deputy(fake, &["db", "db/a"], Box::new(deputy));
    world.fake.set_uid(1000);
    typed(&mut world, "pids.max=50");
    world.press(&["Enter"]);
    assert_eq!(world.file(Pids, "db/a", "pids.max", "pids.max"), "50");
    let text = world.screen(80, 24);
    assert!(text.contains("max -> 50") && text.contains("ringfenced changed it"), "{text}");
    world.press(&["Esc", "u", "Enter"]);
    assert_eq!(world.file(Pids, "db/a", "pids.max", "pids.max"), "max");
}
