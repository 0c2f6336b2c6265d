//! Power saving: what it may never do, whatever general groups do, and each rule by itself.

use std::time::Duration;

use policy::{
    Error, GroupState, Reason, Units,
    saving::{Change, Numbers, Saving},
};
use proptest::prelude::*;
use topology::Machine;
use units::CpuSet;

/// Four nodes with eight CPUs each.
const NUMACTL: &str = include_str!("../../../../machine/topology/tests/machines/nehalem-ex.numactl.txt");
/// Two nodes with eight cores of two CPUs each.
const CORES: &str = include_str!("../../../../machine/topology/tests/machines/synthetic-2x8.hwloc.xml");

fn machine(text: &str) -> Machine {
    Machine::from_listing("machine", text).unwrap()
}

fn cpus(text: &str) -> CpuSet {
    text.parse().unwrap()
}

struct Run {
    saving: Saving,
    ticks: u64,
}

impl Run {
    fn new(text: &str, named: &str, floor: usize) -> Run {
        let (machine, named) = (machine(text), cpus(named));
        let units = Units::of(&machine, &machine.online().difference(&named)).unwrap();
        Run { saving: Saving::new(&machine, units, &named, floor, Numbers::default()).unwrap(), ticks: 0 }
    }

    fn tick(&mut self, used: f64, waiting: f64) -> Option<Change> {
        self.ticks += 1;
        let state = GroupState { used, waiting, ..GroupState::default() };
        self.saving.tick(Duration::from_millis(self.ticks * 100), &state)
    }

    /// Of groups that use what they can of a demand.
    fn load(&mut self, ticks: usize, demand: f64) -> Vec<Change> {
        let one = |_| {
            let has = self.saving.cpus().len() as f64;
            self.tick(demand.min(has), (1.0 - has / demand).max(0.0))
        };
        (0..ticks).filter_map(one).collect()
    }
}

#[test]
fn quiet_groups_shrink_once_to_whole_cores_far_from_named_ones() {
    let mut run = Run::new(CORES, "0-3", 2);
    assert_eq!(run.load(100, 2.6), []);
    let changes = run.load(1000, 2.6);
    assert!(matches!(changes[..], [ref one] if matches!(one.reason, Reason::Quiet { .. })), "{changes:?}");
    assert_eq!(run.saving.cpus(), cpus("26-31"), "2.6 CPUs / 0.5 in cores, on the other node");
    assert_eq!(run.saving.unused(), 11);
}

#[test]
fn distances_decide_where_they_are_known() {
    let machine = machine(NUMACTL);
    let named = cpus("0,4,8");
    let units = Units::of(&machine, &machine.online().difference(&named)).unwrap();
    let mut saving = Saving::new(&machine, units, &named, 1, Numbers::default()).unwrap();
    let mut last = saving.cpus();
    // down step by step: what goes is never farther than what stays
    let far = |cpu: usize| machine.distance(0, machine.node_of_cpu(cpu).unwrap()).unwrap();
    for tick in 1..20_000_u64 {
        let used = 12.0 - tick as f64 / 20_000.0 * 12.0;
        saving.tick(Duration::from_millis(tick * 100), &GroupState { used, ..GroupState::default() });
        let now = saving.cpus();
        let gone = last.difference(&now).iter().map(far).max();
        assert!(gone.is_none_or(|gone| now.iter().map(far).all(|stays| gone <= stays)), "{last} to {now}");
        last = now;
    }
    assert_eq!(last.len(), 1, "{last}");
}

#[test]
fn load_brings_cpus_back_at_once_and_the_same_ones() {
    let mut run = Run::new(CORES, "0-1", 2);
    run.load(200, 0.1);
    assert_eq!(run.saving.cpus().len(), 2);
    let changes = run.load(1, 20.0);
    assert!(matches!(changes[..], [ref one] if one.to.len() == 4), "{changes:?}");
    run.load(3, 20.0);
    assert_eq!(run.saving.unused(), 0, "after 0.4 s");
    run.load(200, 0.1);
    let changes = run.tick(0.1, 0.5);
    assert!(matches!(changes, Some(Change { reason: Reason::Waits { .. }, .. })), "{changes:?}");
}

#[test]
fn the_end_gives_all_back_and_a_refused_change_is_withdrawn() {
    let mut run = Run::new(CORES, "0-1", 2);
    let all = run.saving.cpus();
    let change = run.load(200, 0.1).remove(0);
    run.saving.withdraw(&change);
    assert_eq!(run.saving.cpus(), all);
    run.load(200, 0.1);
    let end = run.saving.end().unwrap();
    assert_eq!((end.to, run.saving.end()), (all, None));
}

#[test]
fn a_late_sample_begins_the_quiet_time_again() {
    let mut run = Run::new(CORES, "", 2);
    for _ in 0..60 {
        assert_eq!(run.load(50, 0.1), []);
        run.ticks += 10;
    }
    run.ticks = 1; // a clock that jumps back
    assert_eq!(run.load(100, 0.1), []);
    assert_eq!(run.load(2, 0.1).len(), 1);
}

#[test]
fn a_floor_that_does_not_fit_is_refused() {
    let machine = machine(CORES);
    let new = |floor: usize, numbers: Numbers| {
        let units = Units::of(&machine, &cpus("0-7")).unwrap();
        Saving::new(&machine, units, &CpuSet::new(), floor, numbers).map(|saving| saving.cpus().len())
    };
    assert_eq!(new(8, Numbers::default()), Ok(8));
    assert_eq!(new(9, Numbers::default()), Err(Error::Floor { floor: 9, there: 8 }));
    assert_eq!(new(0, Numbers::default()), Err(Error::Floor { floor: 0, there: 8 }));
    let wrong = new(1, Numbers { full: f64::NAN, ..Numbers::default() }).unwrap_err();
    assert!(wrong.to_string().starts_with("full is NaN, and takes 0.1 to 1"), "{wrong}");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn never_below_the_floor_never_both_ways_and_the_same_cpus_for_the_same_number(
        floor in 1..24_usize,
        steps in proptest::collection::vec(
            (prop_oneof![9 => 0.0..40.0_f64, 1 => Just(f64::NAN), 1 => Just(1e300)], 0.0..0.05_f64, 1..150_u16, any::<bool>()), 1..40),
    ) {
        let mut run = Run::new(CORES, "0-7", floor);
        let mut last = run.saving.cpus();
        for (used, waiting, ticks, late) in steps {
            if late { run.ticks += 7 }
            for _ in 0..ticks {
                let change = run.tick(used, waiting);
                let now = run.saving.cpus();
                prop_assert!(now.len() >= floor && now.len().is_multiple_of(2), "{now}");
                prop_assert!(last.is_subset(&now) || now.is_subset(&last), "{last} to {now}");
                prop_assert_eq!(change.is_some(), now != last, "an unchanged write, or a silent one");
                if let Some(change) = change {
                    prop_assert_eq!((&change.from, &change.to), (&last, &now));
                }
                last = now;
            }
        }
    }

    #[test]
    fn a_constant_load_changes_at_most_once_and_has_enough(demand in 0.0..24.0_f64) {
        let mut run = Run::new(CORES, "0-7", 2);
        let changes = run.load(2000, demand);
        prop_assert!(changes.len() <= 1, "{changes:?}");
        prop_assert!(run.saving.cpus().len() as f64 >= demand);
    }
}
