//! The history's lock and the daemon: its loop waits for nobody who has the lock, and it ends what others left behind.

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use apply::{By, Lock, Meta, Running as System, State, Target};
use daemon::socket::client::Client;
use rustix::process::Signal;

use crate::{
    Case,
    world::{Daemon, Running, World, eventually},
};

pub fn trials() -> Vec<Case> {
    vec![
        ("it_starts_while_another_has_the_lock_and_applies_its_layout_after", start),
        ("no_process_waits_for_its_group_while_another_has_the_lock", classify),
        ("a_reload_waits_for_the_lock_beside_the_loop", reload),
        ("it_starts_while_a_change_waits_to_be_confirmed_and_applies_its_layout_after", start_unconfirmed),
        ("a_change_that_nobody_confirms_or_reverts_is_undone_by_the_daemon", unconfirmed),
    ]
}

/// Attack finding 2: far below the 5 s that the loop once waited for the lock.
const AT_ONCE: Duration = Duration::from_secs(2);

struct Scene {
    world: World,
    group: String,
    program: PathBuf,
}

impl Scene {
    fn new() -> Scene {
        let mut world = World::new();
        let (group, program) = (world.group_name("db"), world.copy("sleep", "sleep"));
        let scene = Scene { world, group, program };
        scene.world.write("layout.toml", &scene.layout(500));
        scene
    }

    fn layout(&self, max: u32) -> String {
        let (group, program) = (&self.group, self.program.display());
        format!("[groups.{group}]\npids.max = {max}\nmatch = [{{ process = \"{program}\" }}]\n")
    }

    fn lock(&self) -> Lock {
        State::open(self.world.directory.join("state")).unwrap().lock(Duration::from_secs(60)).unwrap()
    }

    fn is_in(&self, process: &Running) -> bool {
        self.world.place(process.pid()).as_deref() == Some(&self.group)
    }

    /// How long a new process was not in the group.
    fn one(&self) -> Duration {
        let start = Instant::now();
        let process = Running::start(&self.program, &["600"]);
        eventually("in its group", || self.is_in(&process));
        start.elapsed()
    }

    /// The slowest of some.
    fn slowest(&self) -> Duration {
        (0..20).map(|_| self.one()).max().unwrap()
    }
}

fn assert_at_once(took: Duration, daemon: &Daemon) {
    let limit = if crate::is_vm() { AT_ONCE * 10 } else { AT_ONCE };
    assert!(took < limit, "{took:?}\n{}", daemon.log());
}

fn start() {
    let scene = Scene::new();
    let before = Running::start(&scene.program, &["600"]);
    let lock = scene.lock();
    let begin = Instant::now();
    let daemon = scene.world.daemon(&[]);
    daemon.wait_for_log("the layout is applied when another change has ended", 1);
    assert_at_once(begin.elapsed(), &daemon);
    assert!(!scene.is_in(&before));
    drop(lock);
    eventually("in the group that was made", || scene.is_in(&before));
    assert_eq!(scene.world.limit(&scene.group), "500");
    daemon.end();
}

fn classify() {
    let scene = Scene::new();
    let daemon = scene.world.daemon(&["every=50", "keep=repair"]);
    let lock = scene.lock();
    scene.world.set_limit(&scene.group, "77");
    // also while the daemon finds the lock taken
    let mut slowest = Duration::ZERO;
    eventually("an attempt to repair it", || {
        slowest = slowest.max(scene.one());
        daemon.log().contains("drift is not repaired while another change is under way")
    });
    let slowest = slowest.max(scene.slowest());
    eprintln!("the slowest took {slowest:?}");
    assert_at_once(slowest, &daemon);
    assert_eq!(scene.world.limit(&scene.group), "77");
    drop(lock);
    eventually("repaired", || scene.world.limit(&scene.group) == "500");
    daemon.end();
}

fn reload() {
    let scene = Scene::new();
    let daemon = scene.world.daemon(&[]);
    let lock = scene.lock();
    scene.world.write("layout.toml", &scene.layout(600));
    daemon.signal(Signal::HUP);
    assert_at_once(scene.slowest(), &daemon);
    assert_eq!(scene.world.limit(&scene.group), "500");
    drop(lock);
    eventually("reloaded", || scene.world.limit(&scene.group) == "600");
    daemon.end();
}

/// As `ringfence apply --confirm SECONDS` whose reverting process was killed: the limit of a group.
fn apply_unconfirmed(scene: &Scene, lock: &Lock, (group, limit): (&str, u32), seconds: u64) {
    let text = format!("{}[groups.{group}]\npids.max = {limit}\n", scene.layout(500));
    let read = layout::read_toml(&[layout::Source::new("layout.toml", &text)]);
    let system = System::new();
    let target = Target { host: &scene.world.host, system: &system };
    let machine = topology::Machine::live().unwrap();
    let accounts = system::Accounts::new();
    let plan = apply::planned(
        target,
        &apply::Earlier::none(),
        &read.desired.unwrap(),
        &machine,
        &system::Live,
        &accounts,
    )
    .unwrap();
    let meta = Meta {
        by: By::caller(),
        what: "a test".to_owned(),
        confirm_within: Some(seconds),
        layout: true,
        rules: None,
        file: None,
    };
    apply::execute(lock, target, &plan, &meta).unwrap();
    assert_eq!(scene.world.limit(group), limit.to_string());
}

fn start_unconfirmed() {
    let mut scene = Scene::new();
    let changed = scene.world.group("changed");
    scene.world.set_limit(&changed, "111");
    let lock = scene.lock();
    apply_unconfirmed(&scene, &lock, (&changed, 222), 600);
    drop(lock);
    scene.world.write("layout.toml", &scene.layout(600));
    let daemon = scene.world.daemon(&[]);
    daemon.wait_for_log("the layout is applied when generation 1 is confirmed or undone", 1);
    assert_eq!(scene.world.limit(&scene.group), "500");
    let system = System::new();
    let target = Target { host: &scene.world.host, system: &system };
    apply::confirm(&scene.lock(), target, None).unwrap();
    eventually("the daemon's layout", || scene.world.limit(&scene.group) == "600");
    assert_eq!(scene.world.limit(&changed), "111");
    daemon.end();
}

fn unconfirmed() {
    let mut scene = Scene::new();
    let socket = scene.world.directory.join("socket");
    let daemon = scene.world.daemon(&[&format!("socket={}", socket.display())]);
    let changed = scene.world.group("changed");
    scene.world.set_limit(&changed, "111");
    let lock = scene.lock();
    apply_unconfirmed(&scene, &lock, (&changed, 222), 1);
    let system = System::new();
    let target = Target { host: &scene.world.host, system: &system };
    let pending = || apply::pending(lock.state(), target).unwrap().unwrap();
    eventually("the daemon watches", || !pending().unwatched);
    // another change under way meanwhile only puts it off
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(scene.world.limit(&changed), "222");
    drop(lock);
    eventually("undone", || scene.world.limit(&changed) == "111");
    daemon.wait_for_log("was not confirmed in time", 1);
    let counters = Client::at(&socket).counters().unwrap();
    assert_eq!(counters["takeovers"], 1, "{counters:?}");
    daemon.end();
}
