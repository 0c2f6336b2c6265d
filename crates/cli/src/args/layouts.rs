//! The arguments of the commands about layouts.

use std::{path::PathBuf, time::Duration};

use clap::{Args as ClapArgs, ValueEnum};

#[derive(Debug, ClapArgs)]
pub struct LayoutFile {
    /// A layout, cgconfig.conf or cgrules.conf; a directory with layout.toml and layout.d/*.toml
    #[arg(default_value = "/etc/ringfence")]
    pub layout: PathBuf,
}

#[derive(Debug, ClapArgs)]
pub struct Export {
    /// The layout
    #[arg(default_value = "/etc/ringfence")]
    pub layout: PathBuf,
    /// The form
    #[arg(long, value_enum)]
    pub to: ExportTo,
    /// In the names of cgroup v2
    #[arg(long)]
    pub v2: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ExportTo {
    /// Our own
    Toml,
    /// libcgroup's configuration
    Cgconfig,
    /// libcgroup's rules
    Cgrules,
    /// cgset commands
    Cgset,
}

#[derive(Debug, ClapArgs)]
pub struct PlanArgs {
    /// The layout
    #[arg(default_value = "/etc/ringfence")]
    pub layout: PathBuf,
    /// Plan for a machine from its listing instead; several are merged
    #[arg(long, value_name = "FILE")]
    pub machine: Vec<PathBuf>,
    /// That machine has cgroup v1
    #[arg(long, requires = "machine")]
    pub v1: bool,
    /// The form
    #[arg(long = "as", value_enum, default_value_t = PlanForm::Steps)]
    pub form: PlanForm,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PlanForm {
    /// Every step with its reason
    Steps,
    /// cgset commands
    Cgset,
}

#[derive(Debug, ClapArgs)]
pub struct StateArgs {
    #[arg(
        long,
        value_name = "DIRECTORY",
        help = "Where the history is kept [default: RINGFENCE_STATE, or /var/lib/ringfence]"
    )]
    pub state: Option<PathBuf>,
}

#[derive(Debug, ClapArgs)]
pub struct Apply {
    /// The layout
    #[arg(default_value = "/etc/ringfence")]
    pub layout: PathBuf,
    /// Undo it after so long, unless ringfence confirm comes; 60 or 60s
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub confirm: Option<Duration>,
    #[command(flatten)]
    pub state: StateArgs,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let number = text.strip_suffix('s').unwrap_or(text).parse::<u64>();
    let within = number.ok().filter(|seconds| (1..=86_400).contains(seconds));
    within.map(Duration::from_secs).ok_or_else(|| "expected 1 to 86400 seconds, such as 60s".to_owned())
}

#[derive(Debug, ClapArgs)]
pub struct Schema {
    /// Of what
    #[arg(value_enum, default_value_t = SchemaOf::Layout)]
    pub of: SchemaOf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SchemaOf {
    /// The layout file
    Layout,
    /// The experiment file of `ringfence lab`
    Experiment,
}

#[derive(Debug, ClapArgs)]
pub struct Status {
    /// Also show what this layout would still change
    pub layout: Option<PathBuf>,
    /// Draw the machine, each CPU in the colour of the groups that have it
    #[arg(long, conflicts_with = "json")]
    pub svg: bool,
    #[command(flatten)]
    pub state: StateArgs,
}

#[derive(Debug, ClapArgs)]
pub struct Generation {
    /// The generation's number in the history
    pub generation: Option<u32>,
    #[command(flatten)]
    pub state: StateArgs,
}

#[derive(Debug, ClapArgs)]
pub struct Revert {
    pub generation: u32,
    pub seconds: u64,
    #[command(flatten)]
    pub state: StateArgs,
}
