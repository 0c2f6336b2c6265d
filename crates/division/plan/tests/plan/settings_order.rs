//! The order of limits between which the kernel keeps a rule: a quota and its period, memory and memory plus swap, each
//! in both directions, and down and up a tree. Every plan is carried out on the in-memory kernel, which refuses what
//! real ones refuse, and the other order is shown to be refused.

use kernel::GroupName;
use plan::{Action, Plan};
use settings::Controller;

use crate::world::{Kind, World, machine};

fn world() -> World {
    World::new(Kind::V1, machine(1, 1, 4, 1))
}

/// Place, file and text of every write.
fn writes(plan: &Plan) -> Vec<(String, String, String)> {
    let written = plan.steps.iter().filter_map(|step| match &step.action {
        Action::Write { place, file, text, .. } => {
            Some((place.path.clone(), file.clone(), text.trim().to_owned()))
        }
        _ => None,
    });
    written.collect()
}

fn shown(plan: &Plan) -> Vec<String> {
    writes(plan).into_iter().map(|(path, file, text)| format!("{path} {file}={text}")).collect()
}

/// From the one layout to the other: what is written, which the kernel takes in this order; and does it refuse the
/// same writes in the opposite one?
fn change(from: &str, to: &str, controller: Controller) -> (Vec<String>, bool) {
    let world = world();
    world.apply(from);
    let plan = world.apply(to);
    world.is_done(to);
    (shown(&plan), refuses_reversed(from, &plan, controller))
}

fn refuses_reversed(from: &str, plan: &Plan, controller: Controller) -> bool {
    let world = world();
    world.apply(from);
    let at = world.host.hierarchy_of(controller).unwrap();
    let mut reversed = writes(plan);
    reversed.reverse();
    reversed.iter().any(|(path, file, text)| world.host.kernel().write(at, path, file, text).is_err())
}

/// A group with 50 % in one that has no more than that itself.
fn shares(quota: u64, period: u64) -> String {
    format!(
        "[groups.db]\ncpu.max = \"50%\"\n[groups.\"db/a\"]\n\"cpu.cfs_period_us\" = {period}\n\"cpu.cfs_quota_us\" = {quota}\n"
    )
}

#[test]
fn of_quota_and_period_that_comes_first_which_keeps_the_share_within_the_parents() {
    let quota = |quota: u64| format!("db/a cpu.cfs_quota_us={quota}");
    let period = |period: u64| format!("db/a cpu.cfs_period_us={period}");
    // both shrink: a shorter period first would be a larger share
    let (written, refused) = change(&shares(50_000, 100_000), &shares(5_000, 10_000), Controller::Cpu);
    assert_eq!(written, [quota(5_000), period(10_000)]);
    assert!(refused);
    // both grow: a longer quota first would be
    let (written, refused) = change(&shares(5_000, 10_000), &shares(50_000, 100_000), Controller::Cpu);
    assert_eq!(written, [period(100_000), quota(50_000)]);
    assert!(refused);
}

#[test]
fn a_quota_shrinks_from_the_bottom_and_grows_from_the_top() {
    let layout = |share: &str| {
        format!("[groups.db]\ncpu.max = \"{share}\"\n[groups.\"db/a\"]\ncpu.max = \"{share}\"\n")
    };
    let (written, refused) = change(&layout("50%"), &layout("20%"), Controller::Cpu);
    assert_eq!(written, ["db/a cpu.cfs_quota_us=20000", "db cpu.cfs_quota_us=20000"]);
    assert!(refused);
    let (written, refused) = change(&layout("20%"), &layout("50%"), Controller::Cpu);
    assert_eq!(written, ["db cpu.cfs_quota_us=50000", "db/a cpu.cfs_quota_us=50000"]);
    assert!(refused);
}

#[test]
fn memory_comes_before_memory_plus_swap_when_it_shrinks_and_after_it_when_it_grows() {
    let layout = |memory: &str, both: &str| {
        format!(
            "[groups.db]\n\"memory.limit_in_bytes\" = \"{memory}\"\n\"memory.memsw.limit_in_bytes\" = \"{both}\"\n"
        )
    };
    let memory = |gib: u64| format!("db memory.limit_in_bytes={}", gib << 30);
    let both = |gib: u64| format!("db memory.memsw.limit_in_bytes={}", gib << 30);
    let (written, refused) = change(&layout("3G", "4G"), &layout("1G", "2G"), Controller::Memory);
    assert_eq!(written, [memory(1), both(2)]);
    assert!(refused);
    let (written, refused) = change(&layout("1G", "2G"), &layout("3G", "4G"), Controller::Memory);
    assert_eq!(written, [both(4), memory(3)]);
    assert!(refused);
    // a new group has no limits yet
    let world = world();
    let plan = world.apply(&layout("1G", "1G"));
    assert_eq!(shown(&plan), [memory(1), both(1)]);
    // and none again: memory plus swap first
    let gone = world.apply(&layout("max", "max"));
    let files: Vec<String> = writes(&gone).into_iter().map(|(_, file, _)| file).collect();
    assert_eq!(files, ["memory.memsw.limit_in_bytes", "memory.limit_in_bytes"]);
}

#[test]
fn the_order_does_not_depend_on_that_of_the_layout() {
    let world = world();
    let plan = world.apply(
        "[groups.db]\n\"memory.memsw.limit_in_bytes\" = \"2G\"\n\"memory.limit_in_bytes\" = \"1G\"\n\"cpu.cfs_quota_us\" = 5000\n\"cpu.cfs_period_us\" = 10000\n",
    );
    let files: Vec<String> = writes(&plan).into_iter().map(|(_, file, _)| file).collect();
    let at = |file: &str| files.iter().position(|other| other == file).unwrap();
    assert!(at("memory.limit_in_bytes") < at("memory.memsw.limit_in_bytes"), "{files:?}");
    let group = GroupName::new("db").unwrap();
    let seat = world.host.seat(&group, Controller::Cpu).unwrap();
    assert_eq!(world.host.read(&seat, &group, "cpu.cfs_quota_us").unwrap().trim_end(), "5000");
    assert_eq!(world.host.read(&seat, &group, "cpu.cfs_period_us").unwrap().trim_end(), "10000");
}

#[test]
fn on_v2_quota_and_period_are_one_write() {
    for kind in [Kind::V2, Kind::V2Exclusive] {
        let world = World::new(kind, machine(1, 1, 4, 1));
        let layout = "[groups.db]\ncpu.max = \"5ms/10ms\"\n";
        let plan = world.apply(layout);
        assert_eq!(shown(&plan), ["db cpu.max=5000 10000"], "{kind:?}");
        world.is_done(layout);
    }
}

#[test]
fn on_v2_swap_falls_before_memory_does_and_rises_behind_it() {
    let layout = |memory: &str, swap: &str| {
        format!("[groups.db]\nmemory.max = \"{memory}\"\nmemory.swap.max = {swap}\n")
    };
    let (wide, narrow) = (layout("8M", "\"8M\""), layout("4M", "0"));
    let combined =
        "[groups.db]\nmemory.limit_in_bytes = \"4M\"\nmemory.memsw.limit_in_bytes = \"4M\"\n".to_owned();
    let order = |from: &str, to: &str| {
        let world = World::new(Kind::V2, machine(1, 1, 4, 1));
        world.apply(from);
        let plan = world.apply(to);
        world.is_done(to);
        let files: Vec<String> = writes(&plan).into_iter().map(|(_, file, _)| file).collect();
        files
    };
    let (swap, memory) = ("memory.swap.max", "memory.max");
    assert_eq!(order(&wide, &narrow), [swap, memory]);
    assert_eq!(order(&narrow, &wide), [memory, swap]);
    assert_eq!(order(&layout("8M", "0"), &layout("4M", "\"8M\"")), [swap, memory]);
    assert_eq!(order(&layout("4M", "\"8M\""), &layout("8M", "0")), [memory, swap]);
    assert_eq!(order(&wide, &combined), [swap, memory]);
    assert_eq!(order("[groups.db]\nmemory.high = \"9M\"\n", &narrow), [swap, memory]);
}
