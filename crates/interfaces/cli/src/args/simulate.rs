//! The arguments of `simulate`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};

use super::layouts::FileOption;

/// The help's end.
pub const SIMULATE: &str = "\
Groups with cpus = { min, max } are elastic; their weight is 100 where the layout has none. CPUs that other groups have for \
themselves are left out. Nothing is changed; ringfenced resizes elastic groups of an applied layout by the same rules. With [power] \
saving = true, a second table shows groups without CPUs of their own.

  lost      work that was not served within a second, in % of the work
  stranded  CPU time that nobody used while work waited that could have, in % of the machine
  unused    CPU time that groups had and did not use, in % of what they had
  changes   CPU sets that are written
  walk      CPUs that groups had in turn beyond the most that they had at once
  idle      CPUs that power saving leaves to nobody: on average, and from least to most

Examples:
  ringfence simulate layout.toml
  ringfence simulate layout.toml --synthetic pareto,diurnal --machine numactl.txt
  ringfence simulate layout.toml --trace /var/log/ringfence --against static,scx_layered --html out.html";

#[derive(Debug, ClapArgs)]
pub struct Simulate {
    /// A layout file, or a directory with layout.toml and layout.d/*.toml
    #[arg(default_value = super::layouts::DIRECTORY)]
    pub layout: PathBuf,
    #[command(flatten)]
    pub file: FileOption,
    /// Loads by formula [default: all, without --trace]
    #[arg(long, value_enum, value_name = "KIND", value_delimiter = ',')]
    pub synthetic: Vec<Synthetic>,
    /// What the recorder's log says that the groups used; a directory
    #[arg(long, value_name = "LOG")]
    pub trace: Option<PathBuf>,
    /// Simulate a machine from its listing instead; several are merged
    #[arg(long, value_name = "FILE")]
    pub machine: Vec<PathBuf>,
    /// Other rules to compare with [default: all]
    #[arg(long, value_enum, value_name = "RULE", value_delimiter = ',')]
    pub against: Vec<Against>,
    /// The number that random loads begin with
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Write a page with the groups' CPUs over time
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Synthetic {
    /// The same all the time, give or take 2 %
    Constant,
    /// Slowly up and down again
    Ramp,
    /// Low and high in turns: of 2, of 10 and of 60 s
    Square,
    /// Bursts whose lengths follow a Pareto distribution
    Pareto,
    /// A day within ten minutes
    Diurnal,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Against {
    /// Each group's min and weighted share, without any change
    Static,
    /// koordinator's suppression of the group with the least weight
    Koordinator,
    /// scx_layered's sizes of layers
    #[value(name = "scx_layered")]
    ScxLayered,
    /// intel-lpmd's low-power mode
    Lpmd,
    /// An oracle that knows the load in advance
    Clairvoyant,
}
