//! The arguments of `lab`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Its help's end.
pub const LAB: &str = "\
An experiment is a study that comes with ringfence (`ringfence lab list`) or a TOML file; `ringfence schema experiment`
describes it.

Exit status of run: 0 all runs are valid; 1 it failed; 2 the experiment file has errors; 3 some runs are missing, as
a gate rejected them; 4 not reproducible on this machine; 130 interrupted, finished runs remain.

Examples:
  ringfence lab list
  ringfence lab run tour
  ringfence lab check mine.toml
  ringfence lab run mine.toml --quick
  ringfence lab run --resume ringfence-results/mine-2026-01-31T080509Z
  ringfence lab compare DIRECTORY OTHER";

#[derive(Debug, Args)]
pub struct Lab {
    #[command(subcommand)]
    pub command: LabCommand,
}

#[derive(Debug, Subcommand)]
pub enum LabCommand {
    /// List the studies that come with ringfence: how long they take, their tools and the CPUs they need
    List,
    /// Print a study's file, to read it or to start your own from it
    #[command(after_help = "Example: ringfence lab show s5 > mine.toml")]
    Show {
        /// The study
        study: String,
    },
    /// Check an experiment file: list all errors, how long it takes and what it can decide
    #[command(after_help = "Example: ringfence lab check mine.toml")]
    Check {
        /// A study or a file
        #[arg(value_name = "STUDY|FILE")]
        experiment: PathBuf,
    },
    /// Run an experiment
    Run(LabRun),
    /// Redraw the report of results
    #[command(after_help = "Example: ringfence lab report ringfence-results/tour-2026-01-31T080509Z")]
    Report {
        /// The directory of the results
        directory: PathBuf,
    },
    /// Compare the results of two runs of the same experiment
    Compare {
        /// The directory of the results that are compared with
        baseline: PathBuf,
        /// The directory of the results that are compared
        directory: PathBuf,
    },
    /// Remove what a killed experiment left behind; lab list and lab run do it too
    Clean,
}

#[derive(Debug, Args)]
pub struct LabRun {
    /// A study or a file
    #[arg(value_name = "STUDY|FILE", required_unless_present = "resume")]
    pub experiment: Option<PathBuf>,
    /// Fewer and shorter runs, as the experiment has it: minutes instead of an hour
    #[arg(long)]
    pub quick: bool,
    /// Number of runs of each condition
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub repetitions: Option<u32>,
    /// The seed of the order in which conditions are run
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// A block device of yours in place of the experiment's loop device; it is only read
    #[arg(long, value_name = "PATH")]
    pub device: Option<PathBuf>,
    /// Use built-in workloads in place of real tools
    #[arg(long)]
    pub built_in: bool,
    /// While a group of the experiment has CPUs of its own, keep all other programs of the machine off them: they are
    /// moved to the other CPUs for each such run, and back after it
    #[arg(long)]
    pub move_others: bool,
    /// Most CPU time of other programs in a run that counts, in place of the file's (0.2 or 20%)
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub foreign_cpu: Option<f64>,
    /// Most CPU time that the hypervisor takes in a run that counts, in place of the file's
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub steal: Option<f64>,
    /// Variation of a condition's runs beyond which verdicts name the noise, in place of the file's
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub variation: Option<f64>,
    /// How many times a rejected run is made again, in place of the file's
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=100))]
    pub retries: Option<u32>,
    /// Directory of the results [default: ringfence-results/NAME-TIME]
    #[arg(long, value_name = "DIRECTORY")]
    pub directory: Option<PathBuf>,
    /// Continue an interrupted experiment
    #[arg(
        long,
        value_name = "DIRECTORY",
        conflicts_with_all = ["experiment", "quick", "repetitions", "seed", "device", "built_in", "move_others", "foreign_cpu", "steal", "variation", "retries", "directory"]
    )]
    pub resume: Option<PathBuf>,
}

/// `0.2` or `20%`.
fn share(text: &str) -> Result<f64, String> {
    let (number, of) = match text.trim().strip_suffix('%') {
        Some(percent) => (percent, 100.0),
        None => (text.trim(), 1.0),
    };
    let share = number.trim().parse::<f64>().ok().map(|share| share / of);
    share
        .filter(|share| (0.0..=1.0).contains(share))
        .ok_or_else(|| "not a share from 0 to 1, or 0% to 100%".to_owned())
}
