//! `why` on this machine's own hierarchies, v1, v2 or both: each cause is made to happen, is the first that is named, and
//! the command with it is taken by the kernel. And what did not happen is not named.
//!
//! What keeps a busy machine from turning the ranks: a group that shall be slowed by something else than others'
//! work has the greatest weight, so that it waits for nobody while it runs; the one that waits for others waits the more,
//! the more they are. A task that sleeps for a disk again and again waits for a busy CPU after each of its sleeps, whatever
//! its weight: of those the cause is the first of all that are not the CPUs'. Refusals (kills, failed forks, a group
//! without CPUs) go before all times by definition.
//!
//! A group without CPUs, real-time budgets and sampled waits for I/O are v1's alone; `memory.high` and partitions
//! v2's; remote memory takes two nodes with CPUs, as the VMs have.

mod cpu;
mod disk;
mod io;
mod memory;
mod nothing;
mod stage;
mod stopped;

use fake::suite;
use libtest_mimic::Trial;

use crate::Concat;

pub fn trials() -> Vec<Trial> {
    [nothing::trials(), cpu::trials(), stopped::trials(), memory::trials(), io::trials()].concat_all()
}

fn lacks() -> Option<&'static str> {
    let lacks = (!stage::is_possible()).then_some("cpu, memory, pids, cpuset and I/O");
    lacks.or((!rustix::process::geteuid().is_root()).then_some("root"))
}

fn trial(name: &str, case: fn()) -> Trial {
    trial_where(name, None, case)
}

/// Of what not every machine of the suite has.
fn trial_where(name: &str, lacking: Option<&str>, case: fn()) -> Trial {
    suite::trial(name, lacks().or(lacking).map(str::to_owned), case)
}
