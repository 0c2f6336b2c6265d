//! A tick of the policy alone, in this process, while all groups change all the time: on 1,024 CPUs in eight nodes.

use std::time::{Duration, Instant};

use policy::{Dealer as _, Division as _, Elastic, GroupState, Parameters, Policy, Units};

use crate::measure::Times;

/// Groups, and the longest that a tick should take with them: with 100, 0.5 % of a CPU at ten ticks a second.
pub const ROWS: [(usize, Duration); 2] =
    [(1_000, Duration::from_millis(20)), (100, Duration::from_micros(500))];

const TICKS: usize = 600;
/// Between two ticks.
const PERIOD: Duration = Duration::from_millis(100);
/// The number of ticks for which a group is the busy one of a hundred.
const TURN: usize = 20;

/// Ticks over and over; how many changes there were.
pub fn measure(groups: usize) -> Result<(Times, usize), String> {
    let units = Units::regular(8, 128, 1).map_err(|error| error.to_string())?;
    let group =
        |index: usize| Elastic { name: format!("g{index}"), min: 1, max: 64, weight: 100, borrows: false };
    let all: Vec<Elastic> = (0..groups).map(group).collect();
    let mut policy = Policy::new(&all, units, Parameters::default()).map_err(|error| error.to_string())?;
    let (mut times, mut changes, mut now) = (Vec::with_capacity(TICKS), 0, Duration::ZERO);
    for tick in 0..TICKS {
        let state = |index: usize| {
            let has = policy.pool().size(index) as f64;
            let demand = if (index + tick / TURN).is_multiple_of(100) { 20.0 } else { 0.3 };
            let waiting = (1.0 - has / demand).max(0.0);
            GroupState { used: has.min(demand), waiting, ..GroupState::default() }
        };
        let states: Vec<GroupState> = (0..groups).map(state).collect();
        let began = Instant::now();
        changes += policy.tick(now, &states).len();
        times.push(began.elapsed());
        now += PERIOD;
    }
    Ok((Times::of(times), changes))
}
