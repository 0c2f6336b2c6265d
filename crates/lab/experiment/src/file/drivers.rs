//! Which program a workload is, with its options.

use std::collections::BTreeMap;

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

/// The programs, with their options; the defaults are those of the options' types. What is known of each beside is a row
/// of [`crate::drivers`].
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
    /// rtla's timerlat or osnoise, which are threads of the kernel: `latency` is timerlat's, `noise` (a share of the time),
    /// `interruptions` and `longest` are osnoise's.
    Rtla(Rtla),
    /// Any program: `seconds` is its wall time, `cpu-time` what it and all that it waited for used, `peak-memory` that of its largest
    /// process (not below the few MiB of what starts it), `value` what `figure` finds in its output.
    Command(Command),
    /// Built-in: CPU workers. `rate` counts units of work, `cpus` CPUs used.
    Cpu(Busy),
    /// Built-in: direct reads of a block device.
    Read(Read),
    /// Built-in: server and client processes over a Unix socket, TPC-B-like or point selects. `bursts` counts those that
    /// begin.
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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case")]
pub struct Pgbench {
    /// `-c`.
    pub clients: u32,
    /// `-j`.
    pub threads: u32,
    /// `-s` of its tables.
    pub scale: u32,
    /// `select-only`, `tpcb-like`, `simple-update`, or SQL of the user's own.
    pub script: String,
    /// `-M`: `simple`, `extended`, `prepared`.
    pub protocol: String,
    /// `-R`: transactions that begin per second; latency is from the intended start.
    pub rate: Option<f64>,
    /// `shared_buffers` of the lab's own server.
    pub shared_buffers: String,
    /// The user's running server, as libpq's connection string: never restarted; its processes are put back into
    /// their groups afterwards.
    pub dsn: Option<String>,
    /// The running server's postmaster, if it is to be moved into the workload's group.
    pub pid: Option<u32>,
    /// Partitions of the accounts table (`--partitions`, PostgreSQL 13 or later). Autovacuum treats each as a table.
    pub partitions: Option<u32>,
    /// Settings of the lab's own server by name (`autovacuum_naptime = "1s"`), in runs; its tables are filled without them.
    pub settings: BTreeMap<String, String>,
    /// Role → group: the lab moves the server's processes with that role (`postgresql.autovacuum`) into the group soon after they
    /// start. All others stay in `group`.
    pub roles: BTreeMap<String, String>,
}

impl Default for Pgbench {
    fn default() -> Pgbench {
        Pgbench {
            clients: 8,
            threads: 2,
            scale: 10,
            script: "select-only".to_owned(),
            protocol: "prepared".to_owned(),
            rate: None,
            shared_buffers: "128MB".to_owned(),
            dsn: None,
            pid: None,
            partitions: None,
            settings: BTreeMap::new(),
            roles: BTreeMap::new(),
        }
    }
}

/// Options of fio.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case")]
pub struct Fio {
    /// A named device of the experiment, or a path. Writes only to devices of the lab's own.
    pub device: String,
    /// `--rw`.
    pub rw: String,
    /// `--bs`.
    pub block: String,
    /// `--numjobs`.
    pub jobs: u32,
    /// `--iodepth`.
    pub depth: u32,
    /// `--ioengine`.
    pub engine: String,
}

impl Default for Fio {
    fn default() -> Fio {
        Fio {
            device: String::new(),
            rw: "read".to_owned(),
            block: "8k".to_owned(),
            jobs: 4,
            depth: 1,
            engine: "libaio".to_owned(),
        }
    }
}

/// Options of cyclictest and of the built-in one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case")]
pub struct Cyclic {
    /// Period in microseconds.
    pub interval_us: u32,
    /// SCHED_FIFO's priority; 0: SCHED_OTHER.
    pub priority: u32,
    /// Threads.
    pub threads: u32,
}

impl Default for Cyclic {
    fn default() -> Cyclic {
        Cyclic { interval_us: 1000, priority: 90, threads: 1 }
    }
}

/// Options of rtla.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case")]
pub struct Rtla {
    /// `timerlat` or `osnoise`.
    pub tracer: String,
    /// The CPUs, or `{name}`; all without any.
    pub cpus: String,
    /// Period of timerlat in microseconds.
    pub interval_us: u32,
    /// SCHED_FIFO's priority.
    pub priority: u32,
}

impl Default for Rtla {
    fn default() -> Rtla {
        Rtla { tracer: "timerlat".to_owned(), cpus: String::new(), interval_us: 1000, priority: 90 }
    }
}

/// Options of the logical-I/O engine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case")]
pub struct LogicalIo {
    /// Readers, a thread each; `{name}`: as many as a named set has CPUs.
    pub readers: String,
    /// Instance caging to this many running readers; `{name}` as above. Without: none.
    pub cpu_count: Option<String>,
    /// CPU time after which a reader hands its turn on if others wait, in milliseconds. Databases have 100; the study's
    /// runs of five minutes gave each reader some hundred turns, and runs of half a minute do with a tenth.
    pub quantum_ms: u32,
    /// Of the buffer cache (default: 1 GiB or ten times the last cache, but a quarter of the machine's memory at most).
    pub memory: Option<String>,
    /// `first-touch`, `bind:NODES`, `interleave`, `interleave:NODES`: on which NUMA nodes it lies.
    pub placement: String,
    /// Words that a read touches of its block of 8 KB.
    pub words: u32,
}

impl Default for LogicalIo {
    fn default() -> LogicalIo {
        LogicalIo {
            readers: "9".to_owned(),
            cpu_count: None,
            quantum_ms: 10,
            memory: None,
            placement: "first-touch".to_owned(),
            words: 64,
        }
    }
}

/// Options of the loads that only take CPU time, and of the CPU workers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case")]
pub struct Busy {
    /// Threads; `{name}`: as many as a named set has CPUs.
    pub threads: String,
}

impl Default for Busy {
    fn default() -> Busy {
        Busy { threads: "1".to_owned() }
    }
}

/// Options of the load that writes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case")]
pub struct Writers {
    /// Threads; `{name}`: as many as a named set has CPUs.
    pub threads: String,
    /// The directory that they write in: a named device of the experiment with a file system, or a path. Without, the
    /// lab's own.
    pub device: Option<String>,
}

impl Default for Writers {
    fn default() -> Writers {
        Writers { threads: "1".to_owned(), device: None }
    }
}

/// A tool with its own arguments.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case")]
pub struct Tool {
    /// As on its command line, without those for time and output.
    pub arguments: Vec<String>,
}

/// Any program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case")]
pub struct Command {
    /// Program and arguments; no shell.
    pub command: Vec<String>,
    /// Where its figure is in what it prints: a regular expression with one group, or a JSON pointer (`/a/b`).
    pub figure: Option<String>,
    /// It ends by itself; else it is ended after the run's duration.
    pub until_end: bool,
}

impl Default for Command {
    fn default() -> Command {
        Command { command: Vec::new(), figure: None, until_end: true }
    }
}

/// Options of the direct reader.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case")]
pub struct Read {
    /// A named device of the experiment, or a path.
    pub device: String,
    /// Bytes of one read.
    pub block: String,
    /// Threads, one read each at a time.
    pub depth: u32,
}

impl Default for Read {
    fn default() -> Read {
        Read { device: String::new(), block: "8k".to_owned(), depth: 4 }
    }
}

/// Options of the built-in OLTP.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case")]
pub struct Oltp {
    /// Client connections.
    pub clients: u32,
    /// The server's workers, a shard of the database each (default: as many as the machine has CPUs).
    pub workers: Option<u32>,
    /// `select` or `tpcb`.
    pub script: String,
    /// Rows per shard.
    pub rows: u64,
    /// Memory that the server holds and really touches: half of PostgreSQL's shared buffers by default.
    pub memory: String,
    /// Transactions that begin per second; latency is from the intended start.
    pub rate: Option<f64>,
    /// Instead of `rate` during bursts.
    pub burst_rate: Option<f64>,
    /// How long a burst lasts, in milliseconds.
    pub burst_ms: u32,
    /// From the beginning of a burst to that of the next, in milliseconds.
    pub burst_every_ms: u32,
}

impl Default for Oltp {
    fn default() -> Oltp {
        Oltp {
            clients: 8,
            workers: None,
            script: "select".to_owned(),
            rows: 100_000,
            memory: "64M".to_owned(),
            rate: None,
            burst_rate: None,
            burst_ms: 2000,
            burst_every_ms: 10_000,
        }
    }
}
