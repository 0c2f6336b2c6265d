//! Why a comparison has its word, in one sentence with numbers. Never says "the same" of what is only not
//! significant.

use statistics::{Compared, LEAST_RUNS, LEVEL, Limits, Reason, Word, smallest_p};

use crate::unit;

/// All that the reason of a verdict is reported from.
pub(crate) struct Story<'a> {
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

pub(crate) fn reason(story: &Story<'_>) -> String {
    match story.word {
        Word::Higher | Word::Lower => apart(story),
        Word::Equivalent => equivalent(story),
        Word::Inconclusive(reason) => inconclusive(story, reason),
    }
}

/// `40,400 1/s against 36,700 1/s is 1.1 times (1.08 to 1.13), p = 0.0022, of 6 and 6 runs`.
fn apart(story: &Story<'_>) -> String {
    let margin = story.limits.margin;
    let within = story.compared.ratio.is_some_and(|ratio| (ratio - 1.0).abs() <= margin);
    let small = match within {
        true => format!("; the difference is within the margin of {}", percent(margin)),
        false => String::new(),
    };
    format!("{}{}, {}{small}", medians(story), times(story), tested(story))
}

fn equivalent(story: &Story<'_>) -> String {
    match story.compared.interval {
        Some((low, high)) => format!(
            "{}, and the ratio's interval, {} to {}, lies within 1 ± {}",
            medians(story),
            ratio(low),
            ratio(high),
            percent(story.limits.margin),
        ),
        None => format!("every run of both has the same figure, {}", amount(story, |medians| medians.1)),
    }
}

fn inconclusive(story: &Story<'_>, reason: Reason) -> String {
    let (baseline, condition) = story.compared.runs;
    let least = smallest_p(baseline, condition);
    match reason {
        Reason::NoValues => {
            let (below, above) = story.names;
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
        Reason::Varies => {
            format!("{} (at most {} is allowed)", varying(story), percent(story.limits.variation))
        }
        Reason::ManyComparisons => format!(
            "{}{}, {}: with {} comparisons, {} repetitions are needed to show any difference",
            medians(story),
            times(story),
            tested(story),
            story.tests,
            needed(story.tests),
        ),
        Reason::Chance => format!(
            "{}{}, {}: neither a difference nor equality within {} is shown",
            medians(story),
            times(story),
            tested(story),
            percent(story.limits.margin),
        ),
        Reason::Disagree => format!(
            "{}{}, {}: the ranks differ by more than chance, but the ratio's interval holds 1",
            medians(story),
            times(story),
            tested(story),
        ),
    }
}

/// Which side varies too much, and by how much.
fn varying(story: &Story<'_>) -> String {
    let sides = [(story.names.0, story.variations.0), (story.names.1, story.variations.1)];
    let said: Vec<String> = sides
        .into_iter()
        .filter_map(|(name, variation)| variation.map(|variation| (name, variation)))
        .filter(|(_, variation)| *variation > story.limits.variation)
        .map(|(name, variation)| format!("{name} varies by {}", percent(variation)))
        .collect();
    said.join(" and ")
}

/// So many runs of each can still be significant after correction over so many tests.
fn needed(tests: usize) -> usize {
    (LEAST_RUNS..).find(|&runs| smallest_p(runs, runs) * tests as f64 <= LEVEL / 2.0).unwrap_or(LEAST_RUNS)
}

fn medians(story: &Story<'_>) -> String {
    format!("{} against {}", amount(story, |medians| medians.1), amount(story, |medians| medians.0))
}

fn amount(story: &Story<'_>, of: impl Fn((f64, f64)) -> f64) -> String {
    let Some(medians) = story.compared.medians else { return "nothing".to_owned() };
    let (value, unit) = unit::fitting(of(medians), story.unit);
    format!("{} {unit}", number(value)).trim_end().to_owned()
}

fn times(story: &Story<'_>) -> String {
    match (story.compared.ratio, story.compared.interval) {
        (Some(of), Some((low, high))) => {
            format!(" is {} times ({} to {})", ratio(of), ratio(low), ratio(high))
        }
        (Some(of), None) => format!(" is {} times", ratio(of)),
        (None, _) => String::new(),
    }
}

/// The p, corrected where there are several tests, and the number of runs.
fn tested(story: &Story<'_>) -> String {
    let (baseline, condition) = story.compared.runs;
    let p = probability(story.p_holm.unwrap_or(1.0));
    let over = if story.tests > 1 { format!(" over {} comparisons", story.tests) } else { String::new() };
    format!("p = {p}{over}, of {baseline} and {condition} runs")
}

/// Three digits behind the point where the ratio is near 1, else three significant ones.
fn ratio(value: f64) -> String {
    let digits = if (1.0..1.1).contains(&value) { 4 } else { 3 };
    if (0.9..1.1).contains(&value) { significant(value, digits) } else { number(value) }
}

/// Two significant digits: `0.0022`.
fn probability(p: f64) -> String {
    if p < 0.0001 { "less than 0.0001".to_owned() } else { significant(p, 2) }
}

fn percent(share: f64) -> String {
    format!("{} %", significant(share * 100.0, 2))
}

/// Three significant digits, thousands set apart: `40,400`, `1.1`, `0.00214`.
fn number(value: f64) -> String {
    let text = significant(value, 3);
    let (whole, rest) =
        text.split_once('.').map_or((text.as_str(), None), |(whole, rest)| (whole, Some(rest)));
    let digits = whole.trim_start_matches('-');
    let mut grouped = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    let sign = if value < 0.0 { "-" } else { "" };
    rest.map_or_else(|| format!("{sign}{grouped}"), |rest| format!("{sign}{grouped}.{rest}"))
}

/// Rounded to so many significant digits, without zeros at the end.
fn significant(value: f64, digits: i32) -> String {
    if value == 0.0 || !value.is_finite() {
        return format!("{value}");
    }
    let magnitude = value.abs().log10().floor() as i32;
    let behind = digits - 1 - magnitude;
    if behind <= 0 {
        let unit = 10_f64.powi(-behind);
        return format!("{:.0}", (value / unit).round() * unit);
    }
    let text = format!("{value:.*}", behind as usize);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
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
            assert_eq!(number(value), text);
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
    fn enough_repetitions_are_asked_for() {
        assert_eq!(needed(1), 5);
        assert_eq!(needed(24), 7);
        for tests in [1, 10, 100, 1000] {
            assert!(smallest_p(needed(tests), needed(tests)) * (tests as f64) < LEVEL);
        }
    }
}
