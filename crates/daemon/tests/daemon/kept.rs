//! The layout is applied at the start, kept while the daemon runs, and left as it is when it ends.

use crate::{
    Case,
    world::{Running, World, eventually},
};

pub fn trials() -> Vec<Case> {
    vec![
        ("a_layout_is_applied_and_its_groups_outlive_a_crash", crash),
        ("drift_is_told_once", told),
        ("drift_is_repaired_where_that_is_asked", repaired),
        ("a_second_daemon_on_the_same_state_is_refused", second),
    ]
}

fn layout(world: &mut World, max: u32) -> (String, std::path::PathBuf) {
    let (group, program) = (world.group_name("db"), world.copy("sleep", "sleep"));
    let text =
        format!("[groups.{group}]\npids.max = {max}\nmatch = [{{ process = \"{}\" }}]\n", program.display());
    world.write("layout.toml", &text);
    (group, program)
}

fn crash() {
    let mut world = World::new();
    let (group, program) = layout(&mut world, 500);
    let daemon = world.daemon(&[]);
    assert_eq!(world.limit(&group), "500");
    let process = Running::start(&program, &["600"]);
    eventually("in its group", || world.place(process.pid()).as_deref() == Some(&group));
    daemon.kill();
    assert_eq!((world.limit(&group).as_str(), world.place(process.pid())), ("500", Some(group.clone())));
    let meanwhile = Running::start(&program, &["600"]);
    let daemon = world.daemon(&[]);
    for pid in [process.pid(), meanwhile.pid()] {
        assert_eq!(world.place(pid).as_deref(), Some(group.as_str()));
    }
    assert_eq!(world.limit(&group), "500");
    daemon.end();
    assert_eq!(world.limit(&group), "500");
}

fn told() {
    let mut world = World::new();
    let (group, _) = layout(&mut world, 500);
    let daemon = world.daemon(&["every=50"]);
    world.set_limit(&group, "77");
    daemon.wait_for_log("not as it was applied", 1);
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert_eq!(daemon.log().matches("not as it was applied").count(), 1, "{}", daemon.log());
    assert_eq!(world.limit(&group), "77");
    daemon.end();
}

fn repaired() {
    let mut world = World::new();
    let (group, _) = layout(&mut world, 500);
    let daemon = world.daemon(&["every=50", "keep=repair"]);
    for (times, value) in ["77", "78"].into_iter().enumerate() {
        world.set_limit(&group, value);
        daemon.wait_for_log("made as the layout asks again", times + 1);
        assert_eq!(world.limit(&group), "500");
    }
    daemon.end();
}

fn second() {
    let mut world = World::new();
    layout(&mut world, 500);
    let daemon = world.daemon(&[]);
    let mut other = std::process::Command::new("/proc/self/exe");
    other.arg(crate::daemon_process::DAEMON).arg(&world.directory).stderr(std::process::Stdio::piped());
    let ended = other.output().unwrap();
    assert_eq!(ended.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&ended.stderr).contains("another daemon runs already"), "{ended:?}");
    daemon.end();
}
