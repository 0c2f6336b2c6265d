//! What a group whose tasks run only where nobody else wants to has beside its own.

use policy::{Dealer as _, Division as _, Elastic, GroupState, Live as _, Parameters, Policy, Reason};

use super::{Run, group, machine};

/// Four CPUs: an owner, and a group that borrows.
fn run() -> Run {
    Run::new(
        &[group("owner", 1, 3, 300), Elastic { borrows: true, ..group("batch", 1, 4, 100) }],
        machine(1, 4, 1),
    )
}

fn states(owner: (f64, f64)) -> [GroupState; 2] {
    let (used, waiting) = owner;
    [
        GroupState { used, waiting, throttled: 0.0, slack: None },
        GroupState { used: 4.0, waiting: 1.0, throttled: 0.0, slack: None },
    ]
}

#[test]
fn a_borrower_has_what_others_do_not_use_and_they_keep_it() {
    let mut run = run();
    assert_eq!(run.cpus(), ["0-2", "3"], "the static division");
    let decisions = run.tick(&states((0.1, 0.0)));
    assert_eq!(decisions.len(), 1);
    assert_eq!(decisions[0].reason, Reason::Borrows { units: 3 });
    assert_eq!(run.cpus(), ["0-2", "0-3"], "what is lent stays in the owner's set");
}

#[test]
fn what_an_owner_grows_into_or_gives_back_changes_nothing_for_who_borrows_it() {
    let mut run = run();
    for _ in 0..100 {
        run.tick(&states((0.1, 0.0)));
    }
    assert_eq!(run.cpus(), ["0", "0-3"], "the owner is quiet");
    let decisions = run.tick(&states((1.0, 0.0)));
    assert!(decisions.iter().all(|one| one.group == 0), "{decisions:?}");
    assert_eq!(run.cpus(), ["0-1", "0-3"]);
}

#[test]
fn a_loan_that_does_harm_ends_and_the_next_one_comes_later_each_time() {
    let mut run = run();
    let mut ended = Vec::new();
    for tick in 0..400 {
        // whenever it lends, the owner waits
        let lends = run.policy.cpus(1).len() > 1;
        for decision in run.tick(&states((2.9, if lends { 0.5 } else { 0.0 }))) {
            if let Reason::LoanDidHarm { dwell, .. } = decision.reason {
                assert_eq!(decision.to.to_string(), "3", "only its own is left");
                ended.push((tick, dwell));
            }
        }
    }
    let dwells: Vec<f64> = ended.iter().map(|(_, dwell)| *dwell).collect();
    assert_eq!(dwells, [5.0, 10.0, 20.0, 40.0]);
    assert!(ended.windows(2).all(|pair| pair[1].0 - pair[0].0 >= pair[0].1 as usize * 10), "{ended:?}");
}

#[test]
fn a_policy_starts_with_what_a_borrower_has() {
    let groups = [group("owner", 1, 3, 300), Elastic { borrows: true, ..group("batch", 1, 4, 100) }];
    let sets = |owner: &str, batch: &str| {
        let sets = [owner.parse().unwrap(), batch.parse().unwrap()];
        Policy::with_sets(&groups, machine(1, 4, 1), Parameters::default(), &sets)
    };
    let policy = sets("0-1", "0-3").unwrap();
    assert_eq!(
        (policy.cpus(1).to_string(), policy.pool().cpus(1).to_string()),
        ("0-3".to_owned(), "2".to_owned())
    );
    assert!(sets("0-1", "0-1").is_err(), "nothing of its own");
}

#[test]
fn a_borrower_that_could_not_be_changed_has_what_it_had() {
    let mut run = run();
    let decisions = run.tick(&states((0.1, 0.0)));
    run.policy.withdraw(&decisions[0]);
    assert_eq!(run.cpus(), ["0-2", "3"]);
    assert_eq!(run.tick(&states((0.1, 0.0))).len(), 1, "it is tried again");
}
