//! Whole cores on machines whose cores differ in size: hybrid processors (finding D3), or with a CPU offline.

use settings::Version;
use topology::Machine;

use crate::world::{cpus, machine, plan_on, with_small_cores};

/// Three cores of two CPUs, and four of one.
fn hybrid() -> Machine {
    let text = "CPU NODE SOCKET CORE L1d:L1i:L2:L3 ONLINE\n0 0 0 0 0:0:0:0 yes\n1 0 0 0 0:0:0:0 yes\n\
                2 0 0 1 4:4:1:0 yes\n3 0 0 1 4:4:1:0 yes\n4 0 0 2 8:8:2:0 yes\n5 0 0 3 9:9:2:0 yes\n\
                6 0 0 4 10:10:2:0 yes\n7 0 0 5 11:11:2:0 yes\n8 0 0 6 12:12:3:0 yes\n9 0 0 6 12:12:3:0 yes\n";
    Machine::from_listing("hybrid.txt", text).unwrap()
}

#[test]
fn whole_cores_are_had_in_any_number_that_cores_have_together() {
    for (demand, given, why) in [
        ("{ count = 3, smt = \"whole-cores\" }", "0-1,4", "whole cores: 1 of 2 CPUs and 1 of 1 CPU"),
        ("{ count = 6, smt = \"whole-cores\" }", "0-3,8-9", "whole cores: 3 of 2 CPUs"),
        ("{ count = 10, smt = \"whole-cores\" }", "0-9", "whole cores: 3 of 2 CPUs and 4 of 1 CPU"),
        ("{ cores = 3 }", "0-3,8-9", "6 CPUs on node 0, whole cores: 3 of 2 CPUs"),
        ("{ cores = 4 }", "0-4,8-9", "7 CPUs on node 0, whole cores: 3 of 2 CPUs and 1 of 1 CPU"),
        ("{ cores = 7 }", "0-9", "whole cores: 3 of 2 CPUs and 4 of 1 CPU"),
    ] {
        let layout = format!("[groups.a]\ncpus = {demand}\n");
        let plan =
            plan_on(Version::V2, &hybrid(), &layout).unwrap_or_else(|problems| panic!("{problems:#?}"));
        assert_eq!(cpus(&plan)["a"], given, "{demand}");
        let reason = &plan.assignments[0].why;
        assert!(reason.contains(why), "{demand}: {reason}");
    }
}

#[test]
fn cores_by_number_leave_others_what_they_need() {
    for (layout, given) in [
        // the largest first, then those that are left
        (
            "[groups.a]\ncpus = { cores = 3 }\nexclusive = true\n[groups.b]\ncpus = { cores = 3 }\n",
            "a 0-3,8-9, b 4-6",
        ),
        // the small ones, where the large ones would leave too few
        (
            "[groups.a]\ncpus = { cores = 3 }\nexclusive = true\n[groups.b]\ncpus = { count = 6, smt = \"whole-cores\", pool = \"exclusive\" }\n",
            "a 4-6, b 0-3,8-9",
        ),
        ("[groups.p.groups.a]\ncpus = { cores = 2 }\nexclusive = true\n", "p 0-3, p/a 0-3"),
        ("[reserve]\ncpus = { cores = 2 }\n[groups.a]\ncpus = \"all\"\n", "a 0-3,6-9"),
    ] {
        let plan = plan_on(Version::V2, &hybrid(), layout).unwrap_or_else(|problems| panic!("{problems:#?}"));
        let sets: Vec<String> = cpus(&plan).iter().map(|(name, set)| format!("{name} {set}")).collect();
        assert_eq!(sets.join(", "), given, "{layout}");
    }
}

#[test]
fn cores_that_there_are_not_are_refused_with_their_sizes() {
    let uniform = || machine(1, 1, 4, 2);
    for (machine, demand, message, hint) in [
        (
            uniform(),
            "{ count = 3, smt = \"whole-cores\" }",
            "asks for 3 CPUs in whole cores, which have 2 each",
            "ask for 2 or 4",
        ),
        (uniform(), "{ cores = 5 }", "asks for 5 cores; 4 of 4 are left", "ask for at most 4 cores"),
        (hybrid(), "{ cores = 8 }", "asks for 8 cores; 7 of 7 are left", "ask for at most 7 cores"),
        (
            with_small_cores(uniform()),
            "{ count = 5, smt = \"whole-cores\", node = 3 }",
            "asks for 5 CPUs",
            "has CPUs on node 0",
        ),
    ] {
        let layout = format!("[groups.a]\ncpus = {demand}\n");
        let problems = plan_on(Version::V2, &machine, &layout).unwrap_err();
        let (text, advice) = (problems[0].to_string(), problems[0].hint().unwrap_or_default());
        assert!(text.contains(message) && advice.contains(hint), "{demand}: {text}\n{advice}");
    }
    let unknown = Machine::from_listing("lscpu.txt", "CPU(s): 8\nOn-line CPU(s) list: 0-7\n").unwrap();
    let problems = plan_on(Version::V2, &unknown, "[groups.a]\ncpus = { cores = 2 }\n").unwrap_err();
    assert_eq!(
        problems[0].to_string(),
        "group 'a' asks for 2 cores, but which CPUs share a core is not known"
    );
    assert!(problems[0].hint().unwrap().contains("lscpu -e"));
}
