//! Power saving: what it may never do, whatever general groups do, and each rule by itself.

use std::time::Duration;

use policy::{
    Division as _, Error, General, GroupState, Live as _, Reason, Units,
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
fn the_end_gives_all_back() {
    let mut run = Run::new(CORES, "0-1", 2);
    let all = run.saving.cpus();
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

/// Two groups on the 32 CPUs of [`CORES`].
fn two() -> General {
    General::new(Run::new(CORES, "", 2).saving, vec!["apps".to_owned(), "web".to_owned()])
}

fn quiet() -> [GroupState; 2] {
    [GroupState { used: 0.1, ..GroupState::default() }; 2]
}

/// Until a change comes, from this tick on.
fn until_changed(general: &mut General, ticks: &mut u64, states: &[GroupState]) -> Vec<policy::Decision> {
    for _ in 0..1000 {
        *ticks += 1;
        let decisions = general.tick(Duration::from_millis(*ticks * 100), states);
        if !decisions.is_empty() {
            return decisions;
        }
    }
    Vec::new()
}

#[test]
fn general_groups_have_one_set_which_follows_what_they_use_together() {
    let (mut general, mut ticks) = (two(), 0);
    let decisions = until_changed(&mut general, &mut ticks, &quiet());
    assert_eq!(decisions.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), ["apps", "web"]);
    assert_eq!((general.cpus(0), general.cpus(1)), (cpus("30-31"), cpus("30-31")));
    let busy = [GroupState { used: 1.0, ..GroupState::default() }; 2];
    until_changed(&mut general, &mut ticks, &busy);
    assert_eq!((general.cpus(0), general.cpus(1)), (cpus("28-31"), cpus("28-31")), "2 CPUs / 0.5");
    let unknown = [GroupState { used: f64::NAN, ..GroupState::default() }, quiet()[1]];
    assert_eq!(until_changed(&mut general, &mut ticks, &unknown), [], "a group without figures");
}

#[test]
fn a_write_that_was_not_made_is_requested_again_and_refusals_give_all_back() {
    let (mut general, mut ticks) = (two(), 0);
    let all = general.cpus(0);
    let decisions = until_changed(&mut general, &mut ticks, &quiet());
    general.withdraw(&decisions[1]);
    let again = until_changed(&mut general, &mut ticks, &quiet());
    assert_eq!(again.iter().map(|one| (one.group, &one.from)).collect::<Vec<_>>(), [(1, &all)]);
    general.refused(Duration::from_millis(ticks * 100), &again[0]);
    for _ in 0..2 {
        let refused = until_changed(&mut general, &mut ticks, &quiet());
        assert!(!general.has_stopped());
        general.refused(Duration::from_millis(ticks * 100), &refused[0]);
    }
    assert!(general.has_stopped());
    let back = until_changed(&mut general, &mut ticks, &quiet());
    assert_eq!(back.iter().map(|one| (one.group, &one.to)).collect::<Vec<_>>(), [(0, &all)]);
}

#[test]
fn general_groups_start_with_what_they_have_if_it_is_one_set_of_power_saving() {
    let start = |sets: [&str; 2]| {
        let names = vec!["apps".to_owned(), "web".to_owned()];
        General::with_sets(Run::new(CORES, "", 2).saving, names, &sets.map(cpus))
    };
    assert_eq!(start(["28-31", "28-31"]).unwrap().cpus(1), cpus("28-31"));
    for sets in [["28-31", "30-31"], ["0-3", "0-3"], ["31", "31"], ["", ""]] {
        assert!(matches!(start(sets), Err(Error::Start { .. })), "{sets:?}");
    }
}
