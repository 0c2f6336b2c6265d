//! Quotas, neighbours, too few CPUs, real-time budgets.

use monitor::interruptions;

use super::*;

#[test]
fn a_quota_is_named_with_its_periods_and_one_that_lets_everything_through() {
    let mut facts = facts();
    facts.cpu.used = Duration::from_secs(2);
    facts.cpu.waited = Some(Duration::from_secs(8));
    set_quota(&mut facts.levels[0], Duration::from_secs(8));
    let cause = only(&facts);
    assert_eq!((cause.kind, cause.lost.unwrap().seconds), (Kind::Quota, 8.0));
    assert_eq!(cause.share, Some(0.8));
    assert!(cause.sentence.contains("its quota (0.2 CPUs: 20 ms of each 100 ms)"), "{}", cause.sentence);
    assert!(cause.sentence.contains("98 of 100 periods"), "{}", cause.sentence);
    assert_eq!(cause.hint.unwrap(), "ringfence set db/oltp cpu.max=100%");
}

#[test]
fn a_quota_above_is_named_by_the_name_of_its_group() {
    let mut facts = facts();
    facts.cpu.waited = Some(Duration::from_secs(6));
    set_quota(&mut facts.levels[1], Duration::from_secs(6));
    let cause = only(&facts);
    assert_eq!((cause.kind, cause.at.as_str()), (Kind::Quota, "db"));
    assert!(cause.sentence.starts_with("the quota of db (0.2 CPUs"), "{}", cause.sentence);
    assert!(cause.hint.unwrap().starts_with("ringfence set db cpu.max="));
}

/// An attacker's finding: v1 refuses a quota above the parent's, and on v2 it gains nothing.
#[test]
fn a_quota_is_raised_to_the_parents_and_both_where_it_has_that_already() {
    let of = |own: u64, above: u64, period: u64| {
        let mut facts = facts();
        facts.cpu.used = Duration::from_secs(2);
        facts.cpu.waited = Some(Duration::from_secs(8));
        set_quota(&mut facts.levels[0], Duration::from_secs(8));
        facts.levels[0].quota = Some(Quota { quota: Limit::At(millis(own)), period: millis(100) });
        facts.levels[1].quota = Some(Quota { quota: Limit::At(millis(above)), period: millis(period) });
        facts
    };
    let hint = |facts: &Facts| only(facts).hint.unwrap();
    let facts = of(20, 30, 100);
    assert_eq!(hint(&facts), "ringfence set db/oltp cpu.max=30%");
    let sentence = only(&facts).sentence;
    assert!(sentence.ends_with("; db above it may use 0.3 CPUs"), "{sentence}");
    // of another period, and never rounded up
    assert_eq!(hint(&of(20, 20, 60)), "ringfence set db/oltp cpu.max=33.33%");
    let both = "ringfence set db cpu.max=100% && ringfence set db/oltp cpu.max=100%";
    assert_eq!(hint(&of(20, 20, 100)), both);
    // v2 takes a quota above the parent's
    assert_eq!(hint(&of(30, 20, 100)), both);
    assert_eq!(hint(&of(20, 100, 100)), "ringfence set db/oltp cpu.max=100%");
    // two above: the least one counts, and those that are enough stay
    let mut facts = of(20, 20, 100);
    let top = Level { group: "top".to_owned(), ..facts.levels[1].clone() };
    facts.levels.push(top);
    let three = format!("ringfence set top cpu.max=100% && {both}");
    assert_eq!(hint(&facts), three);
    facts.levels[2].quota = Some(Quota { quota: Limit::At(millis(150)), period: millis(100) });
    assert_eq!(hint(&facts), both);
    // nobody but its owner sets one above: no command would help
    let mut facts = of(20, 20, 100);
    facts.levels[1].group = "/docker/0123".to_owned();
    assert_eq!(only(&facts).hint, None);
}

/// Two tasks on one CPU under a quota of half of it: they run for half of the time, one waits for the other meanwhile, and
/// both are stopped for the other half. In a period that uses the quota up more CPUs would gain nothing.
#[test]
fn a_wait_for_each_other_is_the_quotas_in_periods_that_use_it_up() {
    let mut facts = facts();
    facts.cpu.cpus = cpus("0");
    facts.levels[0].cpus = Some(cpus("0"));
    facts.cpu.used = Duration::from_secs(5);
    facts.cpu.waited = Some(Duration::from_secs(15));
    set_quota(&mut facts.levels[0], Duration::from_secs(5));
    let cause = only(&facts);
    assert_eq!((cause.kind, cause.lost.unwrap().seconds), (Kind::Quota, 14.9));
    let says = "; its tasks waited 4.90 s for each other meanwhile, but on more CPUs they would have used up the same quota";
    assert!(cause.sentence.ends_with(says), "{}", cause.sentence);
    assert_eq!(cause.hint.unwrap(), "ringfence set db/oltp cpu.max=max");
    // in half of the periods it was not used up: there they waited for CPUs
    facts.levels[0].throttled_periods = 50;
    assert_eq!(kinds(&facts), [Kind::Quota, Kind::FewCpus]);
    let lost: Vec<f64> = why(&facts).causes.iter().map(|cause| cause.lost.unwrap().seconds).collect();
    assert!((lost[0] - 12.5).abs() < 0.01 && (lost[1] - 2.5).abs() < 0.01, "{lost:?}");
}

/// A database's day, fault F4: `few_cpus` stood first, whose hint gained nothing (150 to 154 transactions), and the quota's
/// came second (262). The order of the figures is that of the day: 30 % of one CPU, which others use too.
#[test]
fn a_quota_that_every_period_uses_up_is_the_first_cause_on_quiet_and_contended_cpus() {
    for (foreign, waited) in [(0, 4), (0, 40), (4, 12), (6, 60)] {
        let mut facts = facts();
        facts.tasks = 20;
        facts.span = Duration::from_secs(5);
        facts.cpu.used = millis(1500);
        facts.cpu.foreign = Duration::from_secs(foreign);
        facts.cpu.waited = Some(Duration::from_secs(waited));
        facts.cpu.others = if foreign > 0 { others() } else { Vec::new() };
        facts.levels[0].quota = Some(Quota { quota: Limit::At(millis(30)), period: millis(100) });
        facts.levels[0].periods = 50;
        facts.levels[0].throttled_periods = 50;
        facts.levels[0].throttled = millis(2000);
        let cause = only(&facts);
        assert_eq!(cause.kind, Kind::Quota, "{cause:?}");
        // with the quota above, shared with nobody else, it is the same
        facts.levels.swap(0, 1);
        facts.levels[0].group = "db/oltp".to_owned();
        facts.levels[0].cpus = Some(cpus("0-1"));
        facts.levels[1].group = "db".to_owned();
        assert_eq!(kinds(&facts), [Kind::Quota]);
    }
}

#[test]
fn tasks_that_ended_leave_the_throttled_time() {
    let mut facts = facts();
    facts.cpu.waited = Some(millis(10));
    set_quota(&mut facts.levels[0], Duration::from_secs(4));
    assert_eq!(only(&facts).lost.unwrap().seconds, 4.0);
}

#[test]
fn who_ran_on_the_groups_cpus_is_named_and_idle_cpus_nearby_are_advised() {
    let mut facts = facts();
    facts.cpu.waited = Some(Duration::from_secs(5));
    facts.cpu.foreign = Duration::from_secs(6);
    facts.cpu.others = others();
    // 4 to 7 idle too, and the group above does not have them
    facts.cpu.idle = cpus("3-7");
    let cause = only(&facts);
    assert_eq!((cause.kind, cause.at.as_str()), (Kind::Neighbours, "batch"));
    assert_eq!(cause.lost.unwrap().seconds, 5.0);
    assert!(cause.sentence.contains("batch 4.00 s (most of it cc1 4711)"), "{}", cause.sentence);
    assert!(cause.sentence.contains("tasks of the root group 1.00 s"), "{}", cause.sentence);
    assert_eq!(cause.hint.unwrap(), "ringfence set db/oltp cpuset.cpus=0-1,3");
}

/// Newcomers' finding A7: the weight of `db/oltp` counts only against what else is in `db`.
#[test]
fn a_weight_is_raised_where_both_branches_meet() {
    let mut facts = contended();
    facts.cpu.others.remove(0);
    assert_eq!(only(&facts).hint.unwrap(), "ringfence set db cpu.weight=400");
    // tasks that lie in the group above itself
    facts.cpu.others[0].meets = 0;
    assert_eq!(only(&facts).hint.unwrap(), "ringfence set db/oltp cpu.weight=400");
}

/// Issue R, point 5: who follows both answers raises nothing twice.
#[test]
fn one_contention_never_leads_to_advice_for_both_sides() {
    let mut facts = contended();
    let seen = |facts: &Facts| {
        let cause = only(facts);
        let choices: Vec<String> = cause.choices.iter().map(|choice| choice.command.clone()).collect();
        (cause.hint, choices, cause.sentence)
    };
    let (hint, choices, sentence) = seen(&facts);
    assert_eq!((hint, choices.len()), (None, 2));
    assert_eq!(choices, ["ringfence set db cpu.weight=400", "ringfence set batch cpu.weight=400"]);
    let words = "; db and batch share equally (cpu.weight 100 and 100): decide which matters more";
    assert!(sentence.ends_with(words), "{sentence}");
    let text = why(&facts).to_string();
    assert!(text.contains("\n   for db   : ringfence set db cpu.weight=400\n   for batch: "), "{text}");
    // the user chose db: its answer may go on, batch's advises nothing
    facts.levels[1].weight = Some(400);
    assert_eq!(seen(&facts).0.unwrap(), "ringfence set db cpu.weight=1600");
    facts.levels[1].weight = Some(100);
    facts.cpu.others[0].rival = Some(("batch".to_owned(), 400));
    let (hint, choices, sentence) = seen(&facts);
    assert_eq!((hint, choices), (None, vec![]));
    assert!(
        sentence
            .ends_with("; batch has cpu.weight 400 and db has 100, so that is how they were set to share")
    );
}

#[test]
fn two_groups_meet_at_the_highest_level_that_they_do_not_have_in_common() {
    use crate::scan::meeting;
    assert_eq!(meeting("ux/nest/a", ""), (2, None));
    assert_eq!(meeting("ux/nest/a", "batch/x"), (2, Some("batch")));
    assert_eq!(meeting("ux/nest/a", "ux"), (1, None));
    assert_eq!(meeting("ux/nest/a", "ux/other/b/c"), (1, Some("ux/other")));
    assert_eq!(meeting("ux/nest/a", "ux/nest/ab"), (0, Some("ux/nest/ab")));
}

/// `db/oltp` waits for `batch` and the root's tasks, and no CPU idles.
fn contended() -> Facts {
    let mut facts = facts();
    facts.cpu.waited = Some(Duration::from_secs(5));
    facts.cpu.foreign = Duration::from_secs(6);
    facts.cpu.others = others();
    facts
}

#[test]
fn the_hypervisor_is_no_group_that_could_be_set() {
    let mut facts = facts();
    facts.cpu.waited = Some(Duration::from_secs(5));
    facts.cpu.foreign = Duration::from_secs(6);
    facts.cpu.steal = Duration::from_secs(5);
    let cause = only(&facts);
    assert!(cause.sentence.contains(": the hypervisor 5.00 s, tasks that"), "{}", cause.sentence);
    assert_eq!(cause.hint, None);
}

#[test]
fn more_tasks_than_cpus_are_given_more_of_those_above() {
    let mut facts = facts();
    facts.cpu.used = Duration::from_secs(20);
    facts.cpu.waited = Some(Duration::from_secs(10));
    let cause = only(&facts);
    assert_eq!(cause.kind, Kind::FewCpus);
    assert_eq!(cause.hint.unwrap(), "ringfence set db/oltp cpuset.cpus=0-2");
    // the group above has no more: that one first, and then the group
    facts.levels[1].cpus = Some(cpus("0-1"));
    let both = "ringfence set db cpuset.cpus=0-2 && ringfence set db/oltp cpuset.cpus=0-2";
    assert_eq!(only(&facts).hint.unwrap(), both);
    // but on v2, where one without a list of its own has those of the group above
    facts.levels[0].own_cpus = Some(CpuSet::new());
    assert_eq!(only(&facts).hint.unwrap(), "ringfence set db cpuset.cpus=0-2");
    // nor has the machine
    facts.cpu.online = cpus("0-1");
    let cause = only(&facts);
    assert!(
        cause.hint.is_none() && cause.sentence.ends_with("which are all there are"),
        "{}",
        cause.sentence
    );
}

/// Fault F4: CPUs of a node that the group may take no memory of make its tasks slower.
#[test]
fn cpus_that_are_advised_are_near_the_groups_memory_and_nobody_elses() {
    let mut facts = facts();
    facts.cpu.used = Duration::from_secs(20);
    facts.cpu.waited = Some(Duration::from_secs(40));
    facts.levels[1].cpus = Some(cpus("0-7"));
    facts.cpu.nodes = vec![(0, cpus("0,2,4,6")), (1, cpus("1,3,5,7"))];
    (facts.cpu.cpus, facts.levels[0].cpus) = (cpus("0,2"), Some(cpus("0,2")));
    assert_eq!(only(&facts).hint.unwrap(), "ringfence set db/oltp cpuset.cpus=0,2,4,6");
    // it may take memory of both: first the CPUs of the node that it runs on
    facts.levels[0].mems = Some("0-1".parse().unwrap());
    assert_eq!(only(&facts).hint.unwrap(), "ringfence set db/oltp cpuset.cpus=0-4,6");
    facts.levels[0].mems = Some("0".parse().unwrap());
    (facts.cpu.cpus, facts.levels[0].cpus) = (cpus("0,2,4,6"), Some(cpus("0,2,4,6")));
    let cause = only(&facts);
    assert_eq!(cause.hint, None);
    assert!(
        cause.sentence.ends_with(", which are all on the NUMA nodes of its memory and CPUs"),
        "{cause:?}"
    );
    // v1: the kernel would refuse what an exclusive group beside it has
    (facts.cpu.cpus, facts.levels[0].cpus) = (cpus("0,2"), Some(cpus("0,2")));
    facts.levels[0].taken = cpus("4");
    assert_eq!(only(&facts).hint.unwrap(), "ringfence set db/oltp cpuset.cpus=0,2,6");
    facts.levels[0].taken = cpus("1,3-7");
    let cause = only(&facts);
    assert_eq!(cause.hint, None);
    assert!(cause.sentence.ends_with(", and groups beside it have the others for themselves"), "{cause:?}");
    // the same for CPUs that idle while others run on its own
    facts.levels[0].taken = CpuSet::new();
    facts.cpu.foreign = Duration::from_secs(60);
    facts.cpu.others = others();
    facts.cpu.idle = cpus("1,6");
    assert_eq!(only(&facts).hint.unwrap(), "ringfence set db/oltp cpuset.cpus=0,2,6");
}

#[test]
fn tasks_that_wake_up_together_wait_though_the_cpus_would_do_on_average() {
    let mut facts = facts();
    facts.cpu.waited = Some(Duration::from_secs(2));
    let cause = only(&facts);
    assert_eq!(cause.kind, Kind::FewCpus);
    assert!(
        cause.sentence.contains("at times, though on average they wanted 1.2 CPUs"),
        "{}",
        cause.sentence
    );
}

#[test]
fn a_single_task_waits_for_others_only() {
    let mut facts = contended();
    facts.tasks = 1;
    facts.cpu.used = Duration::from_secs(4);
    facts.cpu.foreign = Duration::from_secs(4);
    assert_eq!(kinds(&facts), [Kind::Neighbours]);
    // what ran and waited for longer than the span was several tasks
    facts.cpu.used = Duration::from_secs(8);
    assert_eq!(kinds(&facts), [Kind::Neighbours, Kind::FewCpus]);
}

#[test]
fn real_time_tasks_that_met_their_budget_are_named_and_those_below_it_not() {
    let mut facts = facts();
    facts.levels[0].realtime = Some((Limit::At(millis(50)), millis(1000)));
    facts.levels[1].realtime = Some((Limit::At(millis(500)), millis(1000)));
    facts.realtime =
        Some(RealtimeFacts { tasks: 1, ran_most: millis(495), cpu: 1, waited: Duration::from_secs(9) });
    let cause = only(&facts);
    assert_eq!((cause.kind, cause.at.as_str()), (Kind::RealtimeBudget, "db/oltp"));
    assert_eq!(cause.lost.unwrap().seconds, 9.0);
    assert_eq!(
        cause.sentence,
        "its 1 real-time task used up its real-time budget (50 ms of each 1 s on each CPU): they ran 495 ms on CPU 1, \
         which is all that they may, and waited 9.00 s"
    );
    assert_eq!(cause.hint.unwrap(), "ringfence set db/oltp cpu.rt_runtime_us=95ms");
    facts.realtime.as_mut().unwrap().ran_most = millis(300);
    assert_eq!(kinds(&facts), []);
    // two whole periods and a part in which it was stopped
    facts.span = millis(2300);
    facts.realtime.as_mut().unwrap().ran_most = millis(99);
    assert_eq!(only(&facts).kind, Kind::RealtimeBudget);
    facts.realtime.as_mut().unwrap().ran_most = millis(60);
    assert_eq!(kinds(&facts), []);
}

#[test]
fn a_group_without_a_real_time_budget_has_that_as_a_note_and_no_cause() {
    let mut facts = facts();
    facts.levels[0].realtime = Some((Limit::At(Duration::ZERO), millis(1000)));
    facts.levels[1].realtime = Some((Limit::At(Duration::ZERO), millis(1000)));
    let answer = why(&facts);
    assert_eq!(answer.causes, []);
    assert_eq!(answer.notes[0].kind, NoteKind::NoRealtimeBudget);
    assert_eq!(answer.notes[0].hint.as_deref(), Some("ringfence set db cpu.rt_runtime_us=50ms"));
    answer.notes[0].hint.iter().for_each(|hint| is_a_command(hint));
    assert!(answer.to_string().contains("note: a real-time task would be refused"), "{answer}");
    // every group of such a kernel has none at first: no news beside what is known to be one
    facts.levels[0].frozen = (true, true);
    assert_eq!(why(&facts).notes, []);
}

#[test]
fn what_is_known_of_no_task_is_shown_as_that_of_tasks_that_are_gone() {
    let mut facts = facts();
    facts.cpu.waited = Some(Duration::from_secs(5));
    facts.cpu.foreign = Duration::from_secs(9);
    facts.cpu.others = others();
    let cause = only(&facts);
    assert!(cause.sentence.contains(", tasks that have ended or moved 4.00 s; db and"), "{}", cause.sentence);
    // most of it was in no group, which has no weight
    facts.cpu.others.reverse();
    assert_eq!(only(&facts).hint.unwrap(), "ringfence set db cpu.weight=400");
}

/// It waited for others too: a quota for what it got and what the quota took would hold it back again.
#[test]
fn a_quota_is_raised_to_all_that_was_wanted() {
    let mut facts = facts();
    facts.cpu.used = Duration::from_secs(2);
    facts.cpu.waited = Some(Duration::from_secs(8));
    facts.cpu.foreign = Duration::from_secs(5);
    set_quota(&mut facts.levels[0], Duration::from_secs(3));
    let answer = why(&facts);
    let quota = answer.causes.iter().find(|cause| cause.kind == Kind::Quota).unwrap();
    assert_eq!(quota.hint.as_deref(), Some("ringfence set db/oltp cpu.max=100%"));
}

/// It used its quota up in each period, and others had the CPU for most of the rest: a greater weight would give it nothing.
#[test]
fn a_quota_that_was_used_up_goes_before_those_who_ran_meanwhile() {
    let mut facts = contended();
    facts.cpu.used = Duration::from_millis(1500);
    facts.cpu.waited = Some(Duration::from_millis(8500));
    facts.cpu.foreign = Duration::from_secs(6);
    set_quota(&mut facts.levels[0], Duration::from_millis(2500));
    facts.levels[0].throttled_periods = 100;
    let cause = only(&facts);
    assert_eq!((cause.kind, cause.at.as_str()), (Kind::Quota, "db/oltp"));
    assert_eq!(cause.lost.unwrap().seconds, 8.5);
    assert_eq!(cause.hint.unwrap(), "ringfence set db/oltp cpu.max=100%");
    let words =
        "; others ran on its CPUs meanwhile (6.00 s), but without them it would have used up the same quota";
    assert!(cause.sentence.ends_with(words), "{}", cause.sentence);
    // in the other half of the periods they left it no time to use its quota
    facts.levels[0].throttled_periods = 50;
    assert_eq!(kinds(&facts), [Kind::Quota, Kind::Neighbours]);
    let lost: Vec<f64> = why(&facts).causes.iter().map(|cause| cause.lost.unwrap().seconds).collect();
    assert_eq!(lost, [5.5, 3.0]);
    // of the quota above, those in the group above had their part
    facts.levels[0] = Level {
        quota: None,
        periods: 0,
        throttled_periods: 0,
        throttled: Duration::ZERO,
        ..facts.levels[0].clone()
    };
    set_quota(&mut facts.levels[1], Duration::from_millis(2500));
    facts.levels[1].throttled_periods = 100;
    facts.cpu.others[0] = Other { group: "db/olap".to_owned(), meets: 0, ..facts.cpu.others[0].clone() };
    facts.cpu.others[0].rival = Some(("db/olap".to_owned(), 100));
    facts.cpu.others[0].ran = Duration::from_secs(3);
    assert_eq!(kinds(&facts), [Kind::Quota, Kind::Neighbours]);
    let lost: Vec<f64> = why(&facts).causes.iter().map(|cause| cause.lost.unwrap().seconds).collect();
    assert_eq!(lost, [5.5, 3.0]);
}

#[test]
fn what_interrupted_isolated_cpus_is_a_note_with_the_most_frequent_causes() {
    let cause = |name: &str, count: u64| interruptions::Cause {
        kind: interruptions::Kind::Interrupt,
        name: name.to_owned(),
        count,
        per_sec: count as f64 / 10.0,
    };
    let causes = vec![cause("Local timer interrupts", 2500), cause("36 virtio1-req.0", 120)];
    let mut facts = facts();
    assert!(why(&facts).notes.is_empty());
    facts.interrupted =
        Some(interruptions::Interrupted { cpus: cpus("1"), span_sec: 10.0, per_sec: 262.0, causes });
    let answer = why(&facts);
    assert!(answer.causes.is_empty());
    assert_eq!(answer.notes[0].kind, NoteKind::Interrupted);
    let said = "its isolated CPU 1 was interrupted 262.0 times per second: 250.0 by interrupt Local timer interrupts, \
                12.0 by interrupt 36 virtio1-req.0";
    assert_eq!(answer.notes[0].sentence, said);
    assert_eq!(answer.notes[0].hint.as_deref(), Some("ringfence isolate check db/oltp --for 30s"));
}
