//! The arguments, from which help, completions and manual pages are made too.

mod answers;
mod daemon;
pub mod duration;
mod elastic;
mod groups;
mod help;
mod isolate;
mod kill;
mod lab;
mod layouts;
mod machine;
mod mistakes;
mod moving;
mod read;
mod schedule;
mod shield;
mod simulate;
mod watching;
mod web;
mod why;

pub use answers::Answer;
pub use daemon::{Daemon, LogLevel};
pub use elastic::{Elastic, Pause};
pub use help::{width, wrapped};
pub use isolate::{Isolate, IsolateCheck, IsolateCommand};
pub use kill::Kill;
pub use lab::{Lab, LabCommand, LabRun};
pub use layouts::{
    Apply, Check, Expected, Export, ExportTo, Generation, History, Import, ImportFrom, PlanArgs, PlanForm,
    Revert, Schema, SchemaOf, StateArgs, Status, Undo,
};
pub use machine::{Completions, Format, Links, Man, Mount, Perf, Settings, Topology};
pub use mistakes::Mistake;
pub use moving::{Move, Selection};
pub use read::ALIASES;
pub use schedule::Schedule;
pub use shield::{Shield, Unshield};
pub use simulate::{Against, Simulate, Synthetic};
pub use watching::{Dump, Fields, LogArgs, Metrics, Pictures, Record, Top, Watch};
pub use web::Web;
pub use why::Why;

use std::{ffi::OsString, path::PathBuf, time::Duration};

use self::{
    daemon::DAEMON,
    duration::between,
    elastic::ELASTIC,
    schedule::SCHEDULE,
    simulate::SIMULATE,
    watching::{DUMP, TOP, WATCH},
    web::WEB,
};
use ::daemon::socket::{SOCKET, SOCKET_VARIABLE};
use clap::{Args as ClapArgs, Parser, Subcommand};

/// The exit statuses, for the help and for the manual pages.
pub const EXIT: &str = "\
Exit status: 0 done; 1 failed, nothing was changed; 2 bad usage or bad input (options, a layout, an experiment); 3 partly \
done (see the error), or attention needed (doctor, status, isolate check above its budget, apply and undo where a limit could \
not be taken back or does not hold for a process); 130 interrupted and rolled back (apply, undo).

`run` ends with the program's own status; 125 if the program could not be put into the group, 126 if it cannot be \
executed, 127 if it is not found.

libcgroup's commands and cset also work, through symlinks (see `links`) or as subcommands: ringfence cgset --help";

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
    /// Print JSON instead of text (docs/json.md); of run and daemon errors only, not of metrics, perf and completions
    #[arg(long, global = true)]
    pub json: bool,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Create a group, in every hierarchy or in those of the given controllers
    #[command(
        after_help = "On cgroup v1 the processes that a group has in other hierarchies come along into one that it is \
made in.

Examples:
  ringfence create db/oltp1
  ringfence create db/oltp1 --controllers cpu,cpuset,memory --tasks oracle:dba"
    )]
    Create(Create),
    /// Remove groups that contain no tasks
    #[command(
        visible_alias = "rm",
        after_help = "Examples:
  ringfence delete db/oltp1
  ringfence delete --recursive db"
    )]
    Delete(Delete),
    /// List groups
    #[command(
        visible_alias = "ls",
        after_help = "Examples:
  ringfence list
  ringfence list --tree db"
    )]
    List(List),
    /// Show a group's settings
    #[command(after_help = "Examples:
  ringfence get db/oltp1
  ringfence get db/oltp1 memory.max cpu.cfs_quota_us")]
    Get(Get),
    /// Change a group's settings, all of them or none
    #[command(
        after_help = "A change of several files is recorded, so that `ringfence undo` takes it back. A change of one file \
is not: set the old value again.

Without write permission the request goes to ringfenced, if it is running; it accepts the group's `admin` from \
the layout.

Examples:
  ringfence set db/oltp1 cpuset.cpus=0-7 cpuset.mems=0 memory.max=8G cpu.max=150%
  ringfence set iothrottle 'io.max=/dev/sdb riops=10'
  ringfence set db/oltp2 --from db/oltp1"
    )]
    Set(Set),
    /// Run a program inside a group
    #[command(visible_alias = "exec", after_help = "Example: ringfence run db/oltp1 -- pgbench -S -T 30")]
    Run(Run),
    /// Put running processes or threads into a group
    #[command(
        after_help = "Processes are named by number, or by what they are: --process, --command and --user must all fit, as in \
`match` of a layout. This command itself, and what started it, never fits. All are moved or none; what a moved process \
forks meanwhile is moved as well.

Without write permission the request goes to ringfenced, if it is running; it lets the \
group's `tasks` user from the layout move processes of their own.

Examples:
  ringfence move db/oltp1 4711
  ringfence move db/oltp1 --tree 4711
  ringfence move db/oltp1 --process postgres --user postgres --dry-run
  ringfence move db/oltp1 --command 'postgres: .*autovacuum'"
    )]
    Move(Move),
    /// Show which groups a process is in, which processes a group has, or what may run on a CPU
    #[command(after_help = "A group whose name is a number is written from the root: /2.

Examples:
  ringfence where 4711
  ringfence where db
  ringfence where --cpu 0")]
    Where(Where),
    /// Move processes into the groups that the rules name, with the reasons
    #[command(after_help = "Without --rules: the layout in /etc/ringfence, then /etc/cgrules.conf and \
/etc/cgrules.d.

Examples:
  ringfence classify --dry-run 4711
  ringfence classify --dry-run
  ringfence classify --rules cgrules.conf 4711 4712")]
    Classify(Classify),
    /// Stop all tasks of a group, and wait until they have stopped
    #[command(after_help = "Example: ringfence freeze batch --timeout 10s")]
    Freeze(Wait),
    /// Let a frozen group's tasks run again
    #[command(after_help = "Example: ringfence thaw batch")]
    Thaw(Wait),
    /// Kill all processes of a group and of those below it, and wait until they are gone
    #[command(
        after_help = "A frozen group of cgroup v1 is thawed for it: its processes can't end before.\n\n\
                      Examples:\n  ringfence kill batch\n  ringfence kill batch --signal TERM"
    )]
    Kill(Kill),
    /// Show what a group uses
    #[command(after_help = "Examples:
  ringfence stat db/oltp1
  ringfence stat db/oltp1 memory.current cpu.stat")]
    Stat(Get),
    /// Show what groups get, use and wait for, refreshed every interval
    #[command(after_help = WATCH)]
    Watch(Watch),
    /// Show groups, settings, tasks and the machine full-screen, and change them there
    #[command(after_help = TOP)]
    Top(Top),
    /// Show the machine, groups, plans and experiments in a browser, and change them there
    #[command(after_help = WEB)]
    Web(Web),
    /// Record what groups get, use and wait for, until Ctrl-C or SIGTERM
    #[command(
        after_help = "If the last record is incomplete (kill -9, full disk), a warning is printed and \
recording continues. `ringfence dump` and `ringfence watch --at` read the log.

Examples:
  ringfence record
  ringfence record --directory /var/tmp/log --interval 5s --size 100M db"
    )]
    Record(Record),
    /// Print what was recorded
    #[command(after_help = DUMP)]
    Dump(Dump),
    /// Print what groups get, use and wait for as OpenMetrics
    #[command(after_help = "Examples:
  ringfence metrics
  ringfence metrics --textfile /var/lib/prometheus/node-exporter/ringfence.prom")]
    Metrics(Metrics),
    /// Explain the figures of watch, dump and record
    #[command(after_help = "Examples:
  ringfence fields 'memory.*'
  ringfence fields cpuacct.usage")]
    Fields(Fields),
    /// Count hardware and software events of a group with perf(1)
    #[command(
        after_help = "Example: ringfence perf db/oltp1 --for 10s -- cycles,instructions,context-switches"
    )]
    Perf(Perf),
    /// Show what slowed a group down in the last seconds, and the command that changes it
    #[command(after_help = why::causes())]
    Why(Why),
    /// Measure how quiet CPUs are
    #[command(after_help = "Example: ringfence isolate check 2-3 --for 30s")]
    Isolate(Isolate),
    /// Check what this machine offers, what is missing, and how to get it
    #[command(after_help = "Example: ringfence doctor")]
    Doctor,
    /// Show the machine: NUMA nodes, cores, CPUs, caches, block devices
    #[command(after_help = "Examples:
  ringfence topology
  ringfence topology --machine numactl.txt --format svg > machine.svg")]
    Topology(Topology),
    /// Explain the settings: values, ranges, files on cgroup v1 and v2
    #[command(after_help = "Examples:
  ringfence settings
  ringfence settings 'memory.*'
  ringfence settings memory.max")]
    Settings(Settings),
    /// Mount a controller's cgroup v1 hierarchy
    #[command(after_help = "Example: ringfence mount net_cls")]
    Mount(Mount),
    /// Unmount a controller's cgroup v1 hierarchy that contains no groups
    #[command(after_help = "Example: ringfence umount net_cls")]
    Umount(Mount),
    /// Check a layout and list all of its errors
    #[command(
        visible_alias = "validate",
        after_help = "Also reports users that do not exist here, and warns if \
the layout is for another machine. It does not ask the kernel: `ringfence plan` does.

Examples:
  ringfence check
  ringfence check layout.toml
  ringfence check --json /etc/cgconfig.conf"
    )]
    Check(Check),
    /// Turn libcgroup's configuration, or systemd's files, into a layout
    #[command(after_help = "Without FILE: /etc/cgconfig.conf, /etc/cgconfig.d, /etc/cgrules.conf and \
/etc/cgrules.d, those that exist. Comments are not carried over.

From systemd, the layout has a group for each unit whose files in /etc and /run limit it, or for each UNIT; what no \
setting of a unit says is a comment.

Examples:
  ringfence import > layout.toml
  ringfence import /etc/cgconfig.conf /etc/cgconfig.d > layout.toml
  ringfence import cgrules.conf > layout.d/rules.toml
  ringfence import --from systemd > layout.toml
  ringfence import --from systemd postgresql@15-main.service machine.slice")]
    Import(Import),
    /// Turn a layout into libcgroup's configuration or commands
    #[command(after_help = "Examples:
  ringfence export layout.toml --to cgconfig > /etc/cgconfig.conf
  ringfence export --to cgset")]
    Export(Export),
    /// Print the JSON schema of layout or experiment files, for editors
    #[command(after_help = "Example: ringfence schema layout > layout.schema.json")]
    Schema(Schema),
    /// Show what a layout would change
    #[command(
        visible_alias = "diff",
        after_help = "One block per group: + is added, ~ is changed, - is removed \
or goes back. -v shows every step in its order, with the file and the reason.

Examples:
  ringfence plan
  ringfence plan -v layout.toml
  ringfence plan --json layout.toml
  ringfence plan layout.toml --machine numactl.txt --as cgset"
    )]
    Plan(PlanArgs),
    /// Show elastic groups, their CPUs and the last changes of these
    #[command(after_help = ELASTIC)]
    Elastic(Elastic),
    /// Stop resizing elastic groups; they keep the CPUs that they have
    #[command(after_help = "Example: ringfence pause")]
    Pause(Pause),
    /// Resize elastic groups again, after a pause or after resizing has ended by itself
    #[command(after_help = "Example: ringfence resume")]
    Resume(Pause),
    /// List what a layout's schedules change next, and what they changed last
    #[command(after_help = SCHEDULE)]
    Schedule(Schedule),
    /// Show what resizing elastic groups would do with a load, beside other rules
    #[command(after_help = SIMULATE)]
    Simulate(Simulate),
    /// Apply a layout to this machine, all of it or nothing
    #[command(after_help = "Ctrl-C stops between two steps and rolls back what was done.

Examples:
  ringfence apply
  ringfence apply layout.toml --dry-run
  ringfence apply layout.toml --confirm 60s")]
    Apply(Apply),
    /// Give CPUs to one group alone, and move all other tasks off them
    #[command(after_help = shield::SHIELD)]
    Shield(Shield),
    /// Take back what shield did
    #[command(
        after_help = "Where another change came after the shield, it names the undo that takes both back.\n\nExample: ringfence unshield"
    )]
    Unshield(Unshield),
    /// Keep a change that was applied with --confirm
    #[command(after_help = "Examples:
  ringfence confirm
  ringfence confirm 7")]
    Confirm(Generation),
    /// Undo the last change in the history, or go back to the state after an earlier one
    #[command(
        visible_alias = "rollback",
        after_help = "Groups that still contain tasks stay and are listed (exit \
status 3). An undo can be undone: name the generation. A `ringfence set` of one file is not in the history: the undo \
of the layout that made the group names its value as lost.

Examples:
  ringfence undo       # the last change
  ringfence undo 3     # back to how it was after generation 3 (ringfence history lists them)
  ringfence undo 0     # back to how it was before the first"
    )]
    Undo(Undo),
    /// List what was applied and undone: who, when, what, with which result
    #[command(after_help = "* marks the generations that are in effect.

Examples:
  ringfence history
  ringfence history 3
  ringfence history -n 10 --json")]
    History(History),
    /// Show the applied groups, what they use, and where they drifted
    #[command(
        after_help = "One line per group: what it was given, its tasks, what it uses. -v shows every setting \
with the value that the kernel has, the tasks by name, and the directories.

Exit status 3: something drifted from what was applied, or from the layout named with --layout.

Examples:
  ringfence status
  ringfence status db/oltp1 -v
  ringfence status --layout /etc/ringfence
  ringfence status --json
  ringfence status --svg > machine.svg"
    )]
    Status(Status),
    /// The process that undoes what is not confirmed (started by apply --confirm)
    #[command(hide = true)]
    RevertUnlessConfirmed(Revert),
    /// Apply the layout, move processes into their groups as they start, and watch for drift (ringfenced)
    #[command(after_help = DAEMON)]
    Daemon(Daemon),
    /// Reload the daemon's configuration; on an error the old one stays active
    #[command(after_help = "Example: ringfence reload")]
    Reload(Socket),
    /// Measure what a division does to workloads on this machine
    #[command(after_help = lab::LAB)]
    Lab(Lab),
    /// Print completions for a shell
    #[command(
        after_help = "Groups, settings, fields, studies and generations are completed as they are on this \
machine.

Examples:
  ringfence completions bash > /etc/bash_completion.d/ringfence
  ringfence completions zsh > /usr/local/share/zsh/site-functions/_ringfence
  ringfence completions fish > ~/.config/fish/completions/ringfence.fish"
    )]
    Completions(Completions),
    /// Install symlinks for libcgroup's commands (cgset, cgexec, lscgroup and the others) and for cset
    #[command(after_help = "Example: ringfence links /usr/local/sbin")]
    Links(Links),
    /// Write the manual pages into a directory
    #[command(
        after_help = "Section 1 for the commands, section 5 for the layout file and libcgroup's two files: man1 and man5 are made below \
a directory named man, else all pages go into DIRECTORY.

Examples:
  ringfence man /usr/local/share/man
  ringfence man /tmp/pages"
    )]
    Man(Man),
    /// A built-in workload (started by `lab`)
    #[command(hide = true)]
    Worker(Worker),
}

#[derive(Debug, ClapArgs)]
pub struct Create {
    /// The group, for example db/oltp1; with a leading slash from the hierarchy's root
    pub group: String,
    /// Controllers, comma-separated; v1 or v2 names, name=X for a named v1 hierarchy, core for v2 without any [default:
    /// all]
    #[arg(long, short, value_delimiter = ',')]
    pub controllers: Vec<String>,
    /// Who may put tasks in: USER, USER:GROUP or :GROUP. On cgroup v2 not from groups of others: there root, or ringfenced by a
    /// layout, moves them
    #[arg(long, value_name = "OWNER")]
    pub tasks: Option<String>,
    /// Who may change the settings: USER, USER:GROUP or :GROUP
    #[arg(long, value_name = "OWNER")]
    pub admin: Option<String>,
    /// Octal mode of the directory
    #[arg(long, value_name = "MODE", value_parser = octal)]
    pub directory_mode: Option<u32>,
    /// Octal mode of the files of settings
    #[arg(long, value_name = "MODE", value_parser = octal)]
    pub file_mode: Option<u32>,
    /// Octal mode of the files that take tasks
    #[arg(long, value_name = "MODE", value_parser = octal)]
    pub tasks_mode: Option<u32>,
}

fn pid(text: &str) -> Result<u32, String> {
    text.parse()
        .map_err(|_| "expected the number of a process; pgrep -x NAME finds it by its name".to_owned())
}

fn octal(text: &str) -> Result<u32, String> {
    let mode = u32::from_str_radix(text, 8).map_err(|_| "expected an octal mode such as 0755".to_owned())?;
    if mode <= 0o7777 { Ok(mode) } else { Err("a mode has at most four octal digits".to_owned()) }
}

#[derive(Debug, ClapArgs)]
pub struct Delete {
    /// The groups
    #[arg(required = true, value_name = "GROUP")]
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
    /// The group, or a unit of systemd, such as ssh.service
    pub group: String,
    /// Settings, by any of their v1 or v2 names [default: all that the group has]
    #[arg(value_name = "SETTING")]
    pub settings: Vec<String>,
    /// Print only the values
    #[arg(long, short)]
    pub values: bool,
}

#[derive(Debug, ClapArgs)]
pub struct Set {
    /// The group
    pub group: String,
    /// Settings by their v1 or v2 names, such as memory.max=8G
    #[arg(required_unless_present = "from", value_name = "SETTING=VALUE")]
    pub settings: Vec<String>,
    /// Copy this group's settings first
    #[arg(long, value_name = "GROUP")]
    pub from: Option<String>,
    /// Also all groups below
    #[arg(long, short)]
    pub recursive: bool,
    /// Print only errors and warnings
    #[arg(long, short)]
    pub quiet: bool,
    #[command(flatten)]
    pub expected: Expected,
    #[command(flatten)]
    pub state: StateArgs,
    #[command(flatten)]
    pub socket: Socket,
}

#[derive(Debug, ClapArgs)]
pub struct Run {
    /// The group
    pub group: String,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// For commands that speak to the daemon.
#[derive(Debug, Default, Clone, ClapArgs)]
pub struct Socket {
    #[arg(
        long,
        value_name = "PATH",
        help = format!("The daemon's control socket [default: {SOCKET_VARIABLE}, or {SOCKET}]")
    )]
    pub socket: Option<PathBuf>,
}

#[derive(Debug, ClapArgs)]
pub struct Where {
    /// Process or thread numbers, or groups, whose processes are listed [default: the shell that runs this]
    #[arg(value_name = "PID|GROUP")]
    pub of: Vec<String>,
    /// Show which groups and tasks may run on this CPU, and which tasks ran there last
    #[arg(long, value_name = "CPU", conflicts_with = "of")]
    pub cpu: Option<u32>,
}

impl Where {
    /// The numbers.
    pub fn pids(&self) -> Vec<u32> {
        self.of.iter().filter_map(|one| one.parse().ok()).collect()
    }

    /// What is no number.
    pub fn groups(&self) -> Vec<&str> {
        self.of.iter().map(String::as_str).filter(|one| one.parse::<u32>().is_err()).collect()
    }
}

#[derive(Debug, ClapArgs)]
pub struct Classify {
    /// Process numbers
    #[arg(value_name = "PID", value_parser = pid, required_unless_present_any = ["dry_run", "all"])]
    pub pids: Vec<u32>,
    /// Only show what would be done, and why; without PIDs for all processes
    #[arg(long, short = 'n')]
    pub dry_run: bool,
    /// All processes except those that were put into one of our groups by hand
    #[arg(long, conflicts_with = "pids")]
    pub all: bool,
    /// Rules instead of the system's: a layout's file or directory, cgrules.conf or cgconfig.conf (for its templates)
    #[arg(long, value_name = "FILE")]
    pub rules: Vec<PathBuf>,
}

#[derive(Debug, ClapArgs)]
pub struct Wait {
    /// The group
    pub group: String,
    /// How long to wait, such as 10, 10s or 1m
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = between("0s", "1d"))]
    pub timeout: Duration,
}

#[derive(Debug, ClapArgs)]
pub struct Worker {
    /// The workload with its options
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub words: Vec<String>,
}
