//! Why a comparison has its word, in one sentence with numbers. Never says "the same" of what is only not
//! significant.

use crate::statistics::{Compared, LEAST_RUNS, LEVEL, Limits, Reason, Word, smallest_p};

use crate::number::{self, Unit};

/// What the explanation of a verdict is made from.
pub(crate) struct Facts<'a> {
    pub compared: &'a Compared,
    pub word: Word,
    pub p_holm: Option<f64>,
    /// Over how many tests Holm's correction goes.
    pub tests: usize,
    pub limits: &'a Limits,
    /// Of the baseline and the condition.
    pub names: (&'a str, &'a str),
    /// Their coefficients of variation.
    pub variations: (Option<f64>, Option<f64>),
    pub unit: &'a str,
}

pub(crate) fn explain_verdict(facts: &Facts<'_>) -> String {
    match facts.word {
        Word::Higher | Word::Lower => apart(facts),
        Word::Equivalent => equivalent(facts),
        Word::Inconclusive(reason) => inconclusive(facts, reason),
    }
}

/// Whether a ratio's interval ends at a limit or below; `None` without an interval.
pub(crate) fn within_limit(interval: Option<(f64, f64)>, at_most: f64) -> Option<String> {
    let (_, high) = interval?;
    let is = if high <= at_most { "within" } else { "above" };
    Some(format!("the interval's upper end, {}, is {is} the limit of {}", ratio(high), ratio(at_most)))
}

/// `40,400 1/s against 36,700 1/s is 1.1 times (1.08 to 1.13), p = 0.0022, of 6 and 6 runs`.
fn apart(facts: &Facts<'_>) -> String {
    let margin = facts.limits.margin;
    let reaches_into = |(low, high)| low <= 1.0 + margin && high >= 1.0 - margin;
    let open = match facts.compared.interval.is_some_and(reaches_into) {
        true => format!("; whether it is more than the margin of {} is open", percent(margin)),
        false => String::new(),
    };
    format!("{}{}, {}{open}{}", medians(facts), times(facts), tested(facts), noise(facts))
}

fn equivalent(facts: &Facts<'_>) -> String {
    let Some((low, high)) = facts.compared.interval else {
        return format!("every run of both has the same figure, {}", amount(facts, |medians| medians.1));
    };
    let margin = percent(facts.limits.margin);
    let is_chance = low <= 1.0 && 1.0 <= high || facts.p_holm.is_none_or(|p| p >= LEVEL);
    match is_chance {
        true => format!(
            "{}, and the ratio's interval, {} to {}, lies within 1 ± {margin}",
            medians(facts),
            ratio(low),
            ratio(high),
        ),
        false => format!(
            "{}{}, {}: more than chance, and within the margin of {margin}",
            medians(facts),
            times(facts),
            tested(facts)
        ),
    }
}

fn inconclusive(facts: &Facts<'_>, reason: Reason) -> String {
    let (baseline, condition) = facts.compared.runs;
    let least = smallest_p(baseline, condition);
    match reason {
        Reason::NoValues => {
            let (below, above) = facts.names;
            let without = if condition > 0 { below } else { above };
            let without =
                if baseline + condition == 0 { format!("{below} and {above}") } else { without.to_owned() };
            format!("no run of {without} counts in this measure")
        }
        Reason::FewRuns => {
            let far = match least < LEVEL {
                true => String::new(),
                false => format!(": however far apart, p would be {}", probability(least)),
            };
            format!(
                "{baseline} and {condition} runs are too few, at least {LEAST_RUNS} of each are needed{far}"
            )
        }
        Reason::ManyComparisons => format!(
            "{}{}, {}: with {} comparisons, {} repetitions are needed to show any difference",
            medians(facts),
            times(facts),
            tested(facts),
            facts.tests,
            needed(facts.tests),
        ),
        Reason::Chance | Reason::Varies => format!(
            "{}{}, {}: neither a difference nor equality within {} is shown{}",
            medians(facts),
            times(facts),
            tested(facts),
            percent(facts.limits.margin),
            noise(facts),
        ),
        Reason::Disagree => format!(
            "{}{}, {}: the ranks differ by more than chance, but the ratio's interval holds 1",
            medians(facts),
            times(facts),
            tested(facts),
        ),
    }
}

/// Which side varies by more than the file's `variation`, and by how much.
fn noise(facts: &Facts<'_>) -> String {
    let limit = facts.limits.variation;
    let sides = [(facts.names.0, facts.variations.0), (facts.names.1, facts.variations.1)];
    let varying = sides.into_iter().filter_map(|(name, variation)| Some((name, variation?)));
    let varying: Vec<String> = varying
        .filter(|(_, variation)| *variation > limit)
        .map(|(name, variation)| format!("{name} varies by {}", percent(variation)))
        .collect();
    match varying.is_empty() {
        true => String::new(),
        false => format!("; noise: {} (limit {})", varying.join(" and "), percent(limit)),
    }
}

/// This many runs of each can still be significant after correction over this many tests.
fn needed(tests: usize) -> usize {
    (LEAST_RUNS..).find(|&runs| smallest_p(runs, runs) * tests as f64 <= LEVEL / 2.0).unwrap_or(LEAST_RUNS)
}

fn medians(facts: &Facts<'_>) -> String {
    format!("{} against {}", amount(facts, |medians| medians.1), amount(facts, |medians| medians.0))
}

fn amount(facts: &Facts<'_>, of: impl Fn((f64, f64)) -> f64) -> String {
    let Some(medians) = facts.compared.medians else { return "nothing".to_owned() };
    let value = of(medians);
    let unit = Unit::fitting(facts.unit, value.abs());
    format!("{} {}", number::three(value / unit.by), unit.name).trim_end().to_owned()
}

fn times(facts: &Facts<'_>) -> String {
    match (facts.compared.ratio, facts.compared.interval) {
        (Some(of), Some((low, high))) => {
            format!(" is {} times ({} to {})", ratio(of), ratio(low), ratio(high))
        }
        (Some(of), None) => format!(" is {} times", ratio(of)),
        (None, _) => String::new(),
    }
}

/// The p, corrected where there are several tests, and the number of runs.
fn tested(facts: &Facts<'_>) -> String {
    let (baseline, condition) = facts.compared.runs;
    let p = probability(facts.p_holm.unwrap_or(1.0));
    let over = if facts.tests > 1 { format!(" over {} comparisons", facts.tests) } else { String::new() };
    format!("p = {p}{over}, of {baseline} and {condition} runs")
}

/// Three digits behind the point where the ratio is near 1, else three significant ones.
fn ratio(value: f64) -> String {
    let digits = if (1.0..1.1).contains(&value) { 4 } else { 3 };
    if (0.9..1.1).contains(&value) { number::significant(value, digits) } else { number::three(value) }
}

/// Two significant digits: `0.0022`.
fn probability(p: f64) -> String {
    if p < 0.0001 { "less than 0.0001".to_owned() } else { number::significant(p, 2) }
}

fn percent(share: f64) -> String {
    format!("{} %", number::significant(share * 100.0, 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits_and_thousands_apart() {
        for (value, text) in [
            (40_404.0, "40,400"),
            (999.6, "1,000"),
            (1_234_567.0, "1,230,000"),
            (1.1, "1.1"),
            (1.234, "1.23"),
            (0.002138, "0.00214"),
            (-1234.0, "-1,230"),
            (0.0, "0"),
            (100.0, "100"),
        ] {
            assert_eq!(number::three(value), text);
        }
        assert_eq!(probability(0.002164), "0.0022");
        assert_eq!(probability(0.00001), "less than 0.0001");
        assert_eq!(percent(0.05), "5 %");
        assert_eq!(ratio(1.0004), "1");
        assert_eq!(ratio(1.0148), "1.015");
        assert_eq!(ratio(0.9876), "0.988");
        assert_eq!(ratio(1.1), "1.1");
    }

    #[test]
    fn a_limit_is_compared_with_the_upper_end() {
        let said = |high| within_limit(Some((0.9, high)), 1.1).unwrap();
        assert_eq!(said(1.07), "the interval's upper end, 1.07, is within the limit of 1.1");
        assert_eq!(said(1.12), "the interval's upper end, 1.12, is above the limit of 1.1");
        assert_eq!(within_limit(None, 1.1), None);
    }

    #[test]
    fn enough_repetitions_are_asked_for() {
        assert_eq!(needed(1), 5);
        assert_eq!(needed(24), 7);
        for tests in [1, 10, 100, 1000] {
            assert!(smallest_p(needed(tests), needed(tests)) * (tests as f64) < LEVEL);
        }
    }
}
