//! What the lab's own sampling takes from a workload: the same experiment with samples and without. And its built-in cyclic
//! latency measurement beside cyclictest of rt-tests: how late a SCHED_FIFO thread wakes. Both lock their memory, keep the
//! CPUs awake and bind their thread to a CPU. What differs systematically is an error of ours; one wake-up in a hundred is
//! the machine's.

use std::{
    ffi::OsStr,
    fs,
    io::ErrorKind,
    process::{Command, Stdio},
};

use serde_json::Value;

use crate::{
    Selection,
    measure::{Done, Numbers, Said, in_turns, show},
};

/// The least share of the rate without samples that we want.
const GOAL: f64 = 0.99;
const PAIRS: usize = 12;
/// As often as an experiment samples by itself, and not at all.
const SAMPLE: [&str; 2] = ["200ms", "0s"];

/// Of the medians of late wake-ups, or this many microseconds: cyclictest counts in whole ones.
const LATE_GOAL: f64 = 1.2;
const LATE_GOAL_US: f64 = 3.0;
/// Runs of each side, and the seconds of one.
const ROUNDS: usize = 6;
const SECONDS: u64 = 10;
/// Bins of cyclictest's histogram, a microsecond each.
const BINS: &str = "1000000";

/// Rates of work per second on all CPUs.
pub fn samples(selection: &Selection) -> Done {
    let directory = tempfile::tempdir_in("/var/tmp").said("/var/tmp")?;
    let file = directory.path().join("experiment.toml");
    let mut rates: [Vec<f64>; 2] = Default::default();
    in_turns(PAIRS, 2, |run, side| {
        fs::write(&file, experiment(SAMPLE[side])?).said(file.display())?;
        let results = directory.path().join(format!("{run}-{side}"));
        let mut words: Vec<&OsStr> = ["lab", "run", "--json", "--directory"].map(OsStr::new).to_vec();
        words.extend([results.as_os_str(), file.as_os_str()]);
        let found: Value =
            serde_json::from_str(&output(selection.program.as_os_str(), &words)?).said("its results")?;
        rates[side].push(found["runs"][0]["figures"]["work"].as_f64().ok_or("the results have no rate")?);
        Ok(())
    })?;
    let [sampled, unsampled] = rates.map(Numbers::of);
    show("lab, work per second sampled / not", [&sampled, &unsampled], 1, GOAL, "  or more");
    Ok(())
}

fn experiment(sample: &str) -> Done<String> {
    let cpus = std::thread::available_parallelism().said("the CPUs")?;
    // the gates are open: what disturbs one side disturbs the other, too
    Ok(format!(
        r#"
name = "overhead"
title = "What samples take"
repetitions = 1
duration = "4s"
warm-up = "500ms"
steady-within = "500ms"
sample = "{sample}"
[gates]
foreign-cpu = 1.0
steal = 1.0
[group.server]
[workload.work]
driver = "cpu"
threads = {cpus}
group = "server"
[[condition]]
name = "all CPUs"
[[measure]]
name = "work"
is = "work.rate"
"#
    ))
}

/// P50 and P99 of both sides, in microseconds.
pub fn wake_ups(selection: &Selection) -> Done {
    let names = ["P50", "P99"].map(|quantile| format!("late wake-ups / cyclictest, {quantile}, us"));
    if !names.iter().any(|name| selection.wants(name)) {
        return Ok(());
    }
    let mut found: [[Vec<f64>; 2]; 2] = Default::default();
    in_turns(ROUNDS, 2, |_, side| {
        let seen = if side == 0 { late(selection.program.as_os_str())? } else { peers_late()? };
        found.iter_mut().zip(seen).for_each(|(quantile, seen)| quantile[side].push(seen));
        Ok(())
    })?;
    for (name, sides) in names.iter().zip(found) {
        let [ours, peer] = sides.map(Numbers::of);
        let more = format!("  or {:+.1} us within {LATE_GOAL_US}", ours.median - peer.median);
        show(name, [&ours, &peer], 1, LATE_GOAL, &more);
    }
    Ok(())
}

fn late(program: &OsStr) -> Done<[f64; 2]> {
    let milliseconds = (SECONDS * 1000).to_string();
    let said = output(program, &["worker", "cyclic", "--time-ms", &milliseconds].map(OsStr::new))?;
    let line = said.lines().next_back().unwrap_or_default();
    let report: Value = serde_json::from_str(line).said(line)?;
    if report["priority"] == 0 {
        return Err(format!("no real-time measurement: {}", report["warnings"]));
    }
    let figure = |name: &str| report["latency"][name].as_f64().map(|seconds| seconds * 1e6);
    let figures = figure("p50").zip(figure("p99"));
    figures.map(|(p50, p99)| [p50, p99]).ok_or_else(|| format!("no figures in {line}"))
}

fn peers_late() -> Done<[f64; 2]> {
    let report = tempfile::NamedTempFile::new().said("cyclictest")?;
    let (seconds, json) = (SECONDS.to_string(), format!("--json={}", report.path().display()));
    let options = [
        "-q",
        "-m",
        "-t1",
        "-p90",
        "-i1000",
        "-d0",
        "--histfile=/dev/null",
        "-h",
        BINS,
        "-D",
        &seconds,
        &json,
    ];
    output(OsStr::new("cyclictest"), &options.map(OsStr::new))?;
    let text = fs::read_to_string(report.path()).said("cyclictest")?;
    let found: Value = serde_json::from_str(&text).said("cyclictest")?;
    let bins = found["thread"]["0"]["histogram"].as_object().ok_or("cyclictest: no histogram")?;
    let bin = |(from, count): (&String, &Value)| Some((from.parse::<u64>().ok()?, count.as_u64()?));
    let mut bins: Vec<(u64, u64)> = bins.iter().filter_map(bin).collect();
    bins.sort_unstable();
    let all: u64 = bins.iter().map(|(_, count)| count).sum();
    let at = |share: f64| {
        let mut below = 0;
        let bin = bins.iter().find(|(_, count)| {
            below += count;
            below as f64 >= share * all as f64
        });
        // the middle of what may be in it
        bin.map(|(from, _)| *from as f64 + 0.5).ok_or("cyclictest: no cycles")
    };
    Ok([at(0.5)?, at(0.99)?])
}

fn output(program: &OsStr, arguments: &[&OsStr]) -> Done<String> {
    let name = program.display();
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output();
    let output = output.map_err(|error| match error.kind() {
        ErrorKind::NotFound if program == "cyclictest" => format!("{name} is missing: apt install rt-tests"),
        _ => format!("{name}: {error}"),
    })?;
    if !output.status.success() {
        return Err(format!("{name}: {}", String::from_utf8_lossy(&output.stderr).trim()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
