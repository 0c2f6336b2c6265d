//! The built-in cyclic latency measurement beside cyclictest of rt-tests, in turns: how late a SCHED_FIFO thread wakes.
//! Both lock their memory, keep the CPUs awake and bind their thread to a CPU. What differs systematically is an error of
//! ours; one wake-up in a hundred is the machine's.

use std::process::{Command, Stdio};

use serde_json::Value;

use crate::{interrupt, measure::Numbers};

/// Of medians, or [`GOAL_US`].
pub const GOAL: f64 = 1.2;
/// This many microseconds apart is as good as equal: cyclictest counts in whole ones.
pub const GOAL_US: f64 = 3.0;

/// Runs of each side.
const ROUNDS: usize = 6;
/// Of a run.
const SECONDS: u64 = 10;
/// Bins of cyclictest's histogram, a microsecond each.
const BINS: &str = "1000000";

/// Microseconds of one run.
struct Latency {
    p50: f64,
    p99: f64,
}

/// P50 and P99 of both sides, in microseconds.
pub struct Sides {
    pub p50: [Numbers; 2],
    pub p99: [Numbers; 2],
}

/// # Errors
/// cyclictest is missing, or one of them may not be real-time.
pub fn measure(program: &str) -> Result<Sides, String> {
    let mut sides: [Vec<Latency>; 2] = Default::default();
    for round in 0..ROUNDS {
        // who goes first alternates
        for side in [round % 2, 1 - round % 2] {
            interrupt::check()?;
            sides[side].push(if side == 0 { ours(program)? } else { peer()? });
        }
    }
    let numbers =
        |of: fn(&Latency) -> f64| sides.each_ref().map(|side| Numbers::of(side.iter().map(of).collect()));
    Ok(Sides { p50: numbers(|seen| seen.p50), p99: numbers(|seen| seen.p99) })
}

fn ours(program: &str) -> Result<Latency, String> {
    let milliseconds = (SECONDS * 1000).to_string();
    let said = output(program, &["worker", "cyclic", "--time-ms", &milliseconds])?;
    let line = said.lines().next_back().unwrap_or_default();
    let report: Value = serde_json::from_str(line).map_err(|error| format!("{program}: {error}: {said}"))?;
    if report["priority"] == 0 {
        return Err(format!("no real-time measurement: {}", report["warnings"]));
    }
    let figure = |name: &str| report["latency"][name].as_f64().map(|seconds| seconds * 1e6);
    let figures = figure("p50").zip(figure("p99"));
    figures.map(|(p50, p99)| Latency { p50, p99 }).ok_or_else(|| format!("{program}: no figures in {line}"))
}

fn peer() -> Result<Latency, String> {
    let failed = |error: std::io::Error| format!("cyclictest: {error}");
    let report = tempfile::NamedTempFile::new().map_err(failed)?;
    let (seconds, json) = (SECONDS.to_string(), format!("--json={}", report.path().display()));
    let options =
        ["-q", "-m", "-t1", "-p90", "-i1000", "-d0", "--histfile=/dev/null", "-h", BINS, "-D", &seconds];
    output("cyclictest", &[&options[..], &[&json]].concat())?;
    let text = std::fs::read_to_string(report.path()).map_err(failed)?;
    let found: Value = serde_json::from_str(&text).map_err(|error| format!("cyclictest: {error}"))?;
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
    Ok(Latency { p50: at(0.5)?, p99: at(0.99)? })
}

fn output(program: &str, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output();
    let output = output.map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => format!("{program} is missing: apt install rt-tests"),
        _ => format!("{program}: {error}"),
    })?;
    if !output.status.success() {
        return Err(format!("{program}: {}", String::from_utf8_lossy(&output.stderr).trim()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
