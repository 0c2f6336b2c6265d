//! Figures of this machine, printed and never judged: `cargo test -p ringfence-events --test events -- --ignored`.

use std::{
    fs,
    path::Path,
    process::{Child, Command, Stdio},
    sync::{
        atomic::{AtomicBool, Ordering},
        mpsc::channel,
    },
    thread,
    time::{Duration, Instant},
};

use events::{Connector, Filters, Kinds, Limits, Notice, Watchdog};
use libtest_mimic::Trial;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::{
    processes::{Copies, NOTHING, gate_command, storm},
    trial,
};

pub fn trials() -> Vec<Trial> {
    let trials = [trial("figures::time_per_exec", per_exec), trial("figures::connector", connector)];
    trials.into_iter().map(|trial| trial.with_ignored_flag(true)).collect()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// Executables that nobody holds, that our gate holds, and that the bare probe holds, in turns.
fn per_exec() {
    let copies: Vec<Copies> = (0..3).map(|_| Copies::new()).collect();
    let (tell, notices) = channel();
    let words = [NOTHING.into(), copies[1].program.clone()];
    let told = move |notice| _ = tell.send(notice);
    let _watchdog = Watchdog::start(Limits::default(), move || gate_command(&words), told).unwrap();
    assert!(matches!(notices.recv().unwrap(), Notice::Serving(_)));
    let probe = probe(&copies[2]);
    for width in [1, 16] {
        let mut times = [const { Vec::new() }; 3];
        for turn in 0..60 {
            // each of them comes after each other one
            let order = if turn % 2 == 0 { [0, 1, 2] } else { [2, 1, 0] };
            for row in order {
                times[row].extend(storm(&copies[row].program, 64, width, || ()).times);
            }
        }
        let [free, gated, bare] = times.map(median);
        println!("{width} at a time: ungated {free:?}, gated {gated:?}, by the bare probe {bare:?}");
    }
    if let Some(mut probe) = probe {
        probe.kill().unwrap();
        probe.wait().unwrap();
    }
}

/// The bare probe, where there is a compiler.
fn probe(copies: &Copies) -> Option<Child> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("probes/exec_gate.c");
    let program = copies.path("probe");
    let compiled = Command::new("cc").arg("-O2").arg("-o").arg(&program).arg(source).status();
    if !compiled.is_ok_and(|status| status.success()) {
        return None;
    }
    let mut probe = Command::new(program).arg(&copies.program).stdout(Stdio::piped()).spawn().unwrap();
    let mut ready = [0; 6];
    std::io::Read::read_exact(probe.stdout.as_mut().unwrap(), &mut ready).unwrap();
    Some(probe)
}

/// Time on a CPU of this thread.
fn spent() -> Duration {
    let statistics = fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(statistics.split(' ').next().unwrap().parse().unwrap())
}

/// What the reader of the connector costs in a storm of execs, by kinds and filters.
fn connector() {
    let copies = Copies::new();
    let execs = 4000;
    let life = Kinds::FORK | Kinds::EXEC | Kinds::EXIT;
    let rows = [
        ("exec", Kinds::EXEC, Filters::ALL),
        ("exec", Kinds::EXEC, Filters { kernel: false, socket: true }),
        ("exec", Kinds::EXEC, Filters { kernel: true, socket: false }),
        ("exec", Kinds::EXEC, Filters::NONE),
        ("fork, exec, exit", life, Filters::ALL),
        ("fork, exec, exit", life, Filters::NONE),
    ];
    for (what, kinds, filters) in rows {
        let stop = AtomicBool::new(false);
        let (events, wakeups, spent) = thread::scope(|scope| {
            let reader = scope.spawn(|| read(kinds, filters, &stop));
            storm(&copies.program, execs, 16, || ());
            stop.store(true, Ordering::Relaxed);
            reader.join().unwrap()
        });
        let per_exec = spent / u32::try_from(execs).unwrap();
        println!("{what}, {filters:?}: {events} events, {wakeups} wake-ups, {per_exec:?} CPU per exec");
    }
    let mut connector = Connector::open(life, 64 << 20).unwrap();
    storm(&copies.program, 10_000, 16, || ());
    let (start, mut events) = (Instant::now(), 0);
    loop {
        let received = connector.recv(|_| ()).unwrap();
        assert!(!received.overrun);
        events += received.events;
        if received.events == 0 {
            break;
        }
    }
    let time = start.elapsed();
    println!("{events} queued events read in {time:?}: {:.0} a second", events as f64 / time.as_secs_f64());
    let mut connector = Connector::open(life, 1 << 20).unwrap();
    storm(&copies.program, 3000, 16, || ());
    let mut events = 0;
    while connector.recv(|_| events += 1).unwrap().events > 0 {}
    println!("a buffer of 1 MiB ({} bytes) holds {events} events", connector.buffer());
}

fn read(kinds: Kinds, filters: Filters, stop: &AtomicBool) -> (u64, u64, Duration) {
    let mut connector = Connector::open_with(kinds, 16 << 20, filters).unwrap();
    let (mut events, mut wakeups) = (0, 0);
    let before = spent();
    while !stop.load(Ordering::Relaxed) {
        let mut poll_fd = [PollFd::from_borrowed_fd(connector.fd(), PollFlags::IN)];
        let patience = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
        if poll(&mut poll_fd, Some(&patience)).unwrap() > 0 {
            wakeups += 1;
            events += connector.recv(|_| ()).unwrap().events;
        }
    }
    (events, wakeups, spent() - before)
}
