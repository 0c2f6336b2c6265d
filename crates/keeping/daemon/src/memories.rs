//! What is remembered of each process that lives: what a fork hands on to a child, and when a process was last moved, so
//! that children which were forked before are found. Holds what it is given.

use std::{collections::HashMap, rc::Rc, time::Duration};

use classify::Memory;

/// A fork's time is taken a little after the child got its parent's group (`proc_fork_connector` in `copy_process`);
/// later by as much as a quota may hold the parent up.
const EVENT_DELAY: Duration = Duration::from_millis(100);

/// By process.
#[derive(Debug, Default)]
pub(crate) struct Memories {
    records: HashMap<u32, Record>,
}

#[derive(Debug, Clone)]
struct Record {
    // most processes are like their parents
    memory: Rc<Memory>,
    /// When that was, on CLOCK_MONOTONIC.
    at: Duration,
    /// On CLOCK_MONOTONIC; zero: not by us.
    moved: Duration,
    /// What was remembered before that move: who was born before it may have been left where that says.
    before: Option<Rc<Memory>>,
}

impl Record {
    fn moved_since(&self, forked: Duration) -> bool {
        self.moved > Duration::ZERO && forked <= self.moved + EVENT_DELAY
    }
}

impl Memories {
    /// Of one process.
    pub fn of(&self, pid: u32) -> Option<Rc<Memory>> {
        self.records.get(&pid).map(|record| Rc::clone(&record.memory))
    }

    /// What was remembered of it, or of the parent that it was born of, before the last move.
    pub fn before_move(&self, pid: u32) -> Option<Rc<Memory>> {
        self.records.get(&pid)?.before.clone()
    }

    /// Was it moved by us?
    pub fn was_moved(&self, pid: u32) -> bool {
        self.records.get(&pid).is_some_and(|record| record.moved > Duration::ZERO)
    }

    /// Keeps what is to be remembered of it at that time.
    pub fn keep(&mut self, pid: u32, memory: Memory, at: Duration) {
        match self.records.get_mut(&pid) {
            Some(record) => {
                record.at = at;
                if *record.memory != memory {
                    record.memory = Rc::new(memory);
                }
            }
            None => {
                let new = Record { memory: Rc::new(memory), at, moved: Duration::ZERO, before: None };
                self.records.insert(pid, new);
            }
        }
    }

    /// It was moved at that time; `memory`: what is to be remembered of it from then on.
    pub fn moved(&mut self, pid: u32, memory: Memory, at: Duration) {
        let before = self.of(pid);
        self.records.insert(pid, Record { memory: Rc::new(memory), at, moved: at, before });
    }

    /// A child was born at that time, with all that is remembered of its parent; unless more is known of it already,
    /// as all processes were looked at since.
    pub fn fork(&mut self, parent: u32, child: u32, at: Duration) {
        if self.records.get(&child).is_some_and(|record| record.at >= at) {
            return;
        }
        match self.records.get(&parent) {
            Some(record) => {
                let before = record.before.clone().filter(|_| record.moved_since(at));
                let new = Record { memory: Rc::clone(&record.memory), at, moved: Duration::ZERO, before };
                self.records.insert(child, new);
            }
            // of an earlier process of this number
            None => _ = self.records.remove(&child),
        }
    }

    /// May a child that was forked at that time have been left behind? If its parent was moved after, or has ended since:
    /// then nobody knows.
    pub fn left_behind(&self, parent: u32, forked: Duration) -> bool {
        self.records.get(&parent).is_none_or(|record| record.moved_since(forked))
    }

    /// It ended; what was remembered of it.
    pub fn end(&mut self, pid: u32) -> Option<Rc<Memory>> {
        let ended = self.records.remove(&pid).map(|record| record.memory);
        // a burst must not hold its memory for good
        if self.records.capacity() > 1024 && self.records.len() < self.records.capacity() / 8 {
            self.records.shrink_to(self.records.len() * 2);
        }
        ended
    }

    /// Forgets all but these, which are ascending.
    pub fn retain(&mut self, living: &[u32]) {
        self.records.retain(|pid, _| living.binary_search(pid).is_ok());
    }

    /// How many there are.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.records.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_child_that_was_forked_before_its_parent_was_moved_is_found() {
        let mut memories = Memories::default();
        memories.keep(1, Memory::default(), SECOND);
        memories.fork(1, 2, 5 * SECOND);
        assert!(memories.of(2).is_some());
        assert!(!memories.left_behind(1, Duration::from_secs(5)), "never moved");
        memories.moved(1, Memory::default(), Duration::from_secs(7));
        assert!(memories.left_behind(1, Duration::from_secs(5)));
        assert!(memories.left_behind(1, Duration::from_millis(7050)), "the event comes a little later");
        assert!(!memories.left_behind(1, Duration::from_secs(8)));
        memories.fork(1, 3, 9 * SECOND);
        assert!(!memories.left_behind(3, Duration::from_secs(5)), "the child itself was not moved");
        memories.end(1);
        assert!(memories.left_behind(1, Duration::from_secs(20)), "nobody knows");
    }

    #[test]
    fn who_was_born_before_a_move_inherits_what_was_before() {
        let mut memories = Memories::default();
        let (old, new) =
            (Memory { rule: Some(0), ..Memory::default() }, Memory { rule: Some(1), ..Memory::default() });
        memories.keep(1, old.clone(), SECOND);
        memories.moved(1, new.clone(), 7 * SECOND);
        memories.fork(1, 2, 5 * SECOND);
        assert_eq!(memories.before_move(2).as_deref(), Some(&old));
        assert!(!memories.was_moved(2) && memories.was_moved(1));
        memories.fork(1, 3, 9 * SECOND);
        assert_eq!((memories.before_move(3), memories.of(3).as_deref()), (None, Some(&new)));
    }

    #[test]
    fn nothing_is_left_of_processes_that_ended() {
        let mut memories = Memories::default();
        (1..5000).for_each(|pid| memories.keep(pid, Memory::default(), SECOND));
        (1..5000).for_each(|pid| _ = memories.end(pid));
        assert_eq!(memories.len(), 0);
        assert!(memories.records.capacity() < 1024, "{}", memories.records.capacity());
        // a number is used again by a child of somebody unknown
        memories.keep(9, Memory { by_hand: true, ..Memory::default() }, SECOND);
        memories.fork(8, 9, 2 * SECOND);
        assert_eq!(memories.of(9), None);
    }

    #[test]
    fn what_was_seen_since_goes_before_an_older_fork() {
        let mut memories = Memories::default();
        memories.keep(1, Memory::default(), SECOND);
        let seen = Memory { by_hand: true, ..Memory::default() };
        memories.keep(2, seen.clone(), 3 * SECOND);
        memories.fork(1, 2, 2 * SECOND);
        assert_eq!(memories.of(2).as_deref(), Some(&seen));
        memories.fork(1, 2, 4 * SECOND);
        assert_eq!(memories.of(2).as_deref(), Some(&Memory::default()));
    }
}
