//! The arguments of `schedule`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, value_parser};

use super::layouts::{FileOption, StateArgs};

/// The help's end.
pub const SCHEDULE: &str = "\
A schedule ([[schedule]] of a layout) changes some groups at the times of a calendar, after a delay or on an event, and takes \
that back again. ringfenced makes the changes; each is a generation, which `history` lists and `undo` takes back.

Changes by delay have a time once ringfenced has applied the layout. Events have none.

Examples:
  ringfence schedule
  ringfence schedule layout.toml --next 10
  ringfence schedule --json";

#[derive(Debug, ClapArgs)]
pub struct Schedule {
    /// A layout file, or a directory with layout.toml and layout.d/*.toml [default: the layout that ringfenced follows,
    /// else that in effect, else /etc/ringfence]
    pub layout: Option<PathBuf>,
    #[command(flatten)]
    pub file: FileOption,
    /// How many of the next changes are listed
    #[arg(long, short, value_name = "N", default_value_t = 5, value_parser = value_parser!(u16).range(0..=1000))]
    pub next: u16,
    #[command(flatten)]
    pub state: StateArgs,
}
