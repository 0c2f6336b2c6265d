//! The latencies of the last seconds, and their 99th percentile.

use std::{collections::VecDeque, time::Duration};

/// More are not kept: the newest count then.
pub(crate) const MOST: usize = 100_000;

/// Latencies of requests, with the time when each was seen.
#[derive(Debug, Clone)]
pub(crate) struct Window {
    span: Duration,
    seen: VecDeque<(Duration, f64)>,
}

impl Window {
    pub fn new(span: Duration) -> Window {
        Window { span, seen: VecDeque::new() }
    }

    /// `now`: of a clock that only rises.
    pub fn add(&mut self, now: Duration, seconds: f64) {
        if self.seen.len() == MOST {
            self.seen.pop_front();
        }
        self.seen.push_back((now, seconds));
    }

    /// Of the requests seen within the span; `None` without any. The smallest latency that 99 % of them do not exceed.
    pub fn p99(&mut self, now: Duration) -> Option<f64> {
        while self.seen.front().is_some_and(|(at, _)| now.saturating_sub(*at) > self.span) {
            self.seen.pop_front();
        }
        let mut all: Vec<f64> = self.seen.iter().map(|(_, seconds)| *seconds).collect();
        let rank = (all.len() * 99).div_ceil(100).checked_sub(1)?;
        Some(*all.select_nth_unstable_by(rank, f64::total_cmp).1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_percentile_is_that_of_the_last_seconds() {
        let mut window = Window::new(Duration::from_secs(10));
        assert_eq!(window.p99(Duration::ZERO), None);
        for number in 1..=200 {
            window.add(Duration::from_millis(number * 50), number as f64);
        }
        assert_eq!(window.p99(Duration::from_secs(10)), Some(198.0));
        assert_eq!(window.p99(Duration::from_secs(15)), Some(199.0), "100 to 200");
        assert_eq!(window.p99(Duration::from_secs(20)), Some(200.0));
        assert_eq!(window.p99(Duration::from_millis(20_001)), None);
    }

    #[test]
    fn the_newest_requests_count_where_there_are_too_many() {
        let mut window = Window::new(Duration::from_secs(10));
        (0..2 * MOST).for_each(|number| window.add(Duration::ZERO, number as f64));
        assert_eq!(window.seen.len(), MOST);
        assert!(window.p99(Duration::ZERO) > Some(MOST as f64));
    }
}
