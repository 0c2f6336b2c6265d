//! What a test can make of a fake, and that it knows what it does not know. What it shares with real kernels is
//! the conformance suite's.

use rustix::io::Errno;
use settings::Controller;

use super::*;

fn at(fake: &Fake, controller: Controller) -> Hierarchy {
    let found = fake.hierarchies().unwrap().into_iter().find(|at| at.controllers.contains(&controller));
    found.unwrap_or_else(|| panic!("no hierarchy has {controller:?}"))
}

#[test]
fn what_is_not_modelled_is_refused() {
    let v1 = Fake::v1(2, 1);
    for (controller, group, file, text) in [
        (Controller::Cpuset, "", "cpuset.memory_pressure_enabled", "1"),
        (Controller::Cpuset, "a", "cpuset.sched_relax_domain_level", "5"),
        (Controller::Cpu, "", "release_agent", "/bin/true"),
        (Controller::Cpu, "", "cpu.rt_runtime_us", "0"),
        (Controller::Memory, "a", "memory.failcnt", "0"),
    ] {
        let at = at(&v1, controller);
        let _ = v1.mkdir(&at, "a");
        assert_eq!(v1.write(&at, group, file, text), Err(Errno::OPNOTSUPP), "{file}");
    }
    let v2 = Fake::v2(2, 1);
    let root = at(&v2, Controller::Core);
    assert_eq!(v2.write(&root, "", "cgroup.pressure", "0"), Err(Errno::OPNOTSUPP));
    assert_eq!(v2.write(&root, "", "io.cost.qos", "x"), Err(Errno::NOENT));
    assert_eq!(v2.read(&root, "", "memory.zswap.max"), Err(Errno::NOENT));
    assert_eq!(
        v2.signal_those(&[v2.caller().0], 15, &|| [v2.caller().0].into()),
        [(v2.caller().0, Errno::OPNOTSUPP)]
    );
    assert_eq!(v2.outside(Path::new("/proc/version")), Err(Errno::NOENT));
}

#[test]
fn only_counters_can_be_counted() {
    let fake = Fake::v2(2, 1);
    let root = at(&fake, Controller::Core);
    fake.write(&root, "", "cgroup.subtree_control", "+cpu +memory +io").unwrap();
    fake.mkdir(&root, "a").unwrap();
    for file in ["cpu.stat", "memory.stat", "memory.events", "io.stat", "memory.peak"] {
        fake.count(&root, "a", file, "usage 7\nmore 1").unwrap();
        assert_eq!(fake.read(&root, "a", file).as_deref(), Ok("usage 7\nmore 1\n"), "{file}");
    }
    for file in ["memory.max", "memory.current", "cgroup.procs"] {
        assert_eq!(fake.count(&root, "a", file, "1"), Err(Errno::INVAL), "{file}");
    }
    assert_eq!(fake.count(&root, "a", "nope", "1"), Err(Errno::NOENT));
}

#[test]
fn a_fork_beyond_the_limit_is_refused_and_counted() {
    let fake = Fake::v1(2, 1);
    let pids = at(&fake, Controller::Pids);
    let pid = fake.spawn(fake.caller().0).unwrap();
    fake.mkdir(&pids, "a").unwrap();
    fake.write(&pids, "a", "pids.max", "2").unwrap();
    fake.write(&pids, "a", "tasks", &pid.to_string()).unwrap();
    fake.spawn(pid).unwrap();
    assert_eq!(fake.spawn(pid), Err(Errno::AGAIN));
    assert_eq!(fake.spawn_thread(pid), Err(Errno::AGAIN));
    assert_eq!(fake.read(&pids, "a", "pids.events").as_deref(), Ok("max 2\n"));
    assert_eq!(fake.read(&pids, "a", "pids.peak").as_deref(), Ok("2\n"));
}

#[test]
fn a_cpu_that_goes_off_is_lost_to_v1_and_missed_by_v2() {
    let v1 = Fake::v1(8, 4);
    let cpuset = at(&v1, Controller::Cpuset);
    let pid = v1.spawn(v1.caller().0).unwrap();
    v1.mkdir(&cpuset, "a").unwrap();
    v1.write(&cpuset, "a", "cpuset.cpus", "7").unwrap();
    v1.write(&cpuset, "a", "cpuset.mems", "0").unwrap();
    v1.write(&cpuset, "a", "tasks", &pid.to_string()).unwrap();
    v1.set_online(7, false);
    assert_eq!(v1.read(&cpuset, "", "cpuset.cpus").as_deref(), Ok("0-6\n"));
    assert_eq!(v1.outside(Path::new("/sys/devices/system/cpu/online")).as_deref(), Ok("0-6\n"));
    assert_eq!(v1.group_of(&cpuset, pid).as_deref(), Ok("/"));
    assert_eq!(v1.write(&cpuset, "a", "cpuset.cpus", "6-7"), Err(Errno::INVAL));
    v1.set_online(7, true);
    assert_eq!(v1.read(&cpuset, "a", "cpuset.cpus").as_deref(), Ok("\n"), "for good");

    let v2 = Fake::v2(8, 4);
    let root = at(&v2, Controller::Core);
    v2.write(&root, "", "cgroup.subtree_control", "+cpuset").unwrap();
    v2.mkdir(&root, "a").unwrap();
    v2.set_online(7, false);
    v2.write(&root, "a", "cpuset.cpus", "6-7").unwrap();
    assert_eq!(v2.read(&root, "a", "cpuset.cpus.effective").as_deref(), Ok("6\n"));
    v2.set_online(7, true);
    assert_eq!(v2.read(&root, "a", "cpuset.cpus.effective").as_deref(), Ok("6-7\n"));
}

#[test]
fn a_read_only_mount_refuses_what_changes_it() {
    let fake = Fake::v2(2, 1);
    let root = at(&fake, Controller::Core);
    fake.mkdir(&root, "a").unwrap();
    fake.set_read_only(&root);
    assert_eq!(fake.write(&root, "a", "cgroup.procs", "0"), Err(Errno::ROFS));
    assert_eq!(fake.write(&root, "a", "nope", "0"), Err(Errno::NOENT));
    assert_eq!(fake.mkdir(&root, "b"), Err(Errno::ROFS));
    assert_eq!(fake.mkdir(&root, "a"), Err(Errno::EXIST));
    assert_eq!(fake.rmdir(&root, "nope"), Err(Errno::ROFS));
    assert!(fake.read(&root, "a", "cgroup.procs").is_ok() && !fake.writable(&root, "a"));
    fake.set_uid(1000);
    assert_eq!(fake.write(&root, "a", "cgroup.procs", "0"), Err(Errno::ACCESS));
}

#[test]
fn every_file_that_is_listed_can_be_asked_for() {
    for fake in [Fake::v1(2, 1), Fake::v2(2, 1), Fake::v2_with_exclusive_cpus(2, 1), Fake::hybrid(2, 1)] {
        for at in fake.hierarchies().unwrap() {
            let available = fake.read(&at, "", "cgroup.controllers").unwrap_or_default();
            for name in available.split_whitespace() {
                fake.write(&at, "", "cgroup.subtree_control", &format!("+{name}")).unwrap();
            }
            fake.mkdir(&at, "a").unwrap();
            for group in ["", "a"] {
                for file in fake.files(&at, group).unwrap() {
                    match fake.read(&at, group, &file) {
                        Ok(text) => assert!(text.is_empty() || text.ends_with('\n'), "{file}: {text:?}"),
                        Err(errno) => assert_eq!(errno, Errno::INVAL, "{file}"),
                    }
                    assert_eq!(fake.write(&at, group, &file, ""), Ok(()), "{file}");
                }
            }
        }
    }
}
