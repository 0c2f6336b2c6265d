//! How often the verdicts are right: experiments of six repetitions with the noise of real machines, from a seed, in the
//! order in which they would be made.
//!
//! One disturbance is more than the design can bear: were the first run of every block 4 % faster than the second, 8 % of
//! the experiments with two equal conditions would have a winner. Runs follow one another without a pause between
//! blocks, so no place in a block is special.

use crate::statistics::SplitMix64;

use super::*;
use crate::{design, file::Order, fixture};

/// What disturbs the runs of one experiment: for each run, in their order, the factor to its figure.
type Noise = fn(&mut SplitMix64, runs: usize) -> Vec<f64>;

fn normal(random: &mut SplitMix64) -> f64 {
    let mut unit = || (random.draw() >> 11) as f64 / (1_u64 << 53) as f64;
    (-2.0 * (1.0 - unit()).ln()).sqrt() * (std::f64::consts::TAU * unit()).cos()
}

fn independent(random: &mut SplitMix64, runs: usize, share: f64) -> Vec<f64> {
    (0..runs).map(|_| 1.0 + share * normal(random)).collect()
}

/// Each run resembles the one before it.
fn resembling(random: &mut SplitMix64, runs: usize) -> Vec<f64> {
    let mut last = normal(random);
    (0..runs)
        .map(|_| {
            last = 0.8 * last + 0.6 * normal(random);
            1.0 + 0.03 * last
        })
        .collect()
}

/// Blocks of two runs differ by more than runs do.
fn of_blocks(random: &mut SplitMix64, runs: usize) -> Vec<f64> {
    (0..runs / 2)
        .flat_map(|_| {
            let block = 0.04 * normal(random);
            [1.0 + block + 0.02 * normal(random), 1.0 + block + 0.02 * normal(random)]
        })
        .collect()
}

/// Student's t with 3 degrees: now and then a run is far off.
fn heavy(random: &mut SplitMix64, runs: usize) -> Vec<f64> {
    (0..runs)
        .map(|_| {
            let squares: f64 = (0..3).map(|_| normal(random).powi(2)).sum();
            1.0 + 0.02 * normal(random) / (squares / 3.0).sqrt()
        })
        .collect()
}

/// The machine slows down by 6 % over the experiment.
fn drifting(random: &mut SplitMix64, runs: usize) -> Vec<f64> {
    let slower = |run: usize| 1.0 - 0.06 * run as f64 / runs as f64;
    (0..runs).map(|run| slower(run) + 0.02 * normal(random)).collect()
}

/// The factor is log-normal, as of times that now and then are twice as long.
fn skewed(random: &mut SplitMix64, runs: usize) -> Vec<f64> {
    (0..runs).map(|_| (0.4 * normal(random)).exp()).collect()
}

const NOISES: [(&str, Noise); 9] = [
    ("2 %", |random, runs| independent(random, runs, 0.02)),
    ("3 %", |random, runs| independent(random, runs, 0.03)),
    ("5 %", |random, runs| independent(random, runs, 0.05)),
    ("3 %, each run like the one before", resembling),
    ("blocks of 4 %, runs of 2 %", of_blocks),
    ("t with 3 degrees, 2 %", heavy),
    ("2 %, slowing down by 6 %", drifting),
    // beyond the file's `variation`, which overrules no interval
    ("20 %", |random, runs| independent(random, runs, 0.2)),
    ("log-normal, 40 %", skewed),
];

/// The verdicts of this many experiments of two conditions, the second `factor` times as fast.
fn verdicts(noise: Noise, factor: f64, experiments: u64) -> Vec<Verdict> {
    all_verdicts(&["a", "b"], noise, factor, experiments).into_iter().flatten().collect()
}

/// The same with more conditions, each compared with the first; `b` is the one that may be slower.
fn all_verdicts(conditions: &[&str], noise: Noise, factor: f64, experiments: u64) -> Vec<Vec<Verdict>> {
    let mut experiment = fixture::experiment(conditions);
    experiment.comparison = conditions[1..].iter().map(|name| fixture::comparison("a", name)).collect();
    let one = |seed: u64| {
        let planned = design::order(&experiment, Order::Randomised, seed, 6);
        let noise = noise(&mut SplitMix64::new(seed ^ 0x5eed), planned.len());
        let run = |(planned, noise): (design::Planned, f64)| Run {
            block: planned.block,
            figures: [(
                "rate".to_owned(),
                36_000.0 * noise * if planned.cell.condition == "b" { factor } else { 1.0 },
            )]
            .into(),
            condition: planned.cell.condition,
            ..Run::default()
        };
        let runs: Vec<Run> = planned.into_iter().zip(noise).map(run).collect();
        let design = Design { repetitions: 6, ..Design::default() };
        summarise(&experiment, &design, &runs).1.iter().map(|comparison| comparison.verdict).collect()
    };
    (0..experiments).map(one).collect()
}

fn share(verdicts: &[Verdict], of: &[Verdict]) -> f64 {
    verdicts.iter().filter(|verdict| of.contains(verdict)).count() as f64 / verdicts.len() as f64
}

#[test]
fn two_equal_conditions_have_no_winner_in_19_of_20_experiments() {
    for (name, noise) in NOISES {
        let seen = verdicts(noise, 1.0, 1000);
        let winners = share(&seen, &[Verdict::Faster, Verdict::Slower]);
        let equivalent = share(&seen, &[Verdict::Equivalent]);
        println!("{name}: a winner in {winners}, equivalent in {equivalent}");
        assert!(winners <= 0.05, "{name}: {winners}");
    }
}

#[test]
fn five_equal_conditions_have_no_winner_in_19_of_20_experiments() {
    let seen = all_verdicts(&["a", "b", "c", "d", "e"], NOISES[1].1, 1.0, 500);
    let winner = |verdicts: &Vec<Verdict>| share(verdicts, &[Verdict::Faster, Verdict::Slower]) > 0.0;
    let winners = seen.iter().filter(|verdicts| winner(verdicts)).count() as f64 / seen.len() as f64;
    println!("any winner among four comparisons in {winners}");
    assert!(winners <= 0.05, "{winners}");
}

#[test]
fn a_slowdown_of_ten_percent_is_found_with_six_repetitions() {
    for (name, noise, least) in
        [("2 %", NOISES[0].1, 0.99), ("3 %", NOISES[1].1, 0.97), ("5 %", NOISES[2].1, 0.65)]
    {
        let seen = verdicts(noise, 0.9, 300);
        let found = share(&seen, &[Verdict::Slower]);
        println!("{name}: found in {found}, called faster in {}", share(&seen, &[Verdict::Faster]));
        assert!(found >= least, "{name}: {found}");
        assert_eq!(share(&seen, &[Verdict::Faster, Verdict::Equivalent]), 0.0, "{name}");
    }
}

#[test]
fn a_difference_of_the_margin_is_hardly_ever_called_equivalent() {
    for (name, noise) in NOISES {
        let seen = verdicts(noise, 0.95, 300);
        let equivalent = share(&seen, &[Verdict::Equivalent]);
        println!("{name}: 5 % slower called equivalent in {equivalent}");
        assert!(equivalent <= 0.05, "{name}: {equivalent}");
    }
}
