//! When a client's transactions are meant to start: at random, at one rate between bursts and at another during them. Pure.

/// What one client does. Times are in nanoseconds, rates per nanosecond.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Pace {
    rate: f64,
    burst: Option<Burst>,
}

/// Bursts of all clients together; each ends a period.
#[derive(Debug, Clone, PartialEq)]
struct Burst {
    rate: f64,
    length: u64,
    every: u64,
}

impl Pace {
    /// Of one of these clients, with the number of transactions that they begin together in 1,000 seconds.
    pub fn new(clients: u64, per_1000_seconds: u64) -> Pace {
        Pace { rate: rate(clients, per_1000_seconds), burst: None }
    }

    /// With bursts, each at the end of a period.
    pub fn with_bursts(self, clients: u64, per_1000_seconds: u64, length: u64, every: u64) -> Pace {
        Pace { burst: Some(Burst { rate: rate(clients, per_1000_seconds), length, every }), ..self }
    }

    /// When the first burst begins, and how long after it each next one; since the beginning.
    pub fn bursts(&self) -> Option<(u64, u64)> {
        self.burst.as_ref().map(|burst| (burst.every.saturating_sub(burst.length), burst.every))
    }

    /// The start behind one at `from`, where `draw` is exponential with the mean 1: what the rate adds up to until then.
    pub fn next(&self, from: u64, draw: f64) -> u64 {
        let (mut at, mut left) = (from, draw);
        loop {
            let (rate, end) = self.at(at);
            let within = end.map(|end| (end - at) as f64 * rate);
            match (within, end) {
                (Some(within), Some(end)) if within < left => {
                    left -= within;
                    at = end;
                }
                _ => return at.saturating_add((left / rate).round() as u64),
            }
        }
    }

    /// The rate at a time, and when it changes.
    fn at(&self, time: u64) -> (f64, Option<u64>) {
        let Some(Burst { rate, length, every }) = self.burst else { return (self.rate, None) };
        let (period, phase) = (time / every * every, time % every);
        let begin = every.saturating_sub(length);
        match phase < begin {
            true => (self.rate, Some(period + begin)),
            false => (rate, Some(period + every)),
        }
    }
}

fn rate(clients: u64, per_1000_seconds: u64) -> f64 {
    per_1000_seconds as f64 / clients as f64 / 1e12
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn starts_are_as_many_as_the_rates_add_up_to() {
        // two clients: 10 a second each, and 40 in the last 2 of 10 seconds
        let pace = Pace::new(2, 20_000).with_bursts(2, 80_000, 2 * SECOND, 10 * SECOND);
        assert_eq!(pace.bursts(), Some((8 * SECOND, 10 * SECOND)));
        let starts: Vec<u64> = std::iter::successors(Some(0), |at| Some(pace.next(*at, 1.0)))
            .skip(1)
            .take_while(|at| *at <= 20 * SECOND)
            .collect();
        assert!((318..=320).contains(&starts.len()), "{}", starts.len());
        let within = |from: u64, to: u64| starts.iter().filter(|at| (from..to).contains(*at)).count();
        assert!(
            (79..=80).contains(&within(10 * SECOND, 18 * SECOND)),
            "{}",
            within(10 * SECOND, 18 * SECOND)
        );
        assert!((79..=80).contains(&within(18 * SECOND, 20 * SECOND)));
    }

    #[test]
    fn a_wait_goes_on_over_bursts() {
        let pace = Pace::new(1, 1000).with_bursts(1, 3000, SECOND, 4 * SECOND);
        // 3 in the 3 seconds before the burst, 3 in its second, 1 in the second behind it
        assert_eq!(pace.next(0, 7.0), 5 * SECOND);
        assert_eq!(Pace::new(1, 1000).next(SECOND, 2.0), 3 * SECOND);
    }
}
