//! The engine at work: readers that do nothing but logical reads, each in its own file of the buffer cache as SLOB's
//! sessions are each in a schema of their own, and, if it is caged, with a token only. It counts; it judges nothing.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use experiment::statistics::SplitMix64;

use super::{
    account::{Account, Count, Ledger, Look, Published},
    buffer_cache::{Address, BLOCK_BYTES, BufferCache, Latches},
    cage::{Cage, Ticket},
};
use crate::{
    Error,
    start::{Instant, thread_cpu_time},
};

/// How the engine works.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Shape {
    pub readers: u32,
    /// Of the whole buffer cache.
    pub memory: u64,
    /// Words that a read touches of its block.
    pub words: usize,
    /// Tokens; `None`: it is not caged.
    pub cpu_count: Option<u32>,
    /// CPU time for which a reader may keep its token while others wait.
    pub quantum: Duration,
    pub reads_per_execution: u32,
    pub executions_per_call: u32,
    pub calls_per_transaction: u32,
}

impl Shape {
    /// Of each reader's file; at least one block.
    pub fn blocks_per_reader(&self) -> u32 {
        let all = self.memory.div_ceil(BLOCK_BYTES as u64).div_ceil(u64::from(self.readers.max(1)));
        u32::try_from(all).unwrap_or(u32::MAX).max(1)
    }
}

struct Shared {
    shape: Shape,
    blocks: u32,
    cache: BufferCache,
    cage: Option<Cage>,
    published: Vec<Published>,
    stop: AtomicBool,
}

/// An engine while it works. Its readers end when this value is dropped.
pub(super) struct Engine {
    shared: Arc<Shared>,
    readers: Vec<JoinHandle<()>>,
    looks: Vec<Look>,
}

impl Engine {
    /// Fills the buffer cache, then lets the readers begin.
    ///
    /// # Errors
    /// A thread can't be started.
    pub fn start(shape: Shape, filling_threads: usize) -> Result<Engine, Error> {
        let blocks = shape.blocks_per_reader();
        let shared = Arc::new(Shared {
            blocks,
            cache: BufferCache::fill(shape.readers, blocks, filling_threads),
            cage: shape.cpu_count.map(Cage::new),
            published: (0..shape.readers).map(|_| Published::default()).collect(),
            stop: AtomicBool::new(false),
            shape,
        });
        let mut engine = Engine { shared, readers: Vec::new(), looks: Vec::new() };
        engine.look();
        for reader in 0..engine.shared.shape.readers {
            let shared = Arc::clone(&engine.shared);
            let started = thread::Builder::new()
                .name(format!("reader {reader}"))
                .stack_size(128 << 10)
                .spawn(move || shared.read(reader))
                .map_err(|source| Error::System { what: "cannot start a thread", source })?;
            engine.readers.push(started);
        }
        Ok(engine)
    }

    pub fn shape(&self) -> &Shape {
        &self.shared.shape
    }

    /// Of the buffer cache, in bytes.
    pub fn bytes(&self) -> u64 {
        self.shared.cache.bytes()
    }

    /// Looks at all accounts; the reads since the start.
    pub fn look(&mut self) -> u64 {
        let at = Instant::now();
        let accounts: Vec<Account> = self.shared.published.iter().map(|one| one.look(at)).collect();
        let reads = accounts.iter().map(|account| account.of(Count::Reads)).sum();
        self.looks.push(Look { at, accounts });
        reads
    }

    /// What was seen last.
    #[cfg(test)]
    pub fn look_at_last(&self) -> &Look {
        &self.looks[self.looks.len() - 1]
    }

    /// Ends the readers; what was seen of them.
    pub fn stop(mut self) -> Vec<Look> {
        self.look();
        std::mem::take(&mut self.looks)
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some(cage) = &self.shared.cage {
            cage.open();
        }
        for reader in self.readers.drain(..) {
            let _ = reader.join(); // one that panicked has said so
        }
    }
}

impl Shared {
    /// A reader's whole life.
    fn read(&self, reader: u32) {
        let Some(published) = self.published.get(reader as usize) else { return };
        let mut session = Session {
            shared: self,
            reader,
            ledger: Ledger::open(published),
            latches: Latches::default(),
            random: SplitMix64::new(u64::from(reader) + 1),
            turn: self.cage.as_ref().map(|cage| Turn::new(cage, self.shape.quantum)),
        };
        if let Some(turn) = &mut session.turn {
            turn.begin(&mut session.ledger);
        }
        while !self.stop.load(Ordering::Relaxed) {
            for _ in 0..self.shape.calls_per_transaction {
                session.call();
            }
            session.ledger.add(Count::Transactions, 1);
        }
    }
}

struct Session<'s> {
    shared: &'s Shared,
    reader: u32,
    ledger: Ledger<'s>,
    latches: Latches,
    random: SplitMix64,
    turn: Option<Turn<'s>>,
}

impl Session<'_> {
    /// A call of the client: some executions of one statement. It is cut short by the engine's end.
    fn call(&mut self) {
        for _ in 0..self.shared.shape.executions_per_call {
            if self.shared.stop.load(Ordering::Relaxed) {
                return;
            }
            self.execute();
            if let Some(turn) = &mut self.turn {
                turn.look(&mut self.ledger);
            }
        }
        self.ledger.add(Count::Calls, 1);
        self.ledger.add_latches(&mut self.latches);
        self.ledger.book();
    }

    fn execute(&mut self) {
        let Shape { reads_per_execution, words, .. } = self.shared.shape;
        let mut wrong = 0;
        for _ in 0..reads_per_execution {
            let address = Address { file: self.reader, block: self.next_block() };
            let found = self.shared.cache.get(address, &mut self.latches);
            wrong += u64::from(!found.is_some_and(|block| block.touch(address, words)));
        }
        self.ledger.add(Count::Wrong, wrong);
        self.ledger.add(Count::Reads, u64::from(reads_per_execution));
        self.ledger.add(Count::Executions, 1);
    }

    /// Any block of its file, each as likely.
    fn next_block(&mut self) -> u32 {
        (((self.random.draw() >> 32) * u64::from(self.shared.blocks)) >> 32) as u32
    }
}

/// A reader's token and how much of its quantum is used up. The quantum is CPU time: a reader that the system did not
/// let run has used nothing of it. CPU time is read only when so much time has gone by.
struct Turn<'s> {
    cage: &'s Cage,
    ticket: Arc<Ticket>,
    quantum: u64,
    begun_cpu: u64,
    look_at: Instant,
}

impl<'s> Turn<'s> {
    fn new(cage: &'s Cage, quantum: Duration) -> Turn<'s> {
        let quantum = u64::try_from(quantum.as_nanos()).unwrap_or(u64::MAX);
        Turn { cage, ticket: Ticket::new(), quantum, begun_cpu: 0, look_at: Instant(0) }
    }

    /// Waits for the first token.
    fn begin(&mut self, ledger: &mut Ledger<'_>) {
        if !self.cage.enter(&self.ticket) {
            ledger.book_wait(|| self.ticket.wait());
        }
        self.renew(thread_cpu_time());
    }

    fn renew(&mut self, cpu: u64) {
        self.begun_cpu = cpu;
        self.look_at = Instant::now().after(Duration::from_nanos(self.quantum));
    }

    /// Hands the token on if the quantum is used up and somebody waits.
    fn look(&mut self, ledger: &mut Ledger<'_>) {
        let now = Instant::now();
        if now < self.look_at {
            return;
        }
        let cpu = thread_cpu_time();
        let left = self.quantum.saturating_sub(cpu.saturating_sub(self.begun_cpu));
        if left > 0 {
            self.look_at = now.after(Duration::from_nanos(left));
            return;
        }
        if self.cage.keep(&self.ticket) {
            self.renew(cpu);
        } else {
            ledger.book_wait(|| self.ticket.wait());
            self.renew(thread_cpu_time());
        }
    }
}
