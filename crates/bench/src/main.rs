//! `make bench`: times one-shot commands against their peers. The two sides of a row alternate run by run, so that
//! whatever else the machine does hits both; medians and their ratio are printed, and decide nothing.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "prints its table")]

mod rows;

use std::{
    process::{Command, ExitCode, Stdio},
    time::{Duration, Instant},
};

use rows::{Row, Rows};

/// Runs per side and row; the first of each are not counted.
const RUNS: usize = 400;
const WARM_UP: usize = 20;

fn main() -> ExitCode {
    let program = std::env::args().nth(1).unwrap_or_else(|| "target/release/ringfence".to_owned());
    let rows = match Rows::set_up(&program) {
        Ok(rows) => rows,
        Err(error) => {
            eprintln!("bench: {error}");
            return ExitCode::FAILURE;
        }
    };
    println!("{RUNS} runs a side, interleaved; medians in microseconds, and the middle half of them\n");
    println!("{:34} {:>22} {:>22} {:>7} {:>6}", "row", "ours", "peer", "ratio", "goal");
    for row in &rows.rows {
        match measure(row) {
            Ok((ours, peer)) => {
                let ratio = ours.median.as_secs_f64() / peer.median.as_secs_f64();
                let goal = row.goal.map_or_else(String::new, |goal| format!("{goal:.2}"));
                println!("{:34} {:>22} {:>22} {ratio:>7.2} {goal:>6}", row.name, ours.shown(), peer.shown());
            }
            Err(error) => println!("{:34} {error}", row.name),
        }
    }
    ExitCode::SUCCESS
}

struct Times {
    median: Duration,
    quarter: Duration,
    three_quarters: Duration,
}

impl Times {
    fn of(mut times: Vec<Duration>) -> Times {
        times.sort_unstable();
        let at = |part: usize| times[times.len() * part / 4];
        Times { quarter: at(1), median: at(2), three_quarters: at(3) }
    }

    fn shown(&self) -> String {
        let [low, middle, high] =
            [self.quarter, self.median, self.three_quarters].map(|time| time.as_micros());
        format!("{middle} ({low}-{high})")
    }
}

fn measure(row: &Row) -> Result<(Times, Times), String> {
    let mut times = [Vec::with_capacity(RUNS), Vec::with_capacity(RUNS)];
    for run in 0..RUNS + WARM_UP {
        // who goes first alternates too
        for side in [run % 2, 1 - run % 2] {
            let time = timed([&row.ours, &row.peer][side])?;
            if run >= WARM_UP {
                times[side].push(time);
            }
        }
    }
    let [ours, peer] = times;
    Ok((Times::of(ours), Times::of(peer)))
}

fn timed(words: &[String]) -> Result<Duration, String> {
    let [program, arguments @ ..] = words else { return Err("no command".to_owned()) };
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let started = Instant::now();
    let status = command.status().map_err(|error| format!("{program}: {error}"))?;
    let time = started.elapsed();
    if status.success() { Ok(time) } else { Err(format!("{} failed: {status}", words.join(" "))) }
}
