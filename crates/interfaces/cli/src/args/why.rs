//! The arguments of `why`.

use std::time::Duration;

use clap::Args as ClapArgs;

use super::duration::between;

pub const WHY: &str = "\
Samples the group and its neighbours twice, and shows what slowed it down in between, the worst first: quota, others on
its CPUs, too few CPUs, limits of memory, I/O, tasks and real time, swap, remote memory, a frozen group. Each with its
numbers and the command that would change it. Changes nothing.

Examples:
  ringfence why db/oltp1
  ringfence why db/oltp1 --for 30s --json";

#[derive(Debug, ClapArgs)]
pub struct Why {
    /// The group
    pub group: String,
    // below a tenth of a second the kernel's ticks would be the answer
    /// How long to look, such as 5s, 500ms or 1m
    #[arg(long = "for", value_name = "TIME", default_value = "5s", value_parser = between("100ms", "1h"))]
    pub span: Duration,
}
