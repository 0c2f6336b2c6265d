//! The suite's own program as a process under test: it does what it is told on its standard input, and ends when
//! that is closed.

use std::{
    io::{BufRead, Write},
    process::{Command, ExitCode, Stdio},
    time::{Duration, Instant},
};

/// The argument that makes the suite's binary a process under test.
pub const CHILD: &str = "--process-under-test";

/// Reads orders (`eat BYTES`, `thread`, `storm MILLISECONDS`, `exit`) and answers each with a line.
pub fn child() -> ExitCode {
    let mut eaten: Vec<Vec<u8>> = Vec::new();
    let mut stormed = Vec::new();
    for order in std::io::stdin().lock().lines() {
        let Ok(order) = order else { break };
        let (word, number) = order.split_once(' ').unwrap_or((&order, "0"));
        let number: usize = number.parse().unwrap_or(0);
        match word {
            // pages are only taken when they are written to, and not with zeros
            "eat" => eaten.push(vec![1; number]),
            "thread" => drop(std::thread::spawn(|| std::thread::sleep(Duration::from_secs(600)))),
            "storm" => stormed.extend(storm(Duration::from_millis(number as u64))),
            _ => break,
        }
        if writeln!(std::io::stdout(), "done").is_err() {
            break;
        }
    }
    ExitCode::from(u8::from(eaten.len() > 200))
}

/// Forks shells that fork, as fast as it can, for this time, and longer where it could fork few; returns them so that they stay
/// its children.
fn storm(time: Duration) -> Vec<std::process::Child> {
    let started = Instant::now();
    let mut children = Vec::new();
    let least = |forked: usize| if forked < 20 { Duration::from_secs(20) } else { time };
    while started.elapsed() < least(children.len()) && children.len() < 400 {
        let mut shell = Command::new("sh");
        shell.args(["-c", "sleep 30 & sleep 30"]).stdin(Stdio::null()).stdout(Stdio::null());
        children.extend(shell.spawn());
    }
    children
}
