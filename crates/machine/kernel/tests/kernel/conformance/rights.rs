//! Who may do what: owners and modes, delegation, and what another user is refused.

use kernel::{Access, Ownership, What, Who};
use rustix::io::Errno;
use settings::{Controller::Core, Version};

use super::{
    Case, case,
    groups::any,
    world::{Done, NOBODY, World, refused},
};

pub fn cases() -> Vec<Case> {
    let always = |_: &World| true;
    vec![
        case("another_user_may_read_but_not_write_make_or_remove", always, others),
        case("a_group_given_to_a_user_can_be_divided_by_him", always, delegated),
        case("a_users_files_are_his_and_the_rest_stays", always, access),
        case("a_closed_directory_hides_its_files", always, closed),
        case("only_root_gives_away_what_he_owns", always, ownership),
        case("a_user_moves_his_own_processes_only_on_v1", |world| v1(world).is_some(), own_processes_v1),
        case("a_user_moves_within_what_was_delegated_on_v2", |world| v2(world).is_some(), delegated_moves_v2),
        case("a_user_signals_his_own_processes_only", always, signals),
    ]
}

fn v1(world: &World) -> Option<usize> {
    world.host.hierarchies().iter().position(|at| at.version == Version::V1)
}

fn v2(world: &World) -> Option<usize> {
    world.host.hierarchies().iter().position(|at| at.version == Version::V2)
}

fn give(uid: u32) -> Ownership {
    Ownership { uid: Some(uid), ..Ownership::default() }
}

fn others(world: &World) {
    let controller = any(world);
    let group = world.create("a", &[controller]);
    let seat = world.seat(&group, controller);
    let child = format!("{}/b", seat.path);
    world.as_user(NOBODY, || {
        let kernel = world.kernel();
        assert_eq!(kernel.caller().1, NOBODY);
        assert!(kernel.read(seat.at, &seat.path, "cgroup.procs").is_ok());
        assert_eq!(kernel.write(seat.at, &seat.path, "cgroup.procs", "0"), Err(Errno::ACCESS));
        assert_eq!(kernel.write(seat.at, &seat.path, "nope", "0"), Err(Errno::NOENT));
        assert_eq!(kernel.mkdir(seat.at, &child), Err(Errno::ACCESS));
        assert_eq!(kernel.rmdir(seat.at, &seat.path), Err(Errno::ACCESS));
        assert!(!kernel.writable(seat.at, &seat.path) && !kernel.writable(seat.at, ""));
        refused(
            world.host.write(&seat, &group, "cgroup.procs", "0"),
            Errno::ACCESS,
            "user 65534 may not write",
        );
    });
    assert!(world.kernel().writable(seat.at, &seat.path));
}

fn delegated(world: &World) {
    let controller = any(world);
    let group = world.create("a", &[controller]);
    let seat = world.seat(&group, controller);
    let kernel = world.kernel();
    kernel.set_ownership(seat.at, &seat.path, None, give(NOBODY)).expect("root gives the directory away");
    let child = format!("{}/b", seat.path);
    world.as_user(NOBODY, || {
        assert!(kernel.writable(seat.at, &seat.path));
        kernel.mkdir(seat.at, &child).expect("the owner makes groups");
        // the files of the group itself were made by root
        assert_eq!(kernel.write(seat.at, &seat.path, "cgroup.procs", "0"), Err(Errno::ACCESS));
        let file = if seat.at.version == Version::V1 { "notify_on_release" } else { "cgroup.max.depth" };
        kernel.write(seat.at, &child, file, "1").expect("those of his own groups are his");
        kernel.rmdir(seat.at, &child).expect("the owner removes groups");
    });
}

fn access(world: &World) {
    let controller = any(world);
    let group = world.group("a");
    let tasks = Who { uid: Some(NOBODY), gid: None };
    let access = Access { tasks, tasks_mode: Some(0o664), file_mode: Some(0o600), ..Access::default() };
    world.host.create(&group, Some(&[controller]), &access).done();
    let seat = world.seat(&group, controller);
    world.as_user(NOBODY, || {
        let kernel = world.kernel();
        assert!(kernel.read(seat.at, &seat.path, "cgroup.procs").is_ok());
        let hidden = if seat.at.version == Version::V1 { "notify_on_release" } else { "cgroup.max.depth" };
        assert_eq!(kernel.read(seat.at, &seat.path, hidden), Err(Errno::ACCESS));
        assert_eq!(kernel.write(seat.at, &seat.path, hidden, "1"), Err(Errno::ACCESS));
        // his file, but nobody's process: whether he may move it is another question
        assert_eq!(kernel.write(seat.at, &seat.path, "cgroup.procs", "x"), Err(Errno::INVAL));
    });
}

fn closed(world: &World) {
    let controller = any(world);
    let group = world.create("a", &[controller]);
    let seat = world.seat(&group, controller);
    let mode = |mode| Ownership { mode: Some(mode), ..Ownership::default() };
    world.kernel().set_ownership(seat.at, &seat.path, None, mode(0o750)).expect("root changes modes");
    world.as_user(NOBODY, || {
        assert_eq!(world.kernel().read(seat.at, &seat.path, "cgroup.procs"), Err(Errno::ACCESS));
        assert_eq!(world.kernel().read(seat.at, &seat.path, "nope"), Err(Errno::ACCESS));
    });
    assert!(world.kernel().read(seat.at, &seat.path, "cgroup.procs").is_ok(), "modes do not bind root");
}

fn ownership(world: &World) {
    let controller = any(world);
    let group = world.create("a", &[controller]);
    let seat = world.seat(&group, controller);
    let kernel = world.kernel();
    kernel
        .set_ownership(seat.at, &seat.path, Some("cgroup.procs"), give(NOBODY))
        .expect("root gives a file away");
    world.as_user(NOBODY, || {
        let own = Some("cgroup.procs");
        assert_eq!(kernel.set_ownership(seat.at, &seat.path, own, give(0)), Err(Errno::PERM));
        let mode = Ownership { mode: Some(0o600), ..Ownership::default() };
        assert_eq!(kernel.set_ownership(seat.at, &seat.path, own, mode), Ok(()));
        assert_eq!(kernel.set_ownership(seat.at, &seat.path, None, mode), Err(Errno::PERM));
    });
    assert_eq!(kernel.set_ownership(seat.at, &seat.path, Some("nope"), give(0)), Err(Errno::NOENT));
}

fn own_processes_v1(world: &World) {
    let at = &world.host.hierarchies()[v1(world).expect("a v1 hierarchy")];
    let controller = at.controllers.first().copied().unwrap_or(any(world));
    let group = world.create("a", &[controller]);
    world.fill(&world.group(""));
    world.fill(&group);
    let seat = world.seat(&group, controller);
    for file in ["tasks", "cgroup.procs"] {
        world
            .kernel()
            .set_ownership(seat.at, &seat.path, Some(file), give(NOBODY))
            .expect("root gives files away");
    }
    let (roots, own) = (world.start(), world.start_as(NOBODY));
    world.as_user(NOBODY, || {
        let write = |file, pid: u32| world.kernel().write(seat.at, &seat.path, file, &pid.to_string());
        assert_eq!(write("tasks", roots), Err(Errno::ACCESS));
        assert_eq!(write("cgroup.procs", roots), Err(Errno::ACCESS));
        assert_eq!(write("tasks", own), Ok(()));
        let result = world.host.move_tasks(&group, &[roots], What::Process);
        refused(result, Errno::ACCESS, &format!("user 65534 may not move process {roots} of user 0"));
    });
    assert!(world.is_in(own, &group) && !world.is_in(roots, &group));
}

fn delegated_moves_v2(world: &World) {
    let at = &world.host.hierarchies()[v2(world).expect("a v2 hierarchy")];
    let group = world.create("a", &[Core]);
    let (here, there) = (world.create("a/x", &[Core]), world.create("a/y", &[Core]));
    let path = |group| world.host.seat_in(at, group).path;
    let kernel = world.kernel();
    for group in [&here, &there] {
        kernel
            .set_ownership(at, &path(group), Some("cgroup.procs"), give(NOBODY))
            .expect("root gives files away");
    }
    let pid = world.start();
    kernel.write(at, &path(&here), "cgroup.procs", &pid.to_string()).expect("root moves");
    let attempt =
        || world.as_user(NOBODY, || kernel.write(at, &path(&there), "cgroup.procs", &pid.to_string()));
    assert_eq!(attempt(), Err(Errno::ACCESS), "the common parent's cgroup.procs is not his");
    kernel
        .set_ownership(at, &path(&group), Some("cgroup.procs"), give(NOBODY))
        .expect("root gives files away");
    assert_eq!(attempt(), Ok(()), "and the process need not be his");
    kernel.write(at, "", "cgroup.procs", &pid.to_string()).expect("root moves");
    assert_eq!(attempt(), Err(Errno::ACCESS), "nobody takes a process from outside");
    world.as_user(NOBODY, || {
        assert_eq!(kernel.write(at, &path(&group), "cgroup.freeze", "1"), Err(Errno::ACCESS));
    });
}

fn signals(world: &World) {
    let (roots, own) = (world.start(), world.start_as(NOBODY));
    world.as_user(NOBODY, || {
        assert_eq!(world.kernel().signal_those(&[roots], 9, &|| [roots].into()), [(roots, Errno::PERM)]);
        assert_eq!(world.kernel().signal_those(&[own], 9, &|| [own].into()), []);
    });
    assert!(world.has_ended(own) && world.kernel().process(roots).is_ok());
}
