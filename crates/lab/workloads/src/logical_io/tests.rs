//! The engine with real threads: what must hold whatever the machine is doing besides. Rates are no matter of tests.

use std::{fs, time::Duration};

use super::{
    account::{Count, Look},
    engine::{Engine, Shape},
    report::{self, Circumstances, LogicalIoReport},
};
use crate::{start::Instant, stop_request::StopRequest};

const MS: Duration = Duration::from_millis(1);

fn shape(readers: u32, cpu_count: Option<u32>, quantum: Duration) -> Shape {
    Shape {
        readers,
        memory: 16 << 20,
        words: 64,
        cpu_count,
        quantum,
        reads_per_execution: 16,
        executions_per_call: 4,
        calls_per_transaction: 8,
    }
}

/// Lets an engine work until `enough` says so, looking at it often.
fn run(shape: Shape, enough: impl Fn(&Look, Duration) -> bool) -> (Vec<Look>, LogicalIoReport) {
    let mut engine = Engine::start(shape.clone(), 2).unwrap();
    let begun = std::time::Instant::now();
    let from = Instant::now();
    loop {
        engine.look();
        std::thread::sleep(20 * MS);
        assert!(begun.elapsed() < Duration::from_secs(120), "it does too little");
        let accounts = engine.look_at_last();
        if enough(accounts, begun.elapsed()) {
            break;
        }
    }
    let memory = engine.bytes();
    let looks = engine.stop();
    let requested = StopRequest { from, to: Instant::now() };
    let circumstances = Circumstances {
        shape: &shape,
        memory,
        last_cache: None,
        placement: "first-touch".to_owned(),
        node_bytes: Default::default(),
        huge_page_bytes: 0,
        warnings: Vec::new(),
    };
    let report = report::of(&looks, requested, circumstances);
    (looks, report)
}

/// CPU time that nobody on this machine got: the hypervisor's and interrupts', in seconds. Of the machine's first line
/// in `/proc/stat` (proc_stat(5)), in ticks of 10 ms.
fn taken() -> f64 {
    let text = fs::read_to_string("/proc/stat").unwrap();
    let numbers: Vec<f64> =
        text.lines().next().unwrap().split_whitespace().skip(1).map(|word| word.parse().unwrap()).collect();
    (numbers[5] + numbers[6] + numbers[7]) / 100.0
}

/// DB Time is DB CPU, the wait for a CPU and the wait for a token; what the hypervisor and interrupts took belongs to
/// none of them, and a look may fall into the middle of a call.
fn closes(shape: Shape) {
    let before = taken();
    let (_, report) = run(shape, |_, elapsed| elapsed > Duration::from_secs(3));
    let total = report.total;
    let allowed = 0.02 * total.db_time + (taken() - before) + 0.02;
    assert!(total.db_time > 1.0 && total.db_cpu > 0.0, "{total:?}");
    assert!(total.unaccounted.abs() <= allowed, "{allowed} {total:?}");
    assert_eq!(report.wrong, 0.0);
}

#[test]
fn db_time_is_cpu_time_run_queue_wait_and_waits_for_a_token() {
    // more readers than CPUs, not caged: they wait for a CPU
    closes(shape(9, None, 10 * MS));
    // caged to one: they wait for the token
    closes(shape(9, Some(1), 10 * MS));
    // caged to as many as a small machine has CPUs: both
    closes(shape(9, Some(2), 10 * MS));
}

#[test]
fn a_caged_engine_gives_each_reader_as_many_turns_as_any_other() {
    let waits = |look: &Look| -> Vec<u64> {
        look.accounts.iter().map(|account| account.of(Count::QuantumWaits)).collect()
    };
    let (looks, report) =
        run(shape(9, Some(1), MS), |look, _| waits(look).iter().min().is_some_and(|least| *least >= 20));
    // one ahead in its round, one that began with the token, and a look is not at one instant: on a busy machine the others go on
    // between its first reader and its last, so that a single look shows nothing
    let mut ahead: Vec<u64> = (looks.iter().map(waits))
        .map(|waits| waits.iter().max().unwrap() - waits.iter().min().unwrap())
        .collect();
    ahead.sort_unstable();
    assert!(ahead[ahead.len() / 2] <= 3, "{ahead:?}");
    assert!(report.total.cpu_quantum_waits >= 180.0 && report.total.cpu_quantum > 0.0, "{:?}", report.total);
    let event = report.events.iter().find(|event| event.name == "resmgr:cpu quantum").unwrap();
    assert_eq!(event.class, "Scheduler");
}

#[test]
fn an_engine_that_is_not_caged_never_waits_for_a_token() {
    let (_, report) =
        run(shape(3, None, MS), |look, _| look.accounts.iter().all(|account| account.of(Count::Calls) >= 20));
    assert_eq!((report.total.cpu_quantum_waits, report.total.cpu_quantum), (0.0, 0.0));
    assert_eq!(report.each.len(), 3);
    assert!(report.total.executions >= 3.9 * report.total.calls, "{:?}", report.total);
    assert!((report.total.reads - 16.0 * report.total.executions).abs() < 1e-3, "{:?}", report.total);
    assert!(report.profile.iter().any(|line| line.name == "Logical reads" && line.per_second > 0.0));
}

#[test]
fn the_buffer_cache_is_not_smaller_than_asked_for() {
    assert_eq!(Shape { memory: 1, ..shape(9, None, MS) }.blocks_per_reader(), 1);
    assert_eq!(Shape { memory: 9 * 8192 * 5, ..shape(9, None, MS) }.blocks_per_reader(), 5);
    assert_eq!(Shape { memory: 9 * 8192 * 5 + 1, ..shape(9, None, MS) }.blocks_per_reader(), 6);
}
