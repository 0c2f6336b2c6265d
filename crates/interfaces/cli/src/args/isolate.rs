//! The arguments of `isolate`.

use std::time::Duration;

use clap::{Args as ClapArgs, Subcommand};

use super::{
    duration::{between, duration},
    layouts::StateArgs,
};

/// The help's end of `isolate check`.
pub const CHECK: &str = "\
Counts what interrupts each CPU, by cause: interrupts, softirqs, context switches. A noise probe runs on each CPU meanwhile and \
counts the gaps in its own running; it takes the CPU for nine tenths of each second, before all tasks that are not real-time \
ones. --no-probe leaves the CPUs alone. Changes nothing. Ctrl-C ends it early, with what was counted.

First, of a group of the layout in effect: the state of each `isolate` step: done, refused by the kernel, drift, or to be set at boot only.

A list of numbers such as 2-3 means CPUs, anything else a group. The probe runs inside the group, as only its tasks may use its own CPUs.

Exit status: 0 measured, and within the budget if there is one; 1 nothing was measured; 2 bad usage; 3 a CPU is above the \
budget.

Examples:
  ringfence isolate check rt --for 30s
  ringfence isolate check 2-3 --no-probe
  ringfence isolate check rt --budget 20 --json";

#[derive(Debug, ClapArgs)]
pub struct Isolate {
    #[command(subcommand)]
    pub command: IsolateCommand,
}

#[derive(Debug, Subcommand)]
pub enum IsolateCommand {
    /// Measure what interrupts CPUs, and compare it with a budget
    #[command(after_help = CHECK)]
    Check(IsolateCheck),
}

#[derive(Debug, ClapArgs)]
pub struct IsolateCheck {
    /// A group, whose CPUs are measured, or CPUs such as 2-3
    #[arg(value_name = "GROUP|CPUS")]
    pub of: String,
    /// How long to count, such as 10s or 1m
    #[arg(long = "for", value_name = "TIME", default_value = "10s", value_parser = between("100ms", "1d"))]
    pub span: Duration,
    /// The most interruptions per second that a CPU may have
    #[arg(long, value_name = "N", value_parser = budget)]
    pub budget: Option<f64>,
    /// Gaps of the probe up to this length do not count, such as 5us
    #[arg(long, value_name = "LENGTH", default_value = "5us", value_parser = threshold)]
    pub threshold: Duration,
    /// Do not run the noise probe
    #[arg(long, conflicts_with = "threshold")]
    pub no_probe: bool,
    #[command(flatten)]
    pub state: StateArgs,
}

fn budget(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0);
    number.ok_or_else(|| "expected interruptions per second, such as 20".to_owned())
}

fn threshold(text: &str) -> Result<Duration, String> {
    let fits = |length: &Duration| (Duration::from_micros(1)..=Duration::from_millis(100)).contains(length);
    duration(text).filter(fits).ok_or_else(|| "expected a length from 1us to 100ms, such as 5us".to_owned())
}
