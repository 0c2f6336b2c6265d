//! How long a tick takes with 1,000 groups on 1,024 CPUs, while all of them change all the time.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "prints a figure")]

use std::time::{Duration, Instant};

use policy::{Division, Elastic, GroupState, Parameters, Policy, Units};

fn main() {
    let units = Units::regular(8, 128, 1).unwrap();
    let group =
        |index: usize| Elastic { name: format!("g{index}"), min: 1, max: 64, weight: 100, borrows: false };
    let groups: Vec<Elastic> = (0..1000).map(group).collect();
    let mut policy = Policy::new(&groups, units, Parameters::default()).unwrap();
    let (mut longest, mut sum, mut changes) = (Duration::ZERO, Duration::ZERO, 0);
    const TICKS: u32 = 600;
    for tick in 0..TICKS {
        let state = |index: usize| {
            let has = policy.pool().size(index) as f64;
            let demand = if (index + tick as usize / 20).is_multiple_of(100) { 20.0 } else { 0.3 };
            GroupState {
                used: has.min(demand),
                waiting: (1.0 - has / demand).max(0.0),
                throttled: 0.0,
                slack: None,
            }
        };
        let states: Vec<GroupState> = (0..1000).map(state).collect();
        let began = Instant::now();
        changes += policy.tick(Duration::from_millis(100) * tick, &states).len();
        let took = began.elapsed();
        (longest, sum) = (longest.max(took), sum + took);
    }
    println!(
        "1,000 groups on 1,024 CPUs: {:.2} ms a tick, {:.2} ms at most, {changes} changes",
        (sum / TICKS).as_secs_f64() * 1e3,
        longest.as_secs_f64() * 1e3
    );
}
