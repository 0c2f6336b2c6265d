//! Units that fit a pattern of the layout and start later: those that systemd has no file for are bound by the daemon.

use std::{fs, path::Path, process::Command, time::Duration};

use apply::{By, Meta, Running as System, State, Target};

use crate::{
    Case,
    world::{World, eventually},
};

pub const TRIALS: &[Case] = &[("a_unit_that_fits_a_pattern_and_starts_later_is_bound_soon", bound)];

fn run(program: &str, words: &[&str]) -> String {
    let output = Command::new(program).args(words).output().unwrap();
    assert!(output.status.success(), "{program} {words:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn bound() {
    let mut world = World::new();
    let group = world.group_name("guests");
    let units: Vec<String> = (1..=3).map(|number| format!("{group}-{number}.service")).collect();
    let limit = |unit: &str| {
        let path = run("systemctl", &["show", unit, "--value", "--property=ControlGroup"]);
        let file = Path::new("/sys/fs/cgroup").join(path.trim_start_matches('/')).join("pids.max");
        fs::read_to_string(file).map(|text| text.trim_end().to_owned()).unwrap_or_default()
    };
    let start = |unit: &str| run("systemd-run", &["--quiet", "--unit", unit, "sleep", "600"]);
    let layout = |max: u32| format!("[groups.{group}]\nunit = \"{group}-?.service\"\npids.max = {max}\n");
    world.write("layout.toml", &layout(77));
    start(&units[0]);
    let daemon = world.daemon(&[]);
    assert_eq!(limit(&units[0]), "77", "{}", daemon.log());
    start(&units[1]);
    eventually("the second is bound", || limit(&units[1]) == "77");
    // while a change goes on
    world.write("layout.toml", &layout(66));
    daemon.signal(rustix::process::Signal::HUP);
    start(&units[2]);
    eventually("all have the new limit", || units.iter().all(|unit| limit(unit) == "66"));
    // what was undone, or replaced by another layout, binds nobody
    let state = State::open(world.directory.join("state")).unwrap();
    let system = System::new();
    let meta = Meta { by: By::caller(), what: "undo".to_owned(), ..Meta::default() };
    let lock = state.lock(Duration::from_secs(60)).unwrap();
    apply::undo(&lock, Target { host: &world.host, system: &system }, Some(0), &meta).unwrap();
    drop(lock);
    let last = format!("{group}-4.service");
    start(&last);
    std::thread::sleep(Duration::from_secs(5));
    assert!(!["66", "77"].contains(&limit(&last).as_str()) && limit(&units[0]) != "66", "{}", daemon.log());
    run("systemctl", &["stop", &last, &units[1]]);
    eventually("nothing is amiss", || !daemon.log().contains("ERROR"));
    daemon.end();
    units.iter().filter(|unit| **unit != units[1]).for_each(|unit| _ = run("systemctl", &["stop", unit]));
}
