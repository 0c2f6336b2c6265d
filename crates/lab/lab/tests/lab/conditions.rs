//! What conditions give an experiment's groups and workloads, seen in the figures of its runs on the real kernel: CPUs and
//! real-time budgets of their own, limits of memory, options.

use std::{
    fs,
    io::{BufRead, BufReader},
    process::Command,
};

use experiment::Note;

use crate::{
    experiments::{OPEN, Place, finish, leaves_nothing, swap_there},
    real::{Test, Tested, check},
};

pub const CPU_OF_ITS_OWN: (&str, Test) =
    ("real_time_groups_have_a_budget_and_cpus_of_their_own", real_time_groups);

pub fn tests() -> Vec<(&'static str, Test)> {
    vec![
        ("conditions_give_a_workload_options_of_their_own", conditions_give_options),
        ("a_limited_server_swaps_to_a_file_of_the_labs_own_while_memory_is_free", a_limited_server_swaps),
    ]
}

/// As study S4, with cyclictest if it is there: SCHED_FIFO is refused where groups have real-time budgets and this one
/// has none, and cyclictest then fails. The busy threads are many and run for seconds, as two may both stay on one CPU of a
/// busy machine; and they weigh much, as the kernel takes a group of the usual weight for one thread when it spreads load.
fn real_time_groups() -> Tested {
    let tool = Command::new("cyclictest").arg("--help").output().is_ok();
    let tool = if tool { "[workload.tool]\ndriver = \"cyclictest\"\ngroup = \"realtime\"" } else { "" };
    let text = format!(
        r#"
name = "test"
title = "A test"
repetitions = 1
duration = "3s"
warm-up = "200ms"
steady-within = "200ms"
sample = "0s"
others = "general"
{OPEN}
[cpus.rt]
count = 1
from = "last"
[cpus.rest]
from = "before"
before = "rt"
[group.general]
[group.realtime]
[workload.task]
driver = "cyclic"
group = "realtime"
[workload.busy]
driver = "busy"
threads = 8
group = "general"
{tool}
[[condition]]
name = "own"
settings.general."cpuset.cpus" = "{{rest}}"
settings.realtime."cpuset.cpus" = "{{rt}}"
settings.realtime."cpuset.cpus.partition" = "root"
[[condition]]
name = "shared"
settings.general."cpu.weight" = 10000
[[measure]]
name = "on it"
is = "general.cpu-on.rt"
"#
    );
    let place = Place::with(&text)?;
    place.run_whole()?;
    let runs = place.runs()?;
    check(runs.len() == 2, || format!("{} runs", runs.len()))?;
    for run in runs {
        check(run.readings["task.priority"] == 90.0, || format!("{:?}", run.notes))?;
        check(tool.is_empty() || run.readings["tool.cycles"] > 0.0, || format!("{:?}", run.readings))?;
        let used = *run.figures.get("on it").ok_or_else(|| format!("{:?}", run.readings))?;
        // by the kernel's accounts: none of it, or some
        check((used == 0.0) == (run.condition == "own"), || format!("{used} in '{}'", run.condition))?;
        // nobody requested a move
        let reported = run.notes.iter().any(|note| matches!(note, Note::CpusWereOpen { can_ask: true, .. }));
        let closed = !run.notes.iter().any(|note| matches!(note, Note::CpusWereOpen { .. }));
        check(closed || reported, || format!("{:?}", run.notes))?;
    }
    Ok(())
}

fn a_limited_server_swaps() -> Tested {
    // its memory alone is more than the limit by an eighth, and transactions touch all of it; few enough that the kernel
    // need not kill it because all pages were just used
    let text = format!(
        r#"
name = "test"
title = "A test"
repetitions = 1
duration = "2s"
warm-up = "1s"
steady-within = "1s"
{OPEN}
[device.swap]
kind = "swap"
size = "{}M"
[group.server]
[workload.load]
driver = "oltp"
memory = "64M"
rows = 10000
clients = 2
workers = 1
rate = 300
group = "server"
[[condition]]
name = "limited"
settings.server."memory.max" = "56M"
[[measure]]
name = "free"
is = "machine.memory.available / machine.memory.total"
[[measure]]
name = "of the nodes"
is = "machine.memory.node.free.0 / machine.memory.node.free"
[[measure]]
name = "swapped"
is = "server.memory.swap"
[[measure]]
name = "in and out"
is = "machine.swap.in + machine.swap.out"
[[chart]]
title = "over time"
kind = "time"
of = ["machine.swap.in", "machine.memory.free"]
"#,
        swap_there() + 1024
    );
    let place = Place::with(&text)?;
    let mut child = place.run(false)?.spawn()?;
    let pid = child.id();
    let mut said = String::new();
    let mut used = String::new();
    for line in BufReader::new(child.stdout.take().ok_or("no output")?).lines().map_while(Result::ok) {
        said += &line;
        if line == "run 1" {
            used = fs::read_to_string("/proc/swaps")?;
        }
    }
    finish(child)?;
    leaves_nothing(pid)?;
    check(used.contains(&format!("/rf-lab-{pid}-")), || format!("{said}: {used}"))?;
    let runs = place.runs()?;
    let [run] = &runs[..] else { return Err(format!("{} runs", runs.len()).into()) };
    let figure = |name: &str| run.figures.get(name).copied().ok_or_else(|| format!("no {name}: {run:?}"));
    let (free, nodes) = (figure("free")?, figure("of the nodes")?);
    check(free > 0.0 && free < 1.0 && nodes > 0.0 && nodes <= 1.0, || format!("{free}, {nodes}"))?;
    // not all of it, as what is seldom used may be dropped: its database
    check(figure("swapped")? > 1e6, || format!("{:?}", run.figures))?;
    check(figure("in and out")? > 0.0, || format!("{:?}", run.figures))?;
    for name in ["machine.swap.in", "machine.memory.free"] {
        let points = run.series.iter().find(|series| series.name == name).map(|series| series.points.len());
        check(points.is_some_and(|points| points > 5), || format!("{name}: {points:?}"))?;
    }
    Ok(())
}

/// Readers of a small buffer cache, bound and caged.
fn readers() -> String {
    format!(
        r#"
name = "test"
title = "Readers"
repetitions = 1
duration = "1s"
warm-up = "200ms"
steady-within = "200ms"
{OPEN}
[cpus.one]
count = 1
[group.database]
[workload.engine]
driver = "logical-io"
readers = 4
memory = "16M"
quantum-ms = 5
group = "database"
[[condition]]
name = "bound"
settings.database."cpuset.cpus" = "{{one}}"
settings.database."cpuset.mems" = "{{one.mems}}"
[[condition]]
name = "caged"
settings.database."cpuset.cpus" = "{{one}}"
settings.database."cpuset.mems" = "{{one.mems}}"
options.engine.cpu-count = "{{one}}"
options.engine.placement = "bind:{{one.mems}}"
[[measure]]
name = "reads"
is = "engine.reads"
[[measure]]
name = "accounted for"
is = "engine.db-cpu + engine.run-queue + engine.cpu-quantum / engine.db-time"
[[table]]
title = "Events"
kind = "top-events"
of = "engine"
"#
    )
}

fn conditions_give_options() -> Tested {
    let place = Place::with(&readers())?;
    place.run_whole()?;
    let runs = place.runs()?;
    check(runs.len() == 2, || format!("{} runs", runs.len()))?;
    for run in &runs {
        let caged = run.condition == "caged";
        let reported = |name: &str| {
            let options = run.settings.iter().filter(|setting| setting.group == "engine");
            options.filter(|setting| setting.name == name).map(|setting| setting.requested.as_str()).next()
        };
        check(reported("cpu-count") == caged.then_some("1"), || format!("{:?}", run.settings))?;
        let bound = reported("placement").is_some_and(|placement| placement.starts_with("bind:"));
        check(bound == caged, || format!("{:?}", run.settings))?;
        let waits = run.readings.get("engine.cpu-quantum").copied().unwrap_or_default();
        check((waits > 0.0) == caged, || format!("{:?}", run.readings))?;
        check(run.figures["reads"] > 0.0, || format!("{:?}", run.figures))?;
        // what the hypervisor and interrupts took is in DB Time alone
        let steal = run.gates.iter().find(|gate| gate.name == "steal").map_or(0.0, |gate| gate.seen);
        let accounted = run.figures["accounted for"];
        check(accounted < 1.02 && accounted > 0.98 - steal, || format!("{accounted}, steal {steal}"))?;
        let report = fs::read_dir(place.results().join("runs").join(run.number.to_string()))?.count();
        check(report == 1, || format!("{report} files are with the results"))?;
    }
    Ok(())
}
