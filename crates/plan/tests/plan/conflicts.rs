//! Demands that can't be had, told before anything is written: against what, and with which mend.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use plan::Problem;
use settings::{Controller, Version};

use super::world::{Kind, World, machine, plan_on};

fn told(problems: &[Problem]) -> String {
    format!("{problems:#?}")
}

#[test]
fn a_quota_below_that_of_a_live_group_in_it_is_refused_before_anything_is_written() {
    let world = World::new(Kind::V1, machine(1, 1, 2, 1));
    world.apply("[groups.db]\n\"cpu.max\" = \"80%\"\n[groups.'db/live']\n\"cpu.max\" = \"50%\"\n");
    for (layout, refused) in [
        ("[groups.db]\n\"cpu.max\" = \"20%\"\n", true),
        // named, but its quota is not
        ("[groups.db]\n\"cpu.max\" = \"20%\"\n[groups.'db/live']\n\"cpu.weight\" = 50\n", true),
        ("[groups.db]\n\"cpu.cfs_quota_us\" = 20000\n", true),
        ("[groups.db]\n\"cpu.max\" = \"50%\"\n", false),
        ("[groups.db]\n\"cpu.max\" = \"max\"\n", false),
        ("[groups.db]\n\"cpu.max\" = \"20%\"\n[groups.'db/live']\n\"cpu.max\" = \"20%\"\n", false),
    ] {
        match world.plan(layout) {
            Ok(_) => assert!(!refused, "{layout}"),
            Err(problems) => {
                let text = told(&problems);
                assert!(refused, "{layout}: {text}");
                assert!(text.contains("db/live in it") && text.contains("50 %"), "{text}");
                assert!(text.contains("cpu.max=20%") && text.contains("line: 2"), "{text}");
            }
        }
    }
    // and the kernel would have refused
    assert_eq!(world.file("db/live", Controller::Cpu, "cpu.cfs_quota_us"), "50000");
    world.apply("[groups.db]\n\"cpu.max\" = \"20%\"\n[groups.'db/live']\n\"cpu.max\" = \"20%\"\n");
}

#[test]
fn a_node_that_is_not_there_is_answered_with_those_that_are() {
    for cpus in ["{ node = 9 }", "{ node = 9, count = 2 }"] {
        let layout = format!("[groups.db]\ncpus = {cpus}\n");
        let problems = plan_on(Version::V1, &machine(2, 1, 2, 1), &layout).unwrap_err();
        let text = told(&problems);
        assert!(text.contains("has CPUs on the nodes 0-1"), "{cpus}: {text}");
        assert!(!text.contains("fewer CPUs"), "{cpus}: {text}");
    }
}

#[test]
fn a_chain_of_thousands_of_groups_like_each_other_takes_no_longer_than_as_many_others() {
    let count = 2000;
    let first = "[groups.g0]\ncpus = \"0-1\"\nmems = \"0\"\n".to_owned();
    let (mut chain, mut plain) = (first.clone(), first);
    // each is like the next: the chains are as long as they can be
    for number in 1..count {
        let like = if number == count - 1 { 0 } else { number + 1 };
        let _ = writeln!(chain, "[groups.g{number}]\ncpus = {{ like = \"g{like}\" }}");
        let _ = writeln!(chain, "mems = {{ like = \"g{like}\" }}");
        let _ = writeln!(plain, "[groups.g{number}]\ncpus = \"0-1\"\nmems = \"0\"");
    }
    let machine = machine(1, 1, 4, 1);
    let times = [plain, chain].map(|layout| {
        let start = Instant::now();
        let plan = plan_on(Version::V1, &machine, &layout).unwrap();
        assert_eq!(plan.assignments.len(), count);
        for assignment in &plan.assignments {
            assert_eq!(assignment.cpus.as_ref().unwrap().to_string(), "0-1", "{}", assignment.group);
            assert_eq!(assignment.mems.as_ref().unwrap().to_string(), "0", "{}", assignment.group);
        }
        start.elapsed()
    });
    // far from both noise and what chains took that were followed one by one
    assert!(times[1] < times[0] * 3 + Duration::from_secs(1), "{times:?}");
    eprintln!("{times:?}");
}
