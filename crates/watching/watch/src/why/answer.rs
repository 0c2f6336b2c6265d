//! What `why` answers: the causes of a group's lost time, with the time that each cost and the figures behind it.

use std::time::Duration;

use serde::Serialize;

use crate::FigureUnit;

/// Why a group was held back.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Answer {
    /// The group.
    pub group: String,
    /// How long it was looked at, in seconds.
    pub seconds: f64,
    /// Its tasks.
    pub tasks: usize,
    /// What it used, in the order of importance.
    pub used: Vec<Number>,
    /// What held it back, the worst first; empty if nothing did.
    pub causes: Vec<Cause>,
    /// What did not hold it back now, and would with other work.
    pub notes: Vec<Note>,
}

/// Something that did not hold the group back now.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Note {
    /// In words.
    pub sentence: String,
    /// The command that would change it, if one would.
    pub hint: Option<String>,
}

/// One thing that held the group back.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cause {
    /// What.
    pub kind: Kind,
    /// The group whose setting or work it is.
    pub at: String,
    /// How bad.
    pub effect: Effect,
    /// The time that it cost; `None` where work was refused and not slowed.
    pub lost: Option<Lost>,
    /// The part that it had in all that the group's tasks used and lost, 0 to 1.
    pub share: Option<f64>,
    /// The figures behind it.
    pub numbers: Vec<Number>,
    /// In words.
    pub sentence: String,
    /// The command that would change it, if one would.
    pub hint: Option<String>,
    /// Where equals contend: a command for each of them, of which the user carries out at most one.
    pub choices: Vec<Choice>,
}

/// One way to end a contention of equals.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Choice {
    /// The group that gets more by it.
    pub group: String,
    /// The command.
    pub command: String,
}

/// What holds a group back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Its tasks are stopped.
    Frozen,
    /// It has no CPUs or no NUMA nodes, so it takes no tasks.
    NoCpus,
    /// Processes were killed as memory was out.
    OutOfMemory,
    /// Forks failed.
    PidsLimit,
    /// `cpu.max`.
    Quota,
    /// Others ran on its CPUs.
    Neighbours,
    /// Its tasks are more than its CPUs.
    FewCpus,
    /// Real-time tasks used up `cpu.rt_runtime_us`.
    RealtimeBudget,
    /// `memory.max` or `memory.high`.
    MemoryLimit,
    /// The machine is short of memory.
    MachineMemory,
    /// Its memory comes back from swap.
    Swap,
    /// `io.max`.
    IoLimit,
    /// Others use its block devices.
    IoNeighbours,
    /// It waits for a block device that it has almost alone.
    Device,
    /// Its memory is on NUMA nodes without its CPUs.
    RemoteMemory,
}

impl Kind {
    /// Its name as JSON has it.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Frozen => "frozen",
            Kind::NoCpus => "no_cpus",
            Kind::OutOfMemory => "out_of_memory",
            Kind::PidsLimit => "pids_limit",
            Kind::Quota => "quota",
            Kind::Neighbours => "neighbours",
            Kind::FewCpus => "few_cpus",
            Kind::RealtimeBudget => "realtime_budget",
            Kind::MemoryLimit => "memory_limit",
            Kind::MachineMemory => "machine_memory",
            Kind::Swap => "swap",
            Kind::IoLimit => "io_limit",
            Kind::IoNeighbours => "io_neighbours",
            Kind::Device => "device",
            Kind::RemoteMemory => "remote_memory",
        }
    }
}

/// How bad it is. Work that could not be done at all goes before work that took longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Nothing ran.
    Stopped,
    /// Something failed or was killed.
    Refused,
    /// Something took longer.
    Slowed,
}

/// Time that was lost.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Lost {
    /// Seconds of tasks' time.
    pub seconds: f64,
    /// How that is known.
    pub known: Known,
}

/// How well a time is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Known {
    /// The kernel counted it.
    Measured,
    /// From samples of tasks' states.
    Sampled,
    /// It is at most so much.
    AtMost,
}

impl Lost {
    pub(crate) fn new(time: Duration, known: Known) -> Lost {
        Lost { seconds: time.as_secs_f64(), known }
    }

    /// What it counts beside others: a bound counts half.
    pub(crate) fn counted(self) -> f64 {
        if self.known == Known::AtMost { self.seconds / 2.0 } else { self.seconds }
    }
}

/// A figure behind a cause.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Number {
    /// What it is: a field's name where there is one.
    pub name: &'static str,
    /// How much.
    pub value: f64,
    /// Of what.
    pub unit: FigureUnit,
}

pub(crate) fn seconds(name: &'static str, time: Duration) -> Number {
    Number { name, value: time.as_secs_f64(), unit: FigureUnit::Seconds }
}

pub(crate) fn count(name: &'static str, number: u64) -> Number {
    Number { name, value: number as f64, unit: FigureUnit::Count }
}

pub(crate) fn bytes(name: &'static str, number: u64) -> Number {
    Number { name, value: number as f64, unit: FigureUnit::Bytes }
}
