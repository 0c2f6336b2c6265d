//! The planner alone, in this process: a layout of 500 groups for a machine of 16 nodes with 1,024 CPUs that nobody has.
//! Reading the layout is not part of the time.

use std::{
    fmt::Write,
    hint::black_box,
    time::{Duration, Instant},
};

use layout::{Desired, Source};
use plan::{Anybody, MachineFacts, Observed};
use settings::Version;
use topology::{L3Group, LogicalCpu, Machine, Node};
use units::{Bytes, CpuSet};

use crate::measure::Times;

/// The longest that planning should take.
pub const GOAL: Duration = Duration::from_millis(50);

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

/// Plans over and over.
pub fn measure() -> Result<Times, String> {
    let machine = machine()?;
    let desired = desired()?;
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
    Ok(Times::of(times))
}

/// CPU `i` and CPU `i + 512` are one core, as x86 numbers them; the nodes are a ring.
fn machine() -> Result<Machine, String> {
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
    Machine::from_listing("synthetic", &machine.to_json()).map_err(|error| error.to_string())
}

/// A pool on each node with groups in it, groups with cores of their own, and groups that share.
fn desired() -> Result<Desired, String> {
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
