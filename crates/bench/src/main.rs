//! `make bench`: times commands against their peers. The two sides of a row alternate run by run, so that whatever
//! else the machine does hits both; medians and their ratio are printed, and decide nothing.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "prints its table")]

mod applies;
mod measure;
mod planning;
mod rows;

use std::process::ExitCode;

use measure::{Times, timed};
use rows::{Row, Rows};

/// Runs per side and row of one-shot commands; the first of each are not counted.
const RUNS: usize = 400;
const WARM_UP: usize = 20;

fn main() -> ExitCode {
    let program = std::env::args().nth(1).unwrap_or_else(|| "target/release/ringfence".to_owned());
    println!("interleaved; medians in microseconds, and the middle half of the times\n");
    println!("{:38} {:>26} {:>26} {:>6} {:>5}", "row", "ours", "peer", "ratio", "goal");
    let done = [one_shots(&program), applies(&program), planning()];
    let failed = done.iter().filter_map(|done| done.as_ref().err());
    failed.clone().for_each(|error| eprintln!("bench: {error}"));
    if failed.count() == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn one_shots(program: &str) -> Result<(), String> {
    let rows = Rows::set_up(program)?;
    for row in &rows.rows {
        match measure(row) {
            Ok((ours, peer)) => show(row.name, &ours, &peer, row.goal),
            Err(error) => println!("{:38} {error}", row.name),
        }
    }
    Ok(())
}

fn applies(program: &str) -> Result<(), String> {
    let rows: [(&str, &[&str], Option<f64>); 2] = [
        ("apply", &[program, "apply"], Some(0.2)),
        ("our cgconfigparser", &[program, "cgconfigparser", "-l"], Some(0.5)),
    ];
    for (name, command, goal_unchanged) in rows {
        let [fresh, again] = applies::measure(command)?;
        show(&format!("{name} / cgconfigparser, fresh"), &fresh.ours, &fresh.peer, Some(0.5));
        show(&format!("{name} / cgconfigparser, again"), &again.ours, &again.peer, goal_unchanged);
    }
    Ok(())
}

fn planning() -> Result<(), String> {
    let times = planning::measure()?;
    let goal = planning::GOAL.as_micros();
    println!("{:38} {:>26}   at most {goal}", "plan, 500 groups on 1,024 CPUs", times.shown());
    Ok(())
}

fn show(name: &str, ours: &Times, peer: &Times, goal: Option<f64>) {
    let ratio = ours.median.as_secs_f64() / peer.median.as_secs_f64();
    let goal = goal.map_or_else(String::new, |goal| format!("{goal:.2}"));
    println!("{name:38} {:>26} {:>26} {ratio:>6.2} {goal:>5}", ours.shown(), peer.shown());
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
