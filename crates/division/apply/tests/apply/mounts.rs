//! The mount section of a cgconfig.conf, on a machine where nothing is mounted.

use std::{path::Path, time::Duration};

use apply::{Failure, Running, State, execute, status, undo};
use kernel::Real;
use rustix::io::Errno;

use crate::{
    faulty::{Beside, Fault, Faults},
    groups::{Groups, differences, machine, wait_for},
    pipeline, scenarios,
    world::{host, meta, target},
};

pub fn what_a_cgconfig_conf_mounts_is_there_until_undo() {
    let mut groups = Groups::new("mounted");
    scenarios::settle_mounts(&mut groups);
    let before = groups.picture();
    let directory = tempfile::tempdir().unwrap();
    let state = State::open(directory.path()).unwrap();
    let lock = state.lock(Duration::ZERO).unwrap();
    let layout = scenarios::mounts(&groups.prefix);
    assert!(machine().hierarchies().is_empty());
    let (host, system) = (machine(), Running::new());
    let plan = pipeline::plan(&layout, target(&host, &system));
    execute(&lock, target(&host, &system), &plan, &meta("mounts")).unwrap();
    let mount = Path::new(scenarios::MOUNT);
    let read = |file: &str| std::fs::read_to_string(mount.join(file)).unwrap_or_default();
    let group = groups.name("a");
    assert_eq!(read(&format!("cpu/{group}/cpu.shares")), "300\n");
    assert_eq!(read(&format!("cpuset/{group}/cpuset.cpus")), "0\n");
    assert_eq!(read(&format!("pids/{group}/pids.max")), "50\n");
    assert!(mount.join("named/tasks").exists());
    // the machine is another one by now
    let mounted = machine();
    assert_eq!(mounted.hierarchies().len(), 4);
    let again = pipeline::plan(&layout, target(&mounted, &system));
    assert!(again.steps.is_empty(), "it is as asked: {:?}", again.steps);
    let undone = undo(&lock, target(&mounted, &system), None, &meta("undo")).unwrap();
    assert!(undone.left.is_empty(), "{:?}", undone.left);
    assert!(machine().hierarchies().is_empty());
    // unmounted by name only, a hierarchy would keep its controllers from cgroup v2; the kernel takes its time
    let is_free = |line: &str| {
        let mut fields = line.split('\t');
        let ours = fields.next().is_some_and(|name| ["cpu", "cpuacct", "cpuset", "pids"].contains(&name));
        !ours || fields.next() == Some("0")
    };
    wait_for("controllers of no hierarchy", || {
        std::fs::read_to_string("/proc/cgroups").unwrap().lines().all(is_free)
    });
    assert_eq!(std::fs::read_dir(mount).unwrap().count(), 0, "the directories were made for the mounts");
    let rest = differences(&before, &groups.picture());
    assert!(rest.is_empty(), "{rest:#?}");
}

/// What status says of hierarchies that an undo or a roll-back should have unmounted.
fn still_mounted(state: &State) -> Vec<String> {
    let (host, system) = (machine(), Running::new());
    let groups = status(state, target(&host, &system)).unwrap();
    let drift = groups.into_iter().flat_map(|group| group.drift).map(|drift| drift.to_string());
    drift.filter(|words| words.contains("is still mounted, by generation 1")).collect()
}

pub fn what_could_not_be_unmounted_is_open_until_it_is() {
    let mut groups = Groups::new("busy");
    scenarios::settle_mounts(&mut groups);
    let directory = tempfile::tempdir().unwrap();
    let state = State::open(directory.path()).unwrap();
    let lock = state.lock(Duration::ZERO).unwrap();
    let (host, system) = (machine(), Running::new());
    let plan = pipeline::plan(&scenarios::mounts(&groups.prefix), target(&host, &system));
    execute(&lock, target(&host, &system), &plan, &meta("mounts")).unwrap();
    let pids = Path::new(scenarios::MOUNT).join("pids");
    let user = std::fs::File::open(pids.join("tasks")).unwrap();
    for _ in 0..2 {
        let undone = undo(&lock, target(&machine(), &system), None, &meta("undo")).unwrap();
        let left = undone.left.join("; ");
        assert!(left.contains(&format!("cannot unmount {}", pids.display())), "{left}");
        assert!(left.contains("fuser -vm"), "{left}");
        assert_eq!(machine().hierarchies().len(), 1);
        let named = still_mounted(&state).join("; ");
        assert!(named.starts_with(&pids.display().to_string()), "{named}");
    }
    drop(user);
    let undone = undo(&lock, target(&machine(), &system), None, &meta("undo")).unwrap();
    assert_eq!((undone.left, still_mounted(&state)), (Vec::new(), Vec::new()));
    assert!(machine().hierarchies().is_empty());
}

/// The first change that is refused ends the apply, and those behind it its roll-back.
pub fn what_a_roll_back_could_not_unmount_is_open_until_it_is() {
    let mut groups = Groups::new("rolled");
    scenarios::settle_mounts(&mut groups);
    let directory = tempfile::tempdir().unwrap();
    let state = State::open(directory.path()).unwrap();
    let lock = state.lock(Duration::ZERO).unwrap();
    // two of the four are mounted
    let refused: Vec<(usize, Fault)> = (2..200).map(|at| (at, Fault::Refuse(Errno::BUSY))).collect();
    let faults = Faults::at(&refused);
    let (faulty, beside) = (host(Real::new(), &faults), Beside::real(&faults));
    let plan = pipeline::plan(&scenarios::mounts(&groups.prefix), target(&faulty, &beside));
    let failed = execute(&lock, target(&faulty, &beside), &plan, &meta("mounts")).unwrap_err();
    let Failure::RolledBack { left, .. } = failed else { panic!("{failed}") };
    assert_eq!(left.len(), 2, "{left:?}");
    assert_eq!(machine().hierarchies().len(), 2);
    assert_eq!(still_mounted(&state).len(), 2);
    let undone = undo(&lock, target(&machine(), &Running::new()), Some(0), &meta("undo")).unwrap();
    assert_eq!((undone.left, still_mounted(&state)), (Vec::new(), Vec::new()));
    assert!(machine().hierarchies().is_empty());
}
