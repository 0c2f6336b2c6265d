//! The machines that a fake can be: which hierarchies are mounted where, the tasks that are always there, and
//! the files outside cgroupfs that causes are checked against.

use std::collections::BTreeMap;

use kernel::{Hierarchy, Process};
use settings::{Controller, Version};
use units::CpuSet;

use crate::{
    io::DEVICE,
    state::{Group, State, Task, Tree},
    tables,
};

/// The process that calls the kernel.
const CALLER: u32 = 1000;

/// One mount: the directory below `/sys/fs/cgroup` and what is in it.
pub(super) struct Mount {
    version: Version,
    directory: &'static str,
    controllers: &'static [Controller],
    name: Option<&'static str>,
}

const fn v1(directory: &'static str, controllers: &'static [Controller]) -> Mount {
    Mount { version: Version::V1, directory, controllers, name: None }
}

pub(super) const V1: &[Mount] = &[
    v1("cpu,cpuacct", &[Controller::Cpu, Controller::Cpuacct]),
    v1("cpuset", &[Controller::Cpuset]),
    v1("blkio", &[Controller::Io]),
    v1("memory", &[Controller::Memory]),
    v1("devices", &[Controller::Devices]),
    v1("freezer", &[Controller::Freezer]),
    v1("pids", &[Controller::Pids]),
    Mount { version: Version::V1, directory: "rf", controllers: &[], name: Some("rf") },
];

pub(super) const V2: &[Mount] = &[Mount {
    version: Version::V2,
    directory: "",
    controllers: &[
        Controller::Core,
        Controller::Cpuset,
        Controller::Cpu,
        Controller::Io,
        Controller::Memory,
        Controller::Pids,
    ],
    name: None,
}];

pub(super) const HYBRID: &[Mount] = &[
    v1("cpu,cpuacct", &[Controller::Cpu, Controller::Cpuacct]),
    v1("cpuset", &[Controller::Cpuset]),
    v1("freezer", &[Controller::Freezer]),
    v1("devices", &[Controller::Devices]),
    Mount {
        version: Version::V2,
        directory: "unified",
        controllers: &[Controller::Core, Controller::Io, Controller::Memory, Controller::Pids],
        name: None,
    },
];

/// A machine that just started: nobody made a group yet.
pub(super) fn fresh(mounts: &[Mount], cpus: usize, nodes: usize) -> State {
    let all = |count: usize| count.checked_sub(1).map_or_else(CpuSet::new, |last| CpuSet::range(0, last));
    let mut state = State {
        tables: tables::of,
        trees: mounts.iter().enumerate().map(|(id, mount)| tree(id, mount)).collect(),
        tasks: BTreeMap::new(),
        last_pid: CALLER,
        last_inode: 1,
        caller: (CALLER, 0),
        cpus,
        online: all(cpus),
        nodes: all(nodes),
        realtime: false,
        exclusive: false,
        firm: false,
        outside: BTreeMap::new(),
        storms: Vec::new(),
    };
    for (pid, parent, comm, kernel_thread, bound) in [
        (1, 0, "init", false, false),
        (2, 0, "kthreadd", true, true),
        (12, 2, "rcu_tasks_kthread", true, false),
        (15, 2, "ksoftirqd/0", true, true),
        (CALLER, 1, "ringfence", false, false),
    ] {
        let task = task(&state, Process { kernel_thread, bound, ..process(pid, parent, comm) });
        state.add(task);
    }
    state.set_outside("/proc/1/comm", "init\n");
    state.set_outside("/proc/sys/kernel/osrelease", "6.1.0-56-cloud-amd64\n");
    state.set_outside("/proc/cgroups", proc_cgroups(&state));
    state.set_outside("/proc/sys/kernel/sched_rt_runtime_us", "950000\n");
    state.set_outside(format!("/sys/dev/block/{DEVICE}/queue/scheduler"), "[none] mq-deadline bfq\n");
    show_online(&mut state);
    state
}

fn tree(id: usize, mount: &Mount) -> Tree {
    let base = "/sys/fs/cgroup";
    let at = Hierarchy {
        id,
        version: mount.version,
        mount: if mount.directory.is_empty() {
            base.into()
        } else {
            format!("{base}/{}", mount.directory).into()
        },
        root: "/".to_owned(),
        controllers: mount.controllers.to_vec(),
        name: mount.name.map(str::to_owned),
        read_only: false,
    };
    let mut root = Group::new(0, 0o555, 1);
    if mount.controllers.contains(&Controller::Cpuset) && mount.version == Version::V1 {
        root.values.insert("cpuset.cpu_exclusive", "1".to_owned());
        root.values.insert("cpuset.mem_exclusive", "1".to_owned());
    }
    Tree { at, groups: BTreeMap::from([(String::new(), root)]) }
}

fn process(pid: u32, parent: u32, comm: &str) -> Process {
    Process {
        pid,
        tgid: pid,
        parent,
        comm: comm.to_owned(),
        state: 'S',
        kernel_thread: false,
        bound: false,
        uid: 0,
        policy: 0,
        last_cpu: 0,
    }
}

fn task(state: &State, process: Process) -> Task {
    let groups = state.trees.iter().map(|_| String::new()).collect();
    Task { process, groups, charges: Vec::new(), stuck: false, doomed: false }
}

/// The lists of what is online, where the kernel shows them.
pub(super) fn show_online(state: &mut State) {
    let (cpus, nodes) = (state.online.to_string(), state.nodes.to_string());
    state.set_outside("/sys/devices/system/cpu/online", format!("{cpus}\n"));
    for file in ["online", "has_memory"] {
        state.set_outside(format!("/sys/devices/system/node/{file}"), format!("{nodes}\n"));
    }
}

/// `/proc/cgroups`: a controller's hierarchy is 0 while it is on v2 or on none.
fn proc_cgroups(state: &State) -> String {
    let row = |controller: &Controller| {
        let name = controller.name(Version::V1)?;
        let v1 = |tree: &&Tree| tree.at.version == Version::V1 && tree.at.controllers.contains(controller);
        let hierarchy = state.trees.iter().find(v1).map_or(0, |tree| tree.at.id + 1);
        Some(format!("{name}\t{hierarchy}\t1\t1\n"))
    };
    let modelled = [
        Controller::Cpuset,
        Controller::Cpu,
        Controller::Cpuacct,
        Controller::Io,
        Controller::Memory,
        Controller::Devices,
        Controller::Freezer,
        Controller::Pids,
    ];
    let rows: String = modelled.iter().filter_map(row).collect();
    format!("#subsys_name\thierarchy\tnum_cgroups\tenabled\n{rows}")
}
