//! Attack finding 3: the daemon and its exec gate are not moved by a rule of theirs, not frozen by a command, and no start
//! waits long while neither of them runs.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
    sync::mpsc::RecvTimeoutError,
    time::{Duration, Instant},
};

use kernel::GroupName;
use rustix::process::Signal;
use settings::{Controller, Version};

use crate::{
    Case,
    world::{Daemon, Running, World, end, eventually},
};

pub fn trials() -> Vec<Case> {
    vec![
        ("a_rule_for_the_daemon_s_own_program_does_not_move_it_or_its_gate", stays),
        ("a_group_with_the_daemon_in_it_is_not_frozen_and_its_gate_leaves_that_group", not_frozen),
        ("a_strict_start_goes_on_while_the_daemon_is_frozen_and_its_gate_stopped", frozen_and_stopped),
        ("a_strict_start_goes_on_while_the_daemon_and_its_gate_are_stopped", both_stopped),
        ("a_strict_start_goes_on_while_the_daemon_and_its_gate_are_frozen_on_v2", both_frozen),
    ]
}

/// A world with a rule for the daemon's own program and a strict one for a copy of cat.
struct Scene {
    world: World,
    own_group: String,
    own: PathBuf,
    strict: PathBuf,
}

impl Scene {
    fn new() -> Scene {
        let mut world = World::new();
        let (own_group, strict_group) = (world.group_name("own"), world.group_name("strict"));
        let own = world.directory.join("ringfenced-copy");
        fs::copy("/proc/self/exe", &own).unwrap();
        fs::set_permissions(&own, fs::Permissions::from_mode(0o755)).unwrap();
        let strict = world.copy("cat", "cat");
        let text = format!(
            "[groups.{own_group}]\npids.max = 500\nmatch = [{{ process = \"{}\" }}]\n\
             [groups.{strict_group}]\npids.max = 500\nmatch = [{{ process = \"{}\", strict = true }}]\n",
            own.display(),
            strict.display()
        );
        world.write("layout.toml", &text);
        Scene { world, own_group, own, strict }
    }

    fn daemon(&self, words: &[&str]) -> Daemon {
        let daemon = self.world.daemon_of(&self.own, words);
        daemon.wait_for_log("strict rules are in force", 1);
        daemon
    }

    /// As root does it by hand.
    fn put(&self, controller: Controller, group: &str, pid: u32) {
        let name = GroupName::new(group).unwrap();
        let seat = self.world.host.seat(&name, controller).unwrap();
        self.world.host.kernel().write(seat.at, &seat.path, "cgroup.procs", &pid.to_string()).unwrap();
    }
}

/// The last gate that came to answer.
fn gate(daemon: &Daemon) -> u32 {
    let log = daemon.log();
    let line = log.lines().rfind(|line| line.contains("strict rules are in force")).unwrap();
    line.rsplit_once("pid=").unwrap().1.trim().parse().unwrap()
}

fn stays() {
    let scene = Scene::new();
    let daemon = scene.daemon(&["patience=120"]);
    // a process of the same program that is none of ours is moved
    let other = Running(Command::new(&scene.own).arg("rf-test-sleep").spawn().unwrap());
    let place = |pid| scene.world.place(pid).unwrap();
    eventually("the other one in the group", || place(other.pid()) == scene.own_group);
    let first = gate(&daemon);
    for pid in [daemon.pid(), first] {
        assert_ne!(place(pid), scene.own_group, "{}", daemon.log());
    }
    daemon.signal(Signal::HUP);
    daemon.wait_for_log("reloaded rules=", 1);
    assert_ne!(gate(&daemon), first);
    for pid in [daemon.pid(), gate(&daemon)] {
        assert_ne!(place(pid), scene.own_group, "{}", daemon.log());
    }
    let moved = scene.world.host.move_tasks(
        &GroupName::new(&scene.own_group).unwrap(),
        &[gate(&daemon)],
        kernel::What::Process,
    );
    assert!(moved.unwrap_err().to_string().contains("never moves"));
    drop(other);
    let registered =
        [daemon.pid(), gate(&daemon)].map(|pid| Path::new(kernel::PROTECTED).join(pid.to_string()));
    assert!(registered.iter().all(|file| file.exists()));
    daemon.end();
    assert!(registered.iter().all(|file| !file.exists()), "a registration ends with its process");
}

fn not_frozen() {
    let mut scene = Scene::new();
    let frozen = scene.world.group_of(Controller::Freezer, "frozen");
    let daemon = scene.daemon(&["patience=120"]);
    scene.put(Controller::Freezer, &frozen, daemon.pid());
    let name = GroupName::new(&frozen).unwrap();
    let frozen = kernel::set_frozen(&scene.world.host, &name, true, Duration::from_secs(1));
    if frozen.is_ok() {
        // nothing ends a daemon that is frozen on v1
        kernel::set_frozen(&scene.world.host, &name, false, Duration::from_secs(1)).unwrap();
    }
    let refused = frozen.unwrap_err();
    let expected = format!("the group contains ringfenced (process {})", daemon.pid());
    assert!(format!("{refused}").contains(&expected), "{refused}");
    // a gate of a frozen v1 group could not be ended
    let first = gate(&daemon);
    end(first, Signal::KILL);
    daemon.wait_for_log("strict rules are in force", 2);
    let seat = scene.world.host.seat(&name, Controller::Freezer).unwrap();
    if seat.at.version == Version::V1 {
        assert_eq!(scene.world.place_by(Controller::Freezer, gate(&daemon)).as_deref(), Some(""));
    }
    scene.put(Controller::Freezer, "/", daemon.pid());
    daemon.end();
}

/// A strict start while neither the daemon nor its gate runs, until `after`.
fn bounded(scene: &Scene, daemon: &Daemon, after: impl FnOnce()) {
    let stopped = gate(daemon);
    let start = Instant::now();
    let (done, is_done) = std::sync::mpsc::channel::<()>();
    // a start that nobody lets go on would wait for ever
    let rescue = std::thread::spawn(move || {
        if is_done.recv_timeout(Duration::from_secs(60)) == Err(RecvTimeoutError::Timeout) {
            end(stopped, Signal::KILL);
        }
    });
    let started = Command::new(&scene.strict).arg(Path::new("/dev/null")).status();
    let waited = start.elapsed();
    drop(done);
    rescue.join().unwrap();
    let ended = !Path::new("/proc").join(stopped.to_string()).join("exe").exists();
    after();
    assert!(started.unwrap().success());
    assert!(ended, "the kernel's timer has ended the gate");
    let machine = Duration::from_secs(if crate::is_vm() { 20 } else { 1 });
    eprintln!("a start waited {waited:?} while neither the daemon nor its gate ran");
    assert!(waited <= events::Limits::default().unwatched() * 2 + machine, "{waited:?}");
}

fn frozen_and_stopped() {
    let mut scene = Scene::new();
    let frozen = scene.world.group_of(Controller::Freezer, "frozen");
    let daemon = scene.daemon(&[]);
    let name = GroupName::new(&frozen).unwrap();
    let seat = scene.world.host.seat(&name, Controller::Freezer).unwrap();
    scene.put(Controller::Freezer, &frozen, daemon.pid());
    let (file, on, off) = match seat.at.version {
        Version::V1 => ("freezer.state", "FROZEN", "THAWED"),
        Version::V2 => ("cgroup.freeze", "1", "0"),
    };
    // not by a command of ours, which refuses
    let write = |text| fs::write(seat.directory().join(file), text).unwrap();
    write(on);
    end(gate(&daemon), Signal::STOP);
    bounded(&scene, &daemon, || write(off));
    scene.put(Controller::Freezer, "/", daemon.pid());
    daemon.kill();
}

fn both_stopped() {
    let scene = Scene::new();
    let daemon = scene.daemon(&[]);
    daemon.signal(Signal::STOP);
    end(gate(&daemon), Signal::STOP);
    bounded(&scene, &daemon, || daemon.signal(Signal::CONT));
    daemon.kill();
}

fn both_frozen() {
    let mut scene = Scene::new();
    let v2 = |at: &&kernel::Hierarchy| at.version == Version::V2;
    let Some(unified) = scene.world.host.hierarchies().iter().find(v2).cloned() else {
        // where there is one is seen in the virtual machines
        eprintln!("there is no cgroup v2 here");
        return;
    };
    let directory = unified.mount.join(scene.world.group_name("frozen"));
    fs::create_dir(&directory).unwrap();
    let daemon = scene.daemon(&[]);
    let write = |file: &str, text: &str| fs::write(directory.join(file), text).unwrap();
    let root = unified.mount.join("cgroup.procs");
    for pid in [daemon.pid(), gate(&daemon)] {
        write("cgroup.procs", &pid.to_string());
    }
    write("cgroup.freeze", "1");
    let frozen = || fs::read_to_string(directory.join("cgroup.events")).unwrap().contains("frozen 1");
    eventually("both are frozen", frozen);
    bounded(&scene, &daemon, || write("cgroup.freeze", "0"));
    fs::write(root, daemon.pid().to_string()).unwrap();
    daemon.kill();
    eventually("its group is empty", || fs::remove_dir(&directory).is_ok());
}
