//! When a rate is steady, so that a run may begin to count.
//!
//! 1. The start is cut off where that makes the mean of the rest surest: the cut minimises the rest's variance by its
//!    length (MSER, White 1997, "An Effective Truncation Heuristic for Bias Reduction in Simulation Output"). At most half
//!    is cut off, as the rule has it: what then still drifts has shown no steady state.
//! 2. The rest must not drift: a line through it (Kelly 2013, "Automated steady and transient state identification in noisy
//!    processes", by the same thought) may rise or fall by [`DRIFT`] of the mean, or by what noise alone could: twice its
//!    standard error, widened for noise that resembles its neighbours.
//! 3. The rest must not swing: von Neumann's ratio (1941, "Distribution of the Ratio of the Mean Square Successive Difference
//!    to the Variance") parts what changes slowly from what changes from sample to sample. The slow part may not be both
//!    larger than the noise and more than [`SWING`] of the mean. Swings shorter than six samples count as noise, as
//!    they are averaged out within a run.
//!
//! Made for five samples a second. A rate of which all is noise is steady: its mean is what is measured.

use crate::statistics::quantile::mean;

/// This many samples must be left: four seconds of five samples each.
const LEAST: usize = 20;
/// A line through the rest may rise by this share of the mean.
const DRIFT: f64 = 0.02;
/// The slow part's standard deviation may be this share of the mean.
const SWING: f64 = 0.05;
/// More standard errors than this are no noise.
const SURE: f64 = 2.0;

/// What a rate over time is like.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Steady {
    /// Steady from this sample on.
    From(usize),
    /// Too few samples to decide.
    Few,
    /// Nothing was done at all.
    Idle,
    /// It still rises or falls: by this share of the mean, from the cut to the end.
    Drifts(f64),
    /// It swings slowly: its standard deviation without the noise, as a share of the mean.
    Swings(f64),
}

/// Looks at all samples so far, taken at even intervals; may be called again with each new one.
pub fn steady(rates: &[f64]) -> Steady {
    if rates.len() < LEAST {
        return Steady::Few;
    }
    let from = cut(rates);
    let rest = &rates[from..];
    if rest.len() < LEAST {
        return Steady::Few;
    }
    let Some(level) = mean(rest).filter(|level| *level > 0.0) else { return Steady::Idle };
    let line = Line::through(rest, level);
    if line.rise.abs() > DRIFT * level && line.rise.abs() > SURE * line.error {
        return Steady::Drifts(line.rise / level);
    }
    let noise = successive(&line.left) / 2.0;
    let slow = square_mean(&line.left) - noise;
    if slow > noise && slow.max(0.0).sqrt() > SWING * level {
        return Steady::Swings(slow.sqrt() / level);
    }
    Steady::From(from)
}

/// Where the rest's variance by its length is smallest, within the first half; the earliest of equal ones.
fn cut(rates: &[f64]) -> usize {
    let mut best = (0, f64::INFINITY);
    for from in 0..=rates.len() / 2 {
        let rest = &rates[from..];
        let level = rest.iter().sum::<f64>() / rest.len() as f64;
        let squares: f64 = rest.iter().map(|rate| (rate - level).powi(2)).sum();
        let unsure = squares / (rest.len() as f64).powi(2);
        if unsure < best.1 {
            best = (from, unsure);
        }
    }
    best.0
}

/// A least-squares line.
struct Line {
    /// From the first sample to the last.
    rise: f64,
    /// The standard error of that.
    error: f64,
    /// What the line leaves of each sample.
    left: Vec<f64>,
}

impl Line {
    fn through(rates: &[f64], level: f64) -> Line {
        let count = rates.len() as f64;
        let middle = (count - 1.0) / 2.0;
        let spread = count * (count * count - 1.0) / 12.0; // the squares of the places' distances from the middle
        let slope = rates
            .iter()
            .enumerate()
            .map(|(place, rate)| (place as f64 - middle) * (rate - level))
            .sum::<f64>()
            / spread;
        let left: Vec<f64> = rates
            .iter()
            .enumerate()
            .map(|(place, rate)| rate - level - slope * (place as f64 - middle))
            .collect();
        let variance = left.iter().map(|left| left * left).sum::<f64>() / (count - 2.0);
        let error = (variance * resemblance(&left) / spread).sqrt();
        Line { rise: slope * (count - 1.0), error: error * (count - 1.0), left }
    }
}

/// By how much the variance of a mean is larger than that of independent values: (1 + r) / (1 − r) for noise in which each
/// value resembles the last by r.
fn resemblance(left: &[f64]) -> f64 {
    let all: f64 = left.iter().map(|value| value * value).sum();
    if all == 0.0 {
        return 1.0;
    }
    let r = left.windows(2).map(|pair| pair[0] * pair[1]).sum::<f64>() / all;
    let r = r.clamp(0.0, 0.9); // beyond it is no noise
    (1.0 + r) / (1.0 - r)
}

/// The mean square of successive differences.
fn successive(values: &[f64]) -> f64 {
    values.windows(2).map(|pair| (pair[1] - pair[0]).powi(2)).sum::<f64>() / (values.len() - 1) as f64
}

fn square_mean(values: &[f64]) -> f64 {
    values.iter().map(|value| value * value).sum::<f64>() / values.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::{noise::normal, order::SplitMix64};

    /// Five samples a second with noise of a share, each resembling the last by `like`.
    fn samples(seed: u64, seconds: usize, noise: f64, like: f64, rate: impl Fn(f64) -> f64) -> Vec<f64> {
        let mut random = SplitMix64::new(seed);
        let mut last = normal(&mut random);
        (0..seconds * 5)
            .map(|place| {
                last = like * last + (1.0 - like * like).sqrt() * normal(&mut random);
                rate(place as f64 / 5.0) * (1.0 + noise * last)
            })
            .collect()
    }

    /// As a lab asks: after each sample. How many samples there were when it was first steady.
    fn first(rates: &[f64]) -> Option<usize> {
        (1..=rates.len()).find(|&count| matches!(steady(&rates[..count]), Steady::From(_)))
    }

    /// Of 200 series the share that holds.
    fn share(holds: impl Fn(u64) -> bool) -> f64 {
        (0..200).filter(|&seed| holds(seed)).count() as f64 / 200.0
    }

    /// A fresh PostgreSQL: 26.8 to 40.4 thousand transactions a second over five seconds.
    fn postgres(seconds: f64) -> f64 {
        26_800.0 + (40_400.0 - 26_800.0) * (seconds / 5.0).min(1.0)
    }

    #[test]
    fn the_climb_of_a_fresh_postgresql_is_cut_off() {
        // one look is wrong now and then: twice the standard error is exceeded by 5 % of all noise
        for (noise, least) in [(0.005, 0.95), (0.02, 0.92), (0.04, 0.85)] {
            let found = share(|seed| {
                let rates = samples(seed, 20, noise, 0.0, postgres);
                let Steady::From(from) = steady(&rates) else { return false };
                // with much noise the climb's last tenths are as good as its end
                (19..=50).contains(&from)
            });
            println!("noise {noise}: found in {found}");
            assert!(found >= least, "noise {noise}: {found}");
        }
    }

    #[test]
    fn asked_after_every_sample_the_climb_is_waited_for_but_not_for_ever() {
        for noise in [0.005, 0.02, 0.04] {
            let found = share(|seed| {
                let count = first(&samples(seed, 20, noise, 0.0, postgres));
                // the climb ends with sample 25
                count.is_some_and(|count| (35..=75).contains(&count))
            });
            println!("noise {noise}: waited in {found}");
            assert!(found >= 0.95, "noise {noise}: {found}");
        }
    }

    #[test]
    fn a_steady_climb_is_not_called_steady() {
        for (noise, percent_a_second) in [(0.005, 1.0), (0.02, 2.0), (0.02, 5.0), (0.04, 5.0)] {
            let early = share(|seed| {
                let climb = |seconds: f64| 10_000.0 * (1.0 + percent_a_second / 100.0 * seconds);
                first(&samples(seed, 20, noise, 0.0, climb)).is_some()
            });
            println!("noise {noise}, {percent_a_second} % a second: called steady in {early}");
            assert!(early <= 0.10, "noise {noise}, {percent_a_second} % a second: {early}");
        }
        let climb = samples(1, 20, 0.01, 0.0, |seconds| 10_000.0 + 500.0 * seconds);
        assert!(matches!(steady(&climb), Steady::Drifts(rise) if rise > 0.1), "{:?}", steady(&climb));
        let fall = samples(1, 20, 0.01, 0.0, |seconds| 20_000.0 - 500.0 * seconds);
        assert!(matches!(steady(&fall), Steady::Drifts(rise) if rise < -0.1), "{:?}", steady(&fall));
    }

    #[test]
    fn swings_larger_than_the_noise_are_not_called_steady() {
        for period in [2.0, 4.0, 7.0] {
            let called = share(|seed| {
                let swing =
                    |seconds: f64| 10_000.0 * (1.0 + 0.2 * (seconds * std::f64::consts::TAU / period).sin());
                first(&samples(seed, 20, 0.04, 0.0, swing)).is_some()
            });
            println!("period {period}: called steady in {called}");
            assert!(called <= 0.10, "period {period}: {called}");
        }
    }

    #[test]
    fn noise_alone_is_steady_soon() {
        for (noise, like) in [(0.0, 0.0), (0.02, 0.0), (0.05, 0.0), (0.2, 0.0), (0.03, 0.5)] {
            let soon = share(|seed| {
                first(&samples(seed, 20, noise, like, |_| 10_000.0)).is_some_and(|count| count <= 50)
            });
            println!("noise {noise}, like {like}: steady within ten seconds in {soon}");
            assert!(soon >= 0.98, "noise {noise}, like {like}: {soon}");
        }
    }

    #[test]
    fn little_and_nothing_are_told_apart() {
        assert_eq!(steady(&[]), Steady::Few);
        assert_eq!(steady(&[1.0; LEAST - 1]), Steady::Few);
        assert_eq!(steady(&[1.0; LEAST]), Steady::From(0));
        assert_eq!(steady(&[0.0; 50]), Steady::Idle);
        // 9 reads a second, limited: counts of 1 and 2 per sample
        let counts: Vec<f64> = (0..50).map(|place| if place % 5 == 4 { 5.0 } else { 10.0 }).collect();
        assert!(matches!(steady(&counts), Steady::From(_)));
    }
}
