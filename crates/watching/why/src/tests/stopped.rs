//! Frozen groups, groups without CPUs, limits of tasks, invalid partitions.

use super::*;

#[test]
fn a_group_without_cpus_or_nodes_takes_no_tasks() {
    let mut facts = facts();
    facts.tasks = 0;
    facts.levels[0].cpus = Some(CpuSet::new());
    let cause = only(&facts);
    assert_eq!((cause.kind, cause.effect, cause.lost), (Kind::NoCpus, Effect::Refused, None));
    assert_eq!(cause.hint.unwrap(), "ringfence set db/oltp cpuset.cpus=0-3");
    facts.levels[0].mems = Some(NodeSet::new());
    assert_eq!(only(&facts).hint.unwrap(), "ringfence set db/oltp cpuset.cpus=0-3 cpuset.mems=0");
}

#[test]
fn a_frozen_group_stands_before_everything_else_and_the_highest_is_thawed() {
    let mut facts = facts();
    set_quota(&mut facts.levels[0], Duration::from_secs(60));
    facts.levels[0].frozen = (true, true);
    facts.levels[0].failed_forks = 1;
    facts.levels[0].pids_max = Some(Limit::At(3));
    assert_eq!(kinds(&facts), [Kind::Frozen, Kind::PidsLimit, Kind::Quota]);
    facts.levels[1].frozen = (true, true);
    let answer = why(&facts);
    assert_eq!(answer.causes[0].hint.as_deref(), Some("ringfence thaw db"));
    assert_eq!(answer.causes[0].lost, Some(Lost { seconds: 30.0, known: Certainty::Measured }));
    // thawed by now: nothing is left to do
    facts.levels[0].frozen = (true, false);
    facts.levels[1].frozen = (false, false);
    let answer = why(&facts);
    assert_eq!((answer.causes[0].kind, answer.causes[0].hint.as_deref()), (Kind::Frozen, None));
    assert_eq!(answer.causes[0].lost.unwrap().known, Certainty::AtMost);
}

/// v1 counts where the fork was, though the limit is above.
#[test]
fn of_several_limits_of_tasks_the_fullest_is_named() {
    let mut facts = facts();
    facts.levels[0].failed_forks = 7;
    (facts.levels[0].pids_max, facts.levels[0].pids) = (Some(Limit::At(100)), 20);
    (facts.levels[1].pids_max, facts.levels[1].pids) = (Some(Limit::At(40)), 40);
    let cause = only(&facts);
    assert_eq!((cause.kind, cause.at.as_str()), (Kind::PidsLimit, "db"));
    assert_eq!(cause.sentence, "7 forks failed by the pids.max of db (40), with 40 tasks there now");
    assert_eq!(cause.hint.unwrap(), "ringfence set db pids.max=80");
}

#[test]
fn an_invalid_partition_is_named_with_the_kernels_reason_and_who_stands_in_its_way() {
    let mut facts = facts();
    let invalid = InvalidPartition {
        wanted: "root".to_owned(),
        reason: "Cpu list in cpuset.cpus not exclusive".to_owned(),
        overlapping: vec![("batch".to_owned(), cpus("4-7"))],
        is_below_member: false,
    };
    facts.levels[1].invalid_partition = Some(invalid.clone());
    let answer = why(&facts);
    assert_eq!(answer.causes, []);
    assert_eq!(answer.notes[0].kind, NoteKind::InvalidPartition);
    assert_eq!(
        answer.notes[0].sentence,
        "the cpuset.cpus.partition of db is 'root invalid (Cpu list in cpuset.cpus not exclusive)': that group's CPUs are \
         not only its own, as batch may use some of them too"
    );
    let hint = "ringfence set batch cpuset.cpus=4-7 && ringfence set db cpuset.cpus.partition=member && \
                ringfence set db cpuset.cpus.partition=root";
    assert_eq!(answer.notes[0].hint.as_deref(), Some(hint));
    hint.split(" && ").for_each(is_a_command);
    // the group above shares its CPUs, and nobody else is in the way
    facts.levels[0].invalid_partition = Some(InvalidPartition {
        reason: "Parent is not a partition root".to_owned(),
        overlapping: Vec::new(),
        is_below_member: true,
        ..invalid
    });
    facts.levels[1].invalid_partition = None;
    let note = &why(&facts).notes[0];
    assert!(note.sentence.ends_with("its CPUs are not only its own, as db is a member"), "{}", note.sentence);
    let hint = "ringfence set db cpuset.cpus.partition=root && ringfence set db/oltp cpuset.cpus.partition=member && \
                ringfence set db/oltp cpuset.cpus.partition=root";
    assert_eq!(note.hint.as_deref(), Some(hint));
    // nothing is known that would fix it
    facts.levels[0].invalid_partition.as_mut().unwrap().is_below_member = false;
    assert_eq!(why(&facts).notes[0].hint, None);
}

/// v1's freezer leaves tasks in the state of those that wait for a disk.
#[test]
fn frozen_tasks_wait_for_no_device() {
    let mut facts = facts();
    facts.levels[0].frozen = (true, true);
    (facts.io.pressure, facts.io.blocked) = (None, Some(Duration::from_secs(30)));
    assert_eq!(only(&facts).kind, Kind::Frozen);
}

fn part(group: &str, is_below: bool) -> FrozenPart {
    FrozenPart { group: group.to_owned(), is_below, tasks: 1, frozen: (true, true) }
}

/// A stranger's finding: a task that a freezer of another subtree stopped was said to wait for a disk.
#[test]
fn tasks_that_are_frozen_in_another_group_are_said_to_be() {
    let facts = Facts { frozen_parts: vec![part("batch", false)], ..facts() };
    let answer = why(&facts);
    let first = answer.causes.first().unwrap();
    assert_eq!((first.kind, first.at.as_str()), (Kind::Frozen, "batch"));
    assert_eq!(first.sentence, "group batch is frozen, in which 1 task of it stood still all the time");
    assert_eq!(first.hint.as_deref(), Some("ringfence thaw batch"));
}

#[test]
fn frozen_groups_below_are_named_with_the_command_that_thaws_them() {
    let mut facts = Facts { frozen_parts: vec![part("db/oltp/$(a)", true)], ..facts() };
    let cause = only(&facts);
    assert_eq!(
        (cause.kind, cause.at.as_str(), cause.effect),
        (Kind::Frozen, "db/oltp/$(a)", Effect::Stopped)
    );
    assert_eq!(
        cause.sentence,
        "group db/oltp/$(a) below it is frozen: 1 task there stood still all the time"
    );
    assert_eq!(cause.hint.unwrap(), "ringfence thaw 'db/oltp/$(a)'");
    assert_eq!(cause.lost, Some(Lost { seconds: 10.0, known: Certainty::Measured }));
    // thawed by now
    facts.frozen_parts[0].frozen = (true, false);
    let cause = only(&facts);
    assert_eq!((cause.hint, cause.lost.unwrap().known), (None, Certainty::AtMost));
    // with a frozen group above, that one comes first
    facts.levels[1].frozen = (true, true);
    assert_eq!(only(&facts).at, "db");
}
