//! Each rule by itself.

use policy::{
    Dealer as _, Error, Live as _, Parameters, Policy, Reason, Unit, Units, quota::QUOTA, reclaim::RECLAIM,
};
use units::CpuSet;

use super::{Run, group, machine};

#[test]
fn the_static_division_is_the_start_by_weight_within_bounds() {
    let groups = [group("a", 1, 16, 300), group("b", 1, 16, 100), group("c", 1, 2, 100)];
    assert_eq!(Run::new(&groups, machine(1, 16, 1)).sizes(), [11, 3, 2]);
}

#[test]
fn a_quiet_group_shrinks_once_after_its_dwell_and_a_busy_one_grows_at_once() {
    let mut run = Run::new(&[group("a", 1, 16, 100)], machine(1, 16, 1));
    assert_eq!(run.loads(49, &[3.0]), []);
    let decisions = run.loads(600, &[3.0]);
    assert!(
        matches!(decisions[..], [ref one] if matches!(one.reason, Reason::Quiet { .. })),
        "{decisions:?}"
    );
    assert_eq!(run.sizes(), [4]);
    let decisions = run.load(&[3.6]);
    assert!(matches!(decisions[0].reason, Reason::Busy { .. }), "{decisions:?}");
    assert_eq!(run.sizes(), [5]);
}

#[test]
fn what_others_need_is_lent_in_the_tick_before_they_get_it() {
    let mut run = Run::new(&[group("a", 1, 16, 100), group("b", 1, 16, 100)], machine(2, 8, 1));
    assert_eq!(run.sizes(), [8, 8]);
    let first = run.load(&[14.0, 1.0]);
    assert!(matches!(first[..], [ref one] if one.group == 1 && one.to.len() < 8), "{first:?}");
    let second = run.load(&[14.0, 1.0]);
    assert!(second.iter().any(|one| one.group == 0 && one.to.len() > 8), "{second:?}");
    run.loads(30, &[14.0, 1.0]);
    assert_eq!(run.sizes(), [14, 2]);
    // and back to its weighted share when it needs it
    run.loads(30, &[16.0, 16.0]);
    assert_eq!(run.sizes(), [8, 8]);
}

#[test]
fn a_shrink_that_did_harm_is_undone_and_the_dwell_doubles() {
    let mut run = Run::new(&[group("a", 1, 8, 100)], machine(1, 8, 1));
    run.loads(55, &[1.0]);
    assert_eq!(run.sizes(), [2]);
    let decisions = run.load(&[8.0]);
    assert!(matches!(decisions[0].reason, Reason::Harm { dwell: 10.0, .. }), "{decisions:?}");
    assert_eq!(run.sizes(), [8]);
    assert_eq!(run.loads(95, &[1.0]), []);
    assert_eq!(run.loads(20, &[1.0]).len(), 1);
}

#[test]
fn a_late_sample_only_grows() {
    let mut run = Run::new(&[group("a", 1, 8, 100)], machine(1, 8, 1));
    for _ in 0..40 {
        run.ticks += 10;
        assert_eq!(run.load(&[1.0]), []);
    }
    run.ticks = 2; // a clock that jumps back
    assert_eq!(run.load(&[1.0]), []);
    run.loads(60, &[1.0]);
    assert_eq!(run.sizes(), [2]);
    run.ticks += 100;
    assert_eq!(run.load(&[2.0]).len(), 1);
    assert_eq!(run.sizes(), [3]);
}

#[test]
fn three_refusals_end_the_resizing_until_it_is_resumed() {
    let mut run = Run::new(&[group("a", 1, 8, 100)], machine(1, 8, 1));
    run.loads(60, &[1.0]);
    for _ in 0..3 {
        let decisions = run.load(&[8.0]);
        let before = decisions[0].from.clone();
        run.policy.refused(run.now(), &decisions[0]);
        assert_eq!(run.policy.pool().cpus(0), before);
    }
    assert!(run.policy.has_stopped());
    let back = run.load(&[1.0]);
    assert!(matches!(back[..], [ref one] if one.reason == Reason::GivesUp && one.to.len() == 8), "{back:?}");
    assert_eq!(run.loads(200, &[1.0]), []);
    run.policy.resume();
    run.loads(60, &[1.0]);
    assert_eq!(run.sizes(), [2]);
}

#[test]
fn a_group_grows_next_to_its_own_and_gets_the_same_cpus_back() {
    let mut run = Run::new(&[group("a", 1, 6, 100), group("b", 1, 6, 100)], machine(2, 6, 2));
    assert_eq!(run.sizes(), [6, 6]);
    let all = run.policy.pool().cpus(0);
    assert_eq!(all, "0-5".parse::<CpuSet>().unwrap());
    run.loads(60, &[0.5, 0.5]);
    assert_eq!(run.sizes(), [2, 2]);
    run.loads(20, &[6.0, 0.5]);
    assert_eq!(run.policy.pool().cpus(0), all);
}

#[test]
fn more_cpus_are_no_answer_to_a_quota() {
    let mut run = Run::new(&[group("a", 1, 8, 100)], machine(1, 8, 1));
    run.loads(60, &[1.0]);
    let throttled = policy::GroupState { used: 1.0, waiting: 0.9, throttled: 0.5, slack: None };
    assert!(run.tick(&[throttled]).iter().all(|one| matches!(one.reason, Reason::Harm { .. })));
    assert_eq!(run.tick(&[throttled]), []);
}

#[test]
fn what_no_machine_can_give_is_refused_by_name() {
    let new =
        |groups: &[_]| Policy::new(groups, machine(1, 4, 2), Parameters::default()).unwrap_err().to_string();
    assert!(new(&[group("a", 0, 4, 1)]).contains("group a has min 0"));
    assert!(new(&[group("a", 5, 4, 1)]).contains("min 5 above max 4"));
    assert!(new(&[group("a", 1, 4, 0)]).contains("weight 0"));
    assert!(new(&[group("a", 1, 4, 1), group("a", 1, 4, 1)]).contains("twice"));
    assert!(new(&[group("a", 5, 8, 1), group("b", 4, 8, 1)]).contains("5 cores together, and there are 4"));
    let numbers = Parameters { full: 2.0, ..Parameters::default() };
    let wrong = Policy::new(&[group("a", 1, 4, 1)], machine(1, 4, 1), numbers).unwrap_err();
    assert_eq!(wrong.to_string(), "full is 2, and takes 0.1 to 1 (of the group's CPUs)");
    let unit = || Unit { cpus: CpuSet::range(0, 0), node: 0 };
    assert_eq!(Units::new(vec![unit(), unit()]), Err(Error::TwiceInUnits(0)));
}

#[test]
fn the_sets_that_groups_have_can_be_the_start() {
    let groups = [group("a", 2, 4, 100), group("b", 2, 4, 100)];
    let start = |a: &str, b: &str| {
        let sets = [a.parse().unwrap(), b.parse().unwrap()];
        Policy::with_sets(&groups, machine(1, 4, 2), Parameters::default(), &sets)
    };
    assert!(start("2-3", "4-7").is_ok());
    for (a, b, reason) in [("2-3", "2-5", "another"), ("2", "4-7", "whole cores"), ("0-5", "6-7", "max")] {
        assert!(start(a, b).unwrap_err().to_string().contains(reason), "{a} {b}");
    }
}

#[test]
fn the_page_has_every_number_with_its_default_and_range() {
    let page = include_str!("../../../../../docs/simulate.md");
    for policy::Parameter { name, about, unit, default, range: (from, to) } in
        policy::PARAMETERS.iter().chain(policy::saving::SAVING).chain(QUOTA).chain(RECLAIM)
    {
        let row = format!("| `{name}` | {default} {unit} | {from} to {to} | {about} |");
        assert!(page.contains(&row), "docs/simulate.md lacks {row}");
    }
}
