//! The arguments of `why`.

use std::time::Duration;

use clap::Args as ClapArgs;

use super::duration::between;

/// The causes are those of the table.
pub fn causes() -> String {
    format!(
        "Samples the group and its neighbours twice, and shows what slowed it down in between, the worst first, with the \
figures and the command that changes it; and the last processes of the group that the kernel killed for want of memory since \
the boot. Changes nothing itself.

Causes:
{}
Examples:
  ringfence why db/oltp1
  ringfence why db/oltp1 --for 30s --json",
        why::list()
    )
}

#[derive(Debug, ClapArgs)]
pub struct Why {
    /// The group, or a unit of systemd, such as ssh.service
    pub group: String,
    // below a tenth of a second the kernel's ticks would be the answer
    /// How long to look, such as 5s, 500ms or 1m
    #[arg(long = "for", value_name = "TIME", default_value = "5s", value_parser = between("100ms", "1h"))]
    pub span: Duration,
}
