//! The arguments of the commands about the machine and about this program.

use std::{path::PathBuf, time::Duration};

use clap::{Args as ClapArgs, ValueEnum};

use super::duration::between;

#[derive(Debug, ClapArgs)]
pub struct Perf {
    /// The group
    pub group: String,
    /// How long, such as 10, 10s or 1m
    #[arg(long = "for", visible_alias = "seconds", value_name = "TIME", default_value = "10s",
        value_parser = between("100ms", "1d"))]
    pub span: Duration,
    /// Events as perf names them, comma-separated or apart
    #[arg(required = true, last = true)]
    pub events: Vec<String>,
}

#[derive(Debug, ClapArgs)]
pub struct Topology {
    /// A listing instead of this machine: numactl --hardware, lscpu (also -e, -p, -J), lstopo (text or XML), per-CPU
    /// listing, or our JSON; several are merged
    #[arg(long, value_name = "FILE")]
    pub machine: Vec<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Text, conflicts_with = "json")]
    pub format: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A short overview
    Text,
    /// As `numactl --hardware` prints it
    Numactl,
    /// A table per CPU: package, siblings, core
    Cpus,
    /// A drawing
    Svg,
}

#[derive(Debug, ClapArgs)]
pub struct Settings {
    /// Settings, by any of their v1 or v2 names, or patterns such as 'memory.*' [default: a list of all]
    pub names: Vec<String>,
}

#[derive(Debug, ClapArgs)]
pub struct Mount {
    /// v1 controllers, for example blkio; several together share one hierarchy
    #[arg(required = true, value_name = "CONTROLLER")]
    pub controllers: Vec<String>,
    /// Mount point [default: a directory beside the other hierarchies]
    #[arg(long, value_name = "DIRECTORY")]
    pub at: Option<PathBuf>,
}

#[derive(Debug, ClapArgs)]
pub struct Completions {
    /// The shell
    pub shell: clap_complete::Shell,
}

#[derive(Debug, ClapArgs)]
pub struct Links {
    /// The directory
    pub directory: PathBuf,
}

#[derive(Debug, ClapArgs)]
pub struct Man {
    /// The directory
    pub directory: PathBuf,
}
