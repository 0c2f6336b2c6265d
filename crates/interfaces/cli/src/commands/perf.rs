//! `perf`: perf(1) counts a group's events; this finds the group's path as perf wants it.

use std::process::Command;

use settings::Controller;

use super::{group, host};
use crate::{args, failure::Failure};

pub fn perf(args: &args::Perf) -> Result<u8, Failure> {
    let name = group(&args.group)?;
    let host = host()?;
    let seat = host.seat(&name, Controller::PerfEvent)?;
    let events: Vec<&str> =
        args.events.iter().flat_map(|event| event.split(',')).filter(|e| !e.is_empty()).collect();
    // one group per event, as `perf stat -G` counts them
    let groups = vec![seat.path.as_str(); events.len()].join(",");
    let status = Command::new("perf")
        .args(["stat", "--all-cpus", "--event", &events.join(","), "--cgroup", &groups])
        .args(["--", "sleep", &args.span.as_secs_f64().to_string()])
        .status();
    match status {
        Ok(status) => Ok(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Err(Failure::new("perf is not installed").hint("apt-get install linux-perf"))
        }
        Err(error) => Err(Failure::new(format!("perf can't be started: {error}"))),
    }
}
