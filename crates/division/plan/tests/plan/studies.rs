//! The studies' layouts on their machines.

use plan::as_cgset;
use settings::Version;

use crate::world::{cpus, machine, plan_on, recorded};

/// One database to a node, as study S1 has it.
fn one_node_each(count: usize) -> String {
    let group =
        |index: usize| format!("[groups.test{}]\ncpus = {{ node = {index} }}\nmems = \"local\"\n", index + 1);
    (0..count).map(group).collect()
}

#[test]
fn the_four_databases_of_study_s1_become_its_eight_commands() {
    let expected = "\
cgset -r cpuset.cpus='0,4,8,12,16,20,24,28' test1
cgset -r cpuset.mems='0' test1
cgset -r cpuset.cpus='1,5,9,13,17,21,25,29' test2
cgset -r cpuset.mems='1' test2
cgset -r cpuset.cpus='2,6,10,14,18,22,26,30' test3
cgset -r cpuset.mems='2' test3
cgset -r cpuset.cpus='3,7,11,15,19,23,27,31' test4
cgset -r cpuset.mems='3' test4
";
    for version in [Version::V1, Version::V2] {
        let plan = plan_on(version, &recorded(&["nehalem-ex.numactl.txt"]), &one_node_each(4)).unwrap();
        assert_eq!(as_cgset(&plan), expected, "{version}");
    }
}

#[test]
fn eight_cpus_for_each_of_four_databases_are_a_node_for_each() {
    let layout: String =
        (1..=4).map(|index| format!("[groups.test{index}]\ncpus = 8\nmems = \"local\"\n")).collect();
    let plan = plan_on(Version::V1, &recorded(&["nehalem-ex.numactl.txt"]), &layout).unwrap();
    let by_node = plan_on(Version::V1, &recorded(&["nehalem-ex.numactl.txt"]), &one_node_each(4)).unwrap();
    assert_eq!(as_cgset(&plan), as_cgset(&by_node));
}

#[test]
fn the_same_layout_on_the_irregular_machine_of_study_s3_follows_its_nodes() {
    let machine = recorded(&["e7-4850.lscpu.txt", "e7-4850.cpu_topology.txt"]);
    let plan = plan_on(Version::V1, &machine, &one_node_each(8)).unwrap();
    for (index, assignment) in plan.assignments.iter().enumerate() {
        assert_eq!(assignment.cpus.as_ref(), machine.cpus_of_node(index));
        assert_eq!(assignment.mems.as_ref().unwrap().to_string(), index.to_string());
    }
    assert_eq!(cpus(&plan)["test1"], "1-10,41-50");
    assert_eq!(cpus(&plan)["test5"], "0,81-89,120-129");
}

#[test]
fn the_same_layout_on_a_virtual_machine_of_four_nodes() {
    let expected = [("test1", "0-1"), ("test2", "2-3"), ("test3", "4-5"), ("test4", "6-7")];
    let plan = plan_on(Version::V2, &machine(4, 1, 2, 1), &one_node_each(4)).unwrap();
    let expected = expected.map(|(group, cpus)| (group.to_owned(), cpus.to_owned()));
    assert_eq!(cpus(&plan), expected.into());
}

#[test]
fn cpus_for_nine_readers_of_study_s3_are_on_one_node_in_whole_cores() {
    let machine = recorded(&["e7-4850.lscpu.txt", "e7-4850.cpu_topology.txt"]);
    let layout = "[groups.slob]\ncpus = { count = 10, smt = \"whole-cores\" }\nmems = \"local\"\n";
    let plan = plan_on(Version::V1, &machine, layout).unwrap();
    let set = plan.assignments[0].cpus.clone().unwrap();
    assert_eq!(machine.nodes_of_cpus(&set).unwrap().len(), 1);
    assert_eq!(machine.with_siblings(&set), Some(set));
}
