//! Which program a workload is, with its options.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What runs and is measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")] // serde can't refuse unknown keys beside `flatten`: `read` does
#[schemars(deny_unknown_fields)]
pub struct Workload {
    /// Which program: a real tool, or a built-in one.
    #[serde(flatten)]
    pub driver: Driver,
    /// The group it (a server: the server) runs in; without, where the lab runs.
    pub group: Option<String>,
    /// The group that its clients run in.
    pub clients_group: Option<String>,
    /// Only in these conditions.
    #[serde(default)]
    pub conditions: Vec<String>,
}

/// The programs, with their options. What is known of each beside is a row of [`crate::drivers`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "driver", rename_all = "kebab-case")]
pub enum Driver {
    /// PostgreSQL's pgbench on a server of the lab's own, or on a running one.
    Pgbench(Pgbench),
    /// fio on a device.
    Fio(Fio),
    /// cyclictest of rt-tests.
    Cyclictest(Cyclic),
    /// sysbench's cpu or memory test.
    Sysbench(Tool),
    /// stress-ng, as a load: its figures are reported and never compared.
    StressNg(Tool),
    /// Any program: `seconds` is its wall time, `value` what `figure` finds in its output.
    Command(Command),
    /// Built-in: CPU workers. `rate` counts units of work, `cpus` CPUs used.
    Cpu(Cpu),
    /// Built-in: direct reads of a block device.
    Read(Read),
    /// Built-in: server and client processes over a Unix socket, TPC-B-like or point selects.
    Oltp(Oltp),
    /// Built-in: a thread that wakes periodically. `missed` counts cycles; `priority` is that of SCHED_FIFO, 0 with
    /// SCHED_OTHER.
    Cyclic(Cyclic),
    /// Built-in: readers of a buffer cache, with or without instance caging. `db-time` and its parts are seconds per
    /// second; `cpu-quantum` is the wait `resmgr:cpu quantum`, `cpu-quantum-ms` one such wait; `reads-per-cpu` is per
    /// second of DB CPU; `fairness` the fewest reads of a reader by the most.
    LogicalIo(LogicalIo),
    /// Built-in, a load: threads that never sleep. `rate` counts rounds.
    Busy(Busy),
    /// Built-in, a load: threads that sleep for a microsecond each round.
    Sleepers(Busy),
    /// Built-in, a load: threads that open a file, write 4 KB, sync it and sleep for a microsecond each round.
    Writers(Writers),
    /// Built-in, a load: threads that take only the time that nobody else of their group wants (SCHED_IDLE), so that no
    /// CPU sleeps, as with a kernel booted with idle=poll.
    IdlePoll(Busy),
}

/// Options of pgbench and of the server it works on.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case")]
pub struct Pgbench {
    /// `-c` (default 8).
    pub clients: Option<u32>,
    /// `-j` (default 2).
    pub threads: Option<u32>,
    /// `-s` of its tables (default 10).
    pub scale: Option<u32>,
    /// `select-only` (default), `tpcb-like`, `simple-update`, or SQL of the user's own.
    pub script: Option<String>,
    /// `-M`: `simple`, `extended`, `prepared` (default).
    pub protocol: Option<String>,
    /// `-R`: transactions that begin per second; latency is from the intended start.
    pub rate: Option<f64>,
    /// `shared_buffers` of the lab's own server (default 128M).
    pub shared_buffers: Option<String>,
    /// The user's running server, as libpq's connection string: never restarted; its processes are put back into
    /// their groups afterwards.
    pub dsn: Option<String>,
    /// The running server's postmaster, if it is to be moved into the workload's group.
    pub pid: Option<u32>,
}

/// Options of fio.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case")]
pub struct Fio {
    /// A named device of the experiment, or a path. Writes only to devices of the lab's own.
    pub device: String,
    /// `--rw` (default `read`).
    pub rw: Option<String>,
    /// `--bs` (default 8k).
    pub block: Option<String>,
    /// `--numjobs` (default 4).
    pub jobs: Option<u32>,
    /// `--iodepth` (default 1).
    pub depth: Option<u32>,
    /// `--ioengine` (default libaio).
    pub engine: Option<String>,
}

/// Options of cyclictest and of the built-in one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case")]
pub struct Cyclic {
    /// Period in microseconds (default 1000).
    pub interval_us: Option<u32>,
    /// SCHED_FIFO's priority (default 90); 0: SCHED_OTHER.
    pub priority: Option<u32>,
    /// Threads (default 1).
    pub threads: Option<u32>,
}

/// Options of the logical-I/O engine.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case")]
pub struct LogicalIo {
    /// Readers, a thread each (default 9); `{name}`: as many as a named set has CPUs.
    pub readers: Option<String>,
    /// Instance caging to this many running readers; `{name}` as above. Without: none.
    pub cpu_count: Option<String>,
    /// CPU time after which a reader hands its turn on if others wait, in milliseconds (default 10).
    pub quantum_ms: Option<u32>,
    /// Of the buffer cache (default: 1 GiB or ten times the last cache, but a quarter of the machine's memory at most).
    pub memory: Option<String>,
    /// `first-touch` (default), `bind:NODES`, `interleave`, `interleave:NODES`: on which NUMA nodes it lies.
    pub placement: Option<String>,
    /// Words that a read touches of its block of 8 KB (default 64).
    pub words: Option<u32>,
}

/// Options of the loads that only take CPU time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case")]
pub struct Busy {
    /// Threads (default 1); `{name}`: as many as a named set has CPUs.
    pub threads: Option<String>,
}

/// Options of the load that writes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case")]
pub struct Writers {
    /// Threads (default 1); `{name}`: as many as a named set has CPUs.
    pub threads: Option<String>,
    /// The directory that they write in: a named device of the experiment with a file system, or a path. Without, the
    /// lab's own.
    pub device: Option<String>,
}

/// A tool with its own arguments.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case")]
pub struct Tool {
    /// As on its command line, without those for time and output.
    pub arguments: Vec<String>,
}

/// Any program.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case")]
pub struct Command {
    /// Program and arguments; no shell.
    pub command: Vec<String>,
    /// Where its figure is in what it prints: a regular expression with one group, or a JSON pointer (`/a/b`).
    pub figure: Option<String>,
    /// It ends by itself (default); else it is ended after the run's duration.
    pub until_end: Option<bool>,
}

/// Options of the CPU workers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case")]
pub struct Cpu {
    /// Threads (default 1); `{name}`: as many as a named set has CPUs.
    pub threads: Option<String>,
}

/// Options of the direct reader.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case")]
pub struct Read {
    /// A named device of the experiment, or a path.
    pub device: String,
    /// Bytes of one read (default 8192).
    pub block: Option<String>,
    /// Threads, one read each at a time (default 4).
    pub depth: Option<u32>,
}

/// Options of the built-in OLTP.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case")]
pub struct Oltp {
    /// Client connections (default 8).
    pub clients: Option<u32>,
    /// The server's workers, a shard of the database each (default: as many as the machine has CPUs).
    pub workers: Option<u32>,
    /// `select` (default) or `tpcb`.
    pub script: Option<String>,
    /// Rows per shard (default 100,000).
    pub rows: Option<u64>,
    /// Memory that the server holds and really touches (default 64M).
    pub memory: Option<String>,
    /// Transactions that begin per second; latency is from the intended start.
    pub rate: Option<f64>,
}
