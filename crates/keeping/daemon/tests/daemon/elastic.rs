//! Elastic groups: their processes get more CPUs as they use them, less when they are quiet; what a kill of the daemon, an
//! undo and somebody else's write leave.

use std::{collections::BTreeSet, fs, path::Path, time::Duration};

use apply::{By, Meta, Originals, Outcome, Resize, Resizes, Running as System, State, Target};
use kernel::GroupName;
use settings::Controller;
use units::CpuSet;

use crate::{
    Case,
    hotplug::Offline,
    world::{Running, World, eventually},
};

pub fn trials() -> Vec<Case> {
    vec![
        ("an_elastic_group_grows_with_its_load_and_shrinks_when_it_is_quiet", resized),
        ("a_daemon_killed_while_it_resizes_leaves_legal_sets_and_the_next_one_goes_on", killed),
        ("a_group_of_idle_tasks_borrows_what_its_owner_keeps", lent),
        ("an_undo_ends_resizing_and_a_pause_interrupts_it", undone),
        ("a_group_that_somebody_made_again_is_left_until_the_next_apply", made_again),
        ("a_group_made_again_between_an_apply_and_the_daemon_s_first_look_is_left", made_before_the_look),
        ("a_group_that_is_gone_ends_resizing_of_itself_alone", gone),
        ("a_group_below_an_elastic_one_is_not_elastic", below),
        ("general_groups_have_fewer_cpus_while_they_are_quiet_and_all_at_the_daemon_s_end", saved),
    ]
}

pub const OF_CPUS: &[Case] =
    &[("where_cpus_go_that_a_layout_guarantees_all_else_is_resized_until_they_come", undivided)];

/// v2's kernel takes the write that is refused.
pub const OF_CPUS_ON_V1: &[Case] =
    &[("a_group_whose_static_share_is_refused_is_left_and_the_others_go_on", refused_first)];

/// Applies a layout as the command line does, without a daemon.
pub fn apply_alone(world: &World, text: &str) {
    let reading = layout::read(&[layout::Source::new("layout.toml", text)]);
    let (machine, accounts, system) =
        (topology::Machine::live().unwrap(), system::Accounts::new(), System::new());
    let target = Target { host: &world.host, system: &system };
    let desired = reading.desired.unwrap();
    let state = State::open(world.directory.join("state")).unwrap();
    let lock = state.lock(Duration::from_secs(60)).unwrap();
    let earlier = apply::Earlier::read(&state, target).unwrap();
    let plan = apply::planned(target, &earlier, &desired, &machine, &system::Live, &accounts).unwrap();
    let meta = Meta { by: By::caller(), what: "layout".to_owned(), layout: true, ..Meta::default() };
    apply::execute(&lock, target, &plan, &meta).unwrap();
}

/// A quiet process in a group.
pub fn sleeper(world: &World, group: &str) -> Running {
    let process = Running::start(Path::new("/bin/sleep"), &["600"]);
    world.put(group, process.pid());
    process
}

/// A layout with one elastic group, which is there from the start of the daemon on.
fn world() -> (World, String) {
    let mut world = World::new();
    let group = world.group_name("elastic");
    world.write("layout.toml", &format!("[groups.{group}]\ncpus = {{ min = 1, max = 2, weight = 100 }}\n"));
    (world, group)
}

/// Two processes of a group that want a CPU each.
pub fn busy(world: &World, group: &str) -> [Running; 2] {
    let start = || {
        let process = Running::start(Path::new("/bin/sh"), &["-c", "while :; do :; done"]);
        world.put(group, process.pid());
        process
    };
    [start(), start()]
}

/// The CPUs that a process may run on, as the kernel says.
pub fn allowed(pid: u32) -> CpuSet {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
    list.trim().parse().unwrap()
}

pub fn state(world: &World) -> State {
    State::peek(world.directory.join("state"))
}

/// What `status` finds wrong.
pub fn drifts(world: &World) -> Vec<String> {
    let system = System::new();
    let groups = apply::status(&state(world), Target { host: &world.host, system: &system }).unwrap();
    groups.iter().flat_map(|group| &group.drift).map(ToString::to_string).collect()
}

fn resized() {
    let (world, group) = world();
    let daemon = world.daemon(&[]);
    let quiet = sleeper(&world, &group);
    assert_eq!(allowed(quiet.pid()).len(), 1, "{}", daemon.log());
    let load = busy(&world, &group);
    for process in &load {
        eventually("two CPUs under load", || allowed(process.pid()).len() == 2);
    }
    assert_eq!(drifts(&world), [""; 0], "a larger set is no drift");
    drop(load);
    eventually("one CPU without load", || allowed(quiet.pid()).len() == 1);
    assert_eq!(drifts(&world), [""; 0]);
    let records = || Resizes::of(&state(&world)).last(10).unwrap();
    // a change is recorded after it was written
    eventually("both records", || records().len() == 2);
    let changes = records();
    let sizes: Vec<(usize, usize)> =
        changes.iter().filter_map(Resize::cpus).map(|(from, to)| (from.len(), to.len())).collect();
    assert_eq!(sizes, [(1, 2), (2, 1)], "{changes:?}");
    assert!(changes.iter().all(|change| change.group == group && change.refused.is_none()), "{changes:?}");
    daemon.end();
}

fn killed() {
    let (world, group) = world();
    let mut sizes = BTreeSet::new();
    for round in 0..8 {
        let daemon = world.daemon(&[]);
        let load = busy(&world, &group);
        let [one, _] = &load;
        if round % 4 == 3 {
            eventually("two CPUs under load", || allowed(one.pid()).len() == 2);
        }
        // about when the first samples are taken and the first set is written
        std::thread::sleep(Duration::from_millis(37 * round));
        daemon.kill();
        let cpus = allowed(one.pid());
        assert!((1..=2).contains(&cpus.len()), "{cpus}");
        assert_eq!(drifts(&world), [""; 0], "{cpus}");
        sizes.insert(cpus.len());
    }
    eprintln!("killed with {sizes:?} CPUs");
    assert!(sizes.contains(&2));
    assert!(Resizes::of(&state(&world)).controller().is_none(), "nobody says that it resizes");
}

fn lent() {
    let mut world = World::new();
    let (owner, batch) = (world.group_name("owner"), world.group_name("batch"));
    let cpus = "cpus = { min = 1, max = 2, weight = 100 }";
    world.write(
        "layout.toml",
        &format!("[groups.{owner}]\n{cpus}\n[groups.{batch}]\n{cpus}\n\"cpu.idle\" = 1\n"),
    );
    let daemon = world.daemon(&[]);
    let (one, other) = (sleeper(&world, &owner), sleeper(&world, &batch));
    // on a machine of two CPUs nothing else is free
    eventually("a second CPU", || allowed(other.pid()).len() == 2);
    let own = allowed(one.pid());
    assert_eq!(own.len(), 1, "the owner is quiet");
    if topology::Machine::live().unwrap().online().len() == 2 {
        assert!(own.is_subset(&allowed(other.pid())), "{own} is lent and stays the owner's");
    }
    assert_eq!(drifts(&world), [""; 0]);
    // a loan is no difference to the layout, so that the next start changes nothing that an undo would take back
    let generations = || fs::read_dir(world.directory.join("state/generations")).unwrap().count();
    let before = generations();
    daemon.kill();
    let daemon = world.daemon(&[]);
    assert_eq!(allowed(other.pid()).len(), 2, "what is lent at a start stays");
    eventually("the next controller", || Resizes::of(&state(&world)).controller().is_some());
    assert_eq!((generations(), allowed(one.pid())), (before, own));
    daemon.end();
}

fn undone() {
    let (world, group) = world();
    let daemon = world.daemon(&[]);
    let state = State::open(world.directory.join("state")).unwrap();
    let resizes = Resizes::of(&state);
    eventually("a controller", || resizes.controller().is_some_and(|one| one.generation.is_some()));
    resizes.pause().unwrap();
    daemon.wait_for_log("resizing is paused", 1);
    let load = busy(&world, &group);
    // longer than a sample and its growth
    std::thread::sleep(Duration::from_secs(1));
    assert!(load.iter().all(|process| allowed(process.pid()).len() == 1), "a pause");
    resizes.resume().unwrap();
    for process in &load {
        eventually("two CPUs under load", || allowed(process.pid()).len() == 2);
    }
    // a change is recorded after it was written
    eventually("a record", || resizes.last(100).unwrap().len() == 1);
    let system = System::new();
    let target = Target { host: &world.host, system: &system };
    let meta = Meta { by: By::caller(), what: "undo".to_owned(), ..Meta::default() };
    let lock = state.lock(Duration::from_secs(60)).unwrap();
    let outcome = apply::undo(&lock, target, Some(0), &meta).unwrap();
    drop(lock);
    assert_eq!(outcome.replaced, [""; 0], "what the daemon wrote is nobody else's");
    daemon.wait_for_log("no layout in effect has elastic groups", 1);
    assert!(resizes.controller().is_none());
    drop(load);
    assert_eq!(resizes.last(100).unwrap().len(), 1, "nothing was written after it");
    daemon.end();
}

/// The undo of everything, without a daemon.
fn undo(world: &World) -> Outcome {
    let state = State::open(world.directory.join("state")).unwrap();
    let system = System::new();
    let meta = Meta { by: By::caller(), what: "undo".to_owned(), ..Meta::default() };
    let lock = state.lock(Duration::from_secs(60)).unwrap();
    apply::undo(&lock, Target { host: &world.host, system: &system }, Some(0), &meta).unwrap()
}

/// What `status` says of resizing.
fn trouble(world: &World) -> String {
    Resizes::of(&state(world)).trouble(&apply::Again::default(), |at| at.to_string()).unwrap_or_default()
}

/// The first CPU, and what memory there is.
fn fill(world: &World, group: &str) {
    let name = GroupName::new(group).unwrap();
    let seat = world.host.seat(&name, Controller::Cpuset).unwrap();
    let root = |file: &str| world.host.kernel().read(seat.at, "", file);
    let mems = root("cpuset.mems").or_else(|_| root("cpuset.mems.effective")).unwrap();
    world.host.write(&seat, &name, "cpuset.mems", mems.trim()).unwrap();
    world.host.write(&seat, &name, "cpuset.cpus", "0").unwrap();
}

/// The list of a group.
pub fn list(world: &World, group: &str) -> String {
    apply::cpus_of(&world.host, &GroupName::new(group).unwrap()).unwrap().to_string()
}

fn controllers(world: &World) -> Vec<Controller> {
    let all = [Controller::Cpu, Controller::Cpuset, Controller::Cpuacct, Controller::Pids];
    all.into_iter().filter(|one| world.host.hierarchy_of(*one).is_some()).collect()
}

fn made_again() {
    let (world, group) = world();
    let daemon = world.daemon(&[]);
    let resizes = Resizes::of(&state(&world));
    eventually("a controller", || resizes.controller().is_some_and(|one| one.generation.is_some()));
    let name = GroupName::new(&group).unwrap();
    let again = || {
        world.host.delete(&name, true).unwrap();
        world.host.create(&name, Some(&controllers(&world)), &kernel::Access::default()).unwrap();
        fill(&world, &group);
    };
    // also one that has what the daemon knows
    again();
    let load = busy(&world, &group);
    daemon.wait_for_log("somebody removed it and made it again", 1);
    std::thread::sleep(Duration::from_secs(2));
    assert!(load.iter().all(|process| allowed(process.pid()).len() == 1), "nothing is written to it");
    let words = trouble(&world);
    assert!(words.contains(&group) && words.contains("made it again: ringfence apply"), "{words}");
    assert_eq!(daemon.log().matches("removed it and made it again").count(), 1, "{}", daemon.log());
    daemon.kill();
    assert_eq!(list(&world, &group), "0");
    // the start applies the layout
    let daemon = world.daemon(&[]);
    for process in &load {
        eventually("two CPUs under load", || allowed(process.pid()).len() == 2);
    }
    assert_eq!(trouble(&world), "");
    drop(load);
    daemon.kill();
    undo(&world);
    assert_eq!(list(&world, &group), "0", "what was there before the daemon wrote is back");
}

fn made_before_the_look() {
    let mut world = World::new();
    let group = world.group_name("elastic");
    let text = format!("[groups.{group}]\ncpus = {{ min = 1, max = 2, weight = 100 }}\n");
    apply_alone(&world, &text);
    let name = GroupName::new(&group).unwrap();
    world.host.delete(&name, true).unwrap();
    world.host.create(&name, Some(&controllers(&world)), &kernel::Access::default()).unwrap();
    fill(&world, &group);
    let load = busy(&world, &group);
    // it applies nothing
    let daemon = world.daemon(&["apply=yes"]);
    daemon.wait_for_log("somebody removed it and made it again", 1);
    std::thread::sleep(Duration::from_secs(1));
    assert!(load.iter().all(|process| allowed(process.pid()).len() == 1), "nothing is written to it");
    apply_alone(&world, &text);
    for process in &load {
        eventually("two CPUs under load", || allowed(process.pid()).len() == 2);
    }
    assert_eq!(trouble(&world), "");
    daemon.end();
}

fn refused_first() {
    let mut world = World::new();
    let (one, other) = (world.group_name("one"), world.group_name("other"));
    let cpus = "cpus = { min = 1, max = 2, weight = 100 }";
    apply_alone(&world, &format!("[groups.{one}]\n{cpus}\n[groups.{other}]\n{cpus}\n"));
    let write = |group: &str, file: &str, text: &str| {
        let name = GroupName::new(group).unwrap();
        let seat = world.host.seat(&name, Controller::Cpuset).unwrap();
        world.host.write(&seat, &name, file, text).unwrap();
    };
    // more than its max, and its static share has a CPU that somebody else's group has alone
    write(&one, "cpuset.cpus", "1-5");
    write(&other, "cpuset.cpus", "6");
    let foreign = format!("{one}-foreign");
    let name = GroupName::new(&foreign).unwrap();
    world.host.create(&name, Some(&[Controller::Cpuset]), &kernel::Access::default()).unwrap();
    write(&foreign, "cpuset.cpus", "0");
    write(&foreign, "cpuset.cpu_exclusive", "1");
    let daemon = world.daemon(&["apply=yes"]);
    daemon.wait_for_log(&format!("{one}: it does not get its static share: "), 1);
    let load = busy(&world, &other);
    for process in &load {
        eventually("two CPUs under load", || allowed(process.pid()).len() == 2);
    }
    assert_eq!(list(&world, &one), "1-5", "{}", daemon.log());
    assert_eq!(list(&world, &other), "6-7", "not what the other one keeps");
    let words = trouble(&world);
    assert!(words.contains(&one) && words.contains("ringfence apply"), "{words}");
    world.host.delete(&name, true).unwrap();
    Resizes::of(&state(&world)).resume().unwrap();
    eventually("its static share", || list(&world, &one) == "0-1");
    eventually("no trouble", || trouble(&world).is_empty());
    drop(load);
    daemon.end();
}

fn undivided() {
    let mut world = World::new();
    // so that the plan sees which files this kernel gives a group
    world.group_of(Controller::Cpu, "other");
    let (all, web) = (world.group_name("all"), world.group_name("web"));
    let online = topology::Machine::live().unwrap().online();
    let cpus = format!("cpus = {{ min = {0}, max = {0}, weight = 100 }}", online.len());
    let quota = "cpu.max = { min = \"10ms/100ms\", max = \"60ms/100ms\" }";
    apply_alone(&world, &format!("[groups.{all}]\n{cpus}\n[groups.{web}]\n{quota}\n"));
    let daemon = world.daemon(&["apply=yes"]);
    eventually("a controller", || Resizes::of(&state(&world)).controller().is_some());
    assert_eq!(trouble(&world), "");
    let offline = Offline::new(1);
    daemon.wait_for_log(&format!("{all}: the groups' min are {} ", online.len()), 1);
    let load = busy(&world, &web);
    let records = || Resizes::of(&state(&world)).last(10).unwrap();
    eventually("a larger quota", || records().iter().any(|one| one.group == web && one.setting == "cpu.max"));
    let words = trouble(&world);
    assert!(words.contains("and there are") && words.contains("ringfence apply"), "{words}");
    drop((load, offline));
    eventually("no trouble", || trouble(&world).is_empty());
    eventually("all CPUs again", || list(&world, &all) == online.to_string());
    daemon.end();
}

fn gone() {
    let mut world = World::new();
    let (one, other) = (world.group_name("one"), world.group_name("other"));
    let cpus = "cpus = { min = 1, max = 2, weight = 100 }";
    world.write("layout.toml", &format!("[groups.{one}]\n{cpus}\n[groups.{other}]\n{cpus}\n"));
    let daemon = world.daemon(&[]);
    let resizes = Resizes::of(&state(&world));
    eventually("a controller", || resizes.controller().is_some_and(|one| one.generation.is_some()));
    // on v1 in this hierarchy alone
    let remove = |group: &str| {
        let seat = world.host.seat(&GroupName::new(group).unwrap(), Controller::Cpuset).unwrap();
        world.host.kernel().rmdir(seat.at, &seat.path).unwrap();
    };
    remove(&one);
    daemon.wait_for_log(&format!("{one}: it is gone: it is not resized: ringfence apply"), 1);
    let load = busy(&world, &other);
    for process in &load {
        eventually("two CPUs under load", || allowed(process.pid()).len() == 2);
    }
    drop(load);
    let words = trouble(&world);
    assert!(
        words.contains(&one) && words.contains("ringfence apply") && !words.contains("resume"),
        "{words}"
    );
    assert!(drifts(&world).iter().any(|drift| drift.contains(&one)), "{:?}", drifts(&world));
    daemon.end();
    // the start applies the layout
    let daemon = world.daemon(&[]);
    eventually("no trouble", || trouble(&world).is_empty());
    let load = busy(&world, &one);
    // a machine of two CPUs has no more while the other one is there
    remove(&other);
    for process in &load {
        eventually("two CPUs under load", || allowed(process.pid()).len() == 2);
    }
    daemon.end();
}

fn below() {
    let mut world = World::new();
    let group = world.group_name("elastic");
    let cpus = "cpus = { min = 1, max = 2, weight = 100 }";
    let text = format!("[groups.{group}]\n{cpus}\n[groups.\"{group}/below\"]\npids.max = 100\n");
    world.write("layout.toml", &text);
    let daemon = world.daemon(&[]);
    let load = busy(&world, &group);
    for process in &load {
        eventually("two CPUs under load", || allowed(process.pid()).len() == 2);
    }
    let system = System::new();
    let groups = apply::status(&state(&world), Target { host: &world.host, system: &system }).unwrap();
    let elastic: Vec<(&str, bool)> =
        groups.iter().map(|one| (one.group.as_str(), one.elastic.is_some())).collect();
    assert_eq!(elastic, [(group.as_str(), true), (format!("{group}/below").as_str(), false)]);
    assert_eq!(drifts(&world), [""; 0], "it follows");
    daemon.end();
}

/// Two groups without CPUs of their own, one with a group below it.
fn saved() {
    let mut world = World::new();
    let (apps, web) = (world.group_name("apps"), world.group_name("web"));
    let text = format!(
        "[power]\nsaving = true\n[groups.{apps}]\n[groups.\"{apps}/batch\"]\n[groups.{web}]\n\"pids.max\" = 100\n"
    );
    world.write("layout.toml", &text);
    let all = topology::Machine::live().unwrap().online();
    let daemon = world.daemon(&[]);
    let quiet = [sleeper(&world, &apps), sleeper(&world, &format!("{apps}/batch")), sleeper(&world, &web)];
    let sizes = || quiet.each_ref().map(|process| allowed(process.pid()).len());
    eventually("one CPU for general groups", || sizes() == [1; 3]);
    assert_eq!(drifts(&world), [""; 0], "a smaller set is no drift");
    let load = busy(&world, &web);
    eventually("more CPUs under load", || sizes().iter().all(|size| *size > 1));
    assert_eq!(drifts(&world), [""; 0]);
    drop(load);
    eventually("one CPU for general groups", || sizes() == [1; 3]);
    daemon.end();
    assert_eq!(quiet.each_ref().map(|process| allowed(process.pid())), [&all; 3].map(CpuSet::clone));
    let daemon = world.daemon(&[]);
    eventually("one CPU for general groups", || sizes() == [1; 3]);
    daemon.kill();
    assert_eq!(drifts(&world), [""; 0]);
    let daemon = world.daemon(&[]);
    let load = busy(&world, &web);
    eventually("more CPUs under load after a kill", || sizes().iter().all(|size| *size > 1));
    drop(load);
    let state = State::open(world.directory.join("state")).unwrap();
    let system = System::new();
    let target = Target { host: &world.host, system: &system };
    let lock = state.lock(Duration::from_secs(60)).unwrap();
    let head = apply::layout_in_effect(&state, target).unwrap().unwrap();
    let originals = Originals::open(&lock, target, &head).unwrap();
    apply::end_saving(target, &originals, &head.upkeep.elastic, &all).unwrap();
    let meta = Meta { by: By::caller(), what: "undo".to_owned(), ..Meta::default() };
    let outcome = apply::undo(&lock, target, Some(0), &meta).unwrap();
    assert_eq!(outcome.replaced, [""; 0]);
    drop(lock);
    daemon.end();
}
