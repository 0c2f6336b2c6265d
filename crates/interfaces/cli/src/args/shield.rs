//! The arguments of `shield` and `unshield`.

use std::ffi::OsString;

use clap::Args as ClapArgs;
use units::CpuSet;

use super::StateArgs;

/// The help's end of `shield`.
pub const SHIELD: &str = "\
Makes a group `shield` with these CPUs of its own: the kernel keeps all other tasks off them, and on cgroup v1, which keeps off \
only other groups, the tasks of the root group are moved to other CPUs; threads of the kernel that belong to a CPU stay. It is one \
generation of the history, beside the layout in effect. `unshield` takes it back, as `undo` does. On systemd hosts before Linux 6.7 \
the group is `/shield`, as no group below the unit can have CPUs of its own there.

With a program, that program is then started in the group; the shield stays when it ends. Its exit status is the program's.

Examples:
  ringfence shield 2-3
  ringfence shield 2-3 -- cyclictest -p 80
  ringfence run shield -- ./server
  ringfence isolate check shield";

#[derive(Debug, ClapArgs)]
pub struct Shield {
    /// The CPUs, such as 2-3
    #[arg(value_name = "CPUS", value_parser = cpus)]
    pub cpus: CpuSet,
    /// A program to start in the group, and its arguments
    #[arg(last = true, value_name = "PROGRAM")]
    pub program: Vec<OsString>,
    #[command(flatten)]
    pub state: StateArgs,
}

#[derive(Debug, ClapArgs)]
pub struct Unshield {
    #[command(flatten)]
    pub state: StateArgs,
}

fn cpus(text: &str) -> Result<CpuSet, String> {
    let cpus = text.parse::<CpuSet>().map_err(|error| error.to_string())?;
    if cpus.is_empty() { Err("expected CPUs, such as 2-3".to_owned()) } else { Ok(cpus) }
}
