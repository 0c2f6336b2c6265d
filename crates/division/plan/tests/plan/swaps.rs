//! Sets that change hands, with tasks in the groups: every state on the way is looked at.

use plan::{Action, Plan};
use settings::Controller;

use crate::world::{KINDS, Kind, World, machine};

/// Study S1.3b: 4 CPUs against 32, and the other way round.
fn study(first: &str, second: &str, exclusive: bool) -> String {
    let flag = if exclusive { "exclusive = true\n" } else { "" };
    format!(
        "[groups.test1]\ncpus = \"{first}\"\nmems = \"0\"\n{flag}[groups.test2]\ncpus = \"{second}\"\nmems = \"0\"\n{flag}"
    )
}

fn world(kind: Kind) -> World {
    World::new(kind, machine(1, 4, 8, 2))
}

/// File and text of every write.
fn writes(plan: &Plan) -> Vec<String> {
    let written = plan.steps.iter().filter_map(|step| match &step.action {
        Action::Write { place, file, text, .. } => Some(format!("{} {file}={}", place.path, text.trim())),
        _ => None,
    });
    written.collect()
}

#[test]
fn the_studys_swap_takes_one_write_a_group_and_stays_exclusive_throughout() {
    for kind in KINDS {
        for exclusive in [false, true] {
            let world = world(kind);
            world.apply(&study("0-3", "4-35", exclusive));
            world.put_task_in("test1", Controller::Cpuset);
            world.put_task_in("test2", Controller::Cpuset);
            for (first, second) in [("0-31", "32-35"), ("0-3", "4-35")] {
                let plan = world.apply(&study(first, second, exclusive));
                let sets: Vec<String> =
                    writes(&plan).into_iter().filter(|write| !write.contains(".exclusive=")).collect();
                assert_eq!(sets.len(), 2, "{kind:?} {exclusive}: {sets:#?}");
                assert_eq!((world.cpus("test1").as_str(), world.cpus("test2").as_str()), (first, second));
                world.is_done(&study(first, second, exclusive));
            }
        }
    }
}

#[test]
fn two_sets_that_change_places_wholly_give_up_being_exclusive_on_the_way() {
    for kind in KINDS {
        let world = world(kind);
        world.apply(&study("0-3", "4-7", true));
        world.put_task_in("test1", Controller::Cpuset);
        world.put_task_in("test2", Controller::Cpuset);
        let plan = world.apply(&study("4-7", "0-3", true));
        assert_eq!((world.cpus("test1").as_str(), world.cpus("test2").as_str()), ("4-7", "0-3"));
        let (file, off, on) = match kind {
            Kind::V1 => ("cpuset.cpu_exclusive", "0", "1"),
            Kind::V2 | Kind::V2Exclusive | Kind::V2Firm => ("cpuset.cpus.partition", "member", "root"),
        };
        let flags: Vec<String> = writes(&plan).into_iter().filter(|write| write.contains(file)).collect();
        let count = |value: &str| flags.iter().filter(|write| write.ends_with(&format!("={value}"))).count();
        assert_eq!((count(off), count(on)), (2, 2), "{kind:?}: {flags:#?}");
        world.is_done(&study("4-7", "0-3", true));
    }
}

#[test]
fn three_sets_in_a_circle_move_by_what_they_keep() {
    for kind in KINDS {
        let world = world(kind);
        let layout = |sets: [&str; 3]| -> String {
            let group = |(index, set): (usize, &&str)| {
                format!("[groups.g{index}]\ncpus = \"{set}\"\nmems = \"0\"\nexclusive = true\n")
            };
            sets.iter().enumerate().map(group).collect()
        };
        world.apply(&layout(["0-3", "4-7", "8-11"]));
        (0..3).for_each(|index| {
            world.put_task_in(&format!("g{index}"), Controller::Cpuset);
        });
        let plan = world.apply(&layout(["2-5", "6-9", "0-1,10-11"]));
        let flags = writes(&plan)
            .into_iter()
            .filter(|write| write.contains("partition=") || write.contains("cpu_exclusive="));
        assert_eq!(flags.count(), 0, "{kind:?}: none gives up being exclusive: {:#?}", writes(&plan));
        world.is_done(&layout(["2-5", "6-9", "0-1,10-11"]));
    }
}

#[test]
fn a_parent_that_moves_takes_its_groups_along_by_way_of_both_sets() {
    let layout = |parent: &str, child: &str, flag: &str| {
        format!(
            "[groups.db]\ncpus = \"{parent}\"\nmems = \"0\"\n{flag}[groups.\"db/a\"]\ncpus = \"{child}\"\nmems = \"0\"\n{flag}"
        )
    };
    for kind in KINDS {
        for flag in ["", "exclusive = true\n"] {
            let world = world(kind);
            world.apply(&layout("0-7", "0-3", flag));
            world.put_task_in("db/a", Controller::Cpuset);
            let plan = world.apply(&layout("8-15", "8-11", flag));
            let sets: Vec<String> =
                writes(&plan).into_iter().filter(|write| write.contains("cpuset.cpus=")).collect();
            assert_eq!(
                sets,
                ["db cpuset.cpus=0-15", "db/a cpuset.cpus=8-11", "db cpuset.cpus=8-15"],
                "{kind:?} {flag}"
            );
            world.is_done(&layout("8-15", "8-11", flag));
        }
    }
}

#[test]
fn a_parent_that_shrinks_waits_for_its_groups_and_one_that_grows_goes_first() {
    let layout = |parent: &str, child: &str| {
        format!(
            "[groups.db]\ncpus = \"{parent}\"\nmems = \"0\"\n[groups.\"db/a\"]\ncpus = \"{child}\"\nmems = \"0\"\n"
        )
    };
    for kind in KINDS {
        let world = world(kind);
        world.apply(&layout("0-7", "4-7"));
        world.put_task_in("db/a", Controller::Cpuset);
        let shrunk = world.apply(&layout("0-3", "2-3"));
        let expected = ["db/a cpuset.cpus=2-3", "db cpuset.cpus=0-3"];
        assert_eq!(writes(&shrunk), expected, "{kind:?}");
        let grown = world.apply(&layout("0-15", "8-15"));
        assert_eq!(writes(&grown), ["db cpuset.cpus=0-15", "db/a cpuset.cpus=8-15"], "{kind:?}");
    }
}

#[test]
fn memory_nodes_move_before_cpus_and_children_never_outrun_their_parents() {
    let layout = |node: usize| {
        format!(
            "[groups.db]\ncpus = {{ node = {node} }}\nmems = \"local\"\n[groups.\"db/a\"]\ncpus = \"all\"\nmems = \"all\"\n"
        )
    };
    for kind in KINDS {
        let world = World::new(kind, machine(2, 1, 4, 1));
        world.apply(&layout(0));
        world.put_task_in("db/a", Controller::Cpuset);
        let plan = world.apply(&layout(1));
        let expected = [
            "db cpuset.mems=0-1",
            "db/a cpuset.mems=1",
            "db cpuset.mems=1",
            "db cpuset.cpus=0-7",
            "db/a cpuset.cpus=4-7",
            "db cpuset.cpus=4-7",
        ];
        assert_eq!(writes(&plan), expected, "{kind:?}");
    }
}

#[test]
fn a_group_that_is_no_longer_exclusive_opens_before_others_come_in() {
    for kind in KINDS {
        let world = world(kind);
        world.apply(&study("0-3", "4-7", true));
        world.put_task_in("test1", Controller::Cpuset);
        world.apply(&study("0-7", "4-7", false));
        assert_eq!(world.cpus("test1"), "0-7");
        world.is_done(&study("0-7", "4-7", false));
    }
}

#[test]
fn an_exclusive_group_inside_another_one_is_closed_from_the_top_and_opened_from_the_bottom() {
    let exclusive =
        "[groups.db]\ncpus = 8\nmems = \"0\"\n[groups.\"db/rt\"]\ncpus = 2\nexclusive = true\nmems = \"0\"\n";
    let open = "[groups.db]\ncpus = 8\nmems = \"0\"\n[groups.\"db/rt\"]\ncpus = 2\nmems = \"0\"\n";
    for kind in [Kind::V1, Kind::V2] {
        let world = world(kind);
        world.apply(open);
        world.put_task_in("db/rt", Controller::Cpuset);
        world.apply(exclusive);
        world.is_done(exclusive);
        world.apply(open);
        world.is_done(open);
    }
}

#[test]
fn tasks_of_the_groups_above_are_told_to_leave_exclusive_cpus_on_v1_only() {
    for kind in KINDS {
        let world = world(kind);
        let plan = world.apply("[groups.rt]\ncpus = \"2-3\"\nexclusive = true\n");
        let away: Vec<&Action> = plan
            .steps
            .iter()
            .map(|step| &step.action)
            .filter(|action| matches!(action, Action::MoveTasksAway { .. }))
            .collect();
        match (kind, away.as_slice()) {
            (Kind::V1, [Action::MoveTasksAway { place, cpus, to }]) => {
                assert_eq!(
                    (place.path.as_str(), cpus.to_string(), to.to_string()),
                    ("", "2-3".to_owned(), "0-1,4-63".to_owned())
                );
            }
            (Kind::V1, other) => panic!("{other:?}"),
            (_, other) => assert!(other.is_empty(), "{other:?}"),
        }
    }
}
