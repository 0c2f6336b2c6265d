//! Groups that share CPUs while others are free: the planner keeps a group's CPUs near to each other, and says what that
//! costs.

use plan::LintKind;
use settings::Version;
use topology::Machine;

use crate::world::{cpus, plan_on};

/// Two nodes of four cores; the sibling of CPU 0 is 8.
fn two_nodes() -> Machine {
    let row = |cpu: usize| {
        let (core, node) = (cpu % 8, cpu % 8 / 4);
        format!("{cpu} {node} {node} {core} {core}:{core}:{core}:{node} yes\n")
    };
    let rows: String = (0..16).map(row).collect();
    Machine::from_listing("smt.txt", &format!("CPU NODE SOCKET CORE L1d:L1i:L2:L3 ONLINE\n{rows}")).unwrap()
}

/// What is said of overlaps.
fn overlaps(layout: &str) -> Vec<String> {
    let plan = plan_on(Version::V2, &two_nodes(), layout).unwrap_or_else(|problems| panic!("{problems:#?}"));
    let found = plan.lints.iter().filter(|lint| lint.kind == LintKind::Overlap);
    found.map(|lint| lint.message.clone()).collect()
}

fn layout(groups: &[(&str, &str)]) -> String {
    let group = |(name, cpus): &(&str, &str)| format!("[groups.{name}]\ncpus = {cpus}\n");
    let groups: String = groups.iter().map(group).collect();
    format!("[reserve]\ncpus = 2\n{groups}")
}

#[test]
fn an_overlap_beside_free_cpus_is_named_with_both() {
    for each in ["\"50%\"", "7"] {
        assert_eq!(
            overlaps(&layout(&[("a", each), ("b", each)])),
            ["group 'b' shares the CPUs 4-7,12-13 with group 'a', though 1-3,9-11 are free"]
        );
    }
    assert!(overlaps(&layout(&[("a", "7"), ("b", "{ like = \"a\" }")])).is_empty());
    let three = overlaps(&layout(&[("a", "5"), ("b", "5"), ("c", "5")]));
    assert_eq!(three, ["group 'c' shares the CPUs 4,6 with group 'b', though 11 is free"]);
    // the node that one asks for is full, and what is free elsewhere is nothing to it
    assert_eq!(
        overlaps(&layout(&[("a", "{ count = 7, node = 1 }"), ("b", "{ count = 8, node = 1 }")])),
        [""; 0]
    );
    // of a core that is half free no whole core can be had
    let in_cores = "{ count = 6, smt = \"whole-cores\" }";
    let all = [("a", "{ count = 8, node = 1 }"), ("b", "\"1-3,9-10\""), ("c", in_cores)];
    assert_eq!(overlaps(&layout(&all)), [""; 0]);
}

#[test]
fn who_says_how_it_is_to_be_is_not_warned() {
    let shared = "{ count = 7, pool = \"shared\" }";
    assert_eq!(overlaps(&layout(&[("a", shared), ("b", shared)])), [""; 0]);
    let own = layout(&[("a", "7"), ("b", "{ count = 7, pool = \"exclusive\" }")]);
    assert_eq!(overlaps(&own), [""; 0]);
    let plan = plan_on(Version::V2, &two_nodes(), &own).unwrap();
    let sets = ["a", "b"].map(|group| cpus(&plan)[group].parse::<units::CpuSet>().unwrap());
    assert!(sets[0].is_disjoint(&sets[1]), "{sets:?}");
}

#[test]
fn who_finds_room_apart_is_not_warned() {
    assert_eq!(overlaps(&layout(&[("a", "6"), ("b", "8")])), [""; 0]);
    assert_eq!(overlaps(&layout(&[("a", "14"), ("b", "4")])), [""; 0]);
}
