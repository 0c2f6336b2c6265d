//! The arguments of the daemon.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use clap::{Args as ClapArgs, ValueEnum};
use units::Bytes;

use super::watching::{interval, size};

pub const DAEMON: &str = "\
Without --layout and --rules: the layout in /etc/ringfence, then /etc/cgrules.conf and /etc/cgrules.d, with templates of
/etc/cgconfig.conf and /etc/cgconfig.d. A link named ringfenced to this program is the same command.

Signals: HUP reads layout, rules and templates anew, USR2 rules and templates, USR1 templates; with errors what was in
force stays. TERM and INT end it and leave groups as they are. After a change of rules, reload: a restarted daemon takes
a process in a group that no rule leads to for placed there by hand, and leaves it.

The service takes more options from RINGFENCED_OPTIONS in /etc/default/ringfenced. docs/metrics.md lists the metrics.

Examples:
  ringfence daemon
  ringfence daemon --layout layout.toml --repair --check 10
  ringfence daemon --record --metrics
  ringfence daemon --rules cgrules.conf --no-apply --no-socket --log debug";

#[derive(Debug, ClapArgs)]
pub struct Daemon {
    /// The layout: a file, or a directory with layout.toml and layout.d/*.toml
    #[arg(long, value_name = "PATH")]
    pub layout: Option<PathBuf>,
    /// More rules: a layout or cgrules.conf
    #[arg(long, value_name = "FILE")]
    pub rules: Vec<PathBuf>,
    /// Templates of a cgconfig.conf
    #[arg(long, value_name = "FILE")]
    pub templates: Vec<PathBuf>,
    /// Only classify processes; leave the layout's groups as they are
    #[arg(long)]
    pub no_apply: bool,
    /// Where the history is kept [default: RINGFENCE_STATE, or /var/lib/ringfence]
    #[arg(long, value_name = "DIRECTORY")]
    pub state: Option<PathBuf>,
    /// Where it answers
    #[arg(long, value_name = "PATH", default_value = "/run/ringfence/ringfenced.sock")]
    pub socket: PathBuf,
    /// Answer nowhere
    #[arg(long, conflicts_with = "socket")]
    pub no_socket: bool,
    /// Don't hold the starts of strict rules' programs: they are moved right after, as all others
    #[arg(long)]
    pub no_strict: bool,
    /// Where something is no longer as applied, make it so again; else it is only told. What the layout says with 'keep'
    /// goes before it
    #[arg(long)]
    pub repair: bool,
    /// How often that is looked at; 0: never
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(0..=86_400))]
    pub check: u64,
    /// Record samples of all groups into a log, which ringfence dump and watch --at read [default: RINGFENCE_LOG, or
    /// /var/log/ringfence]
    #[arg(long, value_name = "DIRECTORY", num_args = 0..=1)]
    pub record: Option<Option<PathBuf>>,
    /// How often a sample is taken for it, 10ms to 1d
    #[arg(long, value_name = "TIME", default_value = "1s", requires = "record", value_parser = interval)]
    pub record_interval: Duration,
    /// At most so much of it on disk, at least 1M; the oldest goes
    #[arg(long, value_name = "SIZE", default_value = "1G", requires = "record", value_parser = size)]
    pub record_size: Bytes,
    /// Answer http://ADDRESS:PORT/metrics for Prometheus [default: 127.0.0.1:10947]; without a password, so name another
    /// address than a loopback one only where all who reach it may read
    #[arg(long, value_name = "ADDRESS:PORT", num_args = 0..=1)]
    pub metrics: Option<Option<SocketAddr>>,
    /// Write the metrics into a file every 15 seconds, for a collector of text files (node_exporter reads *.prom)
    #[arg(long, value_name = "FILE")]
    pub textfile: Option<PathBuf>,
    /// Metrics of at most so many groups; how many are left out is a metric
    #[arg(long, value_name = "NUMBER", default_value_t = 1000)]
    pub metrics_most: usize,
    /// How much is told on standard error
    #[arg(long, value_enum, default_value_t = LogLevel::Info)]
    pub log: LogLevel,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogLevel {
    /// What failed
    Error,
    /// And what may be wrong
    Warn,
    /// And what was done
    Info,
    /// And every detail
    Debug,
}
