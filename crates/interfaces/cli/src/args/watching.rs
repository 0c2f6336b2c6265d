//! The arguments of the commands that watch groups.

use std::{
    path::PathBuf,
    time::{Duration, SystemTime},
};

use clap::Args as ClapArgs;
use exporters::metrics::Bounds;
use monitor::log::{DIRECTORY, VARIABLE};
use units::Bytes;

use super::{
    Socket,
    duration::{between, duration},
};

pub const WATCH: &str = "\
Without --fields: what each group uses of its limits, and what slowed it down. A field is named as
`ringfence fields` lists it, by its beginning (memory.*), or by the kernel's file (cpuacct.usage);
machine.NAME is the machine's. Of several CPUs, nodes or devices the sum is shown; NAME/* shows
each, NAME/3 or NAME/sda one.

Ctrl-C ends it. --json prints an object a line, --csv a line per group, with numbers in whole units
(CPUs, bytes, seconds, shares of 1); a figure that this kernel does not have is left out.

Examples:
  ringfence watch
  ringfence watch db --interval 5s --sort cpu.usage
  ringfence watch --once --json
  ringfence watch rt general --perf --fields freezer.state,cpu.usage,cpu.percpu/*,memory.current
  ringfence watch --tasks db/oltp1 --once
  ringfence watch --at '10 min ago'";

pub const TOP: &str = "\
Keys are shown on the screen, all of them with ?. A setting is changed with e: what would be written is shown while
it is typed, Return writes it, u undoes. With --once, --count, --csv or --json, or where standard output is no
terminal, it prints what `ringfence watch` prints.

--at shows the recorder's log on the same screens: arrows step through it, the space bar plays it.
--fields adds columns; NO_COLOR=1 leaves colours away. CPU and memory are measured against what the group may use:
its limits, those of the groups above it, or the machine.

Examples:
  ringfence top
  ringfence top db rt --interval 2s --sort memory.current
  ringfence top --fields cpuset.cpus,memory.swap
  ringfence top --at '10 min ago'
  ringfence top --once --json";

pub const DUMP: &str = "\
A moment is RFC 3339 (2026-01-31T08:05:09Z, in UTC) or a time that passed ('10 min ago', '1h 30m ago').
With --raw numbers are as they were read, counters are not turned into rates, and units are the kernel's. --openmetrics prints raw counters with their times, as
`promtool tsdb create-blocks-from openmetrics` takes them.

Examples:
  ringfence dump --since '10 min ago'
  ringfence dump --since 2026-01-31T08:00:00Z --until 2026-01-31T09:00:00Z --groups db --csv
  ringfence dump --since '1h ago' --fields cpu.*,memory.current --json --raw";

/// Which samples of the groups: what watch and top have in common.
#[derive(Debug, ClapArgs)]
pub struct Pictures {
    /// Only these groups and those below them; / for everything on the machine [default: all groups of Ringfence and the units of the layout]
    #[arg(value_name = "GROUP")]
    pub groups: Vec<String>,
    /// Interval, 10ms to 1d
    #[arg(long, short, value_name = "TIME", default_value = "1s", value_parser = between("10ms", "1d"))]
    pub interval: Duration,
    /// Exit after this many samples
    #[arg(long, short = 'n', value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// Print one sample and exit: --count 1
    #[arg(long, conflicts_with = "count")]
    pub once: bool,
    /// Fields to show, comma-separated
    #[arg(long, short, value_name = "FIELD", value_delimiter = ',')]
    pub fields: Vec<String>,
    /// Sort by this field, largest first, instead of as a tree
    #[arg(long, value_name = "FIELD")]
    pub sort: Option<String>,
    /// Print comma-separated values
    #[arg(long)]
    pub csv: bool,
    /// Read this moment from the recorder's log: RFC 3339, or '10 min ago'
    #[arg(long, value_name = "MOMENT", value_parser = moment, conflicts_with = "count")]
    pub at: Option<SystemTime>,
    #[command(flatten)]
    pub log: LogArgs,
}

#[derive(Debug, ClapArgs)]
pub struct Watch {
    #[command(flatten)]
    pub pictures: Pictures,
    /// Show the groups' tasks: the CPU on which each ran last, how much it ran, and how long it waited for a CPU
    #[arg(long, requires = "groups", conflicts_with_all = ["fields", "sort", "csv", "at"])]
    pub tasks: bool,
    /// Count events of the groups too: CPU clock, context switches, migrations, page faults, cycles, instructions, cache
    /// and branch misses, as far as this machine counts them
    #[arg(long, requires = "groups", conflicts_with_all = ["tasks", "at"])]
    pub perf: bool,
}

#[derive(Debug, ClapArgs)]
pub struct Top {
    #[command(flatten)]
    pub pictures: Pictures,
    #[command(flatten)]
    pub socket: Socket,
}

#[derive(Debug, ClapArgs)]
pub struct LogArgs {
    #[arg(
        long,
        value_name = "DIRECTORY",
        help = format!("Directory of the log [default: {VARIABLE}, or {DIRECTORY}]")
    )]
    pub directory: Option<PathBuf>,
}

#[derive(Debug, ClapArgs)]
pub struct Record {
    #[command(flatten)]
    pub log: LogArgs,
    /// Interval, 10ms to 1d
    #[arg(long, short, value_name = "TIME", default_value = "1s", value_parser = between("10ms", "1d"))]
    pub interval: Duration,
    /// Exit after this many samples
    #[arg(long, short = 'n', value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// Maximum size on disk, at least 1M; the oldest samples are deleted
    #[arg(long, default_value = "1G", value_parser = size)]
    pub size: Bytes,
    /// Only these groups and those below them; / for everything on the machine [default: all groups of Ringfence and the units of the layout]
    #[arg(value_name = "GROUP")]
    pub groups: Vec<String>,
}

#[derive(Debug, ClapArgs)]
pub struct Dump {
    #[command(flatten)]
    pub log: LogArgs,
    /// From this moment on [default: the log's beginning]
    #[arg(long, value_name = "MOMENT", value_parser = moment)]
    pub since: Option<SystemTime>,
    /// Up to this moment [default: the log's end]
    #[arg(long, value_name = "MOMENT", value_parser = moment)]
    pub until: Option<SystemTime>,
    /// Fields, comma-separated, as `ringfence watch` takes them
    #[arg(long, short, value_name = "FIELD", value_delimiter = ',')]
    pub fields: Vec<String>,
    /// Only these groups and those below them, comma-separated
    #[arg(long, value_name = "GROUP", value_delimiter = ',')]
    pub groups: Vec<String>,
    /// Numbers as they were read
    #[arg(long)]
    pub raw: bool,
    /// Print comma-separated values
    #[arg(long, conflicts_with = "openmetrics")]
    pub csv: bool,
    /// Print OpenMetrics with times
    #[arg(long, conflicts_with = "raw")]
    pub openmetrics: bool,
}

#[derive(Debug, ClapArgs)]
pub struct Metrics {
    /// Only these groups and those below them; / for everything on the machine [default: all groups of Ringfence and the units of the layout]
    #[arg(value_name = "GROUP")]
    pub groups: Vec<String>,
    /// Write into a file, atomically, for a collector of text files (node_exporter reads *.prom)
    #[arg(long, value_name = "FILE")]
    pub textfile: Option<PathBuf>,
    /// Export at most this many groups; the number omitted is itself a metric
    #[arg(long, default_value_t = Bounds::default().groups)]
    pub most: usize,
}

#[derive(Debug, ClapArgs)]
pub struct Fields {
    /// Fields, by name, beginning (memory.*) or the kernel's file [default: all]
    pub names: Vec<String>,
}

pub(super) fn size(text: &str) -> Result<Bytes, String> {
    let size: Bytes = text.parse().map_err(|error: units::UnitError| error.to_string())?;
    if size >= Bytes(1 << 20) { Ok(size) } else { Err("expected at least 1M".to_owned()) }
}

fn moment(text: &str) -> Result<SystemTime, String> {
    let text = text.trim();
    let expected = || "expected RFC 3339 such as 2026-01-31T08:05:09Z, or '10 min ago'".to_owned();
    if text == "now" {
        return Ok(SystemTime::now());
    }
    if let Some(passed) = text.strip_suffix("ago") {
        let passed = duration(passed).ok_or_else(expected)?;
        return SystemTime::now().checked_sub(passed).ok_or_else(expected);
    }
    humantime::parse_rfc3339_weak(text).map_err(|_| expected())
}
