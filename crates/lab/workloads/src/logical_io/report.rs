//! What the engine did within a span, as a database's report says it: times and reads, the load profile, the top
//! events, the readers beside one another, and what a reader of it must be warned of.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{
    account::{self, Count, Look, Part},
    engine::Shape,
};
use crate::stop_request::{StopRequest, fairness, series};

/// Reads of blocks that a CPU really touches stay far below this per second.
const TOO_MANY: f64 = 3e6;

/// With fewer turns each, whole turns decide how even the readers are.
const TURNS: f64 = 20.0;

/// What a reader did, or all of them together. Counts are of the span, and parts of one where its ends cut one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Work {
    /// Logical reads.
    pub reads: f64,
    /// Executions of a statement.
    pub executions: f64,
    /// Calls of the client.
    pub calls: f64,
    /// Transactions.
    pub transactions: f64,
    /// DB Time: seconds in calls.
    pub db_time: f64,
    /// DB CPU: seconds of CPU time.
    pub db_cpu: f64,
    /// Seconds in which it could have run and had no CPU.
    pub run_queue: f64,
    /// `resmgr:cpu quantum`: waits for a token.
    pub cpu_quantum_waits: f64,
    /// Seconds of these waits.
    pub cpu_quantum: f64,
    /// DB Time that is none of the three: what the hypervisor or interrupts took.
    pub unaccounted: f64,
    /// A latch was taken by another reader.
    pub latch_misses: f64,
    /// It was for long, and the CPU was offered to others.
    pub latch_yields: f64,
}

impl Work {
    fn of(part: &Part) -> Work {
        let seconds = |count| part.seconds(count);
        let (db_time, db_cpu, run_queue, cpu_quantum) = (
            seconds(Count::DbTime),
            seconds(Count::DbCpu),
            seconds(Count::RunQueue),
            seconds(Count::Quantum),
        );
        Work {
            reads: part.of(Count::Reads),
            executions: part.of(Count::Executions),
            calls: part.of(Count::Calls),
            transactions: part.of(Count::Transactions),
            db_time,
            db_cpu,
            run_queue,
            cpu_quantum_waits: part.of(Count::QuantumWaits),
            cpu_quantum,
            unaccounted: db_time - db_cpu - run_queue - cpu_quantum,
            latch_misses: part.of(Count::LatchMisses),
            latch_yields: part.of(Count::LatchYields),
        }
    }

    /// Logical reads per second of CPU time; `None` without any.
    pub fn reads_per_cpu(&self) -> Option<f64> {
        (self.db_cpu > 0.0).then(|| self.reads / self.db_cpu)
    }
}

/// A line of the load profile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ProfileLine {
    /// `DB Time(s)`, `DB CPU(s)`, `Logical reads`, …
    pub name: String,
    /// Per second.
    pub per_second: f64,
    /// Per transaction; `None` without any, as for the next two.
    pub per_transaction: Option<f64>,
    /// Per execution.
    pub per_execution: Option<f64>,
    /// Per call.
    pub per_call: Option<f64>,
}

/// A line of the top foreground events, the longest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct TopEvent {
    /// `DB CPU`, `resmgr:cpu quantum`, `run-queue wait`.
    pub name: String,
    /// How often; `None` where nobody counts.
    pub waits: Option<f64>,
    /// All of them, in seconds.
    pub seconds: f64,
    /// One of them, in milliseconds.
    pub average_ms: Option<f64>,
    /// Of DB Time, of 1.
    pub share: f64,
    /// `CPU`, `Scheduler`, `Operating system`.
    pub class: String,
}

/// What the engine did within a span.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct LogicalIoReport {
    /// The span's length in seconds.
    pub seconds: f64,
    /// Readers.
    pub readers: u32,
    /// Tokens of instance caging; `None`: there was none.
    pub cpu_count: Option<u32>,
    /// CPU time of a turn, in seconds.
    pub quantum: f64,
    /// Of the buffer cache, in bytes.
    pub memory: u64,
    /// Words that a read touched of its block of 8 KB.
    pub words: u64,
    /// The machine's last cache, in bytes, where it is known.
    pub last_cache: Option<u64>,
    /// `first-touch`, `bind:NODES`, `interleave:NODES`.
    pub placement: String,
    /// Bytes of the process per NUMA node.
    pub node_bytes: BTreeMap<u32, u64>,
    /// Bytes of it on transparent huge pages.
    pub huge_page_bytes: u64,
    /// All readers together.
    pub total: Work,
    /// Each reader.
    pub each: Vec<Work>,
    /// Logical reads of the reader with the fewest by those of the one with the most.
    pub fairness: Option<f64>,
    /// The load profile.
    pub profile: Vec<ProfileLine>,
    /// The top events.
    pub events: Vec<TopEvent>,
    /// Seconds since the span's beginning, and the logical reads per second up to then.
    pub series: Vec<(f64, f64)>,
    /// What a reader must know.
    pub warnings: Vec<String>,
    /// Reads that found another block than they requested: there must be none.
    pub wrong: f64,
}

/// What is known beside the counts.
pub(super) struct Circumstances<'c> {
    pub shape: &'c Shape,
    pub memory: u64,
    pub last_cache: Option<u64>,
    pub placement: String,
    pub node_bytes: BTreeMap<u32, u64>,
    pub huge_page_bytes: u64,
    /// What was reported before the work began.
    pub warnings: Vec<String>,
}

pub(super) fn of(
    looks: &[Look],
    requested: StopRequest,
    circumstances: Circumstances<'_>,
) -> LogicalIoReport {
    let shape = circumstances.shape;
    let readers = 0..shape.readers as usize;
    let part = |reader, from, to| account::at(looks, reader, to).minus(&account::at(looks, reader, from));
    let parts: Vec<Part> = readers.clone().map(|reader| part(reader, requested.from, requested.to)).collect();
    let sum = parts.iter().fold(Part::default(), Part::plus);
    let (total, each): (Work, Vec<Work>) = (Work::of(&sum), parts.iter().map(Work::of).collect());
    let reads_between =
        |from, to| readers.clone().map(|reader| part(reader, from, to).of(Count::Reads)).sum();
    LogicalIoReport {
        seconds: requested.seconds(),
        readers: shape.readers,
        cpu_count: shape.cpu_count,
        quantum: shape.quantum.as_secs_f64(),
        memory: circumstances.memory,
        words: shape.words as u64,
        last_cache: circumstances.last_cache,
        placement: circumstances.placement,
        node_bytes: circumstances.node_bytes,
        huge_page_bytes: circumstances.huge_page_bytes,
        fairness: fairness(each.iter().map(|work| work.reads)),
        profile: profile(&total, requested.seconds()),
        events: events(&total),
        series: series(requested, reads_between),
        warnings: [circumstances.warnings, warnings(&total, shape)].concat(),
        wrong: sum.of(Count::Wrong),
        total,
        each,
    }
}

fn profile(total: &Work, seconds: f64) -> Vec<ProfileLine> {
    let by = |number: f64, of: f64| (of > 0.0).then(|| number / of);
    let line = |name: &str, number: f64| ProfileLine {
        name: name.to_owned(),
        per_second: by(number, seconds).unwrap_or(0.0),
        per_transaction: by(number, total.transactions),
        per_execution: by(number, total.executions),
        per_call: by(number, total.calls),
    };
    vec![
        line("DB Time(s)", total.db_time),
        line("DB CPU(s)", total.db_cpu),
        line("Logical reads", total.reads),
        line("User calls", total.calls),
        line("Executes", total.executions),
        line("Transactions", total.transactions),
    ]
}

fn events(total: &Work) -> Vec<TopEvent> {
    let event = |name: &str, seconds: f64, waits: Option<f64>, class: &str| TopEvent {
        name: name.to_owned(),
        waits,
        seconds,
        average_ms: waits.filter(|waits| *waits > 0.0).map(|waits| seconds / waits * 1e3),
        share: if total.db_time > 0.0 { seconds / total.db_time } else { 0.0 },
        class: class.to_owned(),
    };
    let mut events = vec![
        event("DB CPU", total.db_cpu, None, "CPU"),
        event("resmgr:cpu quantum", total.cpu_quantum, Some(total.cpu_quantum_waits), "Scheduler"),
        event("run-queue wait", total.run_queue, None, "Operating system"),
    ];
    events.retain(|event| event.seconds > 0.0);
    events.sort_by(|one, other| other.seconds.total_cmp(&one.seconds));
    events
}

fn warnings(total: &Work, shape: &Shape) -> Vec<String> {
    let mut warnings = Vec::new();
    if let Some(rate) = total.reads_per_cpu().filter(|rate| *rate > TOO_MANY) {
        warnings.push(format!(
            "{:.1} million reads per CPU-second: the blocks are not touched ({} words of each)",
            rate / 1e6,
            shape.words
        ));
    }
    let turns = total.db_cpu / f64::from(shape.readers.max(1)) / shape.quantum.as_secs_f64();
    if shape.cpu_count.is_some_and(|tokens| tokens < shape.readers) && turns < TURNS {
        warnings.push(format!(
            "each reader had fewer than {TURNS:.0} turns of {:.0} ms: a turn more or less decides how even they are",
            shape.quantum.as_secs_f64() * 1e3
        ));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work() -> Work {
        Work {
            reads: 4e6,
            executions: 50_000.0,
            calls: 4_000.0,
            db_time: 8.0,
            db_cpu: 2.0,
            run_queue: 1.0,
            cpu_quantum_waits: 20.0,
            cpu_quantum: 5.0,
            ..Work::default()
        }
    }

    #[test]
    fn the_profile_divides_by_what_there_was() {
        let lines = profile(&work(), 4.0);
        let reads = lines.iter().find(|line| line.name == "Logical reads").unwrap();
        assert_eq!((reads.per_second, reads.per_execution, reads.per_call), (1e6, Some(80.0), Some(1000.0)));
        assert_eq!(reads.per_transaction, None);
        assert_eq!((lines[0].per_second, lines[1].per_second), (2.0, 0.5));
    }

    #[test]
    fn events_are_ranked_by_their_time_and_told_as_shares_of_db_time() {
        let events = events(&work());
        let reported: Vec<_> =
            events.iter().map(|one| (one.name.as_str(), one.share, one.average_ms)).collect();
        assert_eq!(
            reported,
            [
                ("resmgr:cpu quantum", 0.625, Some(250.0)),
                ("DB CPU", 0.25, None),
                ("run-queue wait", 0.125, None)
            ]
        );
    }

    #[test]
    fn reads_that_cannot_have_touched_their_blocks_are_warned_of() {
        let shape = Shape {
            readers: 9,
            memory: 1 << 30,
            words: 1,
            cpu_count: Some(1),
            quantum: std::time::Duration::from_millis(100),
            reads_per_execution: 64,
            executions_per_call: 16,
            calls_per_transaction: 64,
        };
        let reported = warnings(&Work { db_cpu: 1.0, ..work() }, &shape);
        assert_eq!(
            reported[0],
            "4.0 million reads per CPU-second: the blocks are not touched (1 words of each)"
        );
        assert!(reported[1].starts_with("each reader had fewer than 20 turns of 100 ms"), "{reported:?}");
        assert!(warnings(&Work { db_cpu: 20.0, ..work() }, &shape).is_empty());
        let open = Shape { cpu_count: None, ..shape };
        assert!(warnings(&work(), &open).is_empty());
    }
}
