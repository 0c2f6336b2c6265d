//! What the lab's own sampling takes from a workload: the same experiment with samples and without, run in turns.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::{interrupt, measure::Numbers};

/// The least share of the rate without samples that we want.
pub const GOAL: f64 = 0.99;
const PAIRS: usize = 12;

/// Rates of work per second on all CPUs.
pub struct Pair {
    pub sampled: Numbers,
    pub unsampled: Numbers,
}

/// As often as an experiment samples by itself, and not at all.
const SAMPLE: [&str; 2] = ["200ms", "0s"];

pub fn measure(program: &Path) -> Result<Pair, String> {
    let directory = tempfile::tempdir_in("/var/tmp").map_err(|error| error.to_string())?;
    let mut rates = [Vec::with_capacity(PAIRS), Vec::with_capacity(PAIRS)];
    for run in 0..PAIRS {
        // who goes first alternates
        for side in [run % 2, 1 - run % 2] {
            interrupt::check()?;
            let file = directory.path().join("experiment.toml");
            fs::write(&file, experiment(SAMPLE[side])?).map_err(|error| error.to_string())?;
            let results = directory.path().join(format!("{run}-{side}"));
            rates[side].push(rate(program, &file, results)?);
        }
    }
    let [sampled, unsampled] = rates.map(Numbers::of);
    Ok(Pair { sampled, unsampled })
}

fn experiment(sample: &str) -> Result<String, String> {
    let cpus = std::thread::available_parallelism().map_err(|error| error.to_string())?;
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

fn rate(program: &Path, file: &Path, results: PathBuf) -> Result<f64, String> {
    let mut command = Command::new(program);
    command.args(["lab", "run", "--json", "--directory"]).arg(&results).arg(file).stdin(Stdio::null());
    let output = command.output().map_err(|error| format!("{}: {error}", program.display()))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let found: serde_json::Value =
        serde_json::from_slice(&output.stdout).map_err(|error| format!("its results: {error}"))?;
    let rate = found["runs"][0]["figures"]["work"].as_f64();
    rate.ok_or_else(|| "the results have no rate".to_owned())
}
