//! CPUs reserved for the rest of the system in whole cores: how many that are, and what is said where there are not so many.

use settings::Version;
use units::CpuSet;

use crate::world::{cpus, machine, plan_on, recorded};

#[test]
fn a_core_of_its_own_beside_a_reserved_one_is_planned_with_two_threads_a_core() {
    let machine = recorded(&["e7-4850.lscpu.txt", "e7-4850.cpu_topology.txt"]);
    let layout = include_str!("../../../../../studies/layouts/s4-exclusive.toml");
    for version in [Version::V1, Version::V2] {
        let plan = plan_on(version, &machine, layout).unwrap();
        let own: CpuSet = cpus(&plan)["realtime"].parse().unwrap();
        assert_eq!(own.len(), 2, "{version}: {own}");
        assert_eq!(machine.with_siblings(&own), Some(own.clone()), "{version}: {own}");
        // the first core is reserved
        assert!(!own.contains(0) && !own.contains(120), "{version}: {own}");
    }
}

#[test]
fn a_share_reserved_in_whole_cores_is_whole_cores() {
    // 7 of 70 CPUs, in cores of two: three cores
    let layout = "[reserve]\ncpus = { count = \"10%\", smt = \"whole-cores\" }\n[groups.a]\ncpus = \"all\"\n";
    let plan = plan_on(Version::V2, &machine(1, 1, 35, 2), layout).unwrap();
    assert_eq!(cpus(&plan)["a"], "6-69");
    // and one core at least
    let plan = plan_on(Version::V2, &machine(1, 1, 4, 2), layout).unwrap();
    assert_eq!(cpus(&plan)["a"], "2-7");
}

#[test]
fn what_cannot_be_reserved_is_refused_with_what_could_be() {
    let named = "[groups.a]\ncpus = \"1-6\"\n";
    let cases = [
        (
            "{ count = 1, smt = \"whole-cores\" }",
            "",
            "1 CPU in whole cores is to be reserved, and a core has 2",
            "reserve 2",
        ),
        (
            "{ count = 3, smt = \"whole-cores\" }",
            "",
            "3 CPUs in whole cores are to be reserved, and a core has 2",
            "reserve 2 or 4",
        ),
        ("9", "", "9 CPUs are to be reserved, but there are only 8", "reserve 1 fewer"),
        (
            "3",
            named,
            "3 CPUs are to be reserved, but only 2 are named by no group",
            "reserve fewer, or name fewer CPUs by number",
        ),
        (
            "{ count = 2, smt = \"whole-cores\" }",
            named,
            "2 CPUs in whole cores are to be reserved, but only 0 are named by no group",
            "reserve fewer, or name fewer CPUs by number",
        ),
        (
            "{ cores = 1 }",
            named,
            "1 core is to be reserved, but only 0 are named by no group",
            "reserve fewer, or name fewer CPUs by number",
        ),
        ("{ cores = 5 }", "", "5 cores are to be reserved, but there are only 4", "reserve 1 fewer"),
        (
            "{ count = 5, node = 1 }",
            "",
            "5 CPUs of node 1 are to be reserved, but there are only 4",
            "reserve 1 fewer",
        ),
    ];
    for (reserve, groups, message, hint) in cases {
        let layout = format!("[reserve]\ncpus = {reserve}\n{groups}[groups.b]\n");
        let problems = plan_on(Version::V2, &machine(2, 1, 2, 2), &layout).unwrap_err();
        let said = (problems[0].to_string(), problems[0].hint().unwrap_or_default());
        assert_eq!(said, (message.to_owned(), hint.to_owned()), "{layout}");
    }
}
