//! The arguments of `why`.

use std::time::Duration;

use clap::Args as ClapArgs;

pub const WHY: &str = "\
Looks at the group and its neighbours twice, and tells what held it back in between, the worst first: quota, others on
its CPUs, too few CPUs, limits of memory, I/O, tasks and real time, swap, remote memory, a frozen group. Each with its
numbers and the command that would change it. Changes nothing.

Examples:
  ringfence why db/oltp1
  ringfence why db/oltp1 --for 30s --json";

#[derive(Debug, ClapArgs)]
pub struct Why {
    /// The group
    pub group: String,
    /// How long to look, such as 5s, 500ms or 1m
    #[arg(long = "for", value_name = "TIME", default_value = "5s", value_parser = span)]
    pub span: Duration,
}

/// Below a tenth of a second the kernel's ticks would be the answer.
fn span(text: &str) -> Result<Duration, String> {
    let text =
        if text.bytes().all(|byte| byte.is_ascii_digit()) { format!("{text}s") } else { text.to_owned() };
    let span = humantime::parse_duration(&text).ok();
    let within = span.filter(|span| (Duration::from_millis(100)..=Duration::from_secs(3600)).contains(span));
    within.ok_or_else(|| "expected 100ms to 1h, such as 5s".to_owned())
}
