//! The smaller tools' drivers: one short real run of each.

use std::time::Duration;

use ::workloads::{Outcome, Timing};
use experiment::file::{self, Driver as Named};
use libtest_mimic::Failed;

use crate::{
    drivers::{TIMING, Trial, reading},
    real::{Test, Tested, check},
};

pub fn tests() -> Vec<(&'static str, Test)> {
    vec![
        ("cyclictest_tells_every_cycle", cyclictest_tells_every_cycle),
        ("sysbench_tells_its_events", sysbench_tells_its_events),
        ("stress_ng_works_until_it_is_stopped", stress_ng_works_until_it_is_stopped),
        ("a_command_is_timed_and_its_figure_found", a_command_is_timed_and_its_figure_found),
        ("a_command_that_goes_on_is_ended", a_command_that_goes_on_is_ended),
        ("a_command_that_fails_tells_why", a_command_that_fails_tells_why),
    ]
}

/// A second after a short warm-up.
const SHORT: Timing = Timing { warm_up: Duration::from_millis(100), ..TIMING };

fn cyclictest_tells_every_cycle() -> Tested {
    // not SCHED_FIFO: a group may have no time for it
    let options = file::Cyclic { priority: 0, threads: 2, ..file::Cyclic::default() };
    let mut trial = Trial::new(&Named::Cyclictest(options))?;
    let outcome = trial.whole(SHORT)?;
    let report: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&outcome.files[0])?)?;
    let threads = report["thread"].as_object().ok_or("no threads")?;
    let cycles: u64 = threads.values().filter_map(|thread| thread["cycles"].as_u64()).sum();
    check(threads.len() == 2 && cycles > 0, || report.to_string())?;
    check(reading(&outcome, "cycles")? == cycles as f64, || format!("{:?}", outcome.readings))?;
    let latency = outcome.latencies.get("latency").ok_or("no latency")?;
    check(latency.count == cycles && latency.min > 0.0 && latency.max < 60.0, || format!("{latency:?}"))?;
    check(latency.bins.iter().map(|(_, count)| count).sum::<u64>() == cycles, || format!("{latency:?}"))?;
    trial.nothing_is_left()
}

fn tool(arguments: &[&str]) -> file::Tool {
    file::Tool { arguments: arguments.iter().map(|word| (*word).to_owned()).collect() }
}

fn sysbench_tells_its_events() -> Tested {
    let mut trial = Trial::new(&Named::Sysbench(tool(&["cpu", "--threads=2"])))?;
    let outcome = trial.whole(SHORT)?;
    let text = std::fs::read_to_string(&outcome.files[0])?;
    let events = text.lines().find_map(|line| line.trim().strip_prefix("total number of events:"));
    let events: u64 = events.ok_or("no events")?.trim().parse()?;
    let latency = outcome.latencies.get("latency").ok_or("no latency")?;
    check(events > 0 && latency.count == events, || format!("{events} {latency:?}"))?;
    check(reading(&outcome, "rate")? > 0.0, || format!("{:?}", outcome.readings))?;
    trial.nothing_is_left()
}

fn stress_ng_works_until_it_is_stopped() -> Tested {
    let mut trial = Trial::new(&Named::StressNg(tool(&["--cpu", "1"])))?;
    let outcome = trial.unasked(Duration::from_millis(500))?;
    check(reading(&outcome, "rate")? > 0.0, || format!("{:?}", outcome.readings))?;
    trial.nothing_is_left()
}

fn command(words: &[&str], figure: &str, until_end: bool) -> Result<Trial, Failed> {
    let command = words.iter().map(|word| (*word).to_owned()).collect();
    let figure = Some(figure.to_owned()).filter(|figure| !figure.is_empty());
    Trial::new(&Named::Command(file::Command { command, figure, until_end }))
}

fn a_command_is_timed_and_its_figure_found() -> Tested {
    let mut trial = command(&["sh", "-c", "sleep 0.3; echo '{\"rate\": 7.5}'"], "/rate", true)?;
    let outcome: Outcome = trial.whole(SHORT)?;
    check(reading(&outcome, "value")? == 7.5, || format!("{:?}", outcome.readings))?;
    let seconds = reading(&outcome, "seconds")?;
    check((0.3..30.0).contains(&seconds), || format!("{seconds}"))?;
    let (cpu, peak) = (reading(&outcome, "cpu-time")?, reading(&outcome, "peak-memory")?);
    check(cpu > 0.0 && cpu < seconds && (1e5..1e9).contains(&peak), || format!("{:?}", outcome.readings))?;
    trial.nothing_is_left()
}

fn a_command_that_goes_on_is_ended() -> Tested {
    // with a child that nobody waits for
    let mut trial = command(&["sh", "-c", "sleep 600 & echo did 3 things; wait"], "did ([0-9]+)", false)?;
    let outcome = trial.unasked(Duration::from_millis(300))?;
    check(reading(&outcome, "value")? == 3.0, || format!("{:?}", outcome.readings))?;
    trial.nothing_is_left()?;
    // and one that is not requested its end
    let mut trial = command(&["sh", "-c", "sleep 600 & wait"], "", false)?;
    trial.begin(SHORT)?;
    trial.driver.begin();
    trial.driver.clean_up();
    trial.nothing_is_left()
}

fn a_command_that_fails_tells_why() -> Tested {
    let mut trial = command(&["sh", "-c", "echo because >&2; exit 3"], "", true)?;
    let error = trial.whole(SHORT).err().ok_or("it failed")?;
    let text = error.message().unwrap_or_default();
    check(text.contains("exit status: 3: because"), || text.to_owned())?;
    let mut trial = command(&["rf-no-such-program"], "", true)?;
    let error = trial.begin(SHORT).err().ok_or("there is none")?;
    check(error.message().is_some_and(|text| text.contains("no program rf-no-such-program")), || {
        format!("{error:?}")
    })
}
