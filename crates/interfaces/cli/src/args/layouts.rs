//! The arguments of the commands about layouts.

use std::{path::PathBuf, time::Duration};

use apply::{STATE, STATE_VARIABLE};
use clap::{Args as ClapArgs, ValueEnum};

use super::{Socket, duration::between};

/// Where the layout of a machine is.
pub const DIRECTORY: &str = apply::LAYOUT;

/// The layout by an option, as many other programs take it.
#[derive(Debug, ClapArgs)]
pub struct FileOption {
    /// The same as LAYOUT
    #[arg(long, short, value_name = "PATH", conflicts_with = "layout")]
    pub file: Option<PathBuf>,
}

impl FileOption {
    /// Makes the positional argument what the option says.
    pub fn replace_layout(&mut self, layout: &mut PathBuf) {
        if let Some(file) = self.file.take() {
            *layout = file;
        }
    }
}

#[derive(Debug, ClapArgs)]
pub struct Check {
    /// A layout, cgconfig.conf or cgrules.conf; a directory with layout.toml and layout.d/*.toml
    #[arg(default_value = DIRECTORY)]
    pub layout: PathBuf,
    #[command(flatten)]
    pub file: FileOption,
}

#[derive(Debug, ClapArgs)]
pub struct Import {
    /// cgconfig.conf and cgrules.conf by any names, and directories of such files [default: the system's]; from systemd,
    /// units [default: all that files in /etc and /run limit]
    #[arg(value_name = "FILE|UNIT")]
    pub files: Vec<PathBuf>,
    /// What to read
    #[arg(long, value_enum, default_value = "libcgroup")]
    pub from: ImportFrom,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ImportFrom {
    /// libcgroup's configuration and rules
    Libcgroup,
    /// Units' files and drop-in files
    Systemd,
}

#[derive(Debug, ClapArgs)]
pub struct Export {
    /// A layout file, or a directory with layout.toml and layout.d/*.toml
    #[arg(default_value = DIRECTORY)]
    pub layout: PathBuf,
    /// Output format
    #[arg(long, value_enum)]
    pub to: ExportTo,
    /// Use the names of cgroup v2
    #[arg(long)]
    pub v2: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ExportTo {
    /// A layout of Ringfence
    Toml,
    /// libcgroup's configuration
    Cgconfig,
    /// libcgroup's rules
    Cgrules,
    /// cgset commands
    Cgset,
    /// Slices and drop-in files of systemd; CPUs are those that a plan for this machine has
    Systemd,
}

#[derive(Debug, ClapArgs)]
pub struct PlanArgs {
    /// A layout file, or a directory with layout.toml and layout.d/*.toml
    #[arg(default_value = DIRECTORY)]
    pub layout: PathBuf,
    #[command(flatten)]
    pub file: FileOption,
    /// Show every step in its order, with the file that is written and the reason
    #[arg(long, short)]
    pub verbose: bool,
    /// Plan for a machine from its listing instead; several are merged
    #[arg(long, value_name = "FILE")]
    pub machine: Vec<PathBuf>,
    /// That machine has cgroup v1
    #[arg(long, requires = "machine")]
    pub v1: bool,
    /// Output format
    #[arg(long = "as", value_enum, value_name = "FORMAT", default_value_t = PlanForm::Steps, conflicts_with = "json")]
    pub form: PlanForm,
    #[command(flatten)]
    pub state: StateArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PlanForm {
    /// One block per group; with -v every step with its reason
    Steps,
    /// cgset commands
    Cgset,
}

#[derive(Debug, ClapArgs)]
pub struct StateArgs {
    #[arg(
        long,
        value_name = "DIRECTORY",
        help = format!("Directory of the history [default: {STATE_VARIABLE}, or {STATE}]")
    )]
    pub state: Option<PathBuf>,
}

#[derive(Debug, ClapArgs)]
pub struct Apply {
    /// A layout file, or a directory with layout.toml and layout.d/*.toml
    #[arg(default_value = DIRECTORY)]
    pub layout: PathBuf,
    #[command(flatten)]
    pub file: FileOption,
    /// Only show what would change, as `ringfence plan` does
    #[arg(long, short = 'n', conflicts_with_all = ["confirm", "expect_generation"])]
    pub dry_run: bool,
    /// With --dry-run: every step with its reason
    #[arg(long, short, requires = "dry_run")]
    pub verbose: bool,
    /// Apply a layout without groups, which undoes everything that earlier layouts applied, or one with a pattern of all units (`*.service`)
    #[arg(long, short)]
    pub yes: bool,
    /// Undo it after this time, unless `ringfence confirm` comes first; such as 60, 60s or 5m
    #[arg(long, value_name = "TIME", value_parser = whole_seconds)]
    pub confirm: Option<Duration>,
    /// The path that the history names, where the layout is applied from a copy
    #[arg(long, value_name = "PATH", conflicts_with = "dry_run")]
    pub named: Option<PathBuf>,
    #[command(flatten)]
    pub expected: Expected,
    #[command(flatten)]
    pub state: StateArgs,
}

impl Apply {
    /// What `--dry-run` shows.
    pub fn as_plan(&self) -> PlanArgs {
        PlanArgs {
            layout: self.layout.clone(),
            file: FileOption { file: None },
            verbose: self.verbose,
            machine: Vec::new(),
            v1: false,
            form: PlanForm::Steps,
            state: StateArgs { state: self.state.state.clone() },
        }
    }
}

/// The record keeps whole seconds: rounded up, so that nobody has less time than typed.
fn whole_seconds(text: &str) -> Result<Duration, String> {
    let span = between("1s", "1d")(text)?;
    Ok(Duration::from_secs(span.as_secs() + u64::from(span.subsec_nanos() > 0)))
}

#[derive(Debug, ClapArgs)]
pub struct Schema {
    /// Of which file
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
    /// Only these groups and those below them; a layout's path is taken as --layout
    #[arg(value_name = "GROUP")]
    pub groups: Vec<String>,
    /// Also show what this layout would still change
    #[arg(long, short, value_name = "PATH")]
    pub layout: Option<PathBuf>,
    /// Show every setting with the kernel's value, the tasks and the directories
    #[arg(long, short)]
    pub verbose: bool,
    /// Draw the machine, each CPU in the colour of the groups that have it
    #[arg(long, conflicts_with = "json")]
    pub svg: bool,
    #[command(flatten)]
    pub state: StateArgs,
    #[command(flatten)]
    pub socket: Socket,
}

#[derive(Debug, ClapArgs)]
pub struct Generation {
    /// A generation's number, as `ringfence history` lists it
    #[arg(value_parser = generation)]
    pub generation: Option<u32>,
    #[command(flatten)]
    pub state: StateArgs,
}

#[derive(Debug, ClapArgs)]
pub struct Undo {
    /// A generation's number, as `ringfence history` lists it
    #[arg(value_parser = generation)]
    pub generation: Option<u32>,
    #[command(flatten)]
    pub expected: Expected,
    #[command(flatten)]
    pub state: StateArgs,
}

/// What the caller saw of the history before it decided.
#[derive(Debug, Clone, Copy, ClapArgs)]
pub struct Expected {
    /// Change nothing if the history's newest generation is another one by then; 0: there is none
    #[arg(long, value_name = "GENERATION", value_parser = generation)]
    pub expect_generation: Option<u32>,
}

fn generation(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| "expected the number of a generation; ringfence history lists them".to_owned())
}

#[derive(Debug, ClapArgs)]
pub struct History {
    /// Only this generation
    #[arg(value_parser = generation)]
    pub generation: Option<u32>,
    /// Only the last N generations
    #[arg(long, short = 'n', value_name = "N", conflicts_with = "generation")]
    pub last: Option<usize>,
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
