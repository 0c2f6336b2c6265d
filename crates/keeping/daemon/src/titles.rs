//! Which processes are judged again, and when, where a rule asks for their title: the kernel sends no event when a process changes
//! it. A worker of a database sets its title right after the fork, so the first checks come soon; later ones are rare, and rarer the
//! more processes there are. Judges nobody.

use std::{
    collections::{BTreeMap, HashMap},
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
/// The most that are looked at before something else has its turn.
const AT_ONCE: usize = 256;

/// The looks that are to come.
#[derive(Debug, Default)]
pub(crate) struct Titles {
    is_on: bool,
    /// Processes that live, each with the time of its look to come.
    living: HashMap<u32, Instant>,
    /// In the order of time, each with its pause.
    looks: BTreeMap<(Instant, u32), usize>,
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

    /// It runs another program.
    pub fn runs(&mut self, pid: u32, now: Instant) {
        self.look(pid, PROGRAM, now);
    }

    /// It was seen among all; if nothing is known of it, it was there before anybody looked.
    pub fn seen(&mut self, pid: u32, now: Instant) {
        if !self.living.contains_key(&pid) {
            self.look(pid, PROGRAM, now);
        }
    }

    /// It ended.
    pub fn ended(&mut self, pid: u32) {
        if let Some(at) = self.living.remove(&pid) {
            self.looks.remove(&(at, pid));
        }
        // a burst must not hold its memory for good
        if self.living.capacity() > 1024 && self.living.len() < self.living.capacity() / 8 {
            self.living.shrink_to(self.living.len() * 2);
        }
    }

    /// When the next look is due.
    pub fn due(&self) -> Option<Instant> {
        self.looks.keys().next().map(|(at, _)| *at)
    }

    /// Those that are to be looked at now; the rest of many at the next call.
    pub fn take(&mut self, now: Instant) -> Vec<u32> {
        let due = self.looks.range(..(now + TOGETHER, u32::MAX)).take(AT_ONCE);
        let due: Vec<(u32, usize)> = due.map(|((_, pid), pause)| (*pid, *pause)).collect();
        for &(pid, pause) in &due {
            self.look(pid, (pause + 1).min(PAUSES.len() - 1), now);
        }
        due.into_iter().map(|(pid, _)| pid).collect()
    }

    fn look(&mut self, pid: u32, pause: usize, now: Instant) {
        if !self.is_on {
            return;
        }
        let after = if pause + 1 == PAUSES.len() { self.rarely(pid) } else { PAUSES[pause] };
        let at = now + after;
        if let Some(before) = self.living.insert(pid, at) {
            self.looks.remove(&(before, pid));
        }
        self.looks.insert((at, pid), pause);
    }

    /// Spread, so that those that came together are not looked at together for ever.
    fn rarely(&self, pid: u32) -> Duration {
        let living = u32::try_from(self.living.len()).unwrap_or(u32::MAX);
        let period = PAUSES[PAUSES.len() - 1].max(Duration::from_secs(1) * (living / A_SECOND));
        period / 2 + period * (pid.wrapping_mul(7919) % 1000) / 1000
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
        let looks = times(&mut titles, start, Duration::from_secs(60));
        assert_eq!(looks[..3], [50, 550, 3550]);
        let pauses = looks[2..].windows(2).map(|two| two[1] - two[0]);
        assert!(
            pauses.clone().all(|pause| (5000..=15000).contains(&pause)) && pauses.count() >= 3,
            "{looks:?}"
        );
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
        assert_eq!(looks.len() - later, 2 * 5000, "each twice at first");
        assert!((7000..=12000).contains(&later), "then every 50 s: {later}");
        let in_second = |second: u128| looks.iter().filter(|at| **at / 1000 == second).count();
        assert!((30..100).all(|second| in_second(second) < 400), "spread");
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
