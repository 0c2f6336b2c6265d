//! The model by itself.
use experiment::simulator::{Load, Rule, simulate};

use super::{group, machine};

#[test]
fn what_does_not_fit_waits_and_is_lost_after_a_second() {
    // 3 CPUs' work on 2 CPUs: a third is lost; a burst of half a second is served late and not lost
    let groups = [group("a", 2, 2, 100)];
    let steady = Load { name: "steady".to_owned(), demands: vec![vec![3.0; 1000]] };
    let burst = (0..1000).map(|step| if step % 20 < 5 { 4.0 } else { 0.0 }).collect();
    let burst = Load { name: "burst".to_owned(), demands: vec![burst] };
    let out = simulate(&groups, &machine(1, 2, 1), &[steady, burst], &[Rule::Static]).unwrap();
    // the last second's work is neither served nor lost at the end
    assert!((out[0].lost_percent - 33.3).abs() < 1.5, "{}", out[0].lost_percent);
    assert_eq!(out[1].lost_percent, 0.0);
    assert!((out[1].unused_percent - 50.0).abs() < 0.1);
    assert_eq!(out[0].stranded_percent, 0.0);
}

#[test]
fn idle_cpus_are_stranded_only_while_others_could_use_them() {
    let groups = [group("a", 1, 4, 100), group("b", 1, 4, 100)];
    let load = Load { name: "x".to_owned(), demands: vec![vec![3.0; 500], vec![0.0; 500]] };
    let out = simulate(&groups, &machine(1, 4, 1), std::slice::from_ref(&load), &[Rule::Static]).unwrap();
    // of four CPUs b's two are idle, and a could use up to all of them
    assert!((out[0].stranded_percent - 50.0).abs() < 1.0, "{}", out[0].stranded_percent);
    let all = simulate(&groups, &machine(1, 4, 1), &[load], &Rule::ALL).unwrap();
    let of = |name: &str| all.iter().find(|one| one.rule == name).unwrap();
    assert_eq!(of("clairvoyant").lost_percent, 0.0);
    assert!(of("ringfence").lost_percent < 1.0, "{}", of("ringfence").lost_percent);
    assert_eq!(of("static").changes, 0);
}

#[test]
fn a_recorded_load_has_the_value_of_each_span() {
    let load = Load::recorded("log", &[vec![(1.0, 2.0), (3.0, 0.5)], vec![(2.0, 1.0)]]);
    assert_eq!(load.steps(), 30);
    assert_eq!(
        (load.demand(0, 0), load.demand(0, 9), load.demand(0, 10), load.demand(0, 29)),
        (2.0, 2.0, 0.5, 0.5)
    );
    assert_eq!((load.demand(1, 19), load.demand(1, 20)), (1.0, 0.0));
}
