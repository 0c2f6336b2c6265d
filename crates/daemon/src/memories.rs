//! What is remembered of each process that lives: what a fork hands on to a child, and when a process was last moved, so
//! that children which were forked before are found. Holds what it is given.

use std::{collections::HashMap, rc::Rc, time::Duration};

use classify::Memory;

/// A fork's time is taken a little after the child got its parent's group (`proc_fork_connector` in `copy_process`);
/// later by as much as a quota may hold the parent up.
const TOLD_LATER: Duration = Duration::from_millis(100);

/// By process.
#[derive(Debug, Default)]
pub(crate) struct Memories {
    kept: HashMap<u32, Kept>,
}

#[derive(Debug, Clone)]
struct Kept {
    // most processes are like their parents
    memory: Rc<Memory>,
    /// When that was, on CLOCK_MONOTONIC.
    at: Duration,
    /// On CLOCK_MONOTONIC; zero: not by us.
    moved: Duration,
}

impl Memories {
    /// Of one process.
    pub fn of(&self, pid: u32) -> Option<Rc<Memory>> {
        self.kept.get(&pid).map(|kept| Rc::clone(&kept.memory))
    }

    /// Keeps what is to be remembered of it at that time.
    pub fn keep(&mut self, pid: u32, memory: Memory, at: Duration) {
        match self.kept.get_mut(&pid) {
            Some(kept) => {
                kept.at = at;
                if *kept.memory != memory {
                    kept.memory = Rc::new(memory);
                }
            }
            None => _ = self.kept.insert(pid, Kept { memory: Rc::new(memory), at, moved: Duration::ZERO }),
        }
    }

    /// It was moved at that time.
    pub fn moved(&mut self, pid: u32, at: Duration) {
        if let Some(kept) = self.kept.get_mut(&pid) {
            kept.moved = at;
        }
    }

    /// A child was born at that time, with all that is remembered of its parent; unless more is known of it already,
    /// as all processes were looked at since.
    pub fn fork(&mut self, parent: u32, child: u32, at: Duration) {
        if self.kept.get(&child).is_some_and(|kept| kept.at >= at) {
            return;
        }
        match self.kept.get(&parent) {
            Some(kept) => _ = self.kept.insert(child, Kept { at, moved: Duration::ZERO, ..kept.clone() }),
            // of an earlier process of this number
            None => _ = self.kept.remove(&child),
        }
    }

    /// Was the parent moved after it forked a child at that time? The child may have been left behind then.
    pub fn moved_after(&self, parent: u32, forked: Duration) -> bool {
        let moved = |kept: &Kept| kept.moved > Duration::ZERO && forked <= kept.moved + TOLD_LATER;
        self.kept.get(&parent).is_some_and(moved)
    }

    /// It ended; what was remembered of it.
    pub fn end(&mut self, pid: u32) -> Option<Rc<Memory>> {
        let ended = self.kept.remove(&pid).map(|kept| kept.memory);
        // a burst must not hold its memory for good
        if self.kept.capacity() > 1024 && self.kept.len() < self.kept.capacity() / 8 {
            self.kept.shrink_to(self.kept.len() * 2);
        }
        ended
    }

    /// Forgets all but these, which are ascending.
    pub fn retain(&mut self, living: &[u32]) {
        self.kept.retain(|pid, _| living.binary_search(pid).is_ok());
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.kept.len()
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
        assert!(!memories.moved_after(1, Duration::from_secs(5)), "never moved");
        memories.moved(1, Duration::from_secs(7));
        assert!(memories.moved_after(1, Duration::from_secs(5)));
        assert!(memories.moved_after(1, Duration::from_millis(7050)), "told a little later");
        assert!(!memories.moved_after(1, Duration::from_secs(8)));
        memories.fork(1, 3, 9 * SECOND);
        assert!(!memories.moved_after(3, Duration::from_secs(5)), "the child itself was not moved");
    }

    #[test]
    fn nothing_is_left_of_processes_that_ended() {
        let mut memories = Memories::default();
        (1..5000).for_each(|pid| memories.keep(pid, Memory::default(), SECOND));
        (1..5000).for_each(|pid| _ = memories.end(pid));
        assert_eq!(memories.len(), 0);
        assert!(memories.kept.capacity() < 1024, "{}", memories.kept.capacity());
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
