//! What resizing and power saving wrote goes back: byte for byte, for processes, too, whatever ends it, and also where a layout
//! found its groups as it wants them, so that its record has no step for them.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::{
        fs::{PermissionsExt, symlink},
        process::CommandExt,
    },
    process::Command,
    time::Duration,
};

use apply::{By, Meta, Resizes, Running as System, State, Target};
use kernel::GroupName;
use rustix::fs::{CWD, FileType, FlockOperation, Mode, flock, mknodat};
use settings::{Controller, Version};
use units::CpuSet;

use crate::{
    Case,
    elastic::{allowed, apply_alone, busy, sleeper, state},
    world::{Daemon, Running, World, eventually},
};

pub fn trials() -> Vec<Case> {
    vec![
        ("an_undo_gives_back_every_file_that_resizing_wrote", || restored(undone)),
        ("an_undo_after_a_kill_gives_back_every_file_that_resizing_wrote", || restored(killed)),
        ("a_layout_without_the_groups_gives_back_every_file_that_resizing_wrote", || restored(replaced)),
        ("lists_below_an_elastic_group_follow_it_and_come_back", followed),
        ("lists_below_a_group_that_the_next_layout_gives_fixed_cpus_come_back", fixed),
        ("nobody_else_can_stop_resizing_nor_the_look_at_it", locked),
    ]
}

/// Only v1 has groups that need a list of their own.
pub const ON_V1: &[Case] =
    &[("a_list_that_was_empty_before_resizing_is_as_the_parent_s_where_tasks_are_in_the_group", emptied)];

/// The groups of a case, made before the layout, with what the layout wants of them.
struct Scene {
    // they end before their groups go
    sleepers: Vec<Running>,
    world: World,
    apps: String,
    web: String,
    oltp: String,
}

const FILES: [(Controller, &str); 7] = [
    (Controller::Cpuset, "cpuset.cpus"),
    (Controller::Cpuset, "cpuset.mems"),
    (Controller::Cpu, "cpu.max"),
    (Controller::Cpu, "cpu.max.burst"),
    (Controller::Cpu, "cpu.cfs_quota_us"),
    (Controller::Cpu, "cpu.cfs_period_us"),
    (Controller::Cpu, "cpu.cfs_burst_us"),
];

fn read(world: &World, group: &str, controller: Controller, file: &str) -> Option<String> {
    let name = GroupName::new(group).unwrap();
    let seat = world.host.seat(&name, controller).ok()?;
    world.host.read(&seat, &name, file).ok()
}

fn write(world: &World, group: &str, controller: Controller, file: &str, text: &str) {
    let name = GroupName::new(group).unwrap();
    let seat = world.host.seat(&name, controller).unwrap();
    world.host.write(&seat, &name, file, text).unwrap();
}

fn version(world: &World, controller: Controller) -> Version {
    world.host.hierarchy_of(controller).unwrap().version
}

fn make(world: &World, group: &str, cpus: &str) {
    let name = GroupName::new(group).unwrap();
    let controllers = [Controller::Cpu, Controller::Cpuset, Controller::Cpuacct, Controller::Pids];
    let there = |controller: &Controller| world.host.hierarchy_of(*controller).is_some();
    let controllers: Vec<Controller> = controllers.into_iter().filter(there).collect();
    world.host.create(&name, Some(&controllers), &kernel::Access::default()).unwrap();
    let root = world.host.hierarchy_of(Controller::Cpuset).unwrap();
    let mems = world.host.kernel().read(root, "", "cpuset.mems");
    let mems = mems.or_else(|_| world.host.kernel().read(root, "", "cpuset.mems.effective")).unwrap();
    write(world, group, Controller::Cpuset, "cpuset.mems", mems.trim());
    write(world, group, Controller::Cpuset, "cpuset.cpus", cpus);
}

fn online() -> CpuSet {
    topology::Machine::live().unwrap().online()
}

impl Scene {
    fn new() -> Scene {
        let mut world = World::new();
        let names = ["apps", "web", "oltp"].map(|last| world.group_name(last));
        let [apps, web, oltp] = names.clone();
        let text = format!(
            "[power]\nsaving = true\n[groups.{apps}]\n[groups.{web}]\ncpu.max = {{ min = \"10ms/100ms\", max = \"40ms/100ms\" }}\n\
             [groups.{oltp}]\ncpus = {{ min = 1, max = 2, weight = 100 }}\n"
        );
        world.write("layout.toml", &text);
        // what the layout gives, to be there before it
        let daemon = world.daemon(&[]);
        let lists =
            names.each_ref().map(|group| read(&world, group, Controller::Cpuset, "cpuset.cpus").unwrap());
        daemon.end();
        undo(&world);
        for (group, list) in names.iter().zip(&lists) {
            assert!(!world.exists(group), "{group}");
            make(&world, group, list.trim());
        }
        if version(&world, Controller::Cpuset) == Version::V1 {
            // what saving leaves is the other CPU
            make(&world, &format!("{apps}/first"), &online().first().unwrap().to_string());
            make(&world, &format!("{apps}/first/below"), &online().first().unwrap().to_string());
            make(&world, &format!("{apps}/all"), &online().to_string());
        }
        match version(&world, Controller::Cpu) {
            Version::V1 => {
                write(&world, &web, Controller::Cpu, "cpu.cfs_quota_us", "10000");
            }
            Version::V2 => {
                write(&world, &web, Controller::Cpu, "cpu.max", "10000 100000");
            }
        }
        let mut scene = Scene { sleepers: Vec::new(), world, apps, web, oltp };
        scene.sleepers = scene.groups().iter().map(|group| sleeper(&scene.world, group)).collect();
        scene
    }

    fn groups(&self) -> Vec<String> {
        let all = ["", "/first", "/first/below", "/all"].map(|last| format!("{}{last}", self.apps));
        let all = all.into_iter().chain([self.web.clone(), self.oltp.clone()]);
        all.filter(|group| self.world.exists(group)).collect()
    }

    /// All that the kernel has of them.
    fn look(&self) -> BTreeMap<String, String> {
        let of_group = |group: String| {
            let files = FILES.iter().filter_map(move |(controller, file)| {
                Some((format!("{group} {file}"), read(&self.world, &group, *controller, file)?))
            });
            files.collect::<Vec<_>>()
        };
        let processes = self.groups().into_iter().zip(&self.sleepers);
        let processes =
            processes.map(|(group, one)| (format!("{group} process"), allowed(one.pid()).to_string()));
        self.groups().into_iter().flat_map(of_group).chain(processes).collect()
    }
}

pub fn undo(world: &World) {
    undo_to(world, 0);
}

fn undo_to(world: &World, to: u32) {
    let state = State::open(world.directory.join("state")).unwrap();
    let system = System::new();
    let target = Target { host: &world.host, system: &system };
    let meta = Meta { by: By::caller(), what: "undo".to_owned(), ..Meta::default() };
    let lock = state.lock(Duration::from_secs(60)).unwrap();
    let outcome = apply::undo(&lock, target, Some(to), &meta).unwrap();
    assert_eq!((&outcome.replaced, &outcome.left), (&Vec::new(), &Vec::new()));
}

fn undone(daemon: Daemon, scene: &Scene) {
    undo(&scene.world);
    daemon.wait_for_log("no layout in effect has elastic groups", 1);
    daemon.end();
}

fn killed(daemon: Daemon, scene: &Scene) {
    daemon.kill();
    undo(&scene.world);
}

fn replaced(daemon: Daemon, scene: &Scene) {
    daemon.kill();
    let other = scene.apps.replace("-apps", "-other");
    scene.world.write("layout.toml", &format!("[groups.{other}]\npids.max = 100\n"));
    let daemon = scene.world.daemon(&[]);
    assert!(scene.world.exists(&other), "{}", daemon.log());
    daemon.end();
}

fn restored(end: fn(Daemon, &Scene)) {
    let scene = Scene::new();
    let world = &scene.world;
    let before = scene.look();
    let daemon = world.daemon(&[]);
    daemon.wait_for_log("resizing", 1);
    assert_eq!(scene.look(), before, "the layout finds all as it wants it: {}", daemon.log());
    let cpus = |group: &str| read(world, group, Controller::Cpuset, "cpuset.cpus").unwrap();
    let load = busy(world, &scene.oltp);
    eventually("a larger elastic group", || {
        cpus(&scene.oltp) != before[&format!("{} cpuset.cpus", scene.oltp)]
    });
    eventually("fewer CPUs for general groups", || {
        [&scene.apps, &scene.web].iter().all(|group| cpus(group) != before[&format!("{group} cpuset.cpus")])
    });
    let now = scene.look();
    for group in scene.groups().iter().filter(|group| group.contains("/first")) {
        assert_ne!(now[&format!("{group} process")], before[&format!("{group} process")], "{now:?}");
    }
    end(daemon, &scene);
    drop(load);
    assert_eq!(scene.look(), before);
    assert_eq!(scene.groups().len(), scene.sleepers.len());
}

/// On v2 a group below has the CPUs of its own list that the one above has, without a write.
fn followed() {
    let mut world = World::new();
    let group = world.group_name("elastic");
    world.write("layout.toml", &format!("[groups.{group}]\ncpus = {{ min = 1, max = 2, weight = 100 }}\n"));
    let daemon = world.daemon(&[]);
    let cpus = |group: &str| -> CpuSet {
        read(&world, group, Controller::Cpuset, "cpuset.cpus").unwrap().trim().parse().unwrap()
    };
    // on v2 a group with groups below it has no processes of its own
    let loaded = match version(&world, Controller::Cpuset) {
        Version::V1 => group.clone(),
        Version::V2 => {
            let loaded = format!("{group}/loaded");
            make(&world, &loaded, &online().to_string());
            loaded
        }
    };
    let load = busy(&world, &loaded);
    eventually("two CPUs under load", || cpus(&group).len() == 2);
    let both = cpus(&group);
    let [first, last] = [both.first().unwrap(), both.iter().last().unwrap()];
    let lists = [("first", CpuSet::range(first, first)), ("last", CpuSet::range(last, last)), ("both", both)];
    for (name, list) in &lists {
        make(&world, &format!("{group}/{name}"), &list.to_string());
    }
    let quiet = lists.each_ref().map(|(name, _)| sleeper(&world, &format!("{group}/{name}")));
    let lists_now = || lists.each_ref().map(|(name, _)| cpus(&format!("{group}/{name}")));
    let wanted = lists.each_ref().map(|(_, list)| list.clone());
    for _ in 0..2 {
        eventually("two CPUs under load", || cpus(&group).len() == 2);
        eventually("the lists below", || lists_now() == wanted);
        drop(busy(&world, &loaded));
    }
    drop(load);
    eventually("one CPU without load", || cpus(&group).len() == 1);
    let one = cpus(&group);
    assert!(quiet.iter().all(|process| allowed(process.pid()) == one), "{one}");
    if version(&world, Controller::Cpuset) == Version::V1 {
        assert_eq!(lists_now(), [&one; 3].map(CpuSet::clone));
    }
    daemon.kill();
    let daemon = world.daemon(&[]);
    let load = busy(&world, &loaded);
    eventually("the lists below after a kill", || lists_now() == wanted);
    for (process, list) in quiet.iter().zip(&wanted) {
        eventually("its processes on it", || allowed(process.pid()) == *list);
    }
    drop(load);
    daemon.end();
}

/// The next layout names the group, but none below it.
fn fixed() {
    let mut world = World::new();
    let group = world.group_name("elastic");
    let both: CpuSet = online().iter().take(2).collect();
    let elastic = "cpus = { min = 1, max = 2, weight = 100 }";
    world.write("layout.toml", &format!("[groups.{group}]\n{elastic}\n"));
    let daemon = world.daemon(&[]);
    let cpus = |group: &str| -> CpuSet {
        read(&world, group, Controller::Cpuset, "cpuset.cpus").unwrap().trim().parse().unwrap()
    };
    let loaded = format!("{group}/loaded");
    make(&world, &loaded, &cpus(&group).to_string());
    if version(&world, Controller::Cpuset) == Version::V2 {
        write(&world, &loaded, Controller::Cpuset, "cpuset.cpus", &online().to_string());
    }
    let load = busy(&world, &loaded);
    eventually("two CPUs under load", || cpus(&group).len() == 2);
    let has = cpus(&group);
    let last = CpuSet::range(has.iter().last().unwrap(), has.iter().last().unwrap());
    let lists = [("all", has.clone()), ("all/last", last.clone()), ("last", last)];
    for (name, list) in &lists {
        make(&world, &format!("{group}/{name}"), &list.to_string());
    }
    drop(load);
    eventually("one CPU without load", || cpus(&group).len() == 1);
    daemon.kill();
    let lists_now = || lists.each_ref().map(|(name, _)| cpus(&format!("{group}/{name}")));
    if version(&world, Controller::Cpuset) == Version::V1 {
        assert_eq!(lists_now(), [cpus(&group), cpus(&group), cpus(&group)], "they follow");
    }
    world.write("layout.toml", &format!("[groups.{group}]\ncpus = \"{}\"\n", has.union(&both)));
    world.daemon(&[]).end();
    assert_eq!(cpus(&group), has.union(&both));
    assert_eq!(lists_now(), lists.each_ref().map(|(_, list)| list.clone()));
}

/// Whether the layout filled it, or the daemon did, as somebody emptied it since.
fn emptied() {
    for is_by_layout in [true, false] {
        let mut world = World::new();
        let group = world.group_name("elastic");
        make(&world, &group, if is_by_layout { "\n" } else { "0" });
        apply_alone(&world, &format!("[groups.{group}]\ncpus = {{ min = 1, max = 2, weight = 100 }}\n"));
        if !is_by_layout {
            write(&world, &group, Controller::Cpuset, "cpuset.cpus", "\n");
        }
        let daemon = world.daemon(&["apply=yes"]);
        let list = || read(&world, &group, Controller::Cpuset, "cpuset.cpus").unwrap().trim().to_owned();
        eventually("a list", || !list().is_empty());
        let load = busy(&world, &group);
        eventually("two CPUs under load", || allowed(load[0].pid()).len() == 2);
        daemon.kill();
        let state = State::open(world.directory.join("state")).unwrap();
        let system = System::new();
        let meta = Meta { by: By::caller(), what: "undo".to_owned(), ..Meta::default() };
        let lock = state.lock(Duration::from_secs(60)).unwrap();
        let undone = apply::undo(&lock, Target { host: &world.host, system: &system }, Some(0), &meta);
        let left = undone.unwrap().left;
        assert_eq!(allowed(load[0].pid()), online(), "{left:?}");
        assert!(list().is_empty() || list() == online().to_string(), "{}", list());
        // it is said where the kernel takes no empty list
        let words = "as its parent's: the kernel takes no empty list while processes are in the group";
        assert!(list().is_empty() == left.is_empty(), "{left:?}");
        assert!(left.iter().all(|left| left.contains(words)), "{left:?}");
    }
}

fn locked() {
    let mut world = World::new();
    let group = world.group_name("elastic");
    world.write("layout.toml", &format!("[groups.{group}]\ncpus = {{ min = 1, max = 2, weight = 100 }}\n"));
    let directory = world.directory.join("state/elastic");
    let controller = directory.join("controller");
    fs::create_dir_all(&directory).unwrap();
    // one that anybody could lock is nobody's right to resize
    fs::write(&controller, "").unwrap();
    fs::set_permissions(&controller, fs::Permissions::from_mode(0o666)).unwrap();
    let file = fs::File::open(&controller).unwrap();
    flock(&file, FlockOperation::NonBlockingLockExclusive).unwrap();
    let daemon = world.daemon(&[]);
    let resizes = Resizes::of(&state(&world));
    eventually("a controller", || resizes.controller().is_some_and(|one| one.pid == daemon.pid()));
    let lock = world.directory.join("state/resizing/lock");
    assert_eq!(fs::metadata(&lock).unwrap().permissions().mode() & 0o777, 0o600);
    let opens = |uid: u32| {
        let script = format!("exec 9<'{}'", lock.display());
        Command::new("/bin/sh").args(["-c", &script]).uid(uid).gid(uid).status().unwrap().success()
    };
    assert!(opens(0), "the owner");
    assert!(!opens(65534), "another user");
    // a FIFO makes nobody wait, and a link is not followed
    fs::remove_file(&controller).unwrap();
    mknodat(CWD, &controller, FileType::Fifo, Mode::from_raw_mode(0o644), 0).unwrap();
    assert_eq!(resizes.controller(), None);
    fs::remove_file(&controller).unwrap();
    let elsewhere = world.directory.join("elsewhere");
    let text = format!("{{\"started\":0,\"pid\":{},\"generation\":1}}", u32::MAX);
    fs::write(&elsewhere, text.replace(&u32::MAX.to_string(), &std::process::id().to_string())).unwrap();
    symlink(&elsewhere, &controller).unwrap();
    assert_eq!(resizes.controller(), None);
    daemon.end();
    // the next one puts its own file in the place of either
    let daemon = world.daemon(&[]);
    eventually("a controller", || resizes.controller().is_some_and(|one| one.pid == daemon.pid()));
    assert!(fs::symlink_metadata(&controller).unwrap().is_file());
    assert!(
        fs::read_to_string(&elsewhere).unwrap().contains("\"started\":0"),
        "nothing was written through it"
    );
    daemon.end();
}
