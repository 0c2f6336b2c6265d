//! A measurement: the kernel's counts before and after a span, with the probe at work meanwhile.

use std::{
    io::{BufRead, BufReader, Read},
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    thread::sleep,
    time::{Duration, Instant},
};

use kernel::threads;
use rustix::process::{Pid, Signal, kill_process};
use units::CpuSet;

use crate::interruptions::{
    counts::Counts,
    error::Error,
    noise::Noise,
    probe::READY,
    report::{OfCpu, Report},
    switches::Switches,
};

/// How often it is looked whether to stop.
const STEP: Duration = Duration::from_millis(50);

/// Which CPUs, and for how long.
pub struct Request {
    /// The CPUs.
    pub cpus: CpuSet,
    /// How long they are counted.
    pub span: Duration,
    /// The process that runs [`crate::interruptions::watch`] on them, prints [`READY`] and then what it saw as JSON.
    pub probe: Option<Command>,
}

/// Counts what interrupts the CPUs, until the span is over or it is to stop. This process keeps off these CPUs.
///
/// # Errors
/// [`Error`]; what can't be counted beside interrupts is in [`Report::missing`].
pub fn measure(request: Request, stop: &AtomicBool) -> Result<Report, Error> {
    let Request { cpus, span, probe } = request;
    let online = Counts::now()?.cpus();
    if cpus.is_empty() {
        return Err(Error::NoCpu);
    }
    if let Some(cpu) = cpus.difference(&online).first() {
        return Err(Error::Offline { cpu, online });
    }
    keep_off(&cpus);
    let mut missing = Vec::new();
    let mut probe = probe.and_then(|command| or_missing(Probe::start(command), &mut missing));
    let mut switches = Switches::on(&cpus).map_err(|uncounted| missing.push(uncounted.to_string())).ok();
    let before = Counts::read(switches.as_mut(), &mut missing)?;
    let begun = Instant::now();
    while begun.elapsed() < span && !stop.load(Ordering::Relaxed) {
        sleep(STEP.min(span.saturating_sub(begun.elapsed())));
    }
    let stopped = begun.elapsed() < span;
    let after = Counts::read(switches.as_mut(), &mut Vec::new())?;
    let noise =
        probe.as_mut().and_then(|probe| or_missing(probe.end(stopped), &mut missing)).unwrap_or_default();
    let one = |cpu: usize| {
        let causes = after.causes(&before, cpu);
        let per_sec = causes.iter().fold(0.0, |sum, cause| sum + cause.per_sec);
        OfCpu { cpu, per_sec, causes, noise: noise.iter().find(|noise| noise.cpu == cpu).cloned() }
    };
    Ok(Report {
        span_sec: after.span(&before).as_secs_f64(),
        stopped,
        budget_per_sec: None,
        budget_longest_us: None,
        above_budget: None,
        cpus: cpus.iter().map(one).collect(),
        missing,
    })
}

fn or_missing<T>(result: Result<T, String>, missing: &mut Vec<String>) -> Option<T> {
    result.map_err(|why| missing.push(format!("noise not measured: {why}"))).ok()
}

/// Where this process may use no other CPU, it stays.
fn keep_off(cpus: &CpuSet) {
    let others = threads::cpus().unwrap_or_default().difference(cpus);
    if !others.is_empty() {
        let _ = threads::set_cpus(&others);
    }
}

/// The probe's process.
struct Probe {
    child: Child,
    output: BufReader<std::process::ChildStdout>,
}

impl Probe {
    /// Its threads are about to begin.
    fn start(mut command: Command) -> Result<Probe, String> {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| error.to_string())?;
        let output = child.stdout.take().ok_or("it has no output")?;
        let mut probe = Probe { child, output: BufReader::new(output) };
        let mut line = String::new();
        let read = probe.output.read_line(&mut line);
        if read.is_ok() && line.trim_end() == READY { Ok(probe) } else { Err(probe.why()) }
    }

    /// What it saw; `early`: it is to stop before its time.
    fn end(&mut self, early: bool) -> Result<Vec<Noise>, String> {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        if let Some(pid) = pid.filter(|_| early) {
            // it may have ended by itself
            let _ = kill_process(pid, Signal::INT);
        }
        let mut text = String::new();
        let read = self.output.read_to_string(&mut text);
        match serde_json::from_str(&text) {
            Ok(seen) if read.is_ok() => Ok(seen),
            _ => Err(self.why()),
        }
    }

    /// What it said on standard error.
    fn why(&mut self) -> String {
        let mut text = String::new();
        if let Some(mut error) = self.child.stderr.take() {
            // what can't be read is said as nothing
            let _ = error.read_to_string(&mut text);
        }
        let text = text.trim().strip_prefix("error: ").unwrap_or(text.trim()).to_owned();
        if text.is_empty() { "the probe ended without an answer".to_owned() } else { text }
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        let _ = self.child.kill(); // it may have ended
        let _ = self.child.wait();
    }
}
