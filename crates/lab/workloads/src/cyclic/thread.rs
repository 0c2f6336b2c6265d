//! A thread that wakes periodically and notes how late it is. It makes room for its notes beforehand: while it
//! measures it asks the kernel for nothing but the time and its sleep. It forgets no cycle, however late.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use kernel::threads::set_fifo;
use rustix::thread::{CpuSet, sched_setaffinity, set_current_timer_slack};

use super::TIMER_SLACK;
use crate::{Error, start::Instant};

/// A cycle: when it ran, and how much later than it should have, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cycle {
    pub at: Instant,
    pub late: u64,
}

/// Whole cycles that went by while a thread was so late: it leaves them out.
pub(super) fn missed(late: u64, interval: Duration) -> u64 {
    late.checked_div(u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX)).unwrap_or(0)
}

/// What a thread did.
pub(super) struct ThreadReport {
    pub cycles: Vec<Cycle>,
    /// Why it was not real-time though it should have been.
    pub refused: Option<io::Error>,
    /// It ran for longer than it had room for, and had to ask for memory in the middle.
    pub outgrew: bool,
}

/// All threads of a measurement.
pub(super) struct Cycles {
    interval: Duration,
    /// 0: SCHED_OTHER.
    priority: u32,
    done: AtomicU64,
    stop: AtomicBool,
}

/// A thread that was started.
pub(super) struct Running(thread::JoinHandle<Result<ThreadReport, Error>>);

impl Running {
    pub fn join(self) -> Result<ThreadReport, Error> {
        let panicked = || io::Error::other("it panicked");
        self.0.join().map_err(|_| Error::System { what: "a measuring thread ended", source: panicked() })?
    }
}

impl Cycles {
    pub fn new(interval: Duration, priority: u32) -> Cycles {
        Cycles { interval, priority, done: AtomicU64::new(0), stop: AtomicBool::new(false) }
    }

    /// Cycles of all threads so far.
    pub fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    /// They end after their next cycle.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Starts a thread with room for this many cycles, on one CPU if one is named; returns once it measures.
    ///
    /// # Errors
    /// It can't be started, or not be bound to its CPU.
    pub fn start(all: &Arc<Cycles>, cpu: Option<usize>, room: u64) -> Result<Running, Error> {
        let all = Arc::clone(all);
        let (ready, begun) = mpsc::channel();
        let started = thread::Builder::new().name("cyclic".to_owned()).stack_size(64 << 10);
        let thread = started
            .spawn(move || all.measure(cpu, room, ready))
            .map_err(|source| Error::System { what: "cannot start a thread", source })?;
        // a thread that failed says why when it is joined
        let _ = begun.recv();
        Ok(Running(thread))
    }

    fn measure(&self, cpu: Option<usize>, room: u64, ready: mpsc::Sender<()>) -> Result<ThreadReport, Error> {
        let system = |what| move |source: rustix::io::Errno| Error::System { what, source: source.into() };
        if let Some(cpu) = cpu {
            let mut cpus = CpuSet::new();
            cpus.set(cpu);
            sched_setaffinity(None, &cpus).map_err(system("cannot bind a thread to its CPU"))?;
        }
        set_current_timer_slack(TIMER_SLACK).map_err(system("cannot set the timer slack"))?;
        // written, so that its pages are there
        let first = Cycle { at: Instant(1), late: 1 };
        let mut cycles = vec![first; usize::try_from(room).unwrap_or(usize::MAX)];
        cycles.clear();
        let refused = if self.priority > 0 { set_fifo(self.priority).err() } else { None };
        let _ = ready.send(()); // who listens is there
        drop(ready);
        self.cycle(&mut cycles);
        let outgrew = cycles.len() as u64 > room;
        Ok(ThreadReport { cycles, refused, outgrew })
    }

    fn cycle(&self, cycles: &mut Vec<Cycle>) {
        let mut next = Instant::now().after(self.interval);
        while !self.stop.load(Ordering::Relaxed) {
            next.sleep();
            let at = Instant::now();
            let late = at.since(next);
            cycles.push(Cycle { at, late });
            self.done.fetch_add(1, Ordering::Relaxed);
            let more = u32::try_from(missed(late, self.interval)).unwrap_or(u32::MAX);
            next = next.after(self.interval.saturating_mul(more.saturating_add(1)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cycles_are_noted_in_their_order_and_never_early() {
        let interval = Duration::from_millis(1);
        let all = Arc::new(Cycles::new(interval, 0));
        let thread = Cycles::start(&all, None, 4).unwrap();
        let begun = std::time::Instant::now();
        while all.done() < 20 {
            assert!(begun.elapsed() < Duration::from_secs(60), "it does not wake");
            thread::sleep(interval);
        }
        all.stop();
        let ThreadReport { cycles, refused, outgrew } = thread.join().unwrap();
        assert!(cycles.len() >= 20 && outgrew, "{}", cycles.len());
        assert!(refused.is_none());
        for pair in cycles.windows(2) {
            let (last, next) = (pair[0], pair[1]);
            // the instant it should have run at lies whole intervals behind the last one
            let (planned, before) = (next.at.0 - next.late, last.at.0 - last.late);
            let intervals = (planned - before) / 1_000_000;
            assert_eq!((planned - before) % 1_000_000, 0, "{pair:?}");
            assert_eq!(intervals, 1 + missed(last.late, interval), "{pair:?}");
        }
    }

    #[test]
    fn cycles_that_went_by_are_missed() {
        let interval = Duration::from_micros(100);
        let missed = |late| missed(late, interval);
        assert_eq!([0, 99_999, 100_000, 250_000].map(missed), [0, 0, 1, 2]);
    }

    #[test]
    fn a_cpu_that_is_not_there_is_reported() {
        let all = Arc::new(Cycles::new(Duration::from_millis(1), 0));
        let error = Cycles::start(&all, Some(1023), 4).unwrap().join().err().unwrap();
        assert!(error.to_string().starts_with("cannot bind a thread to its CPU"), "{error}");
    }
}
