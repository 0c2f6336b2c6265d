//! Every way in which a kernel says no that a user is likely to meet, provoked on the real one: the answer must name
//! the true cause and the command that fixes it. A row is run where its needs are met: on this host's v1
//! hierarchies or in a VM.

use std::sync::Arc;

use fake::suite;
use libtest_mimic::Trial;

use crate::{
    desk::answer,
    hints,
    world::{Need, Scene, World},
};

pub struct Row {
    /// What happened, as a sentence.
    pub name: &'static str,
    pub needs: &'static [Need],
    /// Command lines of ours before; `sh …` is a shell line.
    before: &'static [&'static str],
    pub refused: &'static str,
    user: Option<u32>,
    code: i32,
    /// Parts of standard error.
    pub says: &'static [&'static str],
    /// What its hint does.
    then: Then,
}

/// What becomes of the situation by the command that the hint prints.
#[derive(Clone, Copy)]
enum Then {
    /// It takes away what stands in the way: what was refused succeeds after it.
    Again,
    /// It does what was requested, or what comes nearest, and after it a command line prints this.
    Instead(&'static str, &'static str),
    /// It shows what is to be known.
    Shows,
    /// What was refused succeeds with the group that it names.
    There,
    /// It can't be run here, or has no command; the reason.
    Words(&'static str),
}
use Then::{Again, Instead, Shows, There, Words};

const NOBODY: Option<u32> = Some(65534);
/// What most rows share.
const ROW: Row =
    Row { name: "", needs: &[], before: &[], refused: "", user: None, code: 1, says: &[], then: Again };
const CHOICE: Then = Words("only the reader knows what may be given up");
const OF_SYSTEMD: Then = Words("run in the trials 'names of units', where systemd is");
const MACHINE: Then = Words("it changes what all of this machine has");
const CPUSET: &[Need] = &[Need::V1("cpuset")];
const V2: &[Need] = &[Need::AnyV2];

pub const ROWS: &[Row] = &[
    // study S5's trap, and its variants
    Row {
        name: "a cpuset without memory nodes takes no task",
        needs: CPUSET,
        before: &["cgcreate -g cpuset:{g}", "set {g} cpuset.cpus=0"],
        refused: "move {g} {pid}",
        says: &[
            "cpuset.mems is empty",
            "no memory node to allocate from",
            "hint: ringfence set {g} cpuset.mems=0",
        ],
        ..ROW
    },
    Row {
        name: "a cpuset without CPUs takes no task",
        needs: CPUSET,
        before: &["cgcreate -g cpuset:{g}", "set {g} cpuset.mems=0"],
        refused: "move {g} {pid}",
        says: &["cpuset.cpus is empty", "no CPU to run on", "hint: ringfence set {g} cpuset.cpus=0"],
        ..ROW
    },
    Row {
        name: "a cpuset without both takes no task",
        needs: CPUSET,
        before: &["cgcreate -g cpuset:{g}"],
        refused: "move {g} {pid}",
        says: &["cpuset.cpus and cpuset.mems are empty", "hint: ringfence set {g} cpuset.cpus=0"],
        ..ROW
    },
    Row {
        name: "a program is not run in a cpuset without both",
        needs: CPUSET,
        before: &["cgcreate -g cpuset:{g}"],
        refused: "run {g} -- true",
        code: 125,
        says: &["cannot start a program in group '{g}'", "cpuset.cpus and cpuset.mems are empty"],
        ..ROW
    },
    Row {
        name: "a cpuset below empty ones needs values from the top on",
        needs: CPUSET,
        before: &["cgcreate -g cpuset:{g}/a/b"],
        refused: "move {g}/a/b {pid}",
        says: &[
            "cpuset.cpus and cpuset.mems are empty",
            "hint: ringfence set {g} cpuset.cpus=0",
            " && ringfence set {g}/a cpuset.cpus=0",
            " && ringfence set {g}/a/b cpuset.cpus=0",
        ],
        ..ROW
    },
    // cpuset v1
    Row {
        name: "a cpuset can't have a CPU that the machine lacks",
        needs: CPUSET,
        before: &["cgcreate -g cpuset:{g}"],
        refused: "set {g} cpuset.cpus=0,4000",
        says: &["the machine has no CPU 4000", "hint:"],
        then: Instead("get --values {g} cpuset.cpus", "{cpus}\n"),
        ..ROW
    },
    Row {
        name: "a cpuset can't have a memory node that the machine lacks",
        needs: CPUSET,
        before: &["cgcreate -g cpuset:{g}"],
        refused: "set {g} cpuset.mems=0,60",
        says: &["the machine has no memory node 60", "hint:"],
        then: Instead("get --values {g} cpuset.mems", "0"),
        ..ROW
    },
    Row {
        name: "a cpuset can't have a CPU that its parent lacks",
        needs: &[Need::V1("cpuset"), Need::Cpus(2)],
        before: &["cgcreate -g cpuset:{g}/a", "set {g} cpuset.cpus=0"],
        refused: "set {g}/a cpuset.cpus=0-1",
        says: &[
            "its parent '{g}' has cpuset.cpus '0', which lacks 1",
            "hint: first: ringfence set {g} cpuset.cpus=0-1",
        ],
        ..ROW
    },
    // newcomers A14: the hint gave the parent the one CPU, and caged every other group below it
    Row {
        name: "below empty cpusets the hint fills those above with all that they may have",
        needs: &[Need::V1("cpuset"), Need::Cpus(2)],
        before: &["cgcreate -g cpuset:{g}/a"],
        refused: "set {g}/a cpuset.cpus=0",
        says: &[
            "its parent '{g}' has an empty cpuset.cpus",
            "hint: ringfence set {g} cpuset.cpus=0-",
            " && ringfence set {g}/a cpuset.cpus=0\n",
        ],
        then: Instead("get --values {g}/a cpuset.cpus", "0\n"),
        ..ROW
    },
    Row {
        name: "a cpuset can't lose a CPU that a group below uses",
        needs: &[Need::V1("cpuset"), Need::Cpus(2)],
        before: &["cgcreate -g cpuset:{g}/a", "set {g} cpuset.cpus=0-1", "set {g}/a cpuset.cpus=1"],
        refused: "set {g} cpuset.cpus=0",
        says: &["group '{g}/a' below it uses '1'", "hint: first: ringfence set {g}/a cpuset.cpus=0"],
        ..ROW
    },
    Row {
        name: "a cpuset with tasks can't be emptied",
        needs: CPUSET,
        before: &["cgcreate -g cpuset:{g}", "set {g} cpuset.cpus=0 cpuset.mems=0", "move {g} {pid}"],
        refused: "set {g} cpuset.cpus=",
        says: &["{pid} (sleep)", "left without a CPU", "hint: move them out first"],
        then: Instead("get --values {g} cpuset.cpus", "0\n"),
        ..ROW
    },
    Row {
        name: "a cpuset is not exclusive below one that is not",
        needs: CPUSET,
        before: &["cgcreate -g cpuset:{g}/a", "set {g} cpuset.cpus=0", "set {g}/a cpuset.cpus=0"],
        refused: "set {g}/a cpuset.cpu_exclusive=1",
        says: &[
            "its parent '{g}' is not exclusive itself",
            "hint: first: ringfence set {g} cpuset.cpu_exclusive=1",
        ],
        ..ROW
    },
    Row {
        name: "a cpuset is not exclusive while a sibling has its CPUs",
        needs: CPUSET,
        before: &[
            "cgcreate -g cpuset:{g}/a",
            "cgcreate -g cpuset:{g}/b",
            "set {g} cpuset.cpus=0 cpuset.cpu_exclusive=1",
            "set {g}/a cpuset.cpus=0",
            "set {g}/b cpuset.cpus=0",
        ],
        refused: "set {g}/a cpuset.cpu_exclusive=1",
        says: &["group '{g}/b' has cpuset.cpus '0', which overlaps"],
        then: CHOICE,
        ..ROW
    },
    Row {
        name: "a cpuset can't take a CPU that a sibling has for itself",
        needs: CPUSET,
        before: &[
            "cgcreate -g cpuset:{g}/a",
            "cgcreate -g cpuset:{g}/b",
            "set {g} cpuset.cpus=0 cpuset.cpu_exclusive=1",
            "set {g}/b cpuset.cpus=0 cpuset.cpu_exclusive=1",
        ],
        refused: "set {g}/a cpuset.cpus=0",
        says: &["group '{g}/b' has '0', and one of the two is exclusive"],
        then: CHOICE,
        ..ROW
    },
    // memory v1
    Row {
        name: "a v1 memory limit is not set below what can't be reclaimed",
        needs: &[Need::V1("memory"), Need::NoSwap],
        before: &["create {g} -c memory", "eat {g}"],
        refused: "set {g} memory.limit_in_bytes=1M",
        says: &[
            "the group uses",
            "not enough of it could be reclaimed",
            "hint: a limit above its use is taken: ringfence set {g} memory.max=",
        ],
        then: Instead("get --values {g} memory.max", "M\n"),
        ..ROW
    },
    Row {
        name: "a v1 memory limit is not set above memory plus swap",
        needs: &[Need::V1("memory"), Need::File("memory.memsw.limit_in_bytes")],
        before: &[
            "create {g} -c memory",
            "set {g} memory.limit_in_bytes=64M memory.memsw.limit_in_bytes=64M",
        ],
        refused: "set {g} memory.limit_in_bytes=128M",
        says: &["it must be at most memory.memsw.limit_in_bytes, which is 64M", "hint:"],
        then: Instead("get --values {g} memory.max", "128M\n"),
        ..ROW
    },
    Row {
        name: "memory plus swap is not set below the v1 memory limit",
        needs: &[Need::V1("memory"), Need::File("memory.memsw.limit_in_bytes")],
        before: &["create {g} -c memory", "set {g} memory.limit_in_bytes=64M"],
        refused: "set {g} memory.memsw.limit_in_bytes=32M",
        says: &["it must be at least memory.limit_in_bytes, which is 64M", "hint:"],
        then: Instead("get --values {g} memory.memsw.limit_in_bytes", "32M\n"),
        ..ROW
    },
    // cpu v1
    Row {
        name: "a v1 quota is not set above the parent's",
        needs: &[Need::V1("cpu")],
        before: &["create {g}/a -c cpu", "set {g} cpu.max=50%"],
        refused: "set {g}/a cpu.max=80%",
        says: &[
            "its parent '{g}' may run 0.50 CPUs, less than the 0.80 requested",
            "hint: first: ringfence set {g} cpu.max=0.80cpu",
        ],
        ..ROW
    },
    Row {
        name: "a v1 quota is not set below that of a group below",
        needs: &[Need::V1("cpu")],
        before: &["create {g}/a -c cpu", "set {g} cpu.max=80%", "set {g}/a cpu.max=60%"],
        refused: "set {g} cpu.max=30%",
        says: &["group '{g}/a' below it may run 0.60 CPUs, more than the 0.30 requested"],
        ..ROW
    },
    Row {
        name: "a real-time budget is not set above what is free",
        needs: &[Need::V1("cpu"), Need::File("cpu.rt_runtime_us")],
        before: &["create {g} -c cpu"],
        refused: "set {g} cpu.rt_runtime_us=990000",
        says: &["'/' has a real-time budget of", "are free", "hint:"],
        then: CHOICE,
        ..ROW
    },
    Row {
        name: "a real-time task does not enter a group without a budget",
        needs: &[Need::V1("cpu"), Need::File("cpu.rt_runtime_us"), Need::Realtime],
        before: &["create {g} -c cpu"],
        refused: "move {g} {fifo}",
        says: &["real-time budget (cpu.rt_runtime_us) is 0", "hint: ringfence set {g} cpu.rt_runtime_us="],
        ..ROW
    },
    Row {
        name: "a real-time budget is not taken from tasks that need it",
        needs: &[Need::V1("cpu"), Need::File("cpu.rt_runtime_us"), Need::Realtime],
        before: &["create {g} -c cpu", "set {g} cpu.rt_runtime_us=20ms", "move {g} {fifo}"],
        refused: "set {g} cpu.rt_runtime_us=0",
        says: &["left without a budget", "hint:"],
        then: Shows,
        ..ROW
    },
    Row {
        name: "a real-time budget is not set below what groups below hold",
        needs: &[Need::V1("cpu"), Need::File("cpu.rt_runtime_us")],
        before: &[
            "create {g}/a -c cpu",
            "set {g} cpu.rt_runtime_us=50ms",
            "set {g}/a cpu.rt_runtime_us=50ms",
        ],
        refused: "set {g} cpu.rt_runtime_us=10ms",
        says: &["groups below it hold budgets of 50000 us, more than the 10000 us requested"],
        then: Shows,
        ..ROW
    },
    Row {
        name: "a burst is not set above the quota",
        needs: &[Need::V1("cpu"), Need::File("cpu.cfs_burst_us")],
        before: &["create {g} -c cpu", "set {g} cpu.max=20%"],
        refused: "set {g} cpu.max.burst=50ms",
        says: &["the burst may be at most the quota, which is 20000 us"],
        then: Instead("get --values {g} cpu.max.burst", "20"),
        ..ROW
    },
    Row {
        name: "an idle group has no weight to set",
        needs: &[Need::V1("cpu"), Need::File("cpu.idle")],
        before: &["create {g} -c cpu", "set {g} cpu.idle=1"],
        refused: "set {g} cpu.weight=50",
        says: &["the group is idle", "hint: ringfence set {g} cpu.idle=0"],
        then: Instead("get --values {g} cpu.weight", "50\n"),
        ..ROW
    },
    Row {
        name: "a group does not freeze its own caller",
        needs: &[Need::Groups],
        before: &["create {g} -c freezer,pids", "set {g} pids.max=max"],
        refused: "run {g} -- {program} freeze {g} --timeout 1",
        says: &["holds this very program", "hint: call it from outside: ringfence move / "],
        then: Words("the shell that called it has ended"),
        ..ROW
    },
    Row {
        name: "a group of another owner is not entered",
        needs: &[Need::Groups],
        refused: "run /rf-test.slice -- true",
        code: 125,
        says: &["belongs to systemd"],
        then: OF_SYSTEMD,
        ..ROW
    },
    Row {
        name: "a group of another owner is not frozen",
        needs: &[Need::Groups],
        refused: "freeze /system.slice/rf-test.service",
        says: &["belongs to systemd", "hint: systemctl freeze rf-test.service"],
        then: OF_SYSTEMD,
        ..ROW
    },
    Row {
        name: "a group of another owner is not deleted",
        needs: &[Need::Groups],
        refused: "delete /system.slice/rf-test.service",
        says: &["belongs to systemd", "hint: systemctl stop rf-test.service"],
        then: OF_SYSTEMD,
        ..ROW
    },
    // block devices
    Row {
        name: "a block device that does not exist is not limited on v1",
        needs: &[Need::V1("blkio")],
        before: &["create {g} -c blkio"],
        refused: "set {g} 'io.max=250:99 riops=10'",
        says: &["there is no block device 250:99", "hint: lsblk lists them"],
        then: Words("it names another tool"),
        ..ROW
    },
    Row {
        name: "a block device that does not exist is not limited on v2",
        needs: &[Need::V2("io")],
        before: &["create {g} -c io"],
        refused: "set {g} 'io.max=250:99 riops=10'",
        says: &["there is no block device 250:99", "hint: lsblk lists them"],
        then: Words("it names another tool"),
        ..ROW
    },
    // devices
    Row {
        name: "a device that the parent denies is not allowed below it",
        needs: &[Need::V1("devices")],
        before: &["create {g} -c devices", "set {g} devices.deny=a", "create {g}/a -c devices"],
        refused: "set {g}/a 'devices.allow=c 1:3 rw'",
        says: &["its parent '{g}' does not allow that device itself", "hint: ringfence get {g} devices.list"],
        then: Shows,
        ..ROW
    },
    // any version
    Row {
        name: "a group with tasks is not deleted",
        needs: &[Need::Groups],
        before: &["create {g} -c pids", "move {g} {pid}"],
        refused: "delete {g}",
        says: &["still holds {pid} (sleep)", "hint: ringfence kill {g}"],
        ..ROW
    },
    Row {
        name: "a group with groups below is not deleted without --recursive",
        needs: &[Need::Groups],
        before: &["create {g}/a -c pids", "create {g}/b -c pids"],
        refused: "delete {g}",
        says: &["it has 2 groups below it (a, b)", "hint: ringfence delete --recursive {g}"],
        then: Instead("list", ""),
        ..ROW
    },
    Row {
        name: "a kernel thread is not moved",
        needs: &[Need::Groups],
        before: &["create {g} -c pids"],
        refused: "move {g} {kthread}",
        says: &["is a kernel thread", "hint:"],
        then: Words("nothing moves it"),
        ..ROW
    },
    Row {
        name: "a process that is gone is not moved",
        needs: &[Need::Groups],
        before: &["create {g} -c pids"],
        refused: "move {g} 4194000",
        says: &["there is no process 4194000", "hint:"],
        then: Shows,
        ..ROW
    },
    Row {
        name: "another user makes no group",
        needs: &[Need::Groups, Need::Plain],
        refused: "create {g} -c pids",
        user: NOBODY,
        says: &["user 65534 may not write", "hint: sudo ringfence create {g}"],
        then: Instead("list", "{g}\n"),
        ..ROW
    },
    Row {
        name: "another user changes no setting",
        needs: &[Need::Groups, Need::Plain],
        before: &["create {g} -c pids"],
        refused: "set {g} pids.max=5",
        user: NOBODY,
        says: &["user 65534 may not write", "hint: sudo ringfence set {g} pids.max=5"],
        then: Instead("get --values {g} pids.max", "5\n"),
        ..ROW
    },
    // finding A13 of the newcomers' review: the hint gave the group to the user who was refused
    Row {
        name: "a refused setting is offered as it was typed",
        needs: &[Need::V1("cpu"), Need::Plain],
        before: &["create {g} -c cpu"],
        refused: "set {g} cpu.weight=5",
        user: NOBODY,
        says: &["user 65534 may not write", "hint: sudo ringfence set {g} cpu.weight=5"],
        then: Instead("get --values {g} cpu.shares", "51\n"),
        ..ROW
    },
    Row {
        name: "another user freezes no group",
        needs: &[Need::V1("freezer"), Need::Plain],
        before: &["create {g} -c freezer"],
        refused: "freeze {g}",
        user: NOBODY,
        says: &["user 65534 may not write", "hint: sudo ringfence freeze {g}"],
        then: Instead("get --values {g} freezer.state", "FROZEN\n"),
        ..ROW
    },
    Row {
        name: "another user kills no process of root",
        needs: &[Need::V1("pids"), Need::Plain],
        before: &["create {g} -c pids", "move {g} {pid}"],
        refused: "kill {g}",
        user: NOBODY,
        says: &["0 of 1 processes of group '{g}' got the signal", "hint: sudo ringfence kill {g}"],
        then: Instead("get --values {g} cgroup.procs", ""),
        ..ROW
    },
    Row {
        name: "another user moves nothing into a group of root",
        needs: &[Need::V1("pids"), Need::Plain],
        before: &["create {g} -c pids"],
        refused: "move {g} {his}",
        user: NOBODY,
        says: &["user 65534 may not write", "hint: sudo ringfence move {g} {his}"],
        then: Instead("get --values {g} cgroup.procs", "{his}\n"),
        ..ROW
    },
    Row {
        name: "a program is not run in a frozen group",
        needs: &[Need::V1("freezer")],
        before: &["create {g} -c freezer", "freeze {g}"],
        refused: "run {g} -- true",
        code: 125,
        says: &["group '{g}' is frozen", "hint: ringfence thaw {g}"],
        ..ROW
    },
    Row {
        name: "a freeze that would not reach a process says where it is",
        needs: &[Need::V1("freezer"), Need::V1("pids")],
        before: &[
            "create {g} -c freezer,pids",
            "create {g}/x -c freezer",
            "create {g}/y -c pids,freezer",
            "move {g}/y {pid}",
            "move {g}/x {pid}",
        ],
        refused: "freeze {g}/y",
        says: &[
            "1 process of group '{g}/y' is not in its freezer group but in '{g}/x'",
            "hint: ringfence move {g}/y {pid}",
        ],
        ..ROW
    },
    Row {
        name: "another user moves only what is his",
        needs: &[Need::Groups, Need::Plain],
        before: &["create {g} -c pids --tasks 65534:65534"],
        refused: "move {g} {pid}",
        user: NOBODY,
        says: &["user 65534 may not move process {pid} of user 0", "hint: sudo ringfence move {g} {pid}"],
        then: Instead("get --values {g} cgroup.procs", "{pid}\n"),
        ..ROW
    },
    Row {
        name: "a group that does not exist has no settings",
        needs: &[Need::Groups],
        before: &["create {g} -c pids"],
        refused: "set {g}x pids.max=5",
        says: &["group '{g}x' does not exist", "hint: did you mean {g}?"],
        ..ROW
    },
    Row {
        name: "a setting of a controller that the group lacks names the controller",
        needs: &[Need::V1("cpu"), Need::V1("memory")],
        before: &["create {g} -c cpu"],
        refused: "set {g} memory.max=64M",
        says: &["group '{g}' is not controlled by memory", "hint: ringfence create {g} --controllers memory"],
        ..ROW
    },
    Row {
        name: "a setting of a controller that a v2 group lacks names the controller",
        needs: &[Need::V2("memory"), Need::V2("pids")],
        before: &["create {g}/a -c pids"],
        refused: "set {g}/a memory.max=64M",
        says: &[
            "controller memory is not enabled for the group",
            "hint: ringfence create {g}/a --controllers memory",
        ],
        ..ROW
    },
    Row {
        name: "a setting that only v2 has names what v1 offers",
        needs: &[Need::V1("memory")],
        before: &["create {g} -c memory"],
        refused: "set {g} memory.min=64M",
        says: &["cgroup v1, which controls group '{g}' here, has no memory.min", "hint:"],
        then: Words("no setting of v1 does the same"),
        ..ROW
    },
    Row {
        name: "a setting that only v1 has names what v2 offers",
        needs: &[Need::V2("cpu")],
        before: &["create {g} -c cpu"],
        refused: "set {g} cpu.rt_runtime_us=10000",
        says: &["cgroup v2, which controls group '{g}' here, has no cpu.rt_runtime_us", "hint:"],
        then: Words("no setting of v2 does the same"),
        ..ROW
    },
    Row {
        name: "a file that this kernel lacks is named as such",
        needs: &[Need::V1("cpu")],
        before: &["create {g} -c cpu"],
        refused: "get {g} cpu.uclamp.min",
        says: &["cpu.uclamp.min"],
        then: Words("no kernel setting changes that"),
        ..ROW
    },
    Row {
        name: "a controller on no mounted hierarchy sets nothing",
        needs: &[Need::Groups, Need::NotMounted("net_cls"), Need::File("blkio.throttle.read_bps_device")],
        before: &["create {g} -c pids"],
        refused: "set {g} net_cls.classid=10:1",
        says: &["controller net_cls is on no mounted hierarchy", "hint: ringfence mount net_cls"],
        then: MACHINE,
        ..ROW
    },
    Row {
        name: "the root group is not frozen",
        needs: &[Need::Groups],
        refused: "freeze /",
        says: &["freezing the root group would reach every process", "hint:"],
        then: Words("it is to be another group"),
        ..ROW
    },
    Row {
        name: "the root group is not killed",
        needs: &[Need::Groups],
        refused: "kill /",
        says: &["killing the root group would reach every process", "hint:"],
        then: Words("it is to be another group"),
        ..ROW
    },
    Row {
        name: "a read-only hierarchy is named with the command that changes that",
        needs: &[Need::Groups, Need::Plain],
        refused: "sh unshare -m sh -c 'for m in $(grep -w -e cgroup -e cgroup2 /proc/mounts | cut -d\" \" -f2); do mount -o remount,bind,ro $m; done; {program} create {g} -c pids'",
        says: &["is mounted read-only", "hint: mount -o remount,bind,rw"],
        then: MACHINE,
        ..ROW
    },
    Row {
        name: "a machine without any hierarchy has no groups",
        needs: &[Need::NoHierarchy],
        refused: "create {g}",
        says: &["no cgroup hierarchy is mounted", "hint: mount -t cgroup2 none /sys/fs/cgroup"],
        then: MACHINE,
        ..ROW
    },
    // v2
    Row {
        name: "a v2 group whose children have controllers holds no process",
        needs: &[Need::V2("memory")],
        before: &["create {g}/a -c memory"],
        refused: "move {g} {pid}",
        says: &["only groups without such children hold processes", "hint: use a group below it: {g}/a"],
        then: There,
        ..ROW
    },
    Row {
        name: "a program is not run in a v2 group whose children have controllers",
        needs: &[Need::V2("memory")],
        before: &["create {g}/a -c memory"],
        refused: "run {g} -- true",
        code: 125,
        says: &["only groups without such children hold processes", "hint: use a group below it: {g}/a"],
        then: There,
        ..ROW
    },
    // cpu alone would have made it the domain of threads: the process is in the way, and not what the attempt made of the group
    Row {
        name: "where the group below a v2 group gives controllers too, one that holds processes is named",
        needs: &[Need::V2("memory")],
        before: &["create {g}/a/b -c memory", "create {g}/c -c core"],
        refused: "run {g} -- true",
        code: 125,
        says: &["only groups without such children hold processes", "hint: use a group below it: {g}/c"],
        then: There,
        ..ROW
    },
    Row {
        name: "where all groups below a v2 group give controllers, a deeper one is named",
        needs: &[Need::V2("memory")],
        before: &["create {g}/a/b -c memory"],
        refused: "run {g} -- true",
        code: 125,
        says: &["only groups without such children hold processes", "hint: use a group below it: {g}/a/b"],
        then: There,
        ..ROW
    },
    Row {
        name: "a v2 group that holds processes gives no controllers to groups below it",
        needs: &[Need::V2("memory"), Need::V2("cpu")],
        before: &["create {g} -c core", "move {g} {pid}"],
        refused: "create {g}/a",
        says: &["group '{g}' holds {pid} (sleep) itself", "hint: move them to a group below it first"],
        ..ROW
    },
    Row {
        name: "cgcreate below a v2 group that holds processes names them",
        needs: &[Need::V2("memory"), Need::V2("cpu")],
        before: &["create {g} -c core", "move {g} {pid}"],
        refused: "cgcreate -g cpu,memory:{g}/a",
        code: 96,
        says: &["group '{g}' holds {pid} (sleep) itself", "hint: move them to a group below it first"],
        ..ROW
    },
    Row {
        name: "no more groups are made than a parent allows",
        needs: V2,
        before: &["create {g} -c core", "set {g} cgroup.max.descendants=1", "create {g}/a -c core"],
        refused: "create {g}/b -c core",
        says: &[
            "cgroup.max.descendants of group '{g}' allows 1 groups below it",
            "hint: ringfence set {g} cgroup.max.descendants=max",
        ],
        ..ROW
    },
    Row {
        name: "no deeper groups are made than a parent allows",
        needs: V2,
        before: &["create {g}/a -c core", "set {g} cgroup.max.depth=1"],
        refused: "create {g}/a/b -c core",
        says: &[
            "cgroup.max.depth of group '{g}' allows 1 levels below it",
            "hint: ringfence set {g} cgroup.max.depth=max",
        ],
        ..ROW
    },
    Row {
        name: "a thread is not moved into a v2 group that is not threaded",
        needs: V2,
        before: &["create {g}/a -c core", "move {g} {pid}"],
        refused: "move --threads {g}/a {pid}",
        says: &["its type is 'domain'", "hint: ringfence set {g}/a cgroup.type=threaded"],
        ..ROW
    },
    Row {
        name: "a thread is not moved into a v2 group that can't be threaded",
        needs: &[Need::V2("memory")],
        before: &["create {g}/a -c memory"],
        refused: "move --threads {g}/a {pid}",
        says: &["its type is 'domain'", "its parent hands out memory", "hint: make a threaded group below"],
        then: Words("it has no command"),
        ..ROW
    },
    Row {
        name: "a partition without CPUs of its own is not left invalid",
        needs: &[Need::V2("cpuset"), Need::Plain],
        before: &[
            "cgcreate -g cpuset:{g}/a",
            "cgcreate -g cpuset:{g}/b",
            "set {g} cpuset.cpus=0-1",
            "set {g}/a cpuset.cpus=1",
        ],
        refused: "set {g}/a cpuset.cpus.partition=root",
        says: &[
            "keeps the partition of group '{g}/a' invalid",
            "nothing was changed",
            "hint: a partition needs CPUs",
        ],
        then: CHOICE,
        ..ROW
    },
    Row {
        name: "a v2 group that may hold no more tasks starts no program",
        needs: &[Need::V2("pids")],
        before: &["create {g} -c pids", "set {g} pids.max=0"],
        refused: "run {g} -- true",
        code: 125,
        says: &["it may hold 0 tasks and holds 0", "hint: ringfence set {g} pids.max=100"],
        ..ROW
    },
    Row {
        name: "a v2 group does not become a domain by writing so",
        needs: &[Need::AnyV2, Need::Plain], // below a unit whose groups hand out io nothing can be threaded
        before: &["create {g} -c core", "set {g} cgroup.type=threaded"],
        refused: "set {g} cgroup.type=domain",
        code: 2,
        says: &["cgroup.type"],
        then: Words("there is no way back"),
        ..ROW
    },
];

pub fn trials(world: &Arc<World>) -> Vec<Trial> {
    let trial = |row: &'static Row| {
        let (lacks, world) = (world.lacks(row.needs), world.clone());
        suite::fallible(format!("refused: {}", row.name), lacks, move || provoke(&world, row))
    };
    ROWS.iter().map(trial).collect()
}

fn provoke(world: &Arc<World>, row: &Row) -> Result<(), libtest_mimic::Failed> {
    let mut scene = Scene::new(world, row.name);
    prepare(&mut scene, row);
    let online = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    scene.name("{cpus}", online.trim());
    for line in row.before {
        match line.strip_prefix("eat ") {
            Some(group) => eat(&mut scene, group),
            None => drop(scene.ok(line)),
        }
    }
    let output = match row.refused.strip_prefix("sh ") {
        Some(line) => {
            let line = scene.fill(line).replace("{program}", &world.program);
            std::process::Command::new("sh").args(["-c", &line]).output()?
        }
        None => scene.ringfence(&row.refused.replace("{program}", &world.program), row.user),
    };
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    let code = output.status.code();
    if code != Some(row.code) {
        return Err(format!("exit status {code:?} instead of {}: {error}", row.code).into());
    }
    for part in row.says {
        let part = scene.fill(part);
        if !error.contains(&part) {
            return Err(format!("'{part}' is not in:\n{error}").into());
        }
    }
    obey(&mut scene, row, &error)
}

/// Does what the hint says, and compares what became of it.
fn obey(scene: &mut Scene, row: &Row, error: &str) -> Result<(), libtest_mimic::Failed> {
    let hint = hints::hints(error).last().copied().unwrap_or_default().to_owned();
    let command = hints::command(&hint).map(str::to_owned);
    let run = || {
        let command = command.as_deref().ok_or_else(|| format!("no command in: {error}"))?;
        let (code, out, said) = answer(hints::obey(&scene.program(), command, None));
        if code == 0 { Ok(out) } else { Err(format!("{command}: exit status {code}: {said}")) }
    };
    let again = |line: &str| {
        let (code, _, said) = answer(scene.ringfence(line, row.user));
        if code == 0 { Ok(()) } else { Err(format!("{line} after '{hint}': exit status {code}: {said}")) }
    };
    match row.then {
        Again => {
            run()?;
            let done = again(row.refused);
            // a group of another name
            let _ = scene.ringfence("delete {g}x", None);
            done?;
        }
        Instead(line, expected) => {
            run()?;
            let (out, expected) = (scene.ok(line), scene.fill(expected));
            if !out.ends_with(&expected) && !out.contains(&expected) {
                return Err(format!("after '{hint}' {line}: {out}").into());
            }
        }
        Shows => {
            let shown = run()?;
            assert!(!shown.is_empty(), "{hint} shows nothing");
        }
        There => {
            let group = hint.rsplit(' ').next().unwrap_or_default();
            again(&row.refused.replacen("{g}", group, 1))?;
        }
        // words alone have no command, and a command that is not run has a reason
        Words(reason) => assert!(!reason.is_empty()),
    }
    Ok(())
}

/// Starts the processes that the row speaks of.
fn prepare(scene: &mut Scene, row: &Row) {
    let speaks_of = |name: &str| {
        let lines = row.before.iter().chain([&row.refused]).chain(row.says);
        lines.into_iter().any(|line| line.contains(name))
    };
    if speaks_of("{pid}") {
        scene.start("{pid}", &["sleep", "60"]);
    }
    if speaks_of("{his}") {
        let pid = scene.start_as(65534, &["sleep", "60"]);
        scene.name("{his}", &pid.to_string());
    }
    if speaks_of("{fifo}") {
        scene.start("{fifo}", &["chrt", "-f", "10", "sleep", "60"]);
        std::thread::sleep(std::time::Duration::from_millis(200)); // chrt becomes sleep
    }
    if speaks_of("{kthread}") {
        scene.name("{kthread}", "2");
    }
}

/// A process in the group that holds 20 MB which can't be given back.
fn eat(scene: &mut Scene, group: &str) {
    let group = scene.fill(group);
    let script = "x=$(head -c 20000000 /dev/zero | tr '\\0' x); sleep 60";
    let program = scene.program();
    scene.start("{eater}", &[&program, "run", &group, "--", "sh", "-c", script]);
    scene.until("the memory", || {
        let used = scene.ok(&format!("stat --values {group} memory.usage_in_bytes"));
        used.trim().parse::<u64>().map_or_else(|_| used.contains('M'), |bytes| bytes > 15_000_000)
    });
}
