//! Making, removing and listing groups.

use std::sync::atomic::{AtomicBool, Ordering};

use kernel::{Error, GroupName};
use rustix::io::Errno;
use settings::Controller::{self, Core, Cpu, Cpuset, Freezer, Memory, Pids};

use super::{
    Case, case,
    world::{Done, World, refused},
};

fn always(_: &World) -> bool {
    true
}

pub fn cases() -> Vec<Case> {
    vec![
        case("a_group_is_made_with_its_parents_wherever_a_controller_lives", always, made_everywhere),
        case("making_a_group_twice_changes_nothing", always, made_twice),
        case(
            "a_group_that_can_not_be_made_whole_is_not_made_at_all",
            |world| world.on_v2(Core) || world.on_v1(Memory),
            all_or_nothing,
        ),
        case("a_group_gains_the_controllers_it_lacks", |world| world.has(Pids) && world.has(Memory), gains),
        case("a_new_v1_cpuset_is_reported_to_be_empty", |world| world.on_v1(Cpuset), empty_cpuset),
        case("a_group_with_children_is_only_removed_recursively", always, removed_recursively),
        case("a_group_with_a_task_is_not_removed_and_none_below_it_goes", always, not_removed_with_tasks),
        case("a_hostile_name_comes_back_whole_from_every_hint", |world| world.has(Pids), hints),
        case("the_root_group_can_not_be_removed", always, root_stays),
        case("a_group_that_is_not_there_is_named_with_names_near_to_it", always, not_there),
        case("groups_are_listed_with_their_hierarchies", always, listed),
        case("no_group_is_missed_while_others_are_made", |world| world.fake().is_none(), listed_meanwhile),
        case("the_kernel_refuses_what_is_no_directory_operation", always, bare_operations),
        case("a_name_may_hold_spaces_and_dots", always, odd_names),
        case("a_file_that_no_group_has_is_explained", |world| world.has(Pids), missing_file),
        case("a_group_deleted_meanwhile_is_explained", always, deleted_meanwhile),
        case(
            "a_group_made_in_one_more_v1_hierarchy_has_its_processes_there",
            |world| world.on_v1(Pids) && world.on_v1(Memory),
            brought_along,
        ),
        case(
            "a_group_where_the_controller_is_not_is_told_apart",
            |world| world.host.hierarchies().len() > 1,
            elsewhere,
        ),
    ]
}

/// Some controller of the world's, for what holds for all.
pub fn any(world: &World) -> Controller {
    [Pids, Cpu, Freezer, Memory].into_iter().find(|controller| world.has(*controller)).unwrap_or(Core)
}

fn made_everywhere(world: &World) {
    let group = world.group("a/b");
    let created = world.host.create(&group, None, &Default::default()).done();
    let with_controllers = world
        .host
        .hierarchies()
        .iter()
        .filter(|at| at.controllers.iter().any(|controller| *controller != Core));
    for at in with_controllers {
        let seat = world.host.seat_in(at, &group);
        assert!(world.kernel().exists(at, &seat.path), "{} is missing", seat.directory().display());
        assert!(created.directories.contains(&seat.directory()));
        // the group, its parent and the case's own top group
        let made = created.made.iter().filter(|path| path.starts_with(&at.mount)).count();
        assert!(made >= 3, "{made} directories made in {}", at.label());
    }
}

/// A list ended after as many groups as there were at its beginning.
fn listed_meanwhile(world: &World) {
    let there: Vec<GroupName> =
        (0..16).map(|number| world.create(&format!("there{number}"), &[any(world)])).collect();
    let seat = world.seat(&there[0], any(world));
    let (above, _) = seat.path.rsplit_once('/').unwrap();
    let directory = seat.at.path(above);
    let others: Vec<_> = (0..16).map(|number| directory.join(format!("other{number}"))).collect();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (others, ends) = (&others, &done);
        scope.spawn(move || {
            while !ends.load(Ordering::Relaxed) {
                others.iter().for_each(|path| std::fs::create_dir(path).unwrap());
                others.iter().for_each(|path| std::fs::remove_dir(path).unwrap());
            }
        });
        let missed = (0..2000).find_map(|_| {
            let listed = world.kernel().descendants(seat.at, above).unwrap();
            let is_missed = |group: &&GroupName| !listed.contains(&world.host.seat_in(seat.at, group).path);
            there.iter().find(is_missed).map(ToString::to_string)
        });
        done.store(true, Ordering::Relaxed);
        assert_eq!(missed, None);
    });
}

fn made_twice(world: &World) {
    let group = world.create("a", &[any(world)]);
    let again = world.make(&group, &[any(world)]);
    assert_eq!(again.made, Vec::<std::path::PathBuf>::new());
    assert_eq!(again.directories.len(), 1);
}

fn all_or_nothing(world: &World) {
    // one hierarchy, not the first, allows no group below the case's top one
    let (controller, file, value, errno) = match world.on_v2(Core) {
        true => (Core, "cgroup.max.depth", "1", Errno::AGAIN),
        false => (Memory, "memory.limit_in_bytes", "0", Errno::NOMEM),
    };
    let top = world.create("", &[controller]);
    world.write(&top, controller, file, value);
    match world.host.create(&world.group("a/b"), None, &Default::default()) {
        Err(Error::Refused(refusal)) => assert_eq!(refusal.errno, errno, "{refusal}"),
        other => panic!("should be refused: {other:?}"),
    }
    for at in world.host.hierarchies() {
        let seat = world.host.seat_in(at, &world.group("a"));
        assert!(!world.kernel().exists(at, &seat.path), "{} was left behind", seat.directory().display());
    }
}

fn gains(world: &World) {
    let group = world.create("a", &[Pids]);
    world.write(&group, Pids, "pids.max", "5");
    world.make(&group, &[Memory, Pids]);
    let limit = if world.on_v1(Memory) { "memory.limit_in_bytes" } else { "memory.max" };
    world.write(&group, Memory, limit, "8M");
    assert_eq!(world.read(&group, Pids, "pids.max"), "5");
    assert_eq!(world.read(&group, Memory, limit), "8388608");
}

/// A database's day, fault F5: a limit in a hierarchy where nobody is holds for nobody.
fn brought_along(world: &World) {
    let (group, below) = (world.create("a", &[Pids]), world.create("a/b", &[Pids]));
    let other = world.create("c", &[Memory]);
    let put = |group: &GroupName, controller, pid: u32| {
        let seat = world.seat(group, controller);
        world.host.kernel().write(seat.at, &seat.path, "cgroup.procs", &pid.to_string()).expect("a move");
    };
    let pids: Vec<u32> = (0..10).map(|_| world.start()).collect();
    pids.iter().for_each(|pid| put(&group, Pids, *pid));
    // wherever the tests themselves are
    pids.iter().for_each(|pid| put(&world.group(""), Memory, *pid));
    put(&below, Pids, pids[8]);
    put(&other, Memory, pids[9]);
    let brought = world.host.bring_along(&group, &world.make(&group, &[Memory]));
    assert_eq!(brought.moved, pids[..9].iter().copied().collect());
    assert!(brought.refused.is_empty(), "{brought:?}");
    // somebody chose that group
    let elsewhere: Vec<_> =
        brought.elsewhere.iter().map(|((_, group), pids)| (group.clone(), pids.len())).collect();
    assert_eq!(elsewhere, [(other.to_string(), 1)]);
    let inside = |group: &GroupName| world.host.tasks_in(&world.seat(group, Memory)).len();
    assert_eq!(inside(&group), 9);
    let brought = world.host.bring_along(&below, &world.make(&below, &[Memory]));
    assert_eq!((brought.moved.len(), inside(&group), inside(&below)), (1, 8, 1));
    // one that is there already stays as it is
    put(&group, Memory, pids[8]);
    assert_eq!(world.host.bring_along(&below, &world.make(&below, &[Memory])), kernel::Brought::default());
    pids.into_iter().for_each(|pid| world.end(pid));
}

fn empty_cpuset(world: &World) {
    let group = world.group("a");
    let created = world.make(&group, &[Cpuset]);
    assert_eq!(created.empty_cpusets, created.directories);
    world.fill(&world.group(""));
    world.fill(&group);
    assert!(world.make(&group, &[Cpuset]).empty_cpusets.is_empty());
}

fn removed_recursively(world: &World) {
    let controller = any(world);
    world.create("a/b", &[controller]);
    let group = world.group("a");
    let refusal = refused(world.host.delete(&group, false), Errno::BUSY, "1 group below it (b)");
    assert!(refusal.hint.unwrap_or_default().contains("--recursive"));
    let seat = world.seat(&group, controller);
    assert_eq!(world.kernel().rmdir(seat.at, &seat.path), Err(Errno::BUSY), "the kernel itself says so");
    let gone = world.host.delete(&group, true).done();
    assert_eq!(gone.len(), 2);
    assert!(world.host.seats(&group).is_empty());
    assert!(matches!(world.host.delete(&group, true), Err(Error::NoGroup { .. })));
}

fn not_removed_with_tasks(world: &World) {
    let controller = any(world);
    let group = world.create("a", &[controller]);
    let child = world.create("a/b", &[Core]);
    let pid = world.start();
    let seat = world.seat(&group, controller);
    world.host.kernel().write(seat.at, &seat.path, "cgroup.procs", &pid.to_string()).expect("a move");
    assert_eq!(world.kernel().rmdir(seat.at, &seat.path), Err(Errno::BUSY), "the kernel itself says so");
    refused(world.host.delete(&group, true), Errno::BUSY, &format!("still holds {pid}"));
    assert!(!world.host.seats(&child).is_empty(), "the group below is still there");
    world.end(pid);
    world.host.delete(&group, true).done();
}

/// A user who may make groups chooses their names, and root pastes the hint.
fn hints(world: &World) {
    let whole = |hint: Option<String>, name: &str| {
        let words = hint.as_deref().and_then(shlex::split).unwrap_or_default();
        assert!(words.iter().any(|word| word.trim_end_matches(',') == name), "{hint:?}");
    };
    let group = world.group("a $(touch x)");
    let name = group.to_string();
    world.make(&group, &[Pids]);
    world.make(&world.group("a $(touch x)/b c"), &[Pids]);
    let refusal = refused(world.host.delete(&group, false), Errno::BUSY, "1 group below it");
    whole(refusal.hint, &name);
    let pid = world.start();
    let seat = world.seat(&group, Pids);
    world.host.kernel().write(seat.at, &seat.path, "cgroup.procs", &pid.to_string()).expect("a move");
    let Err(Error::Refused(refusal)) = world.host.delete(&group, true) else { panic!("it has a task") };
    whole(refusal.hint, &name);
    world.end(pid);
}

fn root_stays(world: &World) {
    assert!(matches!(world.host.delete(&GroupName::root(), true), Err(Error::RootGroup { .. })));
    let at = &world.host.hierarchies()[0];
    assert_eq!(world.kernel().rmdir(at, ""), Err(Errno::INVAL));
}

fn not_there(world: &World) {
    world.create("oltp", &[any(world)]);
    let error = world.host.existing(&world.group("oltq")).expect_err("there is no such group");
    let Error::NoGroup { near, looked, .. } = &error else { panic!("{error}") };
    assert_eq!(near.first(), Some(&world.group("oltp").to_string()), "{near:?}");
    assert!(!looked.is_empty());
    assert!(error.hint().is_some_and(|hint| hint.contains("did you mean")));
}

fn listed(world: &World) {
    let controller = any(world);
    for name in ["a/b/c", "a/d", "e"] {
        world.create(name, &[controller]);
    }
    let groups = world.host.list(&world.group("")).done();
    let at = world.host.hierarchy_of(controller).expect("the controller's hierarchy").id;
    for name in ["a", "a/b", "a/b/c", "a/d", "e"] {
        assert_eq!(groups.get(name), Some(&vec![at]), "{name}");
    }
    assert_eq!(groups.len(), 5);
    let seat = world.seat(&world.group("a"), controller);
    assert_eq!(world.kernel().children(seat.at, &seat.path), Ok(vec!["b".to_owned(), "d".to_owned()]));
}

fn bare_operations(world: &World) {
    let (kernel, group) = (world.kernel(), world.create("", &[any(world)]));
    let seat = world.seat(&group, any(world));
    let path = |name: &str| format!("{}/{name}", seat.path);
    assert_eq!(kernel.mkdir(seat.at, &seat.path), Err(Errno::EXIST));
    assert_eq!(kernel.mkdir(seat.at, &path("cgroup.procs")), Err(Errno::EXIST));
    assert_eq!(kernel.mkdir(seat.at, &path("x/y")), Err(Errno::NOENT));
    assert_eq!(kernel.mkdir(seat.at, &path("cgroup.procs/y")), Err(Errno::NOTDIR));
    assert_eq!(kernel.mkdir(seat.at, &path("a\nb")), Err(Errno::INVAL));
    assert_eq!(kernel.mkdir(seat.at, &path("../up")), Err(Errno::INVAL));
    assert_eq!(kernel.rmdir(seat.at, &path("x")), Err(Errno::NOENT));
    assert_eq!(kernel.rmdir(seat.at, &path("cgroup.procs")), Err(Errno::NOTDIR));
    assert_eq!(kernel.read(seat.at, &seat.path, "nope"), Err(Errno::NOENT));
    assert_eq!(kernel.write(seat.at, &path("x"), "cgroup.procs", "1"), Err(Errno::NOENT));
    assert_eq!(kernel.children(seat.at, &path("x")), Err(Errno::NOENT));
    assert_eq!(kernel.files(seat.at, &path("x")), Err(Errno::NOENT));
}

fn odd_names(world: &World) {
    for name in ["a b", ".hidden", "x.y", "ü"] {
        let group = world.create(name, &[any(world)]);
        world.host.delete(&group, false).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}

fn missing_file(world: &World) {
    let group = world.create("", &[Pids]);
    let seat = world.seat(&group, Pids);
    refused(world.host.read(&seat, &group, "pids.nope"), Errno::NOENT, "has no pids.nope");
    let root = GroupName::root();
    let seat = world.host.seat_in(seat.at, &root);
    refused(world.host.write(&seat, &root, "pids.max", "5"), Errno::NOENT, "the root group has no pids.max");
}

fn deleted_meanwhile(world: &World) {
    let group = world.create("a", &[any(world)]);
    let seat = world.seat(&group, any(world));
    world.kernel().rmdir(seat.at, &seat.path).expect("an empty group can be removed");
    refused(world.host.write(&seat, &group, "cgroup.procs", "1"), Errno::NOENT, "deleted meanwhile");
}

fn elsewhere(world: &World) {
    let group = world.create("a", &[any(world)]);
    let home = world.host.hierarchy_of(any(world)).expect("the controller's hierarchy").id;
    let other = Controller::ALL.into_iter().find(|controller| {
        *controller != Core
            && world.has(*controller)
            && world.host.hierarchy_of(*controller).is_some_and(|at| at.id != home)
    });
    let error =
        world.host.seat(&group, other.expect("a controller elsewhere")).expect_err("the group is not there");
    assert!(matches!(error, Error::NotControlled { .. }), "{error}");
}
