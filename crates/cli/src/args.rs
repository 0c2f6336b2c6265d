//! The arguments, from which help, completions and manual pages are made too.

mod daemon;
mod lab;
mod layouts;
mod watching;
mod why;

pub use daemon::{Daemon, LogLevel};
pub use lab::{Lab, LabCommand, LabRun};
pub use layouts::{
    Apply, Export, ExportTo, Generation, LayoutFile, PlanArgs, PlanForm, Revert, Schema, SchemaOf, StateArgs,
    Status,
};
pub use watching::{Dump, Fields, LogArgs, Metrics, Pictures, Record, Top, Watch};
pub use why::Why;

use std::{ffi::OsString, path::PathBuf};

use self::{
    daemon::DAEMON,
    watching::{DUMP, TOP, WATCH},
    why::WHY,
};
use clap::{Args as ClapArgs, FromArgMatches, Parser, Subcommand, ValueEnum};

const EXIT: &str = "\
Exit status: 0 done, 1 failed and nothing was changed, 2 bad usage, 3 done in part, as the error tells, or
something needs attention (doctor, status), 130 interrupted and put back (apply, undo).
`run` ends with the program's own status; 125 if it could not be put into the group, 126 if it can't be
executed, 127 if it is not found.

libcgroup's commands are answered too, by their names (see links) or after ringfence: ringfence cgset --help";

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
        let mut words: Vec<OsString> = std::env::args_os().collect();
        if crate::program_name().as_deref() == Some("ringfenced") {
            words.insert(1, "daemon".into());
        }
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
  ringfence set db/oltp2 --from db/oltp1

A user who may not write the group asks ringfenced, if it runs: it lets the group's admin in the layout.")]
    Set(Set),
    /// Run a program inside a group
    #[command(after_help = "Example: ringfence run db/oltp1 -- pgbench -S -T 30")]
    Run(Run),
    /// Put running processes or threads into a group
    #[command(after_help = "Example: ringfence move db/oltp1 --tree 4711

A user who may not write the group asks ringfenced, if it runs: it lets the group's tasks user in the layout move
processes of his own.")]
    Move(Move),
    /// Tell which group a process is in, per hierarchy
    #[command(after_help = "Example: ringfence where 4711")]
    Where(Where),
    /// Put processes where the rules say they belong, and tell why
    #[command(
        after_help = "Without --rules: the layout in /etc/ringfence, then /etc/cgrules.conf and /etc/cgrules.d.

Examples:
  ringfence classify --dry-run 4711
  ringfence classify --dry-run
  ringfence classify --rules cgrules.conf 4711 4712"
    )]
    Classify(Classify),
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
    /// Show what groups get, use and wait for, again and again
    #[command(after_help = WATCH)]
    Watch(Watch),
    /// Show the groups, their settings and tasks, and the machine on the screen, and change them there
    #[command(after_help = TOP)]
    Top(Top),
    /// Record what groups get, use and wait for, until Ctrl-C or SIGTERM
    #[command(after_help = "A log whose end was cut off (kill -9, a full disk) is told and gone on with.
`ringfence dump` and `ringfence watch --at` read it.

Examples:
  ringfence record
  ringfence record --directory /var/tmp/log --interval 5s --size 100M db")]
    Record(Record),
    /// Print what was recorded
    #[command(after_help = DUMP)]
    Dump(Dump),
    /// Print what groups get, use and wait for as OpenMetrics
    #[command(after_help = "Examples:
  ringfence metrics
  ringfence metrics --textfile /var/lib/prometheus/node-exporter/ringfence.prom")]
    Metrics(Metrics),
    /// Explain the figures that watch, dump and record know
    #[command(after_help = "Examples:
  ringfence fields memory.*
  ringfence fields cpuacct.usage")]
    Fields(Fields),
    /// Count hardware and software events of a group with perf(1)
    #[command(
        after_help = "Example: ringfence perf db/oltp1 --seconds 10 -- cycles,instructions,context-switches"
    )]
    Perf(Perf),
    /// Tell what held a group back in the last seconds, and the command that would change it
    #[command(after_help = WHY)]
    Why(Why),
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
    #[command(after_help = "Also says whether its users exist here, and warns if it is for another machine.

Examples:
  ringfence check
  ringfence check layout.toml
  ringfence check --json /etc/cgconfig.conf")]
    Check(LayoutFile),
    /// Turn libcgroup's configuration into a layout
    #[command(after_help = "Examples:
  ringfence import /etc/cgconfig.conf > layout.toml
  ringfence import /etc/cgrules.conf > layout.d/rules.toml")]
    Import(LayoutFile),
    /// Turn a layout into libcgroup's configuration or commands
    #[command(after_help = "Examples:
  ringfence export layout.toml --to cgconfig > /etc/cgconfig.conf
  ringfence export --to cgset")]
    Export(Export),
    /// Print the JSON schema of layout or experiment files, for editors
    #[command(after_help = "Example: ringfence schema layout > layout.schema.json")]
    Schema(Schema),
    /// Show what a layout would change, and why
    #[command(after_help = "Examples:
  ringfence plan
  ringfence plan --json layout.toml
  ringfence plan layout.toml --machine numactl.txt --as cgset")]
    Plan(PlanArgs),
    /// Divide the machine as a layout says, all of it or nothing
    #[command(after_help = "Ctrl-C stops it between two steps, and puts back what was done.

Examples:
  ringfence apply
  ringfence apply layout.toml --confirm 60s")]
    Apply(Apply),
    /// Let a change stay that was applied with --confirm
    #[command(after_help = "Examples:
  ringfence confirm
  ringfence confirm 7")]
    Confirm(Generation),
    /// Go back to the state before the last apply, or after an earlier generation
    #[command(
        after_help = "A group with tasks in it stays, and is told (exit status 3). An undo can be undone: name the generation.

Examples:
  ringfence undo       # the last apply
  ringfence undo 3     # back to how it was after generation 3 (ringfence history lists them)
  ringfence undo 0     # back to how it was before the first"
    )]
    Undo(Generation),
    /// List what was applied and undone: who, when, what, with which result
    #[command(after_help = "Examples:
  ringfence history
  ringfence history --json")]
    History(StateArgs),
    /// Show the groups that were applied, what they use, and where they are no longer as asked
    #[command(
        after_help = "Exit status 3: something is no longer as it was applied, or not as the named layout asks.

Examples:
  ringfence status
  ringfence status /etc/ringfence
  ringfence status --json
  ringfence status --svg > machine.svg"
    )]
    Status(Status),
    /// The process that undoes what is not confirmed (started by apply --confirm)
    #[command(hide = true)]
    RevertUnlessConfirmed(Revert),
    /// Apply the layout, put every process into its group, and keep it so (ringfenced)
    #[command(after_help = DAEMON)]
    Daemon(Daemon),
    /// Have the daemon read its configuration again; on an error it keeps the old one, and the error is told
    #[command(after_help = "Example: ringfence reload")]
    Reload,
    /// Measure what a division does to workloads on this machine
    #[command(after_help = lab::LAB)]
    Lab(Lab),
    /// Print completions for a shell
    #[command(after_help = "Example: ringfence completions bash > /etc/bash_completion.d/ringfence")]
    Completions(Completions),
    /// Make links by which libcgroup's commands are answered: cgset, cgexec, lscgroup and the others
    #[command(after_help = "Example: ringfence links /usr/local/sbin")]
    Links(Links),
    /// Write the manual pages into a directory
    #[command(after_help = "Example: ringfence man /usr/local/share/man/man1")]
    Man(Man),
    /// A built-in workload (started by `lab`)
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
pub struct Classify {
    /// Process numbers
    #[arg(value_name = "PID", required_unless_present_any = ["dry_run", "all"])]
    pub pids: Vec<u32>,
    /// Only tell what would be done, and why; without PIDs for all processes
    #[arg(long, short = 'n')]
    pub dry_run: bool,
    /// All processes, but those that were put into one of our groups by hand
    #[arg(long, conflicts_with = "pids")]
    pub all: bool,
    /// Rules instead of the system's: a layout, cgrules.conf or cgconfig.conf (for its templates)
    #[arg(long, value_name = "FILE")]
    pub rules: Vec<PathBuf>,
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

#[derive(Debug, ClapArgs)]
pub struct Worker {
    /// The workload with its options
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub words: Vec<String>,
}
