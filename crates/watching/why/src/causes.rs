//! The causes that there are, one row each: names, the help of `why`, `docs/why.md` and the words in JSON come from here.

use serde::{Serialize, Serializer};

use super::thresholds::{
    AT_IO_LIMIT, AT_MEMSW_LIMIT, AT_RT_BUDGET, LEAST_MET, LEAST_REMOTE, MET_IO_LIMIT, Threshold,
};

/// What is known of a cause before any group is looked at.
#[derive(Debug)]
pub(crate) struct Row {
    /// In answers, on a screen and in JSON.
    pub name: &'static str,
    pub meaning: &'static str,
    pub effect: Effect,
    /// From where on it is a cause, beside the lost time of all that slow a group down. Empty: as soon as it is seen.
    pub from: &'static [Threshold],
    /// What its command changes; empty where there is none.
    pub fix: &'static str,
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

/// Makes [`Kind`] and [`CAUSES`] of the same rows, so that none can be forgotten.
macro_rules! causes {
    ($($kind:ident {
        name: $name:literal,
        meaning: $meaning:literal,
        effect: $effect:ident,
        from: [$($from:ident),*],
        fix: $fix:literal,
    })+) => {
        /// What slows a group down.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Kind {
            $(#[doc = $meaning] $kind,)+
        }

        /// In the order of [`Kind`].
        pub(crate) const CAUSES: &[Row] = &[$(Row {
            name: $name,
            meaning: $meaning,
            effect: Effect::$effect,
            from: &[$($from),*],
            fix: $fix,
        }),+];
    };
}

causes! {
    Frozen {
        name: "frozen",
        meaning: "its tasks are frozen, with it or with a group above it; or some are, with a group below it, or with another group of v1's freezer hierarchy",
        effect: Stopped,
        from: [],
        fix: "`ringfence thaw` of the frozen group",
    }
    MemoryStop {
        name: "memory_stop",
        meaning: "tasks stand still at a limit of memory, as v1's `memory.oom_control` keeps the kernel from killing one",
        effect: Stopped,
        from: [],
        fix: "the limit that was met, half as large again",
    }
    NoCpus {
        name: "no_cpus",
        meaning: "it has no CPUs or no NUMA nodes, so no task can be put into it",
        effect: Refused,
        from: [],
        fix: "`cpuset.cpus`, `cpuset.mems`: those of the group above",
    }
    OutOfMemory {
        name: "out_of_memory",
        meaning: "processes were killed because memory ran out, at a limit or on the whole machine",
        effect: Refused,
        from: [],
        fix: "the limit that was met, half as large again",
    }
    PidsLimit {
        name: "pids_limit",
        meaning: "forks failed at a limit of tasks",
        effect: Refused,
        from: [],
        fix: "a larger `pids.max`",
    }
    Quota {
        name: "quota",
        meaning: "a CPU quota stopped it, its own or that of a group above",
        effect: Slowed,
        from: [],
        fix: "a larger `cpu.max`",
    }
    Neighbours {
        name: "neighbours",
        meaning: "its tasks waited while others ran on its CPUs",
        effect: Slowed,
        from: [],
        fix: "idle CPUs near its memory in `cpuset.cpus`, or a larger `cpu.weight` where the branches of both meet; a choice between equals",
    }
    FewCpus {
        name: "few_cpus",
        meaning: "its tasks waited for each other: it has fewer CPUs than they wanted",
        effect: Slowed,
        from: [],
        fix: "more CPUs in `cpuset.cpus`, near its memory",
    }
    RealtimeBudget {
        name: "realtime_budget",
        meaning: "real-time tasks used up their budget of CPU time (v1)",
        effect: Slowed,
        from: [AT_RT_BUDGET],
        fix: "a larger `cpu.rt_runtime_us`",
    }
    MemoryLimit {
        name: "memory_limit",
        meaning: "a limit of memory made its tasks reclaim pages, some of which they read again",
        effect: Slowed,
        from: [AT_MEMSW_LIMIT],
        fix: "the limit that was met (`memory.max`, `memory.high`, v1's `memory.memsw.limit_in_bytes`), half as large again",
    }
    MachineMemory {
        name: "machine_memory",
        meaning: "the machine was short of memory and took pages of the group",
        effect: Slowed,
        from: [],
        fix: "`memory.min` on v2, `memory.swappiness` on v1",
    }
    Swap {
        name: "swap",
        meaning: "its programs' memory had to come back from swap",
        effect: Slowed,
        from: [],
        fix: "the limit that was met, half as large again; without one as for `machine_memory`",
    }
    IoLimit {
        name: "io_limit",
        meaning: "a limit of `io.max` delayed its reads or writes",
        effect: Slowed,
        from: [AT_IO_LIMIT, MET_IO_LIMIT, LEAST_MET],
        fix: "the limit doubled",
    }
    IoNeighbours {
        name: "io_neighbours",
        meaning: "it waited for a block device that others used too",
        effect: Slowed,
        from: [],
        fix: "`io.max` for the other group, if that one does clearly more; a choice between equals",
    }
    Device {
        name: "device",
        meaning: "it waited for a block device that it used almost alone, or for I/O that the kernel does not count by group",
        effect: Slowed,
        from: [],
        fix: "",
    }
    RemoteMemory {
        name: "remote_memory",
        meaning: "its memory is on NUMA nodes other than those of its CPUs",
        effect: Slowed,
        from: [LEAST_REMOTE],
        fix: "`cpuset.mems`: the nodes of its CPUs",
    }
}

impl Kind {
    fn row(self) -> &'static Row {
        &CAUSES[self as usize]
    }

    /// Its name in answers and in JSON.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// How bad it is.
    pub fn effect(self) -> Effect {
        self.row().effect
    }
}

impl Serialize for Kind {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.name())
    }
}
