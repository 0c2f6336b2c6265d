//! The table: a change of recorded facts, and the finding that it must bring.

use plan::doctor::Level;
use topology::facts::{
    Base, Exclusive, Facts, GroupBudget, MountTrial, Owned, Partition, RealtimeRoot, Writer,
};
use units::{Limit, Micros};

/// One row. `what`, `consequence` and `hint` are parts of the finding's; "" means that it has none.
pub struct Row {
    pub mode: &'static str,
    pub change: fn(&mut Facts),
    pub level: Level,
    pub what: &'static str,
    pub consequence: &'static str,
    pub hint: &'static str,
}

fn row(
    mode: &'static str,
    change: fn(&mut Facts),
    level: Level,
    what: &'static str,
    consequence: &'static str,
    hint: &'static str,
) -> Row {
    Row { mode, change, level, what, consequence, hint }
}

/// Words as the facts hold them.
pub fn texts(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn trial(facts: &mut Facts, name: &str, trial: MountTrial) {
    facts.v1.retain(|at| !at.controllers.iter().any(|held| held == name));
    let row = facts.controllers.iter_mut().find(|row| row.name == name).unwrap();
    row.hierarchy = 0;
    row.trial = trial;
}

fn writer(facts: &mut Facts, name: &str, unit: Option<&str>, choice: Option<&str>) {
    let [unit, choice] = [unit, choice].map(|text| text.map(str::to_owned));
    facts.writers.push(Writer { name: name.to_owned(), pid: Some(77), unit, choice });
}

fn refused() -> MountTrial {
    MountTrial::Refused("invalid argument [EINVAL]".to_owned())
}

fn memory_off(facts: &mut Facts) {
    facts.v2.as_mut().unwrap().controllers.retain(|name| name != "memory");
    facts.controllers.iter_mut().find(|row| row.name == "memory").unwrap().enabled = false;
}

fn not_built(facts: &mut Facts) {
    let built = |name: &String| !["rdma", "misc"].contains(&name.as_str());
    facts.v2.as_mut().unwrap().controllers.retain(built);
    facts.controllers.retain(|row| built(&row.name));
}

fn partitions(facts: &mut Facts, partitions: &[Partition]) {
    facts.v2.as_mut().unwrap().partitions = partitions.to_vec();
}

fn exclusive(facts: &mut Facts, others: usize, groups: &[(&str, &str)]) {
    let one =
        |(group, cpus): &(&str, &str)| Exclusive { group: (*group).to_owned(), cpus: cpus.parse().unwrap() };
    facts.exclusive = groups.iter().map(one).collect();
    facts.in_cpuset_root = Some(others);
}

fn no_child_file(facts: &mut Facts, file: &str) {
    facts.v2.as_mut().unwrap().child.as_mut().unwrap().files.retain(|name| name != file);
}

fn with_cpuset(facts: &mut Facts, more: &[&str]) {
    let files = &mut facts.v2.as_mut().unwrap().child.as_mut().unwrap().files;
    files.extend(texts(&["cpuset.cpus", "cpuset.mems"]));
    files.extend(texts(more));
}

/// A partition that is not in force.
pub fn invalid(group: &str, cpus: &str, overlaps: &[(&str, &str)]) -> Partition {
    Partition {
        group: group.to_owned(),
        kind: "root".to_owned(),
        invalid: Some("Cpu list in cpuset.cpus not exclusive".to_owned()),
        cpus: cpus.parse().unwrap(),
        overlaps: overlaps.iter().map(|(group, cpus)| ((*group).to_owned(), cpus.parse().unwrap())).collect(),
    }
}

fn ordinary_user(facts: &mut Facts) {
    facts.caller.uid = 1000;
    facts.caller.sys_admin = false;
    facts.v1.iter_mut().for_each(|at| at.at.writable = false);
    facts.v2.iter_mut().for_each(|at| at.at.writable = false);
}

fn own_base(facts: &mut Facts, controllers: &[&str]) {
    facts.caller.uid = 1000;
    let v2 = facts.v2.as_mut().unwrap();
    v2.at.base = Base::Own("user.slice/x".to_owned());
    v2.delegated = Some(texts(controllers));
}

pub fn budget(facts: &mut Facts, held: &[(&str, u64)]) {
    let period = Micros(1_000_000);
    let held = held.iter().map(|(group, us)| GroupBudget {
        group: (*group).to_owned(),
        runtime: Limit::At(Micros(*us)),
        period,
    });
    facts.realtime.root =
        Some(RealtimeRoot { runtime: Limit::At(Micros(950_000)), period, held: held.collect() });
}

const NONE: &str = "";

/// All rows.
pub fn all() -> impl Iterator<Item = Row> {
    [access_rows(), controller_rows(), cpu_rows(), resource_rows()].into_iter().flatten()
}

#[rustfmt::skip]
fn access_rows() -> Vec<Row> {
    use Level::{Attention, Broken, Note, Ok};
    vec![
        row("v2", |f| f.v2 = None, Broken, "no cgroup hierarchy is mounted",
            "no group can be made, listed or changed", "mount -t cgroup2 cgroup2 /sys/fs/cgroup"),
        row("v2", |f| f.proc = false, Broken, "/proc is not mounted", "can't be found", "mount -t proc proc /proc"),
        row("v2", ordinary_user, Attention, "user 1000 may make no group",
            "create, set, run and move are refused",
            "as root: ringfence create GROUP --tasks 1000 --admin 1000"),
        row("systemd", ordinary_user, Attention, "user 1000 may make no group",
            "create, set, run and move are refused", "systemd-run --user --scope -p Delegate=yes bash"),
        row("v2", |f| f.caller.sys_admin = false, Note, "root without CAP_SYS_ADMIN",
            "nothing can be mounted", NONE),
        row("v2", |f| f.caller.user_namespace = true, Note, "inside a user namespace",
            "only what was delegated", NONE),
        row("v2", |f| (f.caller.pid_namespace, f.caller.container) = (true, Some("podman".to_owned())),
            Note, "inside a container (podman)", "only what it was given can be divided", NONE),
        row("v2", |f| f.caller.container = Some("docker".to_owned()), Ok, "root", NONE, NONE),
        row("hybrid", |f| f.v1[1].at.read_only = true, Attention,
            "cpuset: v1 at /sys/fs/cgroup/cpuset, read-only", "no group can be made or changed there",
            "mount -o remount,bind,rw /sys/fs/cgroup/cpuset"),
        row("systemd", |f| own_base(f, &["cpu", "memory", "pids"]), Note,
            "cpuset, io: not delegated to user.slice/x", "your groups have no settings of cpuset, io",
            "Delegate=yes"),
        row("v2", |f| own_base(f, &["memory", "pids"]), Note,
            "cpu, cpuset, io: not delegated to user.slice/x",
            "your groups have no settings of cpu, cpuset, io",
            "as root: ringfence create /user.slice/x --controllers cpu,cpuset,io"),
        row("systemd", |_| (), Ok, "systemd 252 keeps the tree of its units; our groups will live below",
            NONE, NONE),
        row("systemd", |f| f.systemd.as_mut().unwrap().unit = true, Ok,
            "ringfence.service, which is running", NONE, NONE),
        row("systemd",
            |f| f.owned.push(Owned { owner: "kubelet".to_owned(), groups: texts(&["kubepods.slice"]) }),
            Note, "kubelet keeps kubepods.slice", "ringfence never writes there",
            "kubelet --cpu-manager-policy=static"),
        row("systemd", |f| writer(f, "tuned", Some("tuned.service"), Some("cpu-partitioning")), Note,
            "tuned (cpu-partitioning) is in force", "configured in /etc/tuned/tuned-main.conf",
            "systemctl disable --now tuned.service"),
        row("v2", |f| writer(f, "irqbalance", None, None), Note, "irqbalance is in force",
            "the CPUs of interrupts", "kill 77"),
        row("v2", |f| f.writers.push(Writer { name: "TLP".to_owned(), ..Writer::default() }), Note,
            "TLP is in force", "configured in /etc/tlp.conf", "systemctl disable --now tlp.service"),
    ]
}

#[rustfmt::skip]
fn controller_rows() -> Vec<Row> {
    use Level::{Attention, Note, Ok};
    vec![
        row("v1", |_| (), Ok, "cpu, cpuacct: v1 at /sys/fs/cgroup/cpu,cpuacct", NONE, NONE),
        row("hybrid", |_| (), Ok, "io, memory, hugetlb, pids, rdma, misc: v2 at /sys/fs/cgroup/unified",
            NONE, NONE),
        row("hybrid", |_| (), Ok, "perf_event: part of every v2 group", NONE, NONE),
        row("systemd", |_| (), Ok,
            "v2 at /sys/fs/cgroup, our groups below ringfence.slice/ringfence.service", NONE, NONE),
        row("v1", |f| trial(f, "memory", MountTrial::Mounts), Attention, "memory: in no hierarchy",
            "memory can't be limited or protected by group", "ringfence mount memory"),
        row("v1", |f| trial(f, "net_cls", MountTrial::Mounts), Note, "net_cls: in no hierarchy",
            "packets can't be marked with their group's class", "ringfence mount net_cls"),
        row("v1", |f| trial(f, "cpuset", MountTrial::Forgone(String::new())), Attention,
            "cpuset: in no hierarchy", "groups can't be bound to CPUs and memory nodes",
            "as root: ringfence mount cpuset"),
        row("v1", |f| trial(f, "cpuset", refused()),
            Attention, "cpuset: this kernel lists it, and can't mount it on v1: invalid argument [EINVAL]",
            "groups can't be bound to CPUs and memory nodes",
            "mkdir /sys/fs/cgroup/unified && mount -t cgroup2 cgroup2 /sys/fs/cgroup/unified"),
        row("hybrid",
            |f| { f.boot.push("cgroup_no_v1=net_cls,net_prio".to_owned()); trial(f, "net_cls", refused()) },
            Note, "net_cls: disabled for cgroup v1 at boot", "packets can't be marked",
            "remove cgroup_no_v1=net_cls,net_prio from the kernel's command line"),
        row("v2", |f| trial(f, "net_cls", refused()),
            Note, "net_cls: this kernel can't mount it", "packets can't be marked",
            "nft add rule inet filter output socket cgroupv2"),
        row("v2",
            memory_off,
            Attention, "memory: switched off at boot", "memory can't be limited or protected by group",
            "cgroup_enable=memory on the kernel's command line"),
        row("v2",
            |f| { f.boot.push("cgroup_disable=memory".to_owned()); memory_off(f) },
            Attention, "memory: switched off at boot", "memory can't be limited or protected by group",
            "remove cgroup_disable=memory from the kernel's command line"),
        row("v1", |f| f.v1.retain(|at| at.controllers != ["pids"]), Note,
            "pids: in a v1 hierarchy that is not mounted here",
            "the number of tasks can't be limited by group", "ringfence mount pids"),
        row("v2",
            not_built,
            Note, "rdma, misc: not in this kernel", "RDMA handles can't be limited by group", NONE),
        row("v2", |f| no_child_file(f, "cgroup.kill"), Note, "this kernel has no cgroup.kill",
            "signals process by process", NONE),
        row("v2", |f| f.v2.as_mut().unwrap().child = None, Ok, "freeze and kill: not seen", NONE, NONE),
        row("hybrid", |_| (), Ok, "freeze: by the v1 freezer; kill: by cgroup.kill", NONE, NONE),
        row("v2", |f| f.clone_into_cgroup = Some(false), Attention,
            "clone3 does not take CLONE_INTO_CGROUP", "ringfence run does not start programs in v2 groups",
            "sh -c 'ringfence move GROUP $$ && exec COMMAND'"),
    ]
}

#[rustfmt::skip]
fn cpu_rows() -> Vec<Row> {
    use Level::{Attention, Note, Ok};
    vec![
        row("v2", |f| with_cpuset(f, &["cpuset.cpus.partition", "cpuset.cpus.exclusive"]), Ok,
            "exclusive CPUs: by cpuset.cpus.exclusive and cpuset.cpus.partition", NONE, NONE),
        row("v2", |f| with_cpuset(f, &["cpuset.cpus.partition"]), Note,
            "this kernel has no cpuset.cpus.exclusive", "takes a partition out of force", NONE),
        row("v2", |f| with_cpuset(f, &[]), Note, "this kernel has no cpuset.cpus.partition",
            "only as long as", NONE),
        row("v2",
            |f| partitions(f, &[Partition { invalid: None, ..invalid("/rt", "2-3", &[]) }]),
            Ok, "/rt: root partition of CPUs 2-3", NONE, NONE),
        row("v2",
            |f| partitions(f, &[invalid("/rt", "2-3", &[("/db", "2-7")]), invalid("/x", "4", &[])]),
            Attention, "/rt: root partition that is not in force: cpu list in cpuset.cpus not exclusive",
            "other groups run on CPUs 2-3, too",
            "ringfence set /db cpuset.cpus=5-7 && ringfence set /rt cpuset.cpus.partition=member && \
             ringfence set /rt cpuset.cpus.partition=root"),
        row("v1",
            |f| exclusive(f, 5, &[("/rt", "2-3"), ("/rt/in", "3")]),
            Attention, "/rt: exclusive CPUs 2-3 (v1)", "5 processes of the root group still run there",
            "ringfence create rest && ringfence set rest cpuset.cpus=0-1,4-7 cpuset.mems=0-3 && ringfence move rest PID…"),
        row("v1", |f| exclusive(f, 5, &[("/rt", "2-3"), ("/rt/in", "3")]), Ok, "/rt/in: exclusive CPUs 3 (v1)",
            NONE, NONE),
        row("v1",
            |f| exclusive(f, 0, &[("/rt", "2-3")]),
            Ok, "/rt: exclusive CPUs 2-3 (v1)", NONE, NONE),
        row("v2", |f| f.cpus.smt_active = Some(true), Note, "SMT: on", "still shares its core",
            "echo off > /sys/devices/system/cpu/smt/control"),
        row("v2", |f| f.cpus.smt_control = Some("off".to_owned()), Ok, "SMT: off", NONE, NONE),
        row("v2",
            |f| { f.boot.push("isolcpus=6-7".to_owned()); f.cpus.isolated = Some("6-7".parse().unwrap()); },
            Note, "CPUs 6-7 are isolated", "pile up on one CPU",
            "taskset -cp CPU PID, or remove isolcpus=6-7 from the kernel's command line"),
        row("v2", |f| f.cpus.nohz_full = Some("6".parse().unwrap()), Ok, "CPUs 6 have no periodic tick",
            NONE, NONE),
        row("v2", |f| f.cpus.governors = [("powersave".to_owned(), "0-7".parse().unwrap())].into(), Note,
            "frequency governor: powersave on CPUs 0-7", "vary with it",
            "cpupower frequency-set --governor performance"),
        row("v1", |f| f.realtime.runtime = Some(Limit::Max), Note, "real-time tasks have no bound",
            "blocks its CPU", "sysctl kernel.sched_rt_runtime_us=950000"),
        row("v1", |f| f.realtime.runtime = Some(Limit::At(Micros(0))), Attention,
            "sched_rt_runtime_us is 0", "no real-time task can run",
            "sysctl kernel.sched_rt_runtime_us=950000"),
        row("v1", |_| (), Ok, "real-time tasks may run 950ms of every 1s", NONE, NONE),
        row("v1", |f| budget(f, &[("/rt", 50_000)]), Note, "/rt 50ms of 1s; 900ms of 1s are free",
            "a new group has none", "ringfence set GROUP cpu.rt_runtime_us=50ms"),
        row("v1", |f| budget(f, &[("/a", 50_000), ("/b", 900_000)]), Note, "0us of 1s are free",
            "no other group can be given one", "ringfence set /b cpu.rt_runtime_us=50ms"),
        row("v2", |f| drop(f.config.insert("RT_GROUP_SCHED".to_owned(), "y".to_owned())), Attention,
            "this kernel schedules real-time tasks by group", "keeps cpu from being enabled",
            "rt_group_sched=0 on the kernel's command line"),
    ]
}

#[rustfmt::skip]
fn resource_rows() -> Vec<Row> {
    use Level::{Attention, Note, Ok};
    vec![
        row("v2", |_| (), Ok, "swap: 65532K on /dev/vdb, 0 used; swappiness 60", NONE, NONE),
        row("v2", |f| f.memory.swaps.clear(), Ok, "swap: none", NONE, NONE),
        row("v1", |f| f.v1.iter_mut().filter(|at| at.memsw.is_some()).for_each(|at| at.memsw = Some(false)),
            Attention, "swap is not accounted by group", "goes on into swap without bound",
            "swapaccount=1 on the kernel's command line"),
        row("systemd", |f| no_child_file(f, "memory.swap.max"), Attention, "swap is not accounted by group",
            "goes on into swap without bound", "swapaccount=1 on the kernel's command line"),
        row("v2", |_| (), Ok, "huge pages: 2M (0 reserved), 1G (0 reserved)", NONE, NONE),
        row("v2", |f| f.v2.as_mut().unwrap().options = texts(&["nsdelegate"]), Note,
            "mounted without memory_recursiveprot", "none of the groups below it",
            "mount -o remount,nsdelegate,memory_recursiveprot /sys/fs/cgroup"),
        row("v2", |f| f.memory.numa_balancing = Some(0), Ok, "nodes 0-3; automatic NUMA balancing is off",
            NONE, NONE),
        row("v2", |_| (), Note, "nodes 0-3; automatic NUMA balancing is on", "move between nodes",
            "sysctl kernel.numa_balancing=0"),
        row("v1", |f| f.disks.truncate(1), Note, "vda: scheduler none",
            "io.bfq.weight has no effect on vda: its scheduler is none",
            "echo bfq > /sys/block/vda/queue/scheduler"),
        row("v1", |_| (), Note, "vda, vdb: scheduler none",
            "no effect on vda, vdb: their scheduler is none",
            "for d in vda vdb; do echo bfq > /sys/block/$d/queue/scheduler; done"),
        row("v1", |f| f.disks.iter_mut().for_each(|disk| disk.offered.retain(|name| name != "bfq")), Note,
            "vda, vdb: scheduler none", "no effect on vda, vdb", "modprobe bfq && for d in vda vdb; do"),
        row("v2", |f| f.disks.truncate(1), Note, "vda: scheduler none, iocost off",
            "io.weight and io.bfq.weight have no effect on vda",
            "echo \"254:0 enable=1\" > /sys/fs/cgroup/io.cost.qos"),
        row("v2", |f| f.disks[0].iocost = true, Ok, "vda: io.weight works by iocost", NONE, NONE),
        row("v2", |f| f.disks[0].scheduler = Some("bfq".to_owned()), Ok, "vda: io.bfq.weight works by BFQ",
            NONE, NONE),
        row("v2", |f| f.disks[0].partitions = texts(&["vda1", "vda2"]), Note,
            "disks with partitions: vda (vda1, vda2)", "limits the whole disk", NONE),
        row("v1", |_| (), Note, "I/O is limited by cgroup v1", "writes through the page cache are not",
            "cgroup_no_v1=blkio,memory"),
        row("v2", |f| (f.pressure.readable, f.boot) = (Vec::new(), Vec::new()), Note,
            "no pressure stall information (PSI)", "nothing shows how long tasks wait",
            "psi=1 on the kernel's command line"),
        row("v2", |f| (f.pressure.readable, f.boot) = (Vec::new(), texts(&["psi=0"])), Note,
            "no pressure stall information (PSI)", "nothing shows how long tasks wait",
            "remove psi=0 from the kernel's command line"),
        row("v1", |_| (), Note, "pressure stall information: cpu, io, memory; of the machine only",
            "v1 groups have no pressure files",
            "mkdir /sys/fs/cgroup/unified && mount -t cgroup2 cgroup2 /sys/fs/cgroup/unified"),
    ]
}
