//! A group whose latency is measured: its slack decides in place of its waiting.

use policy::{Decision, Elastic, GroupState, Reason};

use super::{Run, group, machine};

fn run() -> Run {
    Run::new(&[group("a", 1, 8, 100)], machine(1, 8, 1))
}

fn ticks(run: &mut Run, count: usize, used: f64, waiting: f64, slack: Option<f64>) -> Vec<Decision> {
    let state = GroupState { used, waiting, throttled: 0.0, slack };
    (0..count).flat_map(|_| run.tick(&[state])).collect()
}

/// To two CPUs, after which no harm counts any more.
fn shrunk() -> Run {
    let mut run = run();
    ticks(&mut run, 90, 1.0, 0.0, Some(0.5));
    assert_eq!(run.sizes(), [2]);
    run
}

#[test]
fn waiting_is_of_no_concern_while_the_latency_is_good() {
    let mut run = run();
    let decisions = ticks(&mut run, 60, 1.0, 0.3, Some(0.5));
    assert!(
        matches!(decisions[..], [ref one] if matches!(one.reason, Reason::Quiet { .. })),
        "{decisions:?}"
    );
    assert_eq!(run.sizes(), [2]);
    assert!(run.policy.is_by_latency(0));
}

#[test]
fn a_latency_near_its_target_grows_and_one_in_between_keeps() {
    let mut run = shrunk();
    assert_eq!(ticks(&mut run, 100, 1.0, 0.0, Some(0.1)), [], "neither short nor quiet");
    let decisions = ticks(&mut run, 1, 1.0, 0.0, Some(-0.25));
    assert_eq!(decisions[0].reason, Reason::Slow { slack: -0.25 });
    assert_eq!(run.sizes(), [3]);
    assert!(decisions[0].to_string().ends_with("its latency is 125 % of its target"), "{}", decisions[0]);
}

#[test]
fn a_shrink_that_brings_the_latency_over_its_target_is_undone() {
    let mut run = run();
    ticks(&mut run, 55, 1.0, 0.0, Some(0.5));
    assert_eq!(run.sizes(), [2]);
    let decisions = ticks(&mut run, 1, 1.0, 0.0, Some(0.0));
    assert_eq!(decisions[0].reason, Reason::Slowed { slack: 0.0, dwell: 10.0 });
    assert_eq!(run.sizes(), [8]);
}

#[test]
fn when_the_source_stops_waiting_decides_again_and_the_quiet_time_begins_again() {
    let mut run = run();
    assert_eq!(ticks(&mut run, 45, 1.0, 0.3, Some(0.5)), []);
    assert_eq!(ticks(&mut run, 49, 1.0, 0.0, None), []);
    assert!(!run.policy.is_by_latency(0));
    assert_eq!(ticks(&mut run, 6, 1.0, 0.0, None).len(), 1);
    let mut run = shrunk();
    let decisions = ticks(&mut run, 1, 1.0, 0.3, None);
    assert_eq!(decisions[0].reason, Reason::Waits { waiting: 0.3 });
}

#[test]
fn a_latency_that_is_no_number_changes_nothing() {
    let mut run = run();
    assert_eq!(ticks(&mut run, 200, 1.0, 0.0, Some(f64::NAN)), []);
    assert_eq!(ticks(&mut run, 200, 1.0, 0.0, Some(1.5)), []);
}

#[test]
fn a_loan_that_brings_the_owners_latency_over_its_target_ends() {
    let groups = [group("owner", 1, 3, 300), Elastic { borrows: true, ..group("batch", 1, 4, 100) }];
    let mut run = Run::new(&groups, machine(1, 4, 1));
    let states = |slack| {
        [
            GroupState { used: 0.1, slack: Some(slack), ..GroupState::default() },
            GroupState { used: 4.0, waiting: 1.0, ..GroupState::default() },
        ]
    };
    assert_eq!(run.tick(&states(0.5))[0].reason, Reason::Borrows { units: 3 });
    let decisions = run.tick(&states(-0.1));
    let ended = |one: &Decision| matches!(one.reason, Reason::LoanSlowed { slack, .. } if slack == -0.1);
    assert!(decisions.iter().any(ended), "{decisions:?}");
}
