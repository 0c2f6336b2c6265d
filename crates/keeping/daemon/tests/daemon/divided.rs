//! Elastic groups on machines with more than two CPUs: several borrowers of one owner, groups above with CPUs of their own,
//! cores with several threads, and CPUs that go and come.

use std::{fs, path::Path};

use topology::Machine;
use units::CpuSet;

use crate::{
    Case,
    elastic::{allowed, drifts, list, sleeper},
    hotplug::Offline,
    world::{Running, World, eventually},
};

/// The number of cores that are needed.
pub const CORES: usize = 4;

pub const TRIALS: &[Case] = &[
    ("several_groups_borrow_what_one_owner_keeps", lent),
    ("groups_above_have_pools_of_their_own", pools),
    ("elastic_groups_have_whole_cores", whole),
];

pub const OF_CPUS: &[Case] = &[("elastic_groups_go_on_while_cpus_go_and_come", hotplugged)];

/// v1's kernel moves the processes of a group without a CPU to the group above, until an apply.
pub const OF_CPUS_ON_V2: &[Case] = &[("an_offline_cpu_is_nobodys_min_and_is_not_lent", offline)];

/// The online CPUs of each core.
pub fn cores() -> Vec<CpuSet> {
    let machine = Machine::live().unwrap();
    let alone = || machine.online().iter().map(|cpu| CpuSet::range(cpu, cpu)).collect();
    machine.cores().map_or_else(alone, |cores| cores.into_iter().map(|core| core.cpus).collect())
}

fn width() -> usize {
    cores()[0].len()
}

/// Processes that want a CPU each.
fn load(world: &World, group: &str, count: usize) -> Vec<Running> {
    let start = |_| {
        let process = Running::start(Path::new("/bin/sh"), &["-c", "while :; do :; done"]);
        world.put(group, process.pid());
        process
    };
    (0..count).map(start).collect()
}

fn elastic(group: &str, min: usize, max: usize) -> String {
    format!(
        "[groups.\"{group}\"]\ncpus = {{ min = {}, max = {}, weight = 100 }}\n",
        min * width(),
        max * width()
    )
}

fn lent() {
    let mut world = World::new();
    let [owner, one, other] = ["owner", "one", "other"].map(|last| world.group_name(last));
    let text = [elastic(&owner, 2, CORES), elastic(&one, 1, 64), elastic(&other, 1, 64)];
    let [of_owner, of_one, of_other] = text;
    world.write("layout.toml", &format!("{of_owner}{of_one}\"cpu.idle\" = 1\n{of_other}\"cpu.idle\" = 1\n"));
    let daemon = world.daemon(&[]);
    let quiet = [&owner, &one, &other].map(|group| sleeper(&world, group));
    let sets = || quiet.each_ref().map(|process| allowed(process.pid()));
    let lends = || {
        let [owner, one, other] = sets();
        owner.len() == 2 * width() && owner.is_subset(&one) && owner.is_subset(&other)
    };
    eventually("both borrow all that the owner has", lends);
    assert_eq!(drifts(&world), [""; 0]);
    // the owner takes what it needs from what is free, and what it lends stays its own
    let busy = load(&world, &owner, CORES * width());
    eventually("a larger owner", || sets()[0].len() == CORES * width());
    let own = sets()[0].clone();
    eventually("no group without its min", || {
        sets()[1..].iter().all(|set| set.difference(&own).len() >= width())
    });
    daemon.kill();
    assert_eq!(drifts(&world), [""; 0], "legal after a kill");
    let daemon = world.daemon(&[]);
    drop(busy);
    eventually("both borrow all that the owner has, after a kill", lends);
    assert_eq!(drifts(&world), [""; 0]);
    daemon.end();
}

fn pools() {
    let mut world = World::new();
    let [left, right] = ["left", "right"].map(|last| world.group_name(last));
    let cores = cores();
    let pools = [cores[0].union(&cores[1]), cores[2].union(&cores[3])];
    let mut text = String::new();
    for (group, pool) in [&left, &right].into_iter().zip(&pools) {
        text.push_str(&format!("[groups.{group}]\ncpus = \"{pool}\"\n"));
        // two of the first pool share it, in the other one is alone
        let below: &[&str] = if group == &left { &["a", "b"] } else { &["a"] };
        below.iter().for_each(|last| text.push_str(&elastic(&format!("{group}/{last}"), 1, 2)));
    }
    world.write("layout.toml", &text);
    let daemon = world.daemon(&[]);
    let groups = [format!("{left}/a"), format!("{left}/b"), format!("{right}/a")];
    let quiet = groups.each_ref().map(|group| sleeper(&world, group));
    let sets = || quiet.each_ref().map(|process| allowed(process.pid()));
    let are_legal = || {
        let [a, b, other] = sets();
        a.is_subset(&pools[0]) && b.is_subset(&pools[0]) && other.is_subset(&pools[1]) && a.is_disjoint(&b)
    };
    assert!(are_legal(), "{:?}", sets());
    eventually("the least without load", || sets()[2].len() == width());
    let busy = [&groups[0], &groups[2]].map(|group| load(&world, group, 2 * width()));
    eventually("all of its pool", || sets()[2] == pools[1]);
    assert!(are_legal(), "{:?}", sets());
    assert_eq!(sets()[0].len(), width(), "its neighbour has its min");
    assert_eq!(drifts(&world), [""; 0]);
    daemon.kill();
    assert!(are_legal(), "{:?}", sets());
    let daemon = world.daemon(&[]);
    drop(busy);
    eventually("the least without load", || sets()[2].len() == width());
    assert!(are_legal(), "{:?}", sets());
    daemon.end();
}

/// On a machine with two threads a core, each set is made of both.
fn whole() {
    let mut world = World::new();
    let [one, other] = ["one", "other"].map(|last| world.group_name(last));
    // rounded up to whole cores
    let cpus = "cpus = { min = 1, max = 4, weight = 100 }";
    world.write("layout.toml", &format!("[groups.{one}]\n{cpus}\n[groups.{other}]\n{cpus}\n"));
    let daemon = world.daemon(&[]);
    let quiet = [&one, &other].map(|group| sleeper(&world, group));
    let sets = || quiet.each_ref().map(|process| allowed(process.pid()));
    let cores = cores();
    let are_whole = || {
        let is_whole = |set: &CpuSet| cores.iter().all(|core| core.is_subset(set) || core.is_disjoint(set));
        let [one, other] = sets();
        is_whole(&one) && is_whole(&other) && one.is_disjoint(&other)
    };
    assert!(are_whole(), "{:?}", sets());
    let busy = load(&world, &one, 4);
    eventually("its max", || sets()[0].len() == 4.max(width()));
    assert!(are_whole(), "{:?}", sets());
    drop(busy);
    eventually("the least", || sets()[0].len() == width());
    assert!(are_whole(), "{:?}", sets());
    assert_eq!(drifts(&world), [""; 0]);
    daemon.end();
}

fn hotplugged() {
    let mut world = World::new();
    let group = world.group_name("elastic");
    world.write("layout.toml", &elastic(&group, 1, CORES));
    let daemon = world.daemon(&["keep=repair"]);
    let quiet = sleeper(&world, &group);
    let busy = load(&world, &group, CORES * width());
    let set = || allowed(quiet.pid());
    eventually("its max", || set().len() == CORES * width());
    let last = set().iter().filter(|cpu| *cpu != 0).last().unwrap();
    let offline = Offline::new(u32::try_from(last).unwrap());
    eventually("CPUs that are there", || !set().is_empty() && set().is_subset(&online()));
    // on v2 the kernel leaves it
    eventually("a list of these CPUs", || listed(&world, &group).is_subset(&online()));
    // it is resized without that CPU
    eventually("more than the least", || set().len() > width());
    drop(offline);
    eventually("its max again", || set().len() == CORES * width());
    drop(busy);
    eventually("the least", || set().len() == width());
    assert_eq!(drifts(&world), [""; 0], "{}", daemon.log());
    daemon.end();
}

fn online() -> CpuSet {
    fs::read_to_string("/sys/devices/system/cpu/online").unwrap().trim().parse().unwrap()
}

fn listed(world: &World, group: &str) -> CpuSet {
    list(world, group).parse().unwrap()
}

/// Nobody applies the layout again here: what goes and comes is divided without that.
fn offline() {
    let mut world = World::new();
    let groups = ["batch", "one", "other"].map(|last| world.group_name(last));
    let [batch, one, other] = &groups;
    let [of_batch, of_one, of_other] =
        [elastic(batch, 1, 64), elastic(one, 1, CORES), elastic(other, 1, CORES)];
    world.write("layout.toml", &format!("{of_batch}\"cpu.idle\" = 1\n{of_one}{of_other}"));
    let mut daemon = world.daemon(&[]);
    let quiet = groups.each_ref().map(|group| sleeper(&world, group));
    let all = online();
    let sets = || quiet.each_ref().map(|process| allowed(process.pid()));
    let lists = || groups.each_ref().map(|group| listed(&world, group));
    let lends = || {
        let [batch, one, other] = sets();
        batch == online() && one.len() == width() && other.len() == width()
    };
    for is_killed in [false, true] {
        eventually("all CPUs are lent", lends);
        assert_eq!((lists(), online()), (sets(), all.clone()));
        let own = sets()[1].clone();
        assert!(!own.contains(0), "CPU 0 can't go: {own}");
        let gone: Vec<Offline> = own.iter().map(|cpu| Offline::new(u32::try_from(cpu).unwrap())).collect();
        let is_divided = || {
            let [batch, one, other] = lists();
            let both = one.union(&other);
            let is_all_there = batch.union(&both).is_subset(&online()) && one.is_disjoint(&other);
            is_all_there && !one.is_empty() && !other.is_empty() && !batch.difference(&both).is_empty()
        };
        eventually("a division without the CPUs that went", is_divided);
        // what is left is lent again meanwhile
        eventually("tasks and lists alike", || (sets(), drifts(&world)) == (lists(), Vec::new()));
        if is_killed {
            daemon.kill();
            assert_eq!((sets(), drifts(&world)), (lists(), Vec::new()), "after a kill");
            drop(gone);
            assert_eq!(drifts(&world), [""; 0], "after a kill, with all CPUs");
            daemon = world.daemon(&[]);
        } else {
            drop(gone);
        }
        eventually("all CPUs are lent again", lends);
        assert_eq!((lists(), drifts(&world)), (sets(), Vec::new()), "{}", daemon.log());
    }
    daemon.end();
}
