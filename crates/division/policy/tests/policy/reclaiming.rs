//! Memory of quiet groups.

use std::time::Duration;

use policy::{
    Error,
    reclaim::{MemoryState, Numbers, Reclaim, Step},
};
use proptest::prelude::*;

const GIB: u64 = 1 << 30;

/// Looks each second; what is reclaimed goes.
struct Run {
    reclaim: Reclaim,
    state: MemoryState,
    seconds: u64,
}

impl Run {
    fn new(min: u64, max: u64, current: u64) -> Run {
        let state = MemoryState { current, swap_free: Some(1.0), ..MemoryState::default() };
        Run { reclaim: Reclaim::new(min, max, Numbers::default()).unwrap(), state, seconds: 0 }
    }

    fn tick(&mut self) -> Option<Step> {
        self.seconds += 1;
        let step = self.reclaim.tick(Duration::from_secs(self.seconds), &self.state);
        if let Some(Step::Reclaim { bytes }) = step {
            self.state.current -= bytes;
        }
        step
    }

    fn ticks(&mut self, seconds: usize) -> Vec<Step> {
        (0..seconds).filter_map(|_| self.tick()).collect()
    }
}

fn reclaims(steps: &[Step]) -> usize {
    steps.iter().filter(|step| matches!(step, Step::Reclaim { .. })).count()
}

#[test]
fn a_quiet_group_gives_up_a_hundredth_at_a_time_down_to_min_and_low_follows() {
    let mut run = Run::new(GIB, 8 * GIB, 4 * GIB);
    assert_eq!(run.ticks(6), []);
    assert_eq!(run.ticks(6), [Step::Low { from: GIB, to: (4 * GIB) * 9 / 10 }]);
    assert_eq!(run.ticks(6), [Step::Reclaim { bytes: 4 * GIB / 100 }]);
    let steps = run.ticks(3600);
    let down = |step: &Step| matches!(step, Step::Low { from, to } if to < from);
    assert!(steps.iter().any(down), "{steps:?}");
    assert!(run.state.current >= GIB && run.state.current < GIB + GIB / 50, "{}", run.state.current);
    assert!((GIB..GIB + GIB / 9).contains(&run.reclaim.low()), "{}", run.reclaim.low());
}

#[test]
fn pressure_disks_and_a_full_swap_are_guards() {
    let quiet = MemoryState { swap_free: Some(1.0), ..MemoryState::default() };
    for (guard, reclaimed) in [
        (quiet, true),
        (MemoryState { swap_free: None, ..quiet }, true),
        (MemoryState { pressure: 0.002, ..quiet }, false),
        (MemoryState { io_pressure: 0.02, ..quiet }, false),
        (MemoryState { swap_free: Some(0.1), ..quiet }, false),
        (MemoryState { pressure: f64::NAN, ..quiet }, false),
        (MemoryState { swap_free: Some(f64::NAN), ..quiet }, false),
    ] {
        let mut run = Run::new(GIB, 8 * GIB, 4 * GIB);
        run.state = MemoryState { current: 4 * GIB, ..guard };
        assert_eq!(reclaims(&run.ticks(60)) > 0, reclaimed, "{guard:?}");
    }
}

#[test]
fn a_step_that_did_harm_doubles_the_dwell_and_low_goes_up_to_what_is_used() {
    let mut run = Run::new(0, 8 * GIB, 4 * GIB);
    while reclaims(&run.ticks(1)) == 0 {}
    let dwell = run.reclaim.dwell();
    (run.state.pressure, run.state.current) = (0.1, 6 * GIB);
    assert!(matches!(run.tick(), Some(Step::Low { from, to }) if to > from));
    assert_eq!(run.reclaim.dwell(), dwell * 2.0);
    run.state.pressure = 0.0;
    assert_eq!(run.ticks(12), []);
    assert!(reclaims(&run.ticks(200)) > 0);
    assert_eq!(run.reclaim.dwell(), dwell, "halved by a step without harm");
}

#[test]
fn after_a_gap_or_a_jump_of_the_clock_the_quiet_time_begins_again() {
    let mut run = Run::new(0, 8 * GIB, 4 * GIB);
    for _ in 0..20 {
        assert_eq!(run.ticks(5), []);
        run.seconds += 30;
    }
    run.seconds = 0;
    assert_eq!(run.ticks(6), []);
}

#[test]
fn bounds_that_are_none_are_refused() {
    let new = |min, max| Reclaim::new(min, max, Numbers::default()).map(|_| ());
    assert_eq!(new(2, 1), Err(Error::Bounds { what: "the protected memory", min: 2.0, max: 1.0 }));
    assert_eq!(new(1, 1), Ok(()));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn never_below_min_never_beside_a_guard_and_low_is_within_its_bounds(
        min in 0..4 * GIB, more in 0..8 * GIB,
        spans in proptest::collection::vec(
            (0..16 * GIB, prop_oneof![3 => Just(0.0), 1 => 0.0..0.01_f64, 1 => Just(f64::NAN)], 0.0..0.02_f64,
                proptest::option::of(0.0..1.0_f64), 1..60_usize), 1..30),
    ) {
        let mut run = Run::new(min, min + more, 0);
        let numbers = Numbers::default();
        for (current, pressure, io_pressure, swap_free, seconds) in spans {
            run.state = MemoryState { current, pressure, io_pressure, swap_free };
            for _ in 0..seconds {
                let (before, low) = (run.state.current, run.reclaim.low());
                match run.tick() {
                    Some(Step::Reclaim { bytes }) => {
                        prop_assert!(before - bytes >= min && bytes <= before / 100 + 1);
                        prop_assert!(pressure <= numbers.pressure && io_pressure <= numbers.io_pressure);
                        prop_assert!(swap_free.is_none_or(|free| free >= numbers.swap_free));
                    }
                    Some(Step::Low { from, to }) => {
                        prop_assert_eq!((from, to), (low, run.reclaim.low()));
                        prop_assert!(from != to && (min..=min + more).contains(&to));
                    }
                    None => prop_assert_eq!(low, run.reclaim.low()),
                }
            }
        }
    }
}
