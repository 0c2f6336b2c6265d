//! The arguments, from which help, completions and manual pages are made too.

use std::{ffi::OsString, path::PathBuf};

use clap::{Args as ClapArgs, FromArgMatches, Parser, Subcommand, ValueEnum};

const EXIT: &str = "\
Exit status: 0 done, 1 failed and nothing was changed, 2 bad usage, 3 done in part, as the error tells, or
something needs attention (doctor).
`run` ends with the program's own status; 125 if it could not be put into the group, 126 if it can't be
executed, 127 if it is not found.";

/// Divides one Linux machine's CPUs, memory, I/O and more among databases, real-time tasks and everything else.
#[derive(Debug, Parser)]
#[command(name = "ringfence", version, after_help = EXIT)]
pub struct Args {
    #[command(flatten)]
    pub everywhere: Everywhere,
    #[command(subcommand)]
    pub command: Command,
}

/// What every command takes.
#[derive(Debug, ClapArgs)]
pub struct Everywhere {
    /// Print JSON instead of text
    #[arg(long, global = true)]
    pub json: bool,
}

/// Adds a command's arguments.
type Definition = fn(clap::Command) -> clap::Command;

/// The commands that scripts call in loops. Building the definitions of all commands takes longer than most of
/// these do, so they are read with their own alone.
const FREQUENT: [(&str, Definition); 12] = [
    ("create", Create::augment_args),
    ("delete", Delete::augment_args),
    ("freeze", Wait::augment_args),
    ("get", Get::augment_args),
    ("kill", Wait::augment_args),
    ("list", List::augment_args),
    ("move", Move::augment_args),
    ("run", Run::augment_args),
    ("set", Set::augment_args),
    ("stat", Get::augment_args),
    ("thaw", Wait::augment_args),
    ("where", Where::augment_args),
];

impl Args {
    /// Reads the command line.
    pub fn read() -> Result<Args, clap::Error> {
        let words: Vec<OsString> = std::env::args_os().collect();
        let read = Self::read_run(&words).or_else(|| Self::read_frequent(&words));
        read.map_or_else(|| Args::try_parse_from(words), Ok)
    }

    /// `run GROUP -- COMMAND…` as it stands: each process that is started waits for this.
    fn read_run(words: &[OsString]) -> Option<Args> {
        let [_, run, group, dashes, command @ ..] = words else { return None };
        let group = group.to_str().filter(|group| !group.starts_with('-'))?;
        (run == "run" && dashes == "--" && !command.is_empty()).then(|| Args {
            everywhere: Everywhere { json: false },
            command: Command::Run(Run { group: group.to_owned(), command: command.to_vec() }),
        })
    }

    /// `None` for any other command, for help, and for mistakes: the whole definition says those better.
    fn read_frequent(words: &[OsString]) -> Option<Args> {
        let name = words.get(1)?.to_str()?;
        let (name, augment) = FREQUENT.iter().find(|(frequent, _)| *frequent == name)?;
        let command = augment(clap::Command::new(*name)).disable_help_flag(true);
        let whole = Everywhere::augment_args(clap::Command::new("ringfence"))
            .disable_help_flag(true)
            .subcommand(command);
        Args::from_arg_matches(&whole.try_get_matches_from(words).ok()?).ok()
    }
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Make a group, in every hierarchy or where the given controllers live
    #[command(
        after_help = "Example: ringfence create db/oltp1 --controllers cpu,cpuset,memory --tasks oracle:dba"
    )]
    Create(Create),
    /// Remove a group that holds no tasks
    #[command(after_help = "Example: ringfence delete --recursive db")]
    Delete(Delete),
    /// List groups
    #[command(after_help = "Example: ringfence list --tree db")]
    List(List),
    /// Show what a group's settings are
    #[command(after_help = "Example: ringfence get db/oltp1 memory.max cpu.cfs_quota_us")]
    Get(Get),
    /// Change a group's settings, all of them or none
    #[command(after_help = "Examples:
  ringfence set db/oltp1 cpuset.cpus=0-7 cpuset.mems=0 memory.max=8G cpu.max=150%
  ringfence set iothrottle 'io.max=/dev/sdb riops=10'
  ringfence set db/oltp2 --from db/oltp1")]
    Set(Set),
    /// Run a program inside a group
    #[command(after_help = "Example: ringfence run db/oltp1 -- pgbench -S -T 30")]
    Run(Run),
    /// Put running processes or threads into a group
    #[command(after_help = "Example: ringfence move db/oltp1 --tree 4711")]
    Move(Move),
    /// Tell which group a process is in, per hierarchy
    #[command(after_help = "Example: ringfence where 4711")]
    Where(Where),
    /// Stop all tasks of a group, and wait until they have stopped
    #[command(after_help = "Example: ringfence freeze batch --timeout 10")]
    Freeze(Wait),
    /// Let a frozen group's tasks run again
    #[command(after_help = "Example: ringfence thaw batch")]
    Thaw(Wait),
    /// Kill all processes of a group and below, and wait until they are gone
    #[command(after_help = "Example: ringfence kill batch")]
    Kill(Wait),
    /// Show what a group uses
    #[command(after_help = "Example: ringfence stat db/oltp1 memory.current cpu.stat")]
    Stat(Get),
    /// Count hardware and software events of a group with perf(1)
    #[command(
        after_help = "Example: ringfence perf db/oltp1 --seconds 10 -- cycles,instructions,context-switches"
    )]
    Perf(Perf),
    /// Check what this machine offers, what is missing, and how to get it
    #[command(after_help = "Example: ringfence doctor")]
    Doctor,
    /// Show the machine: NUMA nodes, cores, CPUs, caches, block devices
    #[command(after_help = "Example: ringfence topology --machine numactl.txt --format svg > machine.svg")]
    Topology(Topology),
    /// Explain the settings: values, ranges, files on cgroup v1 and v2
    #[command(after_help = "Example: ringfence settings memory.max")]
    Settings(Settings),
    /// Mount a controller's cgroup v1 hierarchy
    #[command(after_help = "Example: ringfence mount net_cls")]
    Mount(Mount),
    /// Unmount a controller's cgroup v1 hierarchy that holds no groups
    #[command(after_help = "Example: ringfence umount net_cls")]
    Umount(Mount),
    /// Check a layout; every error at once
    #[command(after_help = "Example: ringfence check /etc/cgconfig.conf")]
    Check(LayoutFile),
    /// Turn libcgroup's configuration into a layout
    #[command(after_help = "Example: ringfence import /etc/cgconfig.conf > layout.toml")]
    Import(LayoutFile),
    /// Turn a layout into libcgroup's configuration or commands
    #[command(after_help = "Example: ringfence export layout.toml --to cgconfig")]
    Export(Export),
    /// Show what a layout would change, and why
    #[command(after_help = "Examples:
  ringfence plan
  ringfence plan layout.toml --machine numactl.txt --as cgset")]
    Plan(PlanArgs),
    /// Divide the machine as a layout says, all of it or nothing
    #[command(after_help = "Example: ringfence apply --confirm 60")]
    Apply(Apply),
    /// Let a change stay that was applied with --confirm
    #[command(after_help = "Example: ringfence confirm")]
    Confirm(Generation),
    /// Go back to the state before the last apply, or after an earlier generation
    #[command(after_help = "Example: ringfence undo")]
    Undo(Generation),
    /// List what was applied and undone: who, when, what, with which result
    #[command(after_help = "Example: ringfence history")]
    History(StateArgs),
    /// Show the groups that were applied, and where they are no longer as asked
    #[command(after_help = "Example: ringfence status --json")]
    Status(StateArgs),
    /// The process that undoes what is not confirmed (started by apply --confirm)
    #[command(hide = true)]
    RevertUnlessConfirmed(Revert),
    /// Divide this machine for a minute and show what that does
    #[command(after_help = "Example: ringfence demo")]
    Demo(Demo),
    /// Print completions for a shell
    #[command(after_help = "Example: ringfence completions bash > /etc/bash_completion.d/ringfence")]
    Completions(Completions),
    /// Write the manual pages into a directory
    #[command(after_help = "Example: ringfence man /usr/local/share/man/man1")]
    Man(Man),
    /// A built-in workload (started by `demo`)
    #[command(hide = true)]
    Worker(Worker),
}

#[derive(Debug, ClapArgs)]
pub struct Create {
    /// The group, for example db/oltp1; with a leading slash from the hierarchy's root
    pub group: String,
    /// Controllers, comma-separated; v1 or v2 names, name=X for a named v1 hierarchy, core for v2 without any
    /// [default: all]
    #[arg(long, short, value_delimiter = ',')]
    pub controllers: Vec<String>,
    /// Who may put tasks in: USER, USER:GROUP or :GROUP
    #[arg(long)]
    pub tasks: Option<String>,
    /// Who may change the settings: USER, USER:GROUP or :GROUP
    #[arg(long)]
    pub admin: Option<String>,
    /// Octal mode of the directory
    #[arg(long, value_parser = octal)]
    pub directory_mode: Option<u32>,
    /// Octal mode of the files of settings
    #[arg(long, value_parser = octal)]
    pub file_mode: Option<u32>,
    /// Octal mode of the files that take tasks
    #[arg(long, value_parser = octal)]
    pub tasks_mode: Option<u32>,
}

fn octal(text: &str) -> Result<u32, String> {
    let mode = u32::from_str_radix(text, 8).map_err(|_| "expected an octal mode such as 0755".to_owned())?;
    if mode <= 0o7777 { Ok(mode) } else { Err("a mode has at most four octal digits".to_owned()) }
}

#[derive(Debug, ClapArgs)]
pub struct Delete {
    /// The groups
    #[arg(required = true)]
    pub groups: Vec<String>,
    /// Also the groups below
    #[arg(long, short)]
    pub recursive: bool,
}

#[derive(Debug, ClapArgs)]
pub struct List {
    /// Only what is below this group; / for everything on the machine
    pub group: Option<String>,
    /// Indent by depth, and show the hierarchies of each group
    #[arg(long, short)]
    pub tree: bool,
}

#[derive(Debug, ClapArgs)]
pub struct Get {
    /// The group
    pub group: String,
    /// Settings, by any of their v1 or v2 names [default: all that the group has]
    pub settings: Vec<String>,
    /// Print the values alone
    #[arg(long, short)]
    pub values: bool,
}

#[derive(Debug, ClapArgs)]
pub struct Set {
    /// The group
    pub group: String,
    /// SETTING=VALUE, by any v1 or v2 name
    #[arg(required_unless_present = "from", value_name = "SETTING=VALUE")]
    pub settings: Vec<String>,
    /// First take over the settings of this group
    #[arg(long, value_name = "GROUP")]
    pub from: Option<String>,
    /// Also all groups below
    #[arg(long, short)]
    pub recursive: bool,
    /// Say nothing but errors and warnings
    #[arg(long, short)]
    pub quiet: bool,
}

#[derive(Debug, ClapArgs)]
pub struct Run {
    /// The group
    pub group: String,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

#[derive(Debug, ClapArgs)]
pub struct Move {
    /// The group; / for the root group
    pub group: String,
    /// Process numbers
    #[arg(required = true, value_name = "PID")]
    pub pids: Vec<u32>,
    /// The numbers are threads, which move alone
    #[arg(long, conflicts_with = "tree")]
    pub threads: bool,
    /// Also all descendants of these processes
    #[arg(long)]
    pub tree: bool,
}

#[derive(Debug, ClapArgs)]
pub struct Where {
    /// Process or thread numbers [default: the shell that asks]
    #[arg(value_name = "PID")]
    pub pids: Vec<u32>,
}

#[derive(Debug, ClapArgs)]
pub struct Wait {
    /// The group
    pub group: String,
    /// Seconds to wait
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(0..=86_400))]
    pub timeout: u64,
}

#[derive(Debug, ClapArgs)]
pub struct Perf {
    /// The group
    pub group: String,
    /// How long
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub seconds: u64,
    /// Events as perf names them, comma-separated or apart
    #[arg(required = true, last = true)]
    pub events: Vec<String>,
}

#[derive(Debug, ClapArgs)]
pub struct Topology {
    /// A listing instead of this machine: numactl --hardware, lscpu, per-CPU listing, hwloc XML, or our JSON;
    /// several are merged
    #[arg(long, value_name = "FILE")]
    pub machine: Vec<PathBuf>,
    /// The form
    #[arg(long, value_enum, default_value_t = Format::Text)]
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
    /// Settings, by any of their names [default: a list of all]
    pub names: Vec<String>,
}

#[derive(Debug, ClapArgs)]
pub struct Mount {
    /// v1 controllers, for example blkio; several together share one hierarchy
    #[arg(required = true, value_name = "CONTROLLER")]
    pub controllers: Vec<String>,
    /// Where [default: a directory beside the other hierarchies]
    #[arg(long, value_name = "DIRECTORY")]
    pub at: Option<PathBuf>,
}

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
    /// Where the history is kept
    #[arg(long, value_name = "DIRECTORY", help = "Where the history is kept [default: /var/lib/ringfence]")]
    pub state: Option<PathBuf>,
}

#[derive(Debug, ClapArgs)]
pub struct Apply {
    /// The layout
    #[arg(default_value = "/etc/ringfence")]
    pub layout: PathBuf,
    /// Undo it after so long, unless ringfence confirm comes; 60 or 60s
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub confirm: Option<std::time::Duration>,
    #[command(flatten)]
    pub state: StateArgs,
}

fn seconds(text: &str) -> Result<std::time::Duration, String> {
    let number = text.strip_suffix('s').unwrap_or(text).parse::<u64>();
    let within = number.ok().filter(|seconds| (1..=86_400).contains(seconds));
    within
        .map(std::time::Duration::from_secs)
        .ok_or_else(|| "expected 1 to 86400 seconds, such as 60s".to_owned())
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

#[derive(Debug, ClapArgs)]
pub struct Demo {
    /// Shorter runs
    #[arg(long)]
    pub quick: bool,
}

#[derive(Debug, ClapArgs)]
pub struct Completions {
    /// The shell
    pub shell: clap_complete::Shell,
}

#[derive(Debug, ClapArgs)]
pub struct Man {
    /// The directory
    pub directory: PathBuf,
}

#[derive(Debug, ClapArgs)]
pub struct Worker {
    /// The workload with its options
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub words: Vec<String>,
}
