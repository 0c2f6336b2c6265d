//! Moving processes, threads and trees, and taking it back.

use std::path::Path;

use kernel::{Error, GroupName, What};
use rustix::io::Errno;
use settings::Controller::{self, Cpu, Cpuset, Freezer, Pids};

use super::{
    Case, case,
    groups::any,
    world::{Done, World, refused},
};

pub fn cases() -> Vec<Case> {
    let always = |_: &World| true;
    vec![
        case("a_process_is_moved_with_all_its_threads_in_all_hierarchies_of_the_group", always, process),
        case("a_thread_is_moved_alone_on_v1", |world| world.on_v1(Pids) || world.on_v1(Freezer), thread_v1),
        case("a_process_whose_threads_are_spread_is_gathered_again", |world| world.on_v1(Freezer), gathered),
        case("a_tree_is_moved_whole_while_it_forks", always, storm),
        case(
            "a_move_that_one_hierarchy_refuses_is_taken_back",
            |world| {
                world.on_v1(Cpuset) && world.on_v1(Cpu) && world.on_v1(Pids)
                    || world.on_v1(Cpuset) && world.on_v2(Pids)
            },
            taken_back,
        ),
        case("nobody_is_moved_if_one_of_them_is_gone", always, one_is_gone),
        case("a_process_that_is_gone_is_said_to_be", always, gone),
        case("a_process_is_moved_back_to_the_root", always, back_to_root),
        case("proc_shows_the_name_and_the_groups_of_a_process", always, shown),
        case("a_move_is_written_as_the_kernel_reads_it", always, written),
        case(
            "a_kernel_thread_stays_where_it_is",
            |world| kernel_thread(world).is_some(),
            kernel_thread_stays,
        ),
        case("a_v1_cpuset_without_cpus_or_nodes_takes_no_task", |world| world.on_v1(Cpuset), empty_cpuset),
        case(
            "a_group_without_a_real_time_budget_takes_no_real_time_task",
            |world| world.has_file(Cpu, "cpu.rt_runtime_us"),
            realtime,
        ),
        case("a_real_time_task_can_be_where_there_are_no_budgets", |world| world.on_v2(Cpu), realtime_v2),
        case(
            "a_group_at_its_limit_of_tasks_still_takes_moved_ones",
            |world| world.has(Pids),
            beyond_the_limit,
        ),
    ]
}

fn moved(world: &World, group: &GroupName, pid: u32, what: What) {
    let moved = world.host.move_tasks(group, &[pid], what).done();
    assert!(moved.tasks.contains(&pid) && moved.gone.is_empty(), "{moved:?}");
    assert_eq!(moved.directories.len(), world.hierarchies_of(group).len());
}

fn everywhere(world: &World, name: &str) -> GroupName {
    let group = world.group(name);
    world.host.create(&group, None, &Default::default()).done();
    world.fill(&world.group(""));
    world.fill(&group);
    group
}

fn shown(world: &World) {
    let group = everywhere(world, "");
    let pid = world.start();
    moved(world, &group, pid, What::Process);
    let read = |file: &str| world.kernel().outside(Path::new(&format!("/proc/{pid}/{file}"))).unwrap();
    assert_eq!(read("comm"), format!("{}\n", world.kernel().process(pid).unwrap().comm));
    let groups = read("cgroup");
    for at in world.host.hierarchies() {
        let of_line = kernel::group_in(at, groups.as_bytes());
        assert_eq!(of_line, world.kernel().group_of(at, pid).ok(), "{} in {groups}", at.label());
    }
    for at in world.hierarchies_of(&group) {
        let path = kernel::group_in(at, groups.as_bytes()).unwrap();
        assert!(path.ends_with(&format!("/{group}")), "{path}");
    }
    world.end(pid);
}

fn process(world: &World) {
    // on v2 a group with controllers for its children holds no process: only the top group is made
    let group = everywhere(world, "");
    let pid = world.start();
    world.add_thread(pid);
    let threads = world.add_thread(pid);
    moved(world, &group, pid, What::Process);
    assert_eq!(threads.len(), 3);
    for thread in threads {
        assert!(world.is_in(thread, &group), "thread {thread} is elsewhere");
    }
    for seat in world.host.seats(&group) {
        assert_eq!(world.host.tasks_in(&seat), [pid], "{}", seat.directory().display());
    }
    world.end(pid);
    world.host.delete(&group, false).done();
}

fn thread_v1(world: &World) {
    let controller = if world.on_v1(Pids) { Pids } else { Freezer };
    let group = world.create("", &[controller]);
    let pid = world.start();
    let thread = world.add_thread(pid)[1];
    moved(world, &group, thread, What::Thread);
    assert!(world.is_in(thread, &group) && !world.is_in(pid, &group));
    let seat = world.seat(&group, controller);
    assert_eq!(world.kernel().read(seat.at, &seat.path, "tasks"), Ok(format!("{thread}\n")));
    assert_eq!(
        world.kernel().read(seat.at, &seat.path, "cgroup.procs"),
        Ok(format!("{pid}\n")),
        "v1 lists its process"
    );
}

fn gathered(world: &World) {
    let group = world.create("", &[Freezer]);
    let pid = world.start();
    let thread = world.add_thread(pid)[1];
    moved(world, &group, pid, What::Thread);
    assert!(world.is_in(pid, &group) && !world.is_in(thread, &group));
    moved(world, &group, pid, What::Process);
    assert!(world.is_in(thread, &group), "a process that is there already may have threads elsewhere");
}

fn storm(world: &World) {
    let controllers: Vec<Controller> =
        [Pids, Freezer].into_iter().filter(|controller| world.has(*controller)).collect();
    let group = world.create("", &controllers);
    let root = world.start_storm();
    let moved = world.host.move_tasks(&group, &[root], What::Tree).done();
    let members = world.after_storm(root);
    assert!(members.len() > 20, "only {} processes: no storm", members.len());
    let escaped: Vec<&u32> = members.iter().filter(|pid| !world.is_in(**pid, &group)).collect();
    assert!(escaped.is_empty(), "{} of {} escaped: {escaped:?}", escaped.len(), members.len());
    assert!(moved.tasks.contains(&root));
}

fn taken_back(world: &World) {
    let first = if world.on_v1(Cpu) { Cpu } else { Pids };
    let group = world.create("", &[first, Cpuset]);
    let pid = world.start();
    let before = world.kernel().group_of(world.seat(&group, first).at, pid);
    let result = world.host.move_tasks(&group, &[pid], What::Process);
    let refusal = refused(result, Errno::NOSPC, "cpuset.cpus and cpuset.mems are empty");
    assert!(refusal.path.starts_with(world.seat(&group, Cpuset).directory()), "{refusal}");
    assert_eq!(world.kernel().group_of(world.seat(&group, first).at, pid), before);
}

fn one_is_gone(world: &World) {
    let group = world.create("", &[any(world)]);
    let (pid, gone) = (world.start(), world.start());
    world.end(gone);
    let result = world.host.move_tasks(&group, &[pid, gone], What::Process);
    assert!(matches!(result, Err(Error::NoProcess { pid }) if pid == gone), "{result:?}");
    assert!(!world.is_in(pid, &group));
}

fn gone(world: &World) {
    let group = world.create("", &[any(world)]);
    let pid = world.start();
    world.end(pid);
    assert!(matches!(world.host.move_tasks(&group, &[pid], What::Tree), Err(Error::NoProcess { .. })));
    let seat = world.seat(&group, any(world));
    assert_eq!(world.kernel().write(seat.at, &seat.path, "cgroup.procs", &pid.to_string()), Err(Errno::SRCH));
    assert_eq!(world.kernel().process(pid), Err(Errno::SRCH));
    assert_eq!(world.kernel().threads(pid), Err(Errno::SRCH));
    assert_eq!(world.kernel().group_of(seat.at, pid), Err(Errno::SRCH));
    assert_eq!(world.kernel().signal_those(&[pid], 9, &|| [pid].into()), [(pid, Errno::SRCH)]);
}

fn back_to_root(world: &World) {
    let controller = any(world);
    let group = world.create("", &[controller]);
    let pid = world.start();
    moved(world, &group, pid, What::Process);
    let seat = world.seat(&group, controller);
    // only where the group is: elsewhere the process is where its parent was
    world.kernel().write(seat.at, "", "cgroup.procs", &pid.to_string()).expect("a move to the root");
    assert_eq!(world.kernel().group_of(seat.at, pid).as_deref(), Ok("/"));
    world.host.delete(&group, false).done();
}

fn written(world: &World) {
    let group = world.create("", &[any(world)]);
    let seat = world.seat(&group, any(world));
    let pid = world.start();
    let write = |text: &str| world.kernel().write(seat.at, &seat.path, "cgroup.procs", text);
    for text in ["x", "-5", &format!("{pid} {pid}"), "\n", " "] {
        assert_eq!(write(text), Err(Errno::INVAL), "{text:?}");
    }
    assert_eq!(write(""), Ok(()));
    assert!(!world.is_in(pid, &group));
    assert_eq!(write(&format!(" {pid} \n")), Ok(()));
    assert!(world.is_in(pid, &group));
}

/// A kernel thread that is bound to its CPU, if the process list shows one.
fn kernel_thread(world: &World) -> Option<u32> {
    let processes = world.kernel().processes().unwrap_or_default();
    processes
        .into_iter()
        .find(|pid| world.kernel().process(*pid).is_ok_and(|process| process.kernel_thread && process.bound))
}

fn kernel_thread_stays(world: &World) {
    let group = world.create("", &[any(world)]);
    let pid = kernel_thread(world).expect("a kernel thread");
    assert!(matches!(world.host.move_tasks(&group, &[pid], What::Process), Err(Error::KernelThread { .. })));
    let seat = world.seat(&group, any(world));
    assert_eq!(
        world.kernel().write(seat.at, &seat.path, "cgroup.procs", &pid.to_string()),
        Err(Errno::INVAL)
    );
    assert_eq!(world.kernel().write(seat.at, &seat.path, "cgroup.procs", "2"), Err(Errno::INVAL), "kthreadd");
}

fn empty_cpuset(world: &World) {
    let group = world.create("", &[Cpuset]);
    let pid = world.start();
    let attempt = || world.host.move_tasks(&group, &[pid], What::Process);
    refused(attempt(), Errno::NOSPC, "cpuset.cpus and cpuset.mems are empty");
    world.write(&group, Cpuset, "cpuset.cpus", "1");
    let refusal = refused(attempt(), Errno::NOSPC, "cpuset.mems is empty");
    assert!(refusal.hint.unwrap_or_default().contains("cpuset.mems=0"), "the hint names the parent's nodes");
    world.write(&group, Cpuset, "cpuset.mems", "0");
    attempt().done();
    refused(world.try_write(&group, Cpuset, "cpuset.cpus", "\n"), Errno::NOSPC, "left without a CPU");
    refused(world.try_write(&group, Cpuset, "cpuset.mems", "\n"), Errno::NOSPC, "left without a memory node");
    world.write(&group, Cpuset, "cpuset.cpus", "");
    assert_eq!(world.read(&group, Cpuset, "cpuset.cpus"), "1", "a write of nothing does not clear a list");
}

fn realtime(world: &World) {
    let group = world.create("", &[Cpu]);
    let pid = world.start();
    world.set_policy(pid, 1).expect("root may use real-time policies");
    refused(world.host.move_tasks(&group, &[pid], What::Process), Errno::INVAL, "real-time budget");
    world.write(&group, Cpu, "cpu.rt_runtime_us", "10000");
    moved(world, &group, pid, What::Process);
    refused(world.try_write(&group, Cpu, "cpu.rt_runtime_us", "0"), Errno::BUSY, "left without a budget");
    let other = world.create("other", &[Cpu]);
    let pid = world.start();
    moved(world, &other, pid, What::Process);
    assert_eq!(world.set_policy(pid, 1), Err(Errno::PERM), "not even root gets a budget that is not there");
}

fn realtime_v2(world: &World) {
    let group = world.create("", &[Cpu]);
    let pid = world.start();
    world.set_policy(pid, 1).expect("root may use real-time policies");
    moved(world, &group, pid, What::Process);
    assert!(world.kernel().process(pid).is_ok_and(|process| process.is_realtime()));
}

fn beyond_the_limit(world: &World) {
    let group = world.create("", &[Pids]);
    world.write(&group, Pids, "pids.max", "0");
    let pid = world.start();
    moved(world, &group, pid, What::Process);
    assert_eq!(world.read(&group, Pids, "pids.current"), "1");
}
