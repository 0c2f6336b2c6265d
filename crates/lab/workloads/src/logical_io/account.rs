//! Where a reader's time goes. DB Time is the time in calls; it is DB CPU (the thread's CPU time), time in which it
//! could have run but had no CPU (the kernel's `run_delay`), and time in which it had no token. What is left is reported
//! as unaccounted, never spread over the others.

use std::{
    fs::File,
    os::unix::fs::FileExt,
    sync::{Mutex, MutexGuard, PoisonError},
};

use super::buffer_cache::Latches;
use crate::{
    start::{Instant, thread_cpu_time},
    stop_request::around,
};

/// What is counted; times are in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub(super) enum Count {
    Reads,
    Executions,
    Calls,
    Transactions,
    DbTime,
    DbCpu,
    RunQueue,
    QuantumWaits,
    Quantum,
    LatchMisses,
    LatchYields,
    Wrong,
}

/// How many of [`Count`] there are.
pub(super) const COUNTS: usize = Count::Wrong as usize + 1;

/// All counts of a reader since its start.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Account([u64; COUNTS]);

impl Account {
    pub fn of(&self, count: Count) -> u64 {
        self.0[count as usize]
    }

    pub fn add(&mut self, count: Count, number: u64) {
        self.0[count as usize] += number;
    }
}

/// Counts between two instants: parts of one, as they lie on the line between two looks.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Part([f64; COUNTS]);

impl Part {
    pub fn of(&self, count: Count) -> f64 {
        self.0[count as usize]
    }

    /// A time, in seconds.
    pub fn seconds(&self, count: Count) -> f64 {
        self.of(count) / 1e9
    }

    pub fn plus(mut self, other: &Part) -> Part {
        self.0.iter_mut().zip(other.0).for_each(|(sum, number)| *sum += number);
        self
    }

    pub fn minus(mut self, other: &Part) -> Part {
        self.0.iter_mut().zip(other.0).for_each(|(left, number)| *left -= number);
        self
    }
}

/// All readers' accounts at an instant.
#[derive(Debug, Clone)]
pub(super) struct Look {
    pub at: Instant,
    pub accounts: Vec<Account>,
}

/// A reader's account at an instant, on the line between the looks before and after it.
pub(super) fn at(looks: &[Look], reader: usize, at: Instant) -> Part {
    let Some((before, after, share)) = around(looks, |look| look.at, at) else { return Part::default() };
    let account = |look: &Look| look.accounts.get(reader).copied().unwrap_or_default();
    let (one, other) = (account(before), account(after));
    let mut part = Part::default();
    for ((place, one), other) in part.0.iter_mut().zip(one.0).zip(other.0) {
        *place = one as f64 + (other as f64 - one as f64) * share;
    }
    part
}

/// What clocks say of the calling thread, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Reading {
    pub wall: u64,
    pub cpu: u64,
    /// Time in the run queue without running, since the thread's start.
    pub delay: u64,
}

/// A reading takes some microseconds, and longer only if its thread was interrupted; in nanoseconds.
const AT_ONCE: u64 = 50_000;

/// A thread that is interrupted so often does little but read clocks.
const RETRIES: u32 = 3;

/// Reads the clocks of the thread that made it.
pub(super) struct Clocks {
    /// `None`: the kernel was built without it.
    schedstat: Option<File>,
}

impl Clocks {
    pub fn of_this_thread() -> Clocks {
        Clocks { schedstat: File::open("/proc/thread-self/schedstat").ok() }
    }

    /// The clocks at one instant: a reading in whose middle the thread lost its CPU is made again.
    pub fn read(&self) -> Reading {
        let mut before = Instant::now();
        let mut reading = self.read_once();
        for _ in 0..RETRIES {
            if Instant(reading.wall).since(before) < AT_ONCE {
                break;
            }
            before = Instant::now();
            reading = self.read_once();
        }
        reading
    }

    fn read_once(&self) -> Reading {
        let mut text = [0; 80];
        let length = self.schedstat.as_ref().and_then(|file| file.read_at(&mut text, 0).ok()).unwrap_or(0);
        let delay = delay(text.get(..length).unwrap_or_default());
        Reading { delay, cpu: thread_cpu_time(), wall: Instant::now().0 }
    }
}

/// The second number of `/proc/PID/schedstat` (Documentation/scheduler/sched-stats.rst): nanoseconds on a run queue.
fn delay(text: &[u8]) -> u64 {
    let word = text.split(|byte| *byte == b' ').nth(1);
    word.and_then(|word| std::str::from_utf8(word).ok()?.trim().parse().ok()).unwrap_or(0)
}

/// A reader's account, which others may look at while it works.
#[derive(Default)]
pub(super) struct Published(Mutex<State>);

#[derive(Default, Clone, Copy)]
struct State {
    account: Account,
    waits_since: Option<Instant>,
}

impl Published {
    /// Each change is whole before the lock is let go.
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The account, with the wait that it is in now: else a reader that waits would seem to do nothing at all.
    pub fn look(&self, now: Instant) -> Account {
        let State { mut account, waits_since } = *self.state();
        if let Some(since) = waits_since {
            account.add(Count::DbTime, now.since(since));
            account.add(Count::Quantum, now.since(since));
        }
        account
    }
}

/// A reader's own side of its account.
pub(super) struct Ledger<'p> {
    clocks: Clocks,
    last: Reading,
    account: Account,
    published: &'p Published,
}

impl<'p> Ledger<'p> {
    /// The first call begins here.
    pub fn open(published: &'p Published) -> Ledger<'p> {
        let clocks = Clocks::of_this_thread();
        let last = clocks.read();
        Ledger { clocks, last, account: Account::default(), published }
    }

    pub fn add(&mut self, count: Count, number: u64) {
        self.account.add(count, number);
    }

    pub fn add_latches(&mut self, latches: &mut Latches) {
        let Latches { misses, yields } = std::mem::take(latches);
        self.account.add(Count::LatchMisses, misses);
        self.account.add(Count::LatchYields, yields);
    }

    /// Books the time since the last booking. A call ends here, and the next one begins: readers do not think.
    pub fn book(&mut self) {
        let now = self.clocks.read();
        book_work(&mut self.account, self.last, now);
        self.last = now;
        *self.published.state() = State { account: self.account, waits_since: None };
    }

    /// Books a wait for a token: `wait` returns the instant at which it was granted.
    pub fn book_wait(&mut self, wait: impl FnOnce() -> Instant) {
        self.book();
        self.published.state().waits_since = Some(Instant(self.last.wall));
        let granted = wait();
        let now = self.clocks.read();
        book_wait(&mut self.account, self.last, granted, now);
        self.last = now;
        *self.published.state() = State { account: self.account, waits_since: None };
    }
}

fn book_work(account: &mut Account, before: Reading, now: Reading) {
    account.add(Count::DbTime, now.wall.saturating_sub(before.wall));
    account.add(Count::DbCpu, now.cpu.saturating_sub(before.cpu));
    account.add(Count::RunQueue, now.delay.saturating_sub(before.delay));
}

/// Until it was granted, the token was what it lacked, also if it was not asleep yet; after that, the CPU.
fn book_wait(account: &mut Account, before: Reading, granted: Instant, now: Reading) {
    let granted = granted.0.clamp(before.wall, now.wall);
    let delay = now.delay.saturating_sub(before.delay);
    account.add(Count::QuantumWaits, 1);
    account.add(Count::Quantum, granted - before.wall);
    account.add(Count::RunQueue, delay.min(now.wall - granted));
    account.add(Count::DbTime, now.wall.saturating_sub(before.wall));
    account.add(Count::DbCpu, now.cpu.saturating_sub(before.cpu));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(wall: u64, cpu: u64, delay: u64) -> Reading {
        Reading { wall, cpu, delay }
    }

    fn times(account: &Account) -> [u64; 5] {
        [Count::DbTime, Count::DbCpu, Count::RunQueue, Count::Quantum, Count::QuantumWaits]
            .map(|count| account.of(count))
    }

    #[test]
    fn a_wait_is_for_the_token_until_it_is_granted_and_then_for_the_cpu() {
        let mut account = Account::default();
        book_wait(&mut account, reading(1000, 50, 7), Instant(1800), reading(2000, 60, 197));
        assert_eq!(times(&account), [1000, 10, 190, 800, 1]);
        // it was preempted before it slept: that was no wait for a CPU, as it had no token
        let mut account = Account::default();
        book_wait(&mut account, reading(1000, 50, 0), Instant(1990), reading(2000, 50, 600));
        assert_eq!(times(&account), [1000, 0, 10, 990, 1]);
        // granted before the clocks were read
        let mut account = Account::default();
        book_wait(&mut account, reading(1000, 50, 0), Instant(900), reading(1010, 60, 0));
        assert_eq!(times(&account), [10, 10, 0, 0, 1]);
    }

    #[test]
    fn a_wait_that_goes_on_counts_up_to_the_look() {
        let published = Published::default();
        published.state().waits_since = Some(Instant(100));
        let account = published.look(Instant(350));
        assert_eq!((account.of(Count::DbTime), account.of(Count::Quantum)), (250, 250));
        assert_eq!(published.look(Instant(100)), Account::default());
    }

    #[test]
    fn accounts_between_two_looks_lie_on_a_line() {
        let look = |at, reads| {
            let mut account = Account::default();
            account.add(Count::Reads, reads);
            Look { at: Instant(at), accounts: vec![account] }
        };
        let looks = [look(100, 0), look(200, 50), look(400, 250)];
        let reads = |instant| at(&looks, 0, Instant(instant)).of(Count::Reads);
        assert_eq!([0, 100, 150, 200, 300, 400, 900].map(reads), [0.0, 0.0, 25.0, 50.0, 150.0, 250.0, 250.0]);
        assert_eq!(at(&looks, 1, Instant(300)), Part::default());
        assert_eq!(at(&[], 0, Instant(300)), Part::default());
    }

    #[test]
    fn the_run_queue_wait_is_the_second_number() {
        assert_eq!(delay(b"12 3456 7\n"), 3456);
        assert_eq!([delay(b""), delay(b"12"), delay(b"a b c")], [0, 0, 0]);
        let clocks = Clocks::of_this_thread();
        let before = clocks.read();
        let now = clocks.read();
        assert!(now.wall >= before.wall && now.cpu >= before.cpu && now.delay >= before.delay);
        assert!(before.cpu > 0 && before.wall > 0);
    }
}
