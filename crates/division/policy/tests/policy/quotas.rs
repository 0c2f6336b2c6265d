//! Quotas that follow their load.

use std::time::Duration;

use policy::{
    Error, GroupState,
    quota::{Change, Numbers, Quota, Reason, Setting},
};
use proptest::prelude::*;

struct Run {
    quota: Quota,
    ticks: u64,
}

impl Run {
    fn new(min: f64, max: f64) -> Run {
        Run { quota: Quota::new(min, max, Numbers::default()).unwrap(), ticks: 0 }
    }

    fn tick(&mut self, used: f64, throttled: f64) -> Option<Change> {
        self.ticks += 1;
        let state = GroupState { used, throttled, ..GroupState::default() };
        self.quota.tick(Duration::from_millis(self.ticks * 100), &state)
    }

    /// Of a group that uses what it can of a demand.
    fn load(&mut self, ticks: usize, demand: f64) -> Vec<Change> {
        let one = |_| {
            let quota = self.quota.setting().quota;
            self.tick(demand.min(quota), if demand > quota { 1.0 } else { 0.0 })
        };
        (0..ticks).filter_map(one).collect()
    }
}

#[test]
fn a_quota_that_runs_out_bursts_first_then_grows_to_max() {
    let mut run = Run::new(1.0, 4.0);
    let changes = run.load(3, 8.0);
    let to: Vec<Setting> = changes.iter().map(|change| change.to).collect();
    let setting = |quota: f64| Setting { quota, burst: 0.5 };
    assert_eq!(to, [setting(1.0), setting(1.2), setting(1.2 * 1.2)]);
    run.load(20, 8.0);
    assert_eq!(run.quota.setting().quota, 4.0);
}

#[test]
fn a_quiet_group_shrinks_step_by_step_to_min_without_burst() {
    let mut run = Run::new(1.0, 4.0);
    run.load(20, 8.0);
    assert_eq!(run.load(49, 0.2), []);
    let changes = run.load(600, 0.2);
    assert!(changes.iter().all(|change| matches!(change.reason, Reason::Quiet { .. })), "{changes:?}");
    assert_eq!(run.quota.setting(), Setting { quota: 1.0, burst: 0.0 });
    assert_eq!(run.load(600, 0.2), []);
}

#[test]
fn what_is_above_min_lasts_as_long_as_the_bucket_and_comes_back_when_it_is_refilled() {
    let mut run = Run::new(1.0, 4.0);
    run.load(600, 8.0);
    assert_eq!(run.quota.setting().quota, 4.0, "not yet spent");
    let changes = run.load(100, 8.0);
    assert!(changes.iter().any(|change| change.reason == Reason::Spent), "{changes:?}");
    assert_eq!(run.quota.setting(), Setting { quota: 1.0, burst: 0.0 });
    assert_eq!(run.load(600, 8.0), [], "nothing is refilled while it uses its min");
    run.load(500, 0.0);
    assert!(!run.load(3, 8.0).is_empty(), "{} s", run.quota.tokens());
}

#[test]
fn bounds_that_are_none_are_refused() {
    let new = |min, max| Quota::new(min, max, Numbers::default()).map(|_| ());
    assert_eq!(new(1.0, 1.0), Ok(()));
    assert_eq!(new(2.0, 1.0), Err(Error::Bounds { what: "the quota", min: 2.0, max: 1.0 }));
    assert!(new(0.0, 1.0).is_err() && new(f64::NAN, 1.0).is_err() && new(1.0, f64::INFINITY).is_err());
    let mut run = Run::new(1.0, 1.0);
    assert!(run.load(600, 3.0).len() <= 1, "a burst at most");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn within_its_bounds_no_unchanged_write_and_no_more_above_min_than_the_bucket_gives(
        min in 0.1..8.0_f64, more in 0.0..24.0_f64,
        steps in proptest::collection::vec(
            (prop_oneof![9 => 0.0..32.0_f64, 1 => Just(f64::NAN), 1 => Just(1e300)], 0.0..1.0_f64, 1..300_u16, any::<bool>()), 1..30),
    ) {
        let mut run = Run::new(min, min + more);
        for (used, throttled, ticks, late) in steps {
            if late { run.ticks += 7 }
            for _ in 0..ticks {
                let before = run.quota.setting();
                let change = run.tick(used, throttled);
                let now = run.quota.setting();
                prop_assert!(now.quota >= min && now.quota <= min + more && now.burst >= 0.0);
                prop_assert!(now.burst <= now.quota, "{now:?}");
                prop_assert_eq!(change.is_some(), now != before);
                if let Some(change) = change {
                    prop_assert_eq!((change.from, change.to), (before, now));
                    prop_assert!(!(now.quota > before.quota && now.burst > before.burst), "{change:?}");
                }
            }
        }
        let above = run.load(5000, min + more + 1.0).len();
        prop_assert!(run.quota.setting().quota <= min + 1e-9 || run.quota.tokens() > 0.0, "{above} changes");
    }

    #[test]
    fn a_constant_load_below_min_changes_nothing(min in 0.1..8.0_f64, part in 0.0..1.0_f64) {
        let mut run = Run::new(min, min * 4.0);
        prop_assert_eq!(run.load(1000, min * part), []);
    }
}
