//! Runs and what they took: sides in turns, medians with the middle half, the rows that show them, and the end after Ctrl-C
//! between two measurements, so that what was made is removed. Decides nothing.

use std::{
    fmt::Display,
    process::{Command, Stdio},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use nix::sys::resource::{UsageWho, getrusage};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// Why a part of the benchmark ended early, in words.
pub type Done<T = ()> = Result<T, String>;

/// An error as words, behind what failed.
pub trait Said<T> {
    fn said(self, what: impl Display) -> Done<T>;
}

impl<T, E: Display> Said<T> for Result<T, E> {
    fn said(self, what: impl Display) -> Done<T> {
        self.map_err(|error| format!("{what}: {error}"))
    }
}

/// The median of many numbers, and the middle half of them.
pub struct Numbers {
    pub median: f64,
    half: [f64; 2],
}

impl Numbers {
    /// Of at least one number.
    pub fn of(mut numbers: Vec<f64>) -> Numbers {
        numbers.sort_unstable_by(f64::total_cmp);
        let at = |part: usize| numbers[numbers.len() * part / 4];
        Numbers { median: at(2), half: [at(1), at(3)] }
    }

    /// Of at least one time, in microseconds.
    pub fn micros(times: &[Duration]) -> Numbers {
        Numbers::of(times.iter().map(|time| time.as_secs_f64() * 1e6).collect())
    }

    pub fn shown(&self, decimals: usize) -> String {
        let [low, high] = self.half;
        format!("{:.decimals$} ({low:.decimals$}-{high:.decimals$})", self.median)
    }
}

/// Prints a row of two sides.
pub fn show(
    name: &str,
    [ours, peer]: [&Numbers; 2],
    decimals: usize,
    goal: impl Into<Option<f64>>,
    more: &str,
) {
    let goal = goal.into().map_or_else(String::new, |goal| format!("{goal:.2}"));
    let ratio = ours.median / peer.median;
    let [ours, peer] = [ours, peer].map(|numbers| numbers.shown(decimals));
    println!("{name:40} {ours:>26} {peer:>26} {ratio:>6.2} {goal:>5}{more}");
}

/// Prints a row that has no peer, in microseconds.
pub fn show_alone(name: &str, times: &[Duration], most: Duration, more: &str) {
    println!("{name:40} {:>26}   at most {}{more}", Numbers::micros(times).shown(0), most.as_micros());
}

/// Does this with each side in every turn; another one comes first each time.
pub fn in_turns(turns: usize, sides: usize, mut run: impl FnMut(usize, usize) -> Done) -> Done {
    for turn in 0..turns {
        for side in (0..sides).map(|place| (place + turn) % sides) {
            not_interrupted()?;
            run(turn, side)?;
        }
    }
    Ok(())
}

/// What one run of a command took.
pub struct Run {
    pub time: Duration,
    /// Page faults without I/O of the command and of what it started; they can be counted without noise.
    pub faults: i64,
}

/// Runs a command to its end; it has to succeed.
pub fn run(words: &[String]) -> Done<Run> {
    let [program, arguments @ ..] = words else { return Err("no command".to_owned()) };
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let faults =
        || getrusage(UsageWho::RUSAGE_CHILDREN).map(|usage| usage.minor_page_faults()).said("getrusage");
    let before = faults()?;
    let started = Instant::now();
    let status = command.status().said(program)?;
    let time = started.elapsed();
    match status.success() {
        true => Ok(Run { time, faults: faults()? - before }),
        false => Err(format!("{} failed: {status}", words.join(" "))),
    }
}

/// Asks again and again, each time after the pause.
pub fn until(limit: Duration, pause: Duration, what: &str, mut is_so: impl FnMut() -> Done<bool>) -> Done {
    let deadline = Instant::now() + limit;
    while !is_so()? {
        not_interrupted()?;
        if Instant::now() > deadline {
            return Err(format!("no {what} within {} s", limit.as_secs()));
        }
        std::thread::sleep(pause);
    }
    Ok(())
}

static INTERRUPTED: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// From now on signals only leave their mark.
pub fn watch_signals() -> Done {
    let mark = INTERRUPTED.get_or_init(Arc::default);
    let watch = |signal| signal_hook::flag::register(signal, Arc::clone(mark)).map(drop);
    [SIGINT, SIGTERM, SIGHUP].into_iter().try_for_each(watch).said("signals can't be caught")
}

/// An error once one came.
pub fn not_interrupted() -> Done {
    let came = INTERRUPTED.get().is_some_and(|mark| mark.load(Ordering::Relaxed));
    if came { Err("interrupted".to_owned()) } else { Ok(()) }
}
