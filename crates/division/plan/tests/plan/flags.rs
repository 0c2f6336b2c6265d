//! v1's `cpuset.cpu_exclusive` by its own name: it forbids siblings to name the same CPUs, and does nothing else. What
//! keeps tasks of the groups above off is `exclusive`.

use layout::Source;
use plan::{Action, Plan, Problem};

use crate::world::{Kind, World, machine};

fn world(kind: Kind) -> World {
    World::new(kind, machine(1, 1, 2, 1))
}

fn cgconfig(world: &World, text: &str) -> Result<Plan, Vec<Problem>> {
    let reading = layout::read(&[Source::new("cgconfig.conf", text)]);
    world.plan_of(&reading.desired.unwrap())
}

fn writes(plan: &Plan) -> Vec<String> {
    let write = |action: &Action| match action {
        Action::Write { place, file, text, .. } => Some(format!("{} {file}={}", place.path, text.trim())),
        _ => None,
    };
    plan.steps.iter().filter_map(|step| write(&step.action)).collect()
}

fn moves_tasks(plan: &Plan) -> bool {
    plan.steps.iter().any(|step| matches!(step.action, Action::MoveTasksAway { .. }))
}

const BOTH: &str = "group httpd { cpuset { cpuset.cpus = 0; cpuset.mems = 0; cpuset.cpu_exclusive = 1; } }\n\
    group php { cpuset { cpuset.cpus = 1; cpuset.mems = 0; cpuset.cpu_exclusive = 1; } }\n";

#[test]
fn groups_with_the_flag_may_name_all_cpus_and_no_task_is_moved() {
    let world = world(Kind::V1);
    world.put_task_in("/", settings::Controller::Cpuset);
    let plan = cgconfig(&world, BOTH).unwrap();
    assert!(!moves_tasks(&plan), "{:#?}", plan.steps);
    let written = writes(&plan);
    for line in ["httpd cpuset.cpu_exclusive=1", "php cpuset.cpu_exclusive=1", "php cpuset.cpus=1"] {
        assert!(written.contains(&line.to_owned()), "{written:#?}");
    }
    world.carry_out(&plan);
    let again = cgconfig(&world, BOTH).unwrap();
    assert_eq!(writes(&again), [""; 0]);
    assert!(again.decided.iter().any(|step| matches!(
        &step.action,
        Action::Write { file, text, .. } if file == "cpuset.cpu_exclusive" && text == "1"
    )));
    // without it, the flag goes
    let plan =
        cgconfig(&world, &BOTH.replace("cpuset.cpu_exclusive = 1", "cpuset.cpu_exclusive = 0")).unwrap();
    assert_eq!(writes(&plan).len(), 2, "{:#?}", plan.steps);
    world.carry_out(&plan);
    assert_eq!(world.file("httpd", settings::Controller::Cpuset, "cpuset.cpu_exclusive"), "0");
}

#[test]
fn a_layout_says_the_flag_by_its_name_and_exclusive_by_its_key() {
    let world = world(Kind::V1);
    world.put_task_in("/", settings::Controller::Cpuset);
    let by_name = world.plan("[groups.a]\ncpus = \"1\"\ncpuset.cpu_exclusive = 1\n").unwrap();
    assert!(!moves_tasks(&by_name), "{:#?}", by_name.steps);
    let by_key = world.plan("[groups.a]\ncpus = \"1\"\nexclusive = true\n").unwrap();
    assert!(moves_tasks(&by_key), "{:#?}", by_key.steps);
    let all = "[groups.a]\ncpus = \"0\"\nexclusive = true\n[groups.b]\ncpus = \"1\"\nexclusive = true\n";
    let problems = world.plan(all).unwrap_err();
    assert!(problems.iter().any(|problem| problem.to_string().contains("other tasks")), "{problems:#?}");
}

#[test]
fn siblings_that_name_the_same_cpus_are_refused_and_others_get_the_rest() {
    let world = world(Kind::V1);
    let problems = cgconfig(&world, &BOTH.replace("cpuset.cpus = 1", "cpuset.cpus = 0-1")).unwrap_err();
    assert!(!problems.is_empty());
    // chosen CPUs are others
    let plan = world.apply("[groups.a]\ncpus = \"0\"\ncpuset.cpu_exclusive = 1\n[groups.b]\ncpus = 1\n");
    assert_eq!(world.cpus("b"), "1", "{:#?}", plan.steps);
}

#[test]
fn the_flag_needs_that_of_the_group_above() {
    let world = world(Kind::V1);
    let below = "group a/b { cpuset { cpuset.cpus = 1; cpuset.mems = 0; cpuset.cpu_exclusive = 1; } }\n";
    let above = "group a { cpuset { cpuset.cpus = 0-1; cpuset.mems = 0; } }\n";
    let problems = cgconfig(&world, &format!("{above}{below}")).unwrap_err();
    let text = problems[0].to_string();
    assert!(
        text.contains("'a/b' gets cpuset.cpu_exclusive, which needs it of group 'a' too"),
        "{problems:#?}"
    );
    let above = above.replace("cpuset.mems = 0;", "cpuset.mems = 0; cpuset.cpu_exclusive = 1;");
    let plan = cgconfig(&world, &format!("{above}{below}")).unwrap();
    world.carry_out(&plan);
    assert!(!moves_tasks(&plan));
}

#[test]
fn on_v2_it_is_a_partition() {
    let world = world(Kind::V2);
    let plan = cgconfig(&world, BOTH.split_inclusive('\n').next().unwrap()).unwrap();
    assert!(writes(&plan).contains(&"httpd cpuset.cpus.partition=root".to_owned()), "{:#?}", plan.steps);
}

#[test]
fn cpus_that_a_foreign_group_has_for_itself_are_not_chosen() {
    for kind in [Kind::V1, Kind::V2] {
        let world = World::new(kind, machine(1, 1, 4, 1));
        let at = world.host.hierarchy_of(settings::Controller::Cpuset).unwrap();
        let kernel = world.host.kernel();
        if kind != Kind::V1 {
            kernel.write(at, "", "cgroup.subtree_control", "+cpuset").unwrap();
        }
        kernel.mkdir(at, "theirs").unwrap();
        kernel.write(at, "theirs", "cpuset.mems", "0").unwrap();
        kernel.write(at, "theirs", "cpuset.cpus", "0-1").unwrap();
        let (file, on) = match kind {
            Kind::V1 => ("cpuset.cpu_exclusive", "1"),
            _ => ("cpuset.cpus.partition", "root"),
        };
        kernel.write(at, "theirs", file, on).unwrap();
        world.apply("[groups.mine]\ncpus = 1\n[groups.more]\ncpus = { count = 2, pool = \"shared\" }\n");
        for group in ["mine", "more"] {
            let cpus: units::CpuSet = world.cpus(group).parse().unwrap();
            assert!(cpus.is_disjoint(&"0-1".parse().unwrap()), "{kind:?} {group} {cpus}");
        }
        world.is_done("[groups.mine]\ncpus = 1\n[groups.more]\ncpus = { count = 2, pool = \"shared\" }\n");
        let problems = world.plan("[groups.mine]\ncpus = \"1\"\n").unwrap_err();
        let text = problems[0].to_string();
        assert!(
            text.contains("'mine' gets cpuset.cpus 1, but group /theirs, which the layout does not name, has these for itself"),
            "{kind:?}: {text}"
        );
    }
}

#[test]
fn the_flag_of_memory_nodes_is_recorded_when_it_is_so_already() {
    let world = world(Kind::V1);
    // the kernel takes every number that is not 0
    let text = "group a { cpuset { cpuset.cpus = 0; cpuset.mems = 0; cpuset.mem_exclusive = 2; } }\n";
    world.carry_out(&cgconfig(&world, text).unwrap());
    let again = cgconfig(&world, text).unwrap();
    assert_eq!(writes(&again), [""; 0]);
    let is_it = |action: &Action| matches!(action, Action::Write { file, text, .. } if file == "cpuset.mem_exclusive" && text == "1");
    assert!(again.decided.iter().any(|step| is_it(&step.action)), "{:#?}", again.decided);
}
