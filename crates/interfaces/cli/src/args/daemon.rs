//! The arguments of the daemon.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use clap::{Args as ClapArgs, ValueEnum};
use daemon::{METRICS, socket::SOCKET};
use exporters::metrics::Bounds;
use monitor::log::{DIRECTORY, VARIABLE};
use units::Bytes;

use super::{StateArgs, duration::between, watching::size};

pub const DAEMON: &str = "\
Without --layout and --rules: the layout in /etc/ringfence, then /etc/cgrules.conf and /etc/cgrules.d, with templates of
/etc/cgconfig.conf and /etc/cgconfig.d. A link named ringfenced to this program is the same command.

Signals: HUP reads layout, rules and templates again, USR2 rules and templates, USR1 templates; if the new files have
errors, the old configuration stays active. TERM and INT end it and leave groups as they are. After a change of rules,
reload: after a restart, a process in a group that no rule names counts as placed by hand and is left there.

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
    #[command(flatten)]
    pub state: StateArgs,
    /// Path of the control socket
    #[arg(long, value_name = "PATH", default_value = SOCKET)]
    pub socket: PathBuf,
    /// Do not open a control socket
    #[arg(long, conflicts_with = "socket")]
    pub no_socket: bool,
    /// Do not block exec for strict rules; move those programs after they start, like all others
    #[arg(long)]
    pub no_strict: bool,
    /// Repair drift instead of only reporting it. A group's `keep` in the layout takes precedence
    #[arg(long)]
    pub repair: bool,
    /// Interval between drift checks, such as 30, 30s or 5m; 0 disables them
    #[arg(
        long,
        value_name = "TIME",
        default_value = "30s",
        value_parser = between("0s", "1d"),
        overrides_with = "check", // the unit gives one, and RINGFENCED_OPTIONS come after it
    )]
    pub check: Duration,
    #[arg(
        long,
        value_name = "DIRECTORY",
        num_args = 0..=1,
        help = format!(
            "Record samples of all groups into a log, which ringfence dump and watch --at read [default: {VARIABLE}, or \
             {DIRECTORY}]"
        )
    )]
    pub record: Option<Option<PathBuf>>,
    /// Interval between its samples, 10ms to 1d
    #[arg(long, value_name = "TIME", default_value = "1s", requires = "record", value_parser = between("10ms", "1d"))]
    pub record_interval: Duration,
    /// Maximum size of the log on disk (at least 1M); the oldest records are deleted
    #[arg(long, value_name = "SIZE", default_value = "1G", requires = "record", value_parser = size)]
    pub record_size: Bytes,
    #[arg(
        long,
        value_name = "ADDRESS:PORT",
        num_args = 0..=1,
        help = format!(
            "Serve http://ADDRESS:PORT/metrics for Prometheus [default: {METRICS}]. There is no password: use an address \
             other than loopback only where everybody who reaches it may read"
        )
    )]
    pub metrics: Option<Option<SocketAddr>>,
    /// Write the metrics into a file every 15 seconds, for a collector of text files (node_exporter reads *.prom)
    #[arg(long, value_name = "FILE")]
    pub textfile: Option<PathBuf>,
    /// Export at most this many groups; the number omitted is itself a metric
    #[arg(long, value_name = "NUMBER", default_value_t = Bounds::default().groups)]
    pub metrics_max_groups: usize,
    /// Log level on standard error
    #[arg(long, value_enum, default_value_t = LogLevel::Info)]
    pub log: LogLevel,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogLevel {
    /// Errors
    Error,
    /// Errors and warnings
    Warn,
    /// Errors, warnings and actions
    Info,
    /// Errors, warnings, actions and details
    Debug,
}
