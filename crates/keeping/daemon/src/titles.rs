//! Which processes are judged again, and when, where a rule asks for their title: a process gives itself another one whenever it
//! likes, and the kernel tells nobody. A worker of a database does so right after its birth, so the first looks come soon; later
//! ones are rare, and rarer the more processes there are. Judges nobody.

use std::{
    collections::{HashMap, VecDeque},
    time::{Duration, Instant},
};

/// How long after a birth, and after each look, the next one comes; the last pause is the shortest of those that follow.
const PAUSES: [Duration; 4] =
    [Duration::from_millis(50), Duration::from_millis(500), Duration::from_secs(3), Duration::from_secs(10)];
/// The first pause of who runs a program that it was started with: the title is that program's.
const PROGRAM: usize = 1;
/// The most looks a second of the last kind.
const A_SECOND: u32 = 100;
/// What is due within this time is looked at together.
const TOGETHER: Duration = Duration::from_millis(20);

/// The looks that are to come.
#[derive(Debug, Default)]
pub(crate) struct Titles {
    is_on: bool,
    /// Processes that live, each with the number of its look to come.
    living: HashMap<u32, u64>,
    looks: u64,
    /// By pause, in the order of time.
    queues: [VecDeque<Look>; PAUSES.len()],
}

#[derive(Debug)]
struct Look {
    at: Instant,
    pid: u32,
    number: u64,
}

impl Titles {
    /// Whether rules ask for titles; if they do not, nobody is looked at again.
    pub fn switch(&mut self, is_on: bool) {
        if !is_on {
            *self = Titles::default();
        }
        self.is_on = is_on;
    }

    /// A process was forked.
    pub fn forked(&mut self, pid: u32, now: Instant) {
        self.look(pid, 0, now);
    }

    /// It runs another program, or was there before anybody looked.
    pub fn runs(&mut self, pid: u32, now: Instant) {
        self.look(pid, PROGRAM, now);
    }

    /// It ended.
    pub fn ended(&mut self, pid: u32) {
        self.living.remove(&pid);
        // a burst must not hold its memory for good
        if self.living.capacity() > 1024 && self.living.len() < self.living.capacity() / 8 {
            self.living.shrink_to(self.living.len() * 2);
        }
    }

    /// When the next look is due.
    pub fn due(&self) -> Option<Instant> {
        self.queues.iter().filter_map(|queue| Some(queue.front()?.at)).min()
    }

    /// Those that are to be looked at now.
    pub fn take(&mut self, now: Instant) -> Vec<u32> {
        let until = now + TOGETHER;
        let mut taken = Vec::new();
        for pause in 0..PAUSES.len() {
            while self.queues[pause].front().is_some_and(|look| look.at <= until) {
                let Some(look) = self.queues[pause].pop_front() else { break };
                if self.living.get(&look.pid) == Some(&look.number) {
                    taken.push((look.pid, (pause + 1).min(PAUSES.len() - 1)));
                }
            }
            if self.queues[pause].capacity() > 1024 && self.queues[pause].is_empty() {
                self.queues[pause].shrink_to(0);
            }
        }
        taken.iter().for_each(|&(pid, pause)| self.look(pid, pause, now));
        taken.into_iter().map(|(pid, _)| pid).collect()
    }

    fn look(&mut self, pid: u32, pause: usize, now: Instant) {
        if !self.is_on {
            return;
        }
        self.looks += 1;
        self.living.insert(pid, self.looks);
        let living = u32::try_from(self.living.len()).unwrap_or(u32::MAX);
        let last = pause + 1 == PAUSES.len();
        let after = if last {
            PAUSES[pause].max(Duration::from_secs(1) * (living / A_SECOND))
        } else {
            PAUSES[pause]
        };
        let queue = &mut self.queues[pause];
        // the order of time also when there are fewer processes than before
        let at = queue.back().map_or(now + after, |back| back.at.max(now + after));
        queue.push_back(Look { at, pid, number: self.looks });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on() -> Titles {
        let mut titles = Titles::default();
        titles.switch(true);
        titles
    }

    fn times(titles: &mut Titles, start: Instant, until: Duration) -> Vec<u128> {
        let mut times = Vec::new();
        while let Some(due) = titles.due().filter(|due| *due <= start + until) {
            let taken = titles.take(due).len();
            times.extend(std::iter::repeat_n((due - start).as_millis(), taken));
        }
        times
    }

    #[test]
    fn a_child_is_looked_at_soon_and_then_rarely() {
        let (mut titles, start) = (on(), Instant::now());
        titles.forked(7, start);
        assert_eq!(times(&mut titles, start, Duration::from_secs(25)), [50, 550, 3550, 13550, 23550]);
        titles.ended(7);
        assert_eq!(times(&mut titles, start, Duration::from_secs(100)), []);
        assert_eq!(titles.due(), None);
    }

    #[test]
    fn a_program_of_its_own_begins_anew() {
        let (mut titles, start) = (on(), Instant::now());
        titles.forked(7, start);
        titles.runs(7, start + Duration::from_millis(10));
        assert_eq!(times(&mut titles, start, Duration::from_secs(4)), [510, 3510]);
    }

    #[test]
    fn many_processes_are_looked_at_no_more_often_than_few() {
        let (mut titles, start) = (on(), Instant::now());
        (0..5000).for_each(|pid| titles.runs(pid, start));
        let looks = times(&mut titles, start, Duration::from_secs(104));
        let later = looks.iter().filter(|at| **at > 4000).count();
        assert_eq!(
            (looks.len() - later, later),
            (2 * 5000, 2 * 5000),
            "each twice at first, then every 50 s"
        );
    }

    #[test]
    fn nobody_is_looked_at_where_no_rule_asks_for_titles() {
        let (mut titles, start) = (on(), Instant::now());
        titles.forked(7, start);
        titles.switch(false);
        titles.forked(8, start);
        assert_eq!((titles.due(), titles.take(start + Duration::from_secs(9)).len()), (None, 0));
    }
}
