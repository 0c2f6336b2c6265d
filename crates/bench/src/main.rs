//! `make bench`: times commands and daemons against their peers. The two sides of a row alternate run by run, so that
//! whatever else the machine does hits both; medians and their ratio are printed, and decide nothing.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "prints its table")]

mod groups;
mod interrupt;
mod measure;
mod selection;

mod applies;
mod planning;
mod rows;

mod followed;
mod probes;

mod classifying;
mod strict;

use std::{path::PathBuf, process::ExitCode};

use measure::{Times, timed};
use rows::{Row, Rows};
use selection::{Part, Selection};

/// Runs per side and row of one-shot commands; the first of each are not counted.
const RUNS: usize = 400;
const WARM_UP: usize = 20;
/// Bursts that ours, and libcgroup's daemon, get through.
const BURSTS: [usize; 2] = [10, 2];

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<bool, String> {
    let selection = Selection::of(std::env::args().skip(1))?;
    interrupt::watch()?;
    println!("interleaved; medians in microseconds, and the middle half of the times\n");
    println!("{:40} {:>26} {:>26} {:>6} {:>5}", "row", "ours", "peer", "ratio", "goal");
    let mut good = true;
    for part in Part::ALL.into_iter().filter(|part| selection.holds(*part)) {
        let done = match part {
            Part::Commands => one_shots(&selection),
            Part::Apply => applies(&selection),
            Part::Plan => planning(),
            Part::Daemon => daemon(&selection),
            Part::Burst => bursts(&selection),
            Part::Strict => strict(&selection),
        };
        if let Err(error) = done {
            eprintln!("bench: {error}");
            good = false;
        }
        if interrupt::check().is_err() {
            return Ok(false);
        }
    }
    Ok(good)
}

fn one_shots(selection: &Selection) -> Result<(), String> {
    let rows = Rows::set_up(&selection.program)?;
    for row in rows.rows.iter().filter(|row| selection.wants(row.name)) {
        match measure(row) {
            Ok((ours, peer)) => show(row.name, &ours, &peer, row.goal, ""),
            Err(error) => println!("{:40} {error}", row.name),
        }
        interrupt::check()?;
    }
    Ok(())
}

fn applies(selection: &Selection) -> Result<(), String> {
    let program = selection.program.as_str();
    let rows: [(&str, &[&str], Option<f64>); 2] = [
        ("apply", &[program, "apply"], Some(0.2)),
        ("our cgconfigparser", &[program, "cgconfigparser", "-l"], Some(0.5)),
    ];
    for (name, command, goal_unchanged) in rows {
        if !selection.wants(name) {
            continue;
        }
        let [fresh, again] = applies::measure(command)?;
        show(&format!("{name} / cgconfigparser, fresh"), &fresh.ours, &fresh.peer, Some(0.5), "");
        show(&format!("{name} / cgconfigparser, again"), &again.ours, &again.peer, goal_unchanged, "");
    }
    Ok(())
}

fn planning() -> Result<(), String> {
    let times = planning::measure()?;
    let goal = planning::GOAL.as_micros();
    println!("{:40} {:>26}   at most {goal}", "plan, 500 groups on 1,024 CPUs", times.shown());
    Ok(())
}

/// CPU time of the daemons per process.
fn daemon(selection: &Selection) -> Result<(), String> {
    let program = absolute(&selection.program)?;
    let scene = classifying::Scene::new()?;
    for load in classifying::Load::all() {
        let name = load.name();
        if !selection.wants(&name) {
            continue;
        }
        let [ours, peer] = scene.run(&program, load)?;
        let moved = format!("  moved {:.1} % / {:.1} %", ours.moved(), peer.moved());
        show(&name, &ours.cpu(), &peer.cpu(), Some(classifying::GOAL), &moved);
    }
    Ok(())
}

fn bursts(selection: &Selection) -> Result<(), String> {
    use classifying::{BURST, LONG};
    let program = absolute(&selection.program)?;
    let scene = classifying::Scene::new()?;
    let mut left: [Vec<String>; 2] = Default::default();
    for run in 0..BURSTS[0] {
        for side in (0..2).filter(|side| run < BURSTS[*side]) {
            left[side].push(scene.left_out(&program, side)?.to_string());
        }
    }
    let [ours, peer] = left.map(|left| left.join(" "));
    println!("outside 2 s after a burst of {BURST}, of {LONG}: {ours} / {peer}, goal 0");
    Ok(())
}

/// What strict rules add to a start, beside the bare probe.
fn strict(selection: &Selection) -> Result<(), String> {
    let program = absolute(&selection.program)?;
    for start in strict::Start::all() {
        let row = start.name();
        if !selection.wants(&row) {
            continue;
        }
        let sides = strict::measure(&program, start)?;
        let [probe, ours] = sides.added();
        let [at_main, by_probe] =
            [&sides.ours, &sides.probe].map(|side| format!("{}/{}", side.execs - side.outside, side.execs));
        let free = Times::of(sides.free.times).shown();
        let (ratio, goal) = (ours.median / probe.median, strict::GOAL);
        let [ours, probe] = [ours.shown(), probe.shown()];
        let more = format!("  at main() {at_main} / {by_probe}, without {free}");
        println!("{row:40} {ours:>26} {probe:>26} {ratio:>6.2} {goal:>5.2}{more}");
    }
    Ok(())
}

fn absolute(program: &str) -> Result<PathBuf, String> {
    std::path::absolute(program).map_err(|error| format!("{program}: {error}"))
}

fn show(name: &str, ours: &Times, peer: &Times, goal: Option<f64>, more: &str) {
    let ratio = ours.median.as_secs_f64() / peer.median.as_secs_f64();
    let goal = goal.map_or_else(String::new, |goal| format!("{goal:.2}"));
    println!("{name:40} {:>26} {:>26} {ratio:>6.2} {goal:>5}{more}", ours.shown(), peer.shown());
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
