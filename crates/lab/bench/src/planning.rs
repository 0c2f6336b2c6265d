//! The planner and the policy alone, in this process, on machines that nobody has: a layout of 500 groups for 16 nodes with
//! 1,024 CPUs, where reading the layout is not part of the time; and a tick of the policy while all groups change all the
//! time, on 1,024 CPUs in eight nodes.

use std::{
    fmt::Write,
    hint::black_box,
    time::{Duration, Instant},
};

use layout::{Desired, Source};
use plan::{Anybody, MachineFacts, Observed};
use policy::{Dealer as _, Division as _, Elastic, GroupState, Parameters, Policy, Units};
use settings::Version;
use topology::{L3Group, LogicalCpu, Machine, Node};
use units::{Bytes, CpuSet};

use crate::{
    Selection,
    measure::{Done, Said, show_alone},
};

/// The longest that planning should take.
const GOAL: Duration = Duration::from_millis(50);

const NODES: usize = 16;
const CPUS: usize = 1_024;
/// CPUs that share an L3 cache: eight cores of two threads.
const CPUS_OF_L3: usize = 16;
const MEMORY_OF_NODE: Bytes = Bytes(512 << 30);
/// Groups of each kind; 500 together.
const POOLS: usize = NODES;
const EXCLUSIVE: usize = 84;
const WHOLE_CORES: usize = 200;
const BELOW: usize = 200;

const RUNS: usize = 41;

/// Groups, and the longest that a tick should take with them: with 100, 0.5 % of a CPU at ten ticks a second.
const TICK_ROWS: [(usize, Duration); 2] =
    [(1_000, Duration::from_millis(20)), (100, Duration::from_micros(500))];

const TICKS: usize = 600;
/// Between two ticks.
const PERIOD: Duration = Duration::from_millis(100);
/// The number of ticks for which a group is the busy one of a hundred.
const TURN: usize = 20;

/// Plans over and over.
pub fn plan(_: &Selection) -> Done {
    let (machine, desired) = (machine()?, desired()?);
    let observed = Observed::empty(Version::V2);
    let mut times = Vec::with_capacity(RUNS);
    for _ in 0..RUNS {
        let started = Instant::now();
        let planned = plan::plan(&desired, &machine, &observed, &MachineFacts(&machine), &Anybody);
        times.push(started.elapsed());
        let planned = black_box(planned).map_err(|problems| format!("{:?}", problems.first()))?;
        if planned.assignments.len() < desired.groups.len() - BELOW {
            return Err(format!("only {} groups were given CPUs", planned.assignments.len()));
        }
    }
    show_alone("plan, 500 groups on 1,024 CPUs", &times, GOAL, "");
    Ok(())
}

/// CPU `i` and CPU `i + 512` are one core, as x86 numbers them; the nodes are a ring.
fn machine() -> Done<Machine> {
    let cores = CPUS / 2;
    let cores_of_node = cores / NODES;
    let both = |cores: std::ops::Range<usize>| -> CpuSet {
        cores.clone().chain(cores.map(|core| core + CPUS / 2)).collect()
    };
    let node = |id: usize| {
        let far = |other: usize| id.abs_diff(other).min(NODES - id.abs_diff(other));
        let distance = |other| 10 + u32::try_from(far(other)).unwrap_or(u32::MAX) * 5;
        Node {
            id,
            cpus: both(id * cores_of_node..(id + 1) * cores_of_node),
            memory_total: Some(MEMORY_OF_NODE),
            memory_free: None,
            distances: Some((0..NODES).map(distance).collect()),
        }
    };
    let cpu = |id: usize| {
        let core = id % cores;
        LogicalCpu {
            id,
            online: true,
            package: u32::try_from(core / cores_of_node).ok(),
            core: u32::try_from(core % cores_of_node).ok(),
            node: Some(core / cores_of_node),
            l3: Some(core / (CPUS_OF_L3 / 2)),
            siblings: Some(both(core..core + 1)),
            max_mhz: None,
        }
    };
    let cores_of_l3 = CPUS_OF_L3 / 2;
    let l3 = |index: usize| L3Group {
        cpus: both(index * cores_of_l3..(index + 1) * cores_of_l3),
        ..L3Group::default()
    };
    let machine = Machine {
        cpus: (0..CPUS).map(cpu).collect(),
        nodes: (0..NODES).map(node).collect(),
        l3: Some((0..CPUS / CPUS_OF_L3).map(l3).collect()),
        ..Machine::default()
    };
    // through its reader, which checks it
    Machine::from_listing("synthetic", &machine.to_json()).said("the machine")
}

/// A pool on each node with groups in it, groups with cores of their own, and groups that share.
fn desired() -> Done<Desired> {
    let mut text = String::new();
    for index in 0..POOLS {
        let _ = writeln!(
            text,
            "[groups.pool{index}]\ncpus = {{ count = 16, near = \"node:{index}\" }}\nmems = \"local\"\nmemory.max = \"128G\"\n"
        );
    }
    for index in 0..EXCLUSIVE {
        let _ = writeln!(text, "[groups.rt{index}]\ncpus = 2\nexclusive = true\nmems = \"local\"\n");
    }
    for index in 0..WHOLE_CORES {
        let node = index % NODES;
        let _ = writeln!(
            text,
            "[groups.web{index}]\ncpus = {{ count = 4, near = \"node:{node}\", smt = \"whole-cores\" }}\nmems = \"local\"\ncpu.weight = {}\nmemory.max = \"4G\"\n",
            100 + index
        );
    }
    for index in 0..BELOW {
        let pool = index % POOLS;
        let _ = writeln!(
            text,
            "[groups.\"pool{pool}/job{index}\"]\ncpu.max = \"150%\"\nmemory.max = \"2G\"\npids.max = 500\ntasks = {{ user = \"job\", group = \"job\" }}\n"
        );
    }
    let reading = layout::read_toml(&[Source::new("synthetic.toml", &text)]);
    reading.desired.ok_or_else(|| format!("{:?}", reading.diagnostics.first()))
}

/// Ticks over and over.
pub fn ticks(selection: &Selection) -> Done {
    for (groups, most) in TICK_ROWS {
        let row = format!("tick, {groups} elastic groups on 1,024 CPUs");
        if selection.wants(&row) {
            let (times, changes) = tick(groups)?;
            show_alone(&row, &times, most, &format!(", {changes} changes"));
        }
    }
    Ok(())
}

/// The times, and how many changes there were.
fn tick(groups: usize) -> Done<(Vec<Duration>, usize)> {
    let units = Units::regular(8, 128, 1).said("the CPUs")?;
    let group =
        |index: usize| Elastic { name: format!("g{index}"), min: 1, max: 64, weight: 100, borrows: false };
    let all: Vec<Elastic> = (0..groups).map(group).collect();
    let mut policy = Policy::new(&all, units, Parameters::default()).said("the policy")?;
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
    Ok((times, changes))
}
