//! Two groups with running tasks exchange their CPUs, as in study S1 (3b): test1 has 0-3 and test2 4-35, then test1 0-31
//! and test2 32-35. No write is refused, no task is without a CPU at any moment, and each stays where its group was or
//! goes. On machines with fewer CPUs, the same at the scale that they have.

use std::{collections::BTreeMap, time::Duration};

use apply::{Running, State, System, execute, undo};
use kernel::{GroupName, Host, Kernel, Real};
use libtest_mimic::Trial;
use settings::{Controller::Cpuset, Version};
use units::CpuSet;

use crate::{
    faulty::{Beside, Faults},
    groups::{Groups, cpus, differences, is_ours_alone, machine, wait_for},
    pipeline::{self, Layout},
    sampler::{Sampler, Watched, all_run},
    world::{Picture, host, meta, target},
};

const GROUPS: [&str; 2] = ["test1", "test2"];
const PROCESSES: usize = 2;
const THREADS: usize = 3;

#[derive(Clone, Copy)]
struct Swap {
    old: [&'static str; 2],
    new: [&'static str; 2],
    /// Of test1 and test2.
    exclusive: [bool; 2],
}

/// What the machine has CPUs for.
pub fn trials(machine: &Host, usual: Option<&'static str>) -> Vec<Trial> {
    let shared = [false, false];
    let study = (["0-3", "4-35"], ["0-31", "32-35"]);
    let two = (["0", "1"], ["1", "0"]);
    let alone = (is_ours_alone(), "a machine of its own");
    let beside = (!is_ours_alone(), "a machine with others");
    let v1 = (machine.hierarchy_of(Cpuset).map(|at| at.version) == Some(Version::V1), "cpuset on v1");
    // the rest of the machine keeps CPUs, too, and its tasks are moved to them; below a unit, that takes Linux 6.7
    let exclusive = [alone, (cpus() > 2, "3 CPUs"), (!machine.needs_unit(), "no systemd")];
    let many = (cpus() >= 36, "36 CPUs");
    let swaps: [(&str, _, _, &[_]); 5] = [
        ("shared_cpus_0_and_1_change_hands_and_no_task_is_ever_without", two, shared, &[]),
        ("exclusive_cpus_0_and_1_change_hands_and_no_task_is_ever_without", two, [true, true], &exclusive),
        (
            "cpus_0_and_1_change_hands_one_of_them_exclusive_but_for_tasks_of_others",
            two,
            [true, false],
            &[beside, v1],
        ),
        ("the_studys_4_and_32_shared_cpus_change_hands_and_no_task_is_ever_without", study, shared, &[many]),
        (
            "the_studys_4_and_32_exclusive_cpus_change_hands_and_no_task_is_ever_without",
            study,
            [true, true],
            &[alone, (cpus() > 36, "37 CPUs")],
        ),
    ];
    let trial = |(name, (old, new), exclusive, needs): (&str, _, _, &[_])| {
        let lacks = usual.or_else(|| crate::lacks(needs));
        crate::where_there(&format!("swap::{name}"), lacks, move || run(Swap { old, new, exclusive }))
    };
    swaps.into_iter().map(trial).collect()
}

fn layout(groups: &Groups, cpus: [&str; 2], exclusive: [bool; 2]) -> Layout {
    let group = |index: usize| {
        let exclusive = if exclusive[index] { "exclusive = true\n" } else { "" };
        format!(
            "[groups.\"{}\"]\ncpus = \"{}\"\nmems = \"all\"\n{exclusive}",
            groups.name(GROUPS[index]),
            cpus[index]
        )
    };
    ("layout.toml", group(0) + &group(1))
}

/// The groups' files, the CPUs that are left to all others, and those of all threads of the machine.
#[derive(Debug, PartialEq, Eq)]
struct State1 {
    picture: Picture,
    affinities: BTreeMap<(u32, u64), CpuSet>,
}

fn state_of(groups: &Groups) -> State1 {
    let (kernel, running) = (Real::new(), Running::new());
    let mut picture = groups.picture();
    for at in kernel.hierarchies().unwrap() {
        for file in ["cpuset.cpus.effective", "cpuset.cpus.isolated"] {
            let text = kernel.read(&at, "", file).unwrap_or_default();
            picture.insert(format!("root {}/{file}", at.id), text);
        }
    }
    let mut affinities = BTreeMap::new();
    // the kernel binds its workers and the rescuers of its work queues to CPUs, and lets them go, as it needs them; nobody
    // else may
    let bound = |pid: u32| kernel.process(pid).is_ok_and(|process| process.bound);
    for pid in kernel.processes().unwrap().into_iter().filter(|pid| !bound(*pid)) {
        for thread in kernel.threads(pid).unwrap_or_default() {
            if let (Ok(started), Ok(cpus)) = (running.started(thread), running.affinity(thread)) {
                affinities.insert((thread, started), cpus);
            }
        }
    }
    State1 { picture, affinities }
}

fn same(before: &State1, after: &State1) {
    let differing = differences(&before.picture, &after.picture);
    assert!(differing.is_empty(), "{differing:#?}");
    if is_ours_alone() {
        // threads come and go
        let moved = before.affinities.iter().filter_map(|(thread, cpus)| {
            let now = after.affinities.get(thread)?;
            let comm = std::fs::read_to_string(format!("/proc/{}/comm", thread.0));
            (now != cpus).then_some((thread, comm, cpus, now))
        });
        let moved: Vec<_> = moved.collect();
        assert!(moved.is_empty(), "threads have other CPUs than before: {moved:?}");
    }
}

/// Exclusive CPUs are refused while a group beside ours has them: other tests may have left some to be removed.
fn wait_for_others() {
    let kernel = Real::new();
    let host = machine();
    let at = host.hierarchy_of(Cpuset).unwrap();
    let has_cpus = |group: &String| {
        let own = group.starts_with("rf-test-apply-swap");
        !own && kernel.read(at, group, "cpuset.cpus").is_ok_and(|cpus| !cpus.trim().is_empty())
    };
    let base = host.base(at).path();
    wait_for("no other group has CPUs", || !kernel.children(at, base).unwrap().iter().any(has_cpus));
}

fn run(swap: Swap) {
    if swap.exclusive[0] {
        wait_for_others();
    }
    let mut groups = Groups::new("swap");
    let directory = tempfile::tempdir().unwrap();
    let state = State::open(directory.path()).unwrap();
    let lock = state.lock(Duration::ZERO).unwrap();
    let at = |cpus| layout(&groups, cpus, swap.exclusive);
    let (old, new) = (at(swap.old), at(swap.new));
    let (host0, system) = (machine(), Running::new());
    let first = planned(&old, target(&host0, &system));
    execute(&lock, target(&host0, &system), &first, &meta("old")).unwrap();

    let threads = GROUPS.map(|group| {
        let workers: Vec<u32> = (0..PROCESSES).map(|_| groups.start(&format!("busy|{THREADS}"))).collect();
        workers.iter().for_each(|pid| groups.put(*pid, group));
        let kernel = Real::new();
        let all = || workers.iter().flat_map(|pid| kernel.threads(*pid).unwrap()).collect::<Vec<u32>>();
        wait_for("all threads are there", || all().len() == PROCESSES * THREADS);
        all()
    });
    let watched: Vec<Watched> = (0..2)
        .map(|index| {
            let name = GroupName::new(&groups.name(GROUPS[index])).unwrap();
            let seat = groups.host.seat(&name, Cpuset).unwrap();
            let files = ["cpuset.cpus", "cpuset.cpus.effective", "cpuset.effective_cpus"];
            let files = files.map(|file| seat.directory().join(file));
            let union =
                |one: &str, other: &str| one.parse::<CpuSet>().unwrap().union(&other.parse().unwrap());
            Watched {
                group: GROUPS[index].to_owned(),
                threads: threads[index].clone(),
                files: files.into_iter().filter(|file| file.exists()).collect(),
                within: union(swap.old[index], swap.new[index]),
            }
        })
        .collect();
    let all: Vec<u32> = threads.concat();
    let before = state_of(&groups);

    let sampler = Sampler::start(watched.clone());
    let faults = Faults::looking(sampler.whole_round());
    let (host, beside) = (host(Real::new(), &faults), Beside::real(&faults));
    let plan = planned(&new, target(&host, &beside));
    let result = execute(&lock, target(&host, &beside), &plan, &meta("new"));
    let changes = faults.count();
    let (samples, lists) = sampler.stop();
    let outcome = result.unwrap();
    assert!(outcome.differences.is_empty(), "{:?}", outcome.differences);
    has(&groups, swap.new, swap.exclusive);
    all_run(&all);
    assert!(planned(&new, target(&host, &beside)).steps.is_empty(), "it is as asked");
    for (group, cpus) in GROUPS.iter().zip(swap.old).chain(GROUPS.iter().zip(swap.new)) {
        let cpus: CpuSet = cpus.parse().unwrap();
        assert!(lists.contains_key(&((*group).to_owned(), cpus.to_string())), "{group} {cpus}: {lists:?}");
    }

    let sampler = Sampler::start(watched);
    let faults = Faults::looking(sampler.whole_round());
    let (host, beside) = (crate::world::host(Real::new(), &faults), Beside::real(&faults));
    let result = undo(&lock, target(&host, &beside), None, &meta("undo"));
    let undone = faults.count();
    let (more, _) = sampler.stop();
    let outcome = result.unwrap();
    assert!(outcome.left.is_empty(), "{:?}", outcome.left);
    has(&groups, swap.old, swap.exclusive);
    all_run(&all);
    same(&before, &state_of(&groups));
    eprintln!(
        "{changes} changes and {samples} samples there, {undone} changes and {more} samples back, {} threads; lists {lists:?}",
        all.len()
    );
    groups.end_processes();
    let outcome = undo(&lock, target(&host0, &system), None, &meta("undo")).unwrap();
    assert!(outcome.left.is_empty(), "{:?}", outcome.left);
}

/// On a machine that is not the tests' own, tasks of others stay where they are.
fn planned(layout: &Layout, target: apply::Target<'_>) -> plan::Plan {
    let mut plan = pipeline::plan(layout, target);
    if !is_ours_alone() {
        plan.steps.retain(|step| !matches!(step.action, plan::Action::MoveTasksAway { .. }));
    }
    plan
}

/// The kernel holds these CPUs, and keeps them for the group.
fn has(groups: &Groups, cpus: [&str; 2], exclusive: [bool; 2]) {
    for index in 0..2 {
        let name = GroupName::new(&groups.name(GROUPS[index])).unwrap();
        let seat = groups.host.seat(&name, Cpuset).unwrap();
        let read = |file: &str| groups.host.read(&seat, &name, file).unwrap().trim().to_owned();
        assert_eq!(read("cpuset.cpus"), cpus[index]);
        let (file, on) = match seat.at.version {
            Version::V1 => ("cpuset.cpu_exclusive", "1"),
            Version::V2 => ("cpuset.cpus.partition", "root"),
        };
        assert_eq!(read(file) == on, exclusive[index], "{file} of {name}");
    }
}
