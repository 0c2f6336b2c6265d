//! The arguments of the commands that watch groups.

use std::{
    path::PathBuf,
    time::{Duration, SystemTime},
};

use clap::Args as ClapArgs;
use units::Bytes;

pub const WATCH: &str = "\
Without --fields: use against allotment, and what held a group back. A field is named as
`ringfence fields` lists it, by its beginning (memory.*), or by the kernel's file (cpuacct.usage);
machine.NAME is the machine's. Of several CPUs, nodes or devices the sum is shown; NAME/* shows
each, NAME/3 or NAME/sda one.

Ctrl-C ends it. --json prints an object a line, --csv a line per group, with numbers in whole units
(CPUs, bytes, seconds, shares of 1); a figure that this kernel does not tell is left out.

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
With --raw numbers are as they were read, and counters as they stood; else rates, and levels in
whole units. --openmetrics prints raw counters with their times, as
`promtool tsdb create-blocks-from openmetrics` takes them.

Examples:
  ringfence dump --since '10 min ago'
  ringfence dump --since 2026-01-31T08:00:00Z --until 2026-01-31T09:00:00Z --groups db --csv
  ringfence dump --since '1h ago' --fields cpu.*,memory.current --json --raw";

/// Which pictures of the groups: what watch and top have in common.
#[derive(Debug, ClapArgs)]
pub struct Pictures {
    /// Only these groups and those below them; / for everything on the machine [default: all of ours]
    #[arg(value_name = "GROUP")]
    pub groups: Vec<String>,
    /// How often, 10ms to 1d
    #[arg(long, short, default_value = "1s", value_parser = interval)]
    pub interval: Duration,
    /// End after so many pictures
    #[arg(long, short = 'n', value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// One picture, of one interval: --count 1
    #[arg(long, conflicts_with = "count")]
    pub once: bool,
    /// Which figures, comma-separated
    #[arg(long, short, value_name = "FIELD", value_delimiter = ',')]
    pub fields: Vec<String>,
    /// The groups with the most of this first, instead of as a tree
    #[arg(long, value_name = "FIELD")]
    pub sort: Option<String>,
    /// Print comma-separated values
    #[arg(long)]
    pub csv: bool,
    /// The recorder's log, as it was then: RFC 3339, or '10 min ago'
    #[arg(long, value_name = "MOMENT", value_parser = moment, conflicts_with = "count")]
    pub at: Option<SystemTime>,
    #[command(flatten)]
    pub log: LogArgs,
}

#[derive(Debug, ClapArgs)]
pub struct Watch {
    #[command(flatten)]
    pub pictures: Pictures,
    /// The tasks of the groups: the CPU on which each ran last, how much it ran, and how long it waited for a CPU
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
}

#[derive(Debug, ClapArgs)]
pub struct LogArgs {
    /// Where the log is [default: RINGFENCE_LOG, or /var/log/ringfence]
    #[arg(long, value_name = "DIRECTORY")]
    pub directory: Option<PathBuf>,
}

#[derive(Debug, ClapArgs)]
pub struct Record {
    #[command(flatten)]
    pub log: LogArgs,
    /// How often, 10ms to 1d
    #[arg(long, short, default_value = "1s", value_parser = interval)]
    pub interval: Duration,
    /// End after so many samples
    #[arg(long, short = 'n', value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// At most so much on disk, at least 1M; the oldest goes
    #[arg(long, default_value = "1G", value_parser = size)]
    pub size: Bytes,
    /// Only these groups and those below them; / for everything on the machine [default: all of ours]
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
    /// Which figures, comma-separated, as `ringfence watch` takes them
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
    /// Only these groups and those below them; / for everything on the machine [default: all of ours]
    #[arg(value_name = "GROUP")]
    pub groups: Vec<String>,
    /// Into a file, whole or not at all, for a collector of text files (node_exporter reads *.prom)
    #[arg(long, value_name = "FILE")]
    pub textfile: Option<PathBuf>,
    /// At most so many groups; how many are left out is a metric
    #[arg(long, default_value_t = 1000)]
    pub most: usize,
}

#[derive(Debug, ClapArgs)]
pub struct Fields {
    /// Fields, by name, beginning (memory.*) or the kernel's file [default: all]
    pub names: Vec<String>,
}

pub(super) fn interval(text: &str) -> Result<Duration, String> {
    let within = Duration::from_millis(10)..=Duration::from_secs(86_400);
    let parsed = humantime::parse_duration(text).ok().filter(|interval| within.contains(interval));
    parsed.ok_or_else(|| "expected 10ms to 1d, such as 500ms, 1s or 5min".to_owned())
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
        let passed = humantime::parse_duration(passed.trim()).map_err(|_| expected())?;
        return SystemTime::now().checked_sub(passed).ok_or_else(expected);
    }
    humantime::parse_rfc3339_weak(text).map_err(|_| expected())
}
