//! One set of results per kind of study, and those that are not as results should be.

use experiment::{Note, Warning};

use super::*;

/// PostgreSQL on one CPU, on all, moved in the middle, and with a quota (study S5).
pub fn cpusets() -> Results {
    let names = ["one CPU", "all CPUs", "one, then all", "quota of one CPU"];
    let measures = [
        measure("throughput", "1/s", Better::Higher),
        measure("server CPU", "CPUs", Better::Higher),
        measure("per CPU-second", "1/s", Better::Higher),
    ];
    let mut experiment = experiment(
        "s5",
        "PostgreSQL on fewer CPUs: what a cpuset does, and what a quota of the same size does",
        &names,
        &[],
        &measures,
    );
    experiment.about =
        "Binding a database to CPUs with cgroups is said to limit its throughput to those CPUs, at once, \
                        and without a restart.\n\nThe study had 4 CPUs; here one CPU stands for two of them."
            .to_owned();
    experiment.workload = BTreeMap::from([(
        "load".to_owned(),
        Workload {
            driver: Driver::Pgbench(Pgbench::default()),
            group: Some("server".to_owned()),
            clients_group: Some("clients".to_owned()),
            conditions: Vec::new(),
        },
    )]);
    experiment.event = vec![Event {
        at: "50%".to_owned(),
        conditions: vec!["one, then all".to_owned()],
        settings: BTreeMap::from([(
            "server".to_owned(),
            BTreeMap::from([("cpuset.cpus".to_owned(), "{all}".to_owned())]),
        )]),
        label: "server: one CPU → all CPUs".to_owned(),
    }];
    experiment.chart = vec![
        chart("Throughput", ChartKind::Bars, &["throughput"]),
        chart(
            "Server CPU, and throughput per CPU-second of the server",
            ChartKind::Bars,
            &["server CPU", "per CPU-second"],
        ),
        chart("Throughput over time", ChartKind::Time, &["load.tps", "server.cpu"]),
        chart("Last-used CPU of each server process", ChartKind::Tasks, &["server"]),
        chart("The same block by block", ChartKind::Slopes, &["throughput"]),
    ];
    experiment.chart[0].line = vec![Line {
        at: 39_800.0,
        label: "twice one CPU (ideal scaling)".to_owned(),
        condition: Some("all CPUs".to_owned()),
    }];
    let mut results = results(experiment, 6);
    let mut dice = Dice::new(5);
    let expected = [(19_900.0, 0.98), (35_700.0, 1.71), (27_600.0, 1.35), (20_600.0, 1.0)];
    let mut number = 0;
    for block in 1..=6 {
        for (name, (tps, cpu)) in names.iter().zip(expected) {
            number += 1;
            if number == 9 {
                let mut bad = cpuset_run(number, block, name, tps * 0.71, cpu * 0.8, &mut dice);
                bad.gates = gates(0.183);
                bad.rejected = Some("foreign CPU 18 % is above 5 %".to_owned());
                results.runs.push(bad);
                number += 1;
            }
            let mut run = cpuset_run(number, block, name, dice.about(tps, 0.025), cpu, &mut dice);
            run.attempt = if number == 10 { 2 } else { 1 };
            results.runs.push(run);
        }
    }
    cells(&mut results);
    results.cells[0].published = Some((11_742.0, "the study, figure 3".to_owned()));
    results.cells[1].published = Some((23_016.0, "the study, figure 3".to_owned()));
    results.comparisons = vec![
        compared(&results, "throughput", ("one CPU", "all CPUs"), None, Verdict::Faster),
        compared(&results, "throughput", ("one CPU", "quota of one CPU"), None, Verdict::Equivalent),
        compared(&results, "per CPU-second", ("one CPU", "all CPUs"), None, Verdict::Inconclusive),
    ];
    results.comparisons[0].published = Some((1.96, "the study, figure 3".to_owned()));
    results.comparisons[1].note =
        Some("the quota's transactions have 17 times the spread of latency".to_owned());
    results.design.cpus = vec![
        ("one".to_owned(), "2 of 4".to_owned(), "0".to_owned()),
        ("all".to_owned(), "4 of 4".to_owned(), "0-1".to_owned()),
    ];
    results.notes = vec![
        Note::RescaledCpus { study: "2 and 4".to_owned(), here: "1 and 2".to_owned(), plural: true },
        Note::OneNode { study: 4, sets: vec!["one".to_owned()] },
    ];
    results
}

fn cpuset_run(number: u32, block: u32, condition: &str, tps: f64, cpu: f64, dice: &mut Dice) -> Run {
    let mut run = run(number, block, condition, None, dice);
    run.figures = BTreeMap::from([
        ("throughput".to_owned(), tps),
        ("server CPU".to_owned(), cpu),
        ("per CPU-second".to_owned(), tps / cpu),
    ]);
    run.readings = BTreeMap::from([("load.tps".to_owned(), tps), ("server.cpu".to_owned(), cpu)]);
    let live = condition == "one, then all";
    let level = |time: f64| {
        if !live {
            1.0
        } else if time < 15.0 {
            0.72
        } else {
            1.28
        }
    };
    let mut points = Vec::new();
    let mut busy = Vec::new();
    for step in -25..=150 {
        let time = f64::from(step) * 0.2;
        let rise = if time < 0.0 { 0.75 + (time + 5.0) * 0.05 } else { 1.0 };
        points.push((time, dice.about(tps * level(time) * rise, 0.05)));
        busy.push((time, dice.about(cpu * level(time) * rise, 0.02)));
    }
    run.series = vec![
        Series { name: "load.tps".to_owned(), unit: "1/s".to_owned(), points },
        Series { name: "server.cpu".to_owned(), unit: "CPUs".to_owned(), points: busy },
    ];
    let cpus = match condition {
        "all CPUs" | "quota of one CPU" => "0-1",
        _ => "0",
    };
    run.settings = vec![
        setting("server", "cpuset.cpus", cpus, &format!("cpuset/ringfence/server/cpuset.cpus = {cpus}")),
        setting("clients", "cpuset.cpus", "0-1", "cpuset/ringfence/clients/cpuset.cpus = 0-1"),
    ];
    if condition == "quota of one CPU" {
        run.settings.push(setting(
            "server",
            "cpu.max",
            "100000 100000",
            "cpu/ringfence/server/cpu.cfs_quota_us = 100000, cpu.cfs_period_us = 100000",
        ));
    }
    if live {
        run.events = vec![EventDone {
            at: 15.004,
            took: 0.000_181,
            label: "server: one CPU → all CPUs".to_owned(),
            settings: vec![setting(
                "server",
                "cpuset.cpus",
                "0-1",
                "cpuset/ringfence/server/cpuset.cpus = 0-1",
            )],
        }];
    }
    let names = ["postmaster", "checkpointer", "background writer", "walwriter"];
    for task in 0..12u32 {
        let mut cpus = Vec::new();
        for step in 0..150u32 {
            let time = f64::from(step) * 0.2;
            let bound = condition == "one CPU" || (live && time < 15.1);
            let other = dice.share() < if task < 4 { 0.02 } else { 0.1 };
            let last = cpus.last().map_or(task % 2, |(_, cpu)| *cpu);
            cpus.push((
                time,
                if bound {
                    0
                } else if other {
                    1 - last
                } else {
                    last
                },
            ));
        }
        let name =
            names.get(task as usize).map_or_else(|| "postgres: bench".to_owned(), |name| (*name).to_owned());
        run.tasks.push(TaskSeen { tid: 41_200 + task, name, group: "server".to_owned(), cpus });
    }
    run
}

/// Read limits on a device, requested and measured (study S2).
pub fn io_limits() -> Results {
    let names = ["unlimited", "10 iops", "100 iops", "1,000 iops"];
    let requested = [43_800.0, 10.0, 100.0, 1_000.0];
    let measures = [measure("reads", "1/s", Better::Higher)];
    let mut experiment =
        experiment("s2", "Read limits on a block device: requested and measured", &names, &[], &measures);
    let lines: Vec<Line> = names
        .iter()
        .zip(requested)
        .skip(1)
        .map(|(name, at)| Line { at, label: format!("limit: {name}"), condition: Some((*name).to_owned()) })
        .collect();
    let mut bars = chart("Reads per second", ChartKind::Bars, &["reads"]);
    (bars.log, bars.line) = (true, lines.clone());
    let mut time = chart("Reads per second over time", ChartKind::Time, &["load.iops"]);
    (time.log, time.line) = (true, lines);
    experiment.chart =
        vec![bars, time, chart("How long a read took", ChartKind::Histogram, &["load.latency"])];
    experiment.gates.io = true;
    let mut results = results(experiment, 6);
    let mut dice = Dice::new(2);
    for block in 1..=6u32 {
        for (index, (name, limit)) in names.iter().zip(requested).enumerate() {
            let mut run = run((block - 1) * 4 + index as u32 + 1, block, name, None, &mut dice);
            let iops = dice.about(limit * if index == 0 { 1.0 } else { 0.96 }, 0.04);
            run.figures = BTreeMap::from([("reads".to_owned(), iops)]);
            let points = (-10..=60).map(|step| (f64::from(step) * 0.5, dice.about(iops, 0.3)));
            let points = points.collect();
            run.series = vec![Series { name: "load.iops".to_owned(), unit: "1/s".to_owned(), points }];
            run.latencies =
                BTreeMap::from([("load.latency".to_owned(), latency(4.0 / limit, 5_000, &mut dice))]);
            let value = if index == 0 { "max".to_owned() } else { format!("7:0 riops={limit}") };
            run.settings = vec![setting("reader", "io.max", &value, "blkio.throttle.read_iops_device")];
            results.runs.push(run);
        }
    }
    cells(&mut results);
    results.comparisons = names[1..]
        .iter()
        .map(|name| compared(&results, "reads", ("unlimited", name), None, Verdict::Slower))
        .collect();
    results
}

/// A distribution about this median, with a long tail.
pub fn latency(median: f64, count: u64, dice: &mut Dice) -> Latency {
    let mut all: Vec<f64> = (0..count)
        .map(|_| median * (dice.share() * 4.0 - 2.0).exp2() / (1.0 - dice.share() * 0.998))
        .collect();
    all.sort_by(f64::total_cmp);
    let at = |share: f64| all[((all.len() - 1) as f64 * share) as usize];
    let mut bins: BTreeMap<i64, u64> = BTreeMap::new();
    for value in &all {
        *bins.entry((value.log2() * 8.0).ceil() as i64).or_default() += 1;
    }
    Latency {
        count,
        mean: all.iter().sum::<f64>() / count as f64,
        min: at(0.0),
        p50: at(0.5),
        p95: at(0.95),
        p99: at(0.99),
        p999: (count >= 1_000).then(|| at(0.999)),
        max: at(1.0),
        bins: bins.into_iter().map(|(bin, count)| ((bin as f64 / 8.0).exp2(), count)).collect(),
        missed: 0,
    }
}

/// Wake-up latency of four divisions under four loads (study S4).
pub fn wakeups() -> Results {
    let names = ["nothing set", "cpuset", "cpuset and FIFO", "exclusive CPUs, all else moved away"];
    let loads = ["undisturbed", "busy loops", "many short sleeps", "writes with fsync"];
    let measures = ["average", "P99.9", "longest"].map(|name| measure(name, "s", Better::Lower));
    let mut experiment = experiment(
        "s4",
        "How late does a thread wake up? Four divisions under four loads",
        &names,
        &loads,
        &measures,
    );
    experiment.chart = vec![
        chart("Wake-up latency", ChartKind::Heat, &["average", "P99.9", "longest"]),
        chart("Wake-up latencies over each other", ChartKind::Histogram, &["cyclic.latency"]),
    ];
    let mut results = results(experiment, 4);
    let mut dice = Dice::new(4);
    let mut number = 0;
    for block in 1..=4 {
        for (which, name) in names.iter().enumerate() {
            for (load_number, load) in loads.iter().enumerate() {
                number += 1;
                let mut run = run(number, block, name, Some(load), &mut dice);
                let median = 4e-6 * (1.0 + load_number as f64 * (3 - which) as f64 * 0.9);
                let seen = latency(median, 20_000, &mut dice);
                run.figures = BTreeMap::from([
                    ("average".to_owned(), seen.mean),
                    ("P99.9".to_owned(), seen.p999.unwrap_or(seen.max)),
                    ("longest".to_owned(), seen.max),
                ]);
                run.latencies = BTreeMap::from([("cyclic.latency".to_owned(), seen)]);
                run.steady = None;
                results.runs.push(run);
            }
        }
    }
    cells(&mut results);
    results.comparisons = loads[1..]
        .iter()
        .map(|load| {
            compared(&results, "P99.9", ("nothing set", "cpuset and FIFO"), Some(load), Verdict::Faster)
        })
        .collect();
    results
}

/// Where the time of a database goes in five divisions (study S3).
pub fn db_time() -> Results {
    let names =
        ["nothing", "instance caging", "binding to CPUs", "caging and binding", "more threads than CPUs"];
    let measures =
        ["DB CPU", "run-queue wait", "resmgr:cpu quantum"].map(|name| measure(name, "s", Better::Lower));
    let mut experiment = experiment("s3", "Where DB Time goes", &names, &[], &measures);
    experiment.chart = vec![chart(
        "DB Time and its parts",
        ChartKind::Stacked,
        &["DB CPU", "run-queue wait", "resmgr:cpu quantum"],
    )];
    experiment.table = vec![
        table("Load profile", TableKind::LoadProfile, "load"),
        table("Top events", TableKind::TopEvents, "load"),
        table("Ranking", TableKind::Ranking, "run-queue wait"),
    ];
    if let Some(load) = experiment.workload.get_mut("load") {
        load.driver = Driver::LogicalIo(LogicalIo { readers: "9".to_owned(), ..LogicalIo::default() });
    }
    for index in [1, 3] {
        let caging = BTreeMap::from([("cpu-count".to_owned(), "{six}".into())]);
        experiment.condition[index].options.insert("load".to_owned(), caging);
    }
    let mut results = results(experiment, 6);
    let mut dice = Dice::new(3);
    let parts =
        [[52.0, 61.0, 0.0], [54.0, 6.0, 58.0], [55.0, 57.0, 0.0], [54.0, 4.0, 60.0], [50.0, 118.0, 0.0]];
    for block in 1..=6u32 {
        for (index, (name, parts)) in names.iter().zip(parts).enumerate() {
            let mut run = run((block - 1) * 5 + index as u32 + 1, block, name, None, &mut dice);
            let named = ["DB CPU", "run-queue wait", "resmgr:cpu quantum"].into_iter().zip(parts);
            run.figures = named.map(|(name, seconds)| (name.to_owned(), dice.about(seconds, 0.06))).collect();
            run.readings = engine(&run);
            if parts[2] > 0.0 {
                run.settings = vec![Setting {
                    group: "load".to_owned(),
                    name: "cpu-count".to_owned(),
                    requested: "1".to_owned(),
                    written: Vec::new(),
                }];
            }
            results.runs.push(run);
        }
    }
    cells(&mut results);
    for cell in results.cells.iter_mut().filter(|cell| cell.measure == "run-queue wait") {
        let published =
            [5.0, 1.0, 6.0, 2.0].into_iter().zip(&names).find(|(_, name)| **name == cell.condition);
        cell.published = published.map(|(value, _)| (value, "the study, table 2".to_owned()));
    }
    results.comparisons =
        vec![compared(&results, "DB CPU", ("nothing", "instance caging"), None, Verdict::Equivalent)];
    results.comparisons[0].published = Some((0.6, "the study, table 1".to_owned()));
    results
}

/// What a logical-I/O engine says of a run whose figures are its times.
fn engine(run: &Run) -> BTreeMap<String, f64> {
    let second = |name: &str| run.figures[name] / run.seconds;
    let (cpu, queue, quantum) = (second("DB CPU"), second("run-queue wait"), second("resmgr:cpu quantum"));
    let executions = cpu * 15_000.0;
    let reported = [
        ("db-time", cpu + queue + quantum),
        ("db-cpu", cpu),
        ("run-queue", queue),
        ("cpu-quantum", quantum),
        ("cpu-quantum-waits", quantum * 12.0),
        ("reads", executions * 64.0),
        ("executions", executions),
        ("calls", executions / 16.0),
        ("transactions", 0.0), // of a run that is too short for one
    ];
    reported.map(|(name, number)| (format!("load.{name}"), number)).into()
}

/// Twice the same, some runs rejected: nothing may be found.
pub fn same_twice() -> Results {
    let names = ["A", "A again"];
    let experiment = experiment(
        "aa",
        "Two equal conditions",
        &names,
        &[],
        &[measure("throughput", "1/s", Better::Higher)],
    );
    let mut results = results(experiment, 6);
    let mut dice = Dice::new(11);
    let mut number = 0;
    for block in 1..=6 {
        for name in names {
            for attempt in 1..=if block % 3 == 0 { 2 } else { 1 } {
                number += 1;
                let mut run = run(number, block, name, None, &mut dice);
                run.attempt = attempt;
                run.figures = BTreeMap::from([("throughput".to_owned(), dice.about(20_000.0, 0.06))]);
                if block % 3 == 0 && attempt == 1 {
                    run.gates = gates(0.11);
                    run.rejected = Some("foreign CPU 11 % is above 5 %".to_owned());
                    run.figures.insert("throughput".to_owned(), dice.about(15_000.0, 0.06));
                }
                results.runs.push(run);
            }
        }
    }
    cells(&mut results);
    results.comparisons =
        vec![compared(&results, "throughput", ("A", "A again"), None, Verdict::Inconclusive)];
    results
}

/// Interrupted before anything was there.
pub fn nothing_yet() -> Results {
    let mut results = cpusets();
    results.runs.clear();
    results.complete = false;
    results.environment = Environment::default();
    cells(&mut results);
    results.comparisons =
        vec![compared(&results, "throughput", ("one CPU", "all CPUs"), None, Verdict::Inconclusive)];
    (results.comparisons[0].p, results.comparisons[0].p_holm) = (None, None);
    results
}

/// Names and values that nobody should use.
pub fn absurd() -> Results {
    let evil = "<script>alert('x')</script> & \"quoted\" | `code` \u{7} [link](javascript:1)";
    let long = format!("a name that goes on and on {}", "and on ".repeat(60));
    let unbroken = "x".repeat(300);
    let names = [evil, long.as_str(), unbroken.as_str(), "日本語の条件名はとても長いかもしれません"];
    let measures = [
        measure(evil, "</text><script>", Better::Higher),
        measure("zero", "", Better::Lower),
        measure(&long, "a unit as long as a sentence may be if nobody stops it", Better::Higher),
    ];
    let mut experiment = experiment(evil, evil, &names, &[evil, "plain"], &measures);
    experiment.about = format!("{evil}\n\n{long}");
    experiment.group =
        BTreeMap::from([(evil.to_owned(), BTreeMap::from([(evil.to_owned(), evil.to_owned())]))]);
    let all = [evil, "zero", long.as_str()];
    let kinds = [
        ChartKind::Bars,
        ChartKind::Stacked,
        ChartKind::Slopes,
        ChartKind::Heat,
        ChartKind::Histogram,
        ChartKind::Tasks,
    ];
    experiment.chart = kinds.into_iter().map(|kind| chart(evil, kind, &all)).collect();
    experiment.chart.push(chart(&long, ChartKind::Time, &all));
    for index in 0..experiment.chart.len() {
        let mut log = experiment.chart[index].clone();
        log.log = true;
        log.line = vec![
            Line { at: 0.0, label: evil.to_owned(), condition: None },
            Line { at: 1e12, label: long.clone(), condition: Some(evil.to_owned()) },
        ];
        experiment.chart.push(log);
    }
    let mut results = results(experiment, 3);
    let mut dice = Dice::new(99);
    let values = [0.0, 1e12, -5.0, 1e-9, 1e300, 3.0];
    let mut number = 0;
    for block in 1..=3usize {
        for (index, name) in names.iter().enumerate() {
            for (which, load) in [evil, "plain"].into_iter().enumerate() {
                number += 1;
                let mut run = run(number, block as u32, name, Some(load), &mut dice);
                let value = |shift: usize| values[(index + block + which + shift) % values.len()];
                run.figures =
                    all.iter().enumerate().map(|(shift, name)| ((*name).to_owned(), value(shift))).collect();
                run.series = all
                    .iter()
                    .enumerate()
                    .map(|(shift, name)| Series {
                        name: (*name).to_owned(),
                        unit: evil.to_owned(),
                        points: vec![(-1.0, value(shift)), (0.0, 0.0), (1e6, value(shift + 1)), (3.0, 1.0)],
                    })
                    .collect();
                let bins = vec![(0.0, 3), (1e-9, 1), (1e12, u64::from(u32::MAX))];
                run.latencies = BTreeMap::from([(evil.to_owned(), Latency { bins, ..Latency::default() })]);
                let cpus = vec![(0.0, number % 64), (10.0, 0), (1e6, 4_000_000_000)];
                run.tasks =
                    vec![TaskSeen { tid: u32::MAX, name: evil.to_owned(), group: long.clone(), cpus }];
                let done = |at| EventDone { at, took: 0.0, label: evil.to_owned(), settings: Vec::new() };
                run.events = vec![done(0.0), done(0.0), done(1e12)];
                run.settings = vec![setting(evil, evil, evil, evil)];
                run.rejected = (block == 2).then(|| evil.to_owned());
                results.runs.push(run);
            }
        }
    }
    cells(&mut results);
    results.cells[0].published = Some((1e15, evil.to_owned()));
    results.cells[0].warnings = vec![Warning::AllRejected { runs: 2, last: evil.to_owned() }];
    let mut comparison = compared(&results, evil, (evil, &long), Some(evil), Verdict::Faster);
    comparison.published = Some((0.0, evil.to_owned()));
    comparison.note = Some(evil.to_owned());
    (comparison.ratio, comparison.interval) = (Some(1e12), Some((0.0, 1e15)));
    results.comparisons = vec![comparison];
    let note = |text: String| Note::Workload { workload: evil.to_owned(), text };
    results.notes = vec![note(evil.to_owned()), note(long)];
    results.environment.facts.push((evil.to_owned(), unbroken));
    results
}

/// All of them, each with a name for its directory.
pub fn all() -> Vec<(&'static str, Results)> {
    vec![
        ("cpusets", cpusets()),
        ("io-limits", io_limits()),
        ("wakeups", wakeups()),
        ("db-time", db_time()),
        ("same-twice", same_twice()),
        ("nothing-yet", nothing_yet()),
        ("absurd", absurd()),
    ]
}
