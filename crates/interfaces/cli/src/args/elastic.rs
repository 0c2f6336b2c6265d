//! The arguments of `elastic`, `pause` and `resume`.

use clap::Args as ClapArgs;

use super::layouts::StateArgs;

/// The end of the help of `elastic`.
pub const ELASTIC: &str = "\
Groups with cpus = { min, max, weight } are elastic: ringfenced gives them more CPUs as they use or wait for them, and \
takes CPUs back after some quiet seconds. With [power] saving = true it takes CPUs from groups without CPUs of their own, too. \
Exit status 3: nobody resizes them, or resizing has ended.

Examples:
  ringfence elastic
  ringfence elastic db -n 50
  ringfence elastic --json";

#[derive(Debug, ClapArgs)]
pub struct Elastic {
    /// Only these groups and those below them
    #[arg(value_name = "GROUP")]
    pub groups: Vec<String>,
    /// The last N changes
    #[arg(long, short = 'n', value_name = "N", default_value_t = 10)]
    pub last: usize,
    /// Give general groups all CPUs that power saving took; the service does it when the daemon ends
    #[arg(long, conflicts_with_all = ["groups", "last"])]
    pub end_saving: bool,
    #[command(flatten)]
    pub state: StateArgs,
}

#[derive(Debug, ClapArgs)]
pub struct Pause {
    /// Of other programs' commands of this name, to explain the difference
    #[arg(hide = true, value_name = "GROUP")]
    pub group: Option<String>,
    #[command(flatten)]
    pub state: StateArgs,
}
