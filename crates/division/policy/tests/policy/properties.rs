//! What the policy may never do, whatever the groups do.

use policy::{Dealer as _, Decision, Division as _, Elastic, GroupState, Live as _};
use proptest::prelude::*;
use units::CpuSet;

use super::{Run, group, machine};

/// A machine, and groups that fit it.
fn situation() -> impl Strategy<Value = ((usize, usize, usize), Vec<Elastic>)> {
    let one = (1..4_usize, 0..12_usize, 1..400_u32, proptest::bool::weighted(0.2));
    ((1..4_usize, 4..8_usize, 1..3_usize), proptest::collection::vec(one, 1..5)).prop_map(|(size, groups)| {
        let mut room = size.0 * size.1;
        let mut fitting = Vec::new();
        for (index, (min, more, weight, borrows)) in groups.into_iter().enumerate() {
            let needed = min.div_ceil(size.2);
            if needed <= room {
                room -= needed;
                fitting.push(Elastic { borrows, ..group(&format!("g{index}"), min, min + more, weight) });
            }
        }
        (size, fitting)
    })
}

fn state() -> impl Strategy<Value = GroupState> {
    let share = || prop_oneof![4 => Just(0.0), 1 => 0.0..1.0_f64, 1 => 0.0..0.03_f64];
    let used = prop_oneof![20 => 0.0..16.0_f64, 1 => Just(f64::NAN), 1 => Just(1e300)];
    let slack =
        || prop_oneof![2 => Just(None), 1 => (-3.0..1.0_f64).prop_map(Some), 1 => Just(Some(f64::NAN))];
    (used, share(), share(), slack()).prop_map(|(used, waiting, throttled, slack)| GroupState {
        used,
        waiting,
        throttled,
        slack,
    })
}

/// Checks the state and the tick's decisions.
fn check(run: &Run, groups: &[Elastic], decisions: &[Decision]) -> Result<(), TestCaseError> {
    let pool = run.policy.pool();
    let width = pool.units().width();
    let mut taken = CpuSet::new();
    for (index, group) in groups.iter().enumerate() {
        let cpus = pool.cpus(index);
        prop_assert!(taken.is_disjoint(&cpus), "CPUs {cpus} of {} are another's too", group.name);
        taken = taken.union(&cpus);
        prop_assert!(cpus.len() >= group.min, "{} is below its min: {cpus}", group.name);
        prop_assert!(cpus.len() <= group.max.max(group.min.next_multiple_of(width)), "{cpus} above max");
    }
    let all = pool.units().cpus(&(0..pool.units().len()).collect::<Vec<usize>>());
    for (index, group) in groups.iter().enumerate().filter(|(_, group)| group.borrows) {
        let cpus = run.policy.cpus(index);
        prop_assert!(pool.cpus(index).is_subset(&cpus) && cpus.is_subset(&all), "{cpus}");
        prop_assert!(cpus.len() <= group.max.max(group.min.next_multiple_of(width)), "{cpus} above max");
        for (other, _) in groups.iter().enumerate().filter(|(other, group)| group.borrows && *other != index)
        {
            prop_assert!(cpus.is_disjoint(&pool.cpus(other)), "{cpus}: borrowed from a borrower");
        }
    }
    let mut changed: Vec<usize> = decisions.iter().map(|one| one.group).collect();
    changed.sort_unstable();
    changed.dedup();
    prop_assert_eq!(changed.len(), decisions.len(), "a group changes twice in one tick");
    prop_assert!(decisions.iter().all(|one| one.from.is_subset(&one.to) || one.to.is_subset(&one.from)));
    let (grown, shrunk): (Vec<&Decision>, Vec<&Decision>) = decisions
        .iter()
        .filter(|one| !groups[one.group].borrows)
        .partition(|one| one.from.is_subset(&one.to));
    for one in &shrunk {
        prop_assert!(one.to.is_subset(&one.from), "{one} moves");
        let freed = one.from.difference(&one.to);
        prop_assert!(grown.iter().all(|other| other.to.is_disjoint(&freed)), "{one}: swapped in one tick");
    }
    prop_assert!(decisions.iter().all(|one| one.from != one.to), "an unchanged write");
    prop_assert!(grown.windows(2).all(|pair| pair[0].group < pair[1].group));
    prop_assert!(shrunk.windows(2).all(|pair| pair[0].group > pair[1].group));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn bounds_hold_and_no_cpu_is_given_twice(
        (size, groups) in situation(),
        ticks in proptest::collection::vec((proptest::collection::vec(state(), 0..6), 1..9_u64, any::<u8>()), 1..150),
    ) {
        let mut run = Run::new(&groups, machine(size.0, size.1, size.2));
        for (states, gap, luck) in ticks {
            if gap == 8 { run.ticks += 5 }
            for _ in 0..1 + u64::from(luck) / 16 {
                let decisions = run.tick(&states);
                check(&run, &groups, &decisions)?;
                if luck % 16 == 1 && let Some(refused) = decisions.first().filter(|_| decisions.len() == 1) {
                    run.policy.refused(run.now(), refused);
                    check(&run, &groups, &[])?;
                }
            }
        }
    }

    #[test]
    fn a_constant_load_within_its_share_changes_each_group_at_most_once(
        (size, groups) in situation(), part in 0.0..0.85_f64,
    ) {
        let groups: Vec<Elastic> = groups.into_iter().map(|group| Elastic { borrows: false, ..group }).collect();
        let mut run = Run::new(&groups, machine(size.0, size.1, size.2));
        let demands: Vec<f64> = run.sizes().iter().map(|size| *size as f64 * part).collect();
        let mut changes = vec![0; groups.len()];
        for decision in run.loads(1000, &demands) {
            changes[decision.group] += 1;
        }
        prop_assert!(changes.iter().all(|count| *count <= 1), "{changes:?}");
    }

    #[test]
    fn a_group_alone_never_walks(
        size in (1..4_usize, 4..8_usize, 1..3_usize), loads in proptest::collection::vec((0.0..24.0_f64, 1..100_usize), 1..12),
    ) {
        let mut run = Run::new(&[group("a", 1, 24, 100)], machine(size.0, size.1, size.2));
        let (mut ever, mut most) = (CpuSet::new(), 0);
        for (demand, ticks) in loads {
            for _ in 0..ticks {
                run.load(&[demand]);
                let cpus = run.policy.pool().cpus(0);
                most = most.max(cpus.len());
                ever = ever.union(&cpus);
            }
        }
        prop_assert_eq!(ever.len(), most, "had other CPUs of the same number");
    }
}
