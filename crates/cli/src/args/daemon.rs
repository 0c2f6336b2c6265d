//! The arguments of the daemon.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};

pub const DAEMON: &str = "\
Without --layout and --rules: the layout in /etc/ringfence, then /etc/cgrules.conf and /etc/cgrules.d, with templates of
/etc/cgconfig.conf and /etc/cgconfig.d. A link named ringfenced to this program is the same command.

Signals: HUP reads layout, rules and templates anew, USR2 rules and templates, USR1 templates; with errors what was in
force stays. TERM and INT end it and leave groups as they are. After a change of rules, reload: a restarted daemon takes
a process in a group that no rule leads to for placed there by hand, and leaves it.

Examples:
  ringfence daemon
  ringfence daemon --layout layout.toml --repair --check 10
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
