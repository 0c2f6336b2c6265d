//! The mount section of a cgconfig.conf, on a machine where nothing is mounted.

use std::{path::Path, time::Duration};

use apply::{Running, State, execute, undo};

use crate::{
    groups::{Groups, differences, machine, wait_for},
    pipeline, scenarios,
    world::{meta, target},
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
