//! Instance caging: a reader works only while it holds one of `cpu_count` tokens. Who has used up its quantum hands
//! its token to the reader that has waited longest, and queues up behind the others; if nobody waits it goes on. A
//! token is never put down where another could snatch it: with a mutex and a condition variable some readers starved.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    thread::{self, Thread},
};

use crate::start::Instant;

/// The tokens and who waits for one.
pub(super) struct Cage {
    queue: Mutex<Queue>,
    /// As many as the queue holds, to be looked at without its lock.
    waiting: AtomicUsize,
    closed: AtomicBool,
}

struct Queue {
    free: u32,
    waiters: VecDeque<Arc<Ticket>>,
}

/// A reader's place in the queue.
pub(super) struct Ticket {
    thread: Thread,
    /// The instant at which it got its token; 0 while it waits.
    granted: AtomicU64,
}

impl Ticket {
    /// Of the calling thread.
    pub fn new() -> Arc<Ticket> {
        Arc::new(Ticket { thread: thread::current(), granted: AtomicU64::new(0) })
    }

    fn grant(&self) {
        self.granted.store(Instant::now().0.max(1), Ordering::Release);
        self.thread.unpark();
    }

    /// Sleeps until it has its token; the instant at which it got it.
    pub fn wait(&self) -> Instant {
        loop {
            match self.granted.load(Ordering::Acquire) {
                0 => thread::park(),
                granted => return Instant(granted),
            }
        }
    }
}

impl Cage {
    pub fn new(tokens: u32) -> Cage {
        let queue = Mutex::new(Queue { free: tokens, waiters: VecDeque::new() });
        Cage { queue, waiting: AtomicUsize::new(0), closed: AtomicBool::new(false) }
    }

    /// Each change of the queue is whole before its lock is let go.
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a free token, or queues up: then [`Ticket::wait`] is next.
    #[must_use]
    pub fn enter(&self, ticket: &Arc<Ticket>) -> bool {
        let mut queue = self.queue();
        if self.closed.load(Ordering::Relaxed) {
            return true;
        }
        if let Some(left) = queue.free.checked_sub(1) {
            queue.free = left;
            return true;
        }
        self.queue_up(&mut queue, ticket);
        false
    }

    /// Hands the token to who has waited longest and queues up: then [`Ticket::wait`] is next. If nobody waits, the
    /// token stays.
    #[must_use]
    pub fn keep(&self, ticket: &Arc<Ticket>) -> bool {
        if self.waiting.load(Ordering::Relaxed) == 0 {
            return true;
        }
        let mut queue = self.queue();
        let Some(next) = queue.waiters.pop_front() else { return true };
        self.queue_up(&mut queue, ticket);
        drop(queue);
        next.grant();
        false
    }

    fn queue_up(&self, queue: &mut Queue, ticket: &Arc<Ticket>) {
        ticket.granted.store(0, Ordering::Relaxed);
        queue.waiters.push_back(Arc::clone(ticket));
        self.waiting.store(queue.waiters.len(), Ordering::Relaxed);
    }

    /// Lets everybody go on: the end.
    pub fn open(&self) {
        let mut queue = self.queue();
        self.closed.store(true, Ordering::Relaxed);
        self.waiting.store(0, Ordering::Relaxed);
        queue.waiters.drain(..).for_each(|ticket| ticket.grant());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Barrier, atomic::AtomicU32};

    /// What came of turns of readers that hand their tokens on after each.
    struct Turns {
        /// Whose turn each was.
        order: Vec<usize>,
        /// The greatest number of readers that worked at once.
        most: u32,
        /// Who was in the queue from the first turn to the last.
        passed_over: Vec<usize>,
    }

    fn turns(tokens: u32, readers: usize, turns: usize) -> Turns {
        let (cage, inside, most) = (Cage::new(tokens), AtomicU32::new(0), AtomicU32::new(0));
        let (order, passed_over) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
        let together = Barrier::new(readers);
        thread::scope(|scope| {
            for reader in 0..readers {
                let (cage, inside, most, order, together) = (&cage, &inside, &most, &order, &together);
                let passed_over = &passed_over;
                let work = move || {
                    let ticket = Ticket::new();
                    let mut in_turn = cage.enter(&ticket);
                    together.wait(); // all hold a token or are queued
                    loop {
                        if !in_turn {
                            ticket.wait();
                        }
                        let now = inside.fetch_add(1, Ordering::SeqCst) + 1;
                        let mut order = order.lock().unwrap();
                        if order.len() == turns {
                            let waits = |ticket: &Arc<Ticket>| ticket.thread.name().unwrap().parse().unwrap();
                            let waiting: Vec<usize> = cage.queue().waiters.iter().map(waits).collect();
                            let had_none = waiting.into_iter().filter(|reader| !order.contains(reader));
                            passed_over.lock().unwrap().extend(had_none);
                            drop(order);
                            cage.open();
                            return;
                        }
                        most.fetch_max(now, Ordering::SeqCst);
                        order.push(reader);
                        drop(order);
                        inside.fetch_sub(1, Ordering::SeqCst);
                        in_turn = cage.keep(&ticket);
                    }
                };
                thread::Builder::new().name(reader.to_string()).spawn_scoped(scope, work).unwrap();
            }
        });
        let [order, passed_over] = [order, passed_over].map(|readers| readers.into_inner().unwrap());
        Turns { order, most: most.into_inner(), passed_over }
    }

    #[test]
    fn with_one_token_readers_take_turns_in_the_same_order_for_ever() {
        let Turns { order, most, .. } = turns(1, 9, 900);
        assert_eq!(most, 1);
        let first: Vec<usize> = order[..9].to_vec();
        assert_eq!(first.iter().collect::<std::collections::BTreeSet<_>>().len(), 9, "{first:?}");
        assert!(order.chunks(9).all(|round| round == first), "{order:?}");
    }

    #[test]
    fn no_more_readers_work_than_there_are_tokens() {
        let Turns { order, most, passed_over } = turns(3, 9, 3000);
        assert!((1..=3).contains(&most), "{most}");
        assert_eq!(order.len(), 3000);
        // one that has a token may get no CPU for as long: the cage has done its part
        assert_eq!(passed_over, Vec::<usize>::new(), "{order:?}");
    }

    #[test]
    fn who_is_alone_keeps_its_token_and_a_free_one_is_taken_at_once() {
        let (cage, ticket) = (Cage::new(1), Ticket::new());
        assert!(cage.enter(&ticket));
        assert!(cage.keep(&ticket));
        let other = Ticket::new();
        assert!(!cage.enter(&other), "there is one token");
        assert!(!cage.keep(&ticket), "somebody waits");
        assert!(other.wait() <= Instant::now());
        cage.open();
        ticket.wait();
        assert!(cage.enter(&ticket));
    }
}
