//! What two samples say of a comparison. The words are careful: a difference is reported only where chance and the
//! interval both exclude that there is none, equality only where the whole interval lies within the margin, and
//! "not significant" is never "the same". Where both hold, the difference is real and smaller than the margin: the margin
//! is what the experiment takes for relevant, so the word is that of equality, as with Kruschke's region of practical
//! equivalence (2018, "Rejecting or Accepting Parameter Values in Bayesian Estimation"). How much the samples vary decides
//! nothing: the interval and the test know it already. It is a reason where nothing else is shown.

use crate::statistics::{
    bootstrap::{Interval, ratio_interval},
    quantile::{median, variation},
    rank::{hodges_lehmann, mann_whitney, smallest_p},
};

/// A p below this, after correction, is significant.
pub const LEVEL: f64 = 0.05;

/// With fewer runs on either side nothing is said: 3 and 3 end at p = 0.1 however far apart they are, and an interval of
/// 3 covers 89 %.
pub const LEAST_RUNS: usize = 4;

/// What is known of two samples before other comparisons are looked at.
#[derive(Debug, Clone, PartialEq)]
pub struct Compared {
    /// How many values each has: baseline, condition.
    pub runs: (usize, usize),
    /// Of both.
    pub medians: Option<(f64, f64)>,
    /// The condition's median by the baseline's; `None` if one is not positive.
    pub ratio: Option<f64>,
    /// Its 95 % interval.
    pub interval: Option<Interval>,
    /// Hodges and Lehmann's, condition less baseline.
    pub shift: Option<f64>,
    /// Mann and Whitney's.
    pub p: Option<f64>,
    /// The larger coefficient of variation of both.
    pub variation: Option<f64>,
    /// All values of both are the same number.
    pub identical: bool,
}

/// The limits of a comparison. Shares of 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// Ratios within 1 ± this are as good as equal.
    pub margin: f64,
    /// A larger coefficient of variation is the reason of a comparison that is inconclusive by chance.
    pub variation: f64,
}

/// What is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Word {
    /// The condition's values are larger by more than chance, and not wholly within the margin.
    Higher,
    /// They are smaller by more than chance, and not wholly within the margin.
    Lower,
    /// The interval of the ratio lies within the margin, whether the difference is more than chance or not.
    Equivalent,
    /// Neither can be said.
    Inconclusive(Reason),
}

/// Why nothing can be said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// One side has no values.
    NoValues,
    /// One has fewer than [`LEAST_RUNS`].
    FewRuns,
    /// As [`Reason::Chance`], and one varies by more than the limit.
    Varies,
    /// The p is below [`LEVEL`], but with so few runs none can be after the correction for this many comparisons.
    ManyComparisons,
    /// The difference is not more than chance, and the interval reaches beyond the margin.
    Chance,
    /// The p and the interval don't agree on whether there is a difference.
    Disagree,
}

/// Two samples compared with one another.
pub fn compare(baseline: &[f64], condition: &[f64]) -> Compared {
    let medians = median(baseline).zip(median(condition));
    let mut all = baseline.iter().chain(condition);
    let first = all.next();
    Compared {
        runs: (baseline.len(), condition.len()),
        medians,
        ratio: medians
            .filter(|(below, above)| *below > 0.0 && *above > 0.0)
            .map(|(below, above)| above / below),
        interval: ratio_interval(baseline, condition),
        shift: hodges_lehmann(baseline, condition),
        p: mann_whitney(baseline, condition).map(|test| test.p),
        variation: [variation(baseline), variation(condition)].into_iter().flatten().reduce(f64::max),
        identical: first.is_some_and(|first| all.all(|other| other == first)),
    }
}

/// The word, given the p after correction over `comparisons` tests.
pub fn verdict(compared: &Compared, p_corrected: f64, comparisons: usize, limits: &Limits) -> Word {
    let (fewer, more) = (compared.runs.0.min(compared.runs.1), compared.runs.0.max(compared.runs.1));
    if fewer == 0 {
        return Word::Inconclusive(Reason::NoValues);
    }
    if fewer < LEAST_RUNS {
        return Word::Inconclusive(Reason::FewRuns);
    }
    let within = |(low, high): Interval| 1.0 - limits.margin <= low && high <= 1.0 + limits.margin;
    if compared.identical || compared.interval.is_some_and(within) {
        return Word::Equivalent;
    }
    let excludes_one = compared.interval.is_none_or(|(low, high)| 1.0 < low || high < 1.0);
    if p_corrected < LEVEL && excludes_one {
        return if compared.shift.is_some_and(|shift| shift > 0.0) { Word::Higher } else { Word::Lower };
    }
    let apart = compared.p.is_some_and(|p| p < LEVEL);
    let varies = compared.variation.is_some_and(|variation| variation > limits.variation);
    Word::Inconclusive(if p_corrected < LEVEL {
        Reason::Disagree
    } else if apart && smallest_p(fewer, more) * comparisons as f64 >= LEVEL {
        Reason::ManyComparisons
    } else if varies {
        Reason::Varies
    } else {
        Reason::Chance
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { margin: 0.05, variation: 0.10 };
    const BASELINE: [f64; 6] = [100.0, 101.0, 99.0, 100.5, 99.5, 102.0];

    fn word(condition: &[f64]) -> Word {
        let compared = compare(&BASELINE, condition);
        verdict(&compared, compared.p.unwrap_or(1.0), 1, &LIMITS)
    }

    fn times(factor: f64) -> Vec<f64> {
        BASELINE.iter().map(|value| value * factor).collect()
    }

    #[test]
    fn clear_differences_have_their_direction() {
        assert_eq!(word(&times(1.2)), Word::Higher);
        assert_eq!(word(&times(0.8)), Word::Lower);
    }

    #[test]
    fn a_difference_wholly_within_the_margin_is_not_relevant_though_it_is_no_chance() {
        assert!(compare(&BASELINE, &times(1.03)).p.unwrap() < LEVEL);
        assert_eq!(word(&times(1.03)), Word::Equivalent);
        // this one's interval reaches beyond the margin
        assert_eq!(word(&times(1.045)), Word::Higher);
    }

    #[test]
    fn equality_needs_an_interval_within_the_margin() {
        assert_eq!(word(&times(1.001)), Word::Equivalent);
        let wide = [91.0, 109.0, 95.0, 105.0, 99.0, 101.0];
        assert_eq!(word(&wide), Word::Inconclusive(Reason::Chance));
    }

    #[test]
    fn few_runs_say_nothing_however_far_apart() {
        assert_eq!(word(&[]), Word::Inconclusive(Reason::NoValues));
        assert_eq!(word(&[900.0, 901.0, 902.0]), Word::Inconclusive(Reason::FewRuns));
        assert_eq!(word(&[900.0, 901.0, 902.0, 903.0]), Word::Higher);
        assert_eq!(word(&[100.0, 100.0, 100.0]), Word::Inconclusive(Reason::FewRuns));
    }

    #[test]
    fn how_much_a_sample_varies_overrules_neither_the_test_nor_the_interval() {
        // every value is larger than all of the baseline
        let wild = [200.0, 300.0, 250.0, 400.0, 220.0, 280.0];
        assert!(variation(&wild).unwrap() > 2.0 * LIMITS.variation);
        assert_eq!(word(&wild), Word::Higher);
        assert_eq!(word(&[60.0, 90.0, 120.0, 100.0, 110.0, 95.0]), Word::Inconclusive(Reason::Varies));
    }

    #[test]
    fn many_comparisons_need_more_runs() {
        let compared = compare(&BASELINE, &times(1.2));
        let p = compared.p.unwrap();
        assert_eq!(verdict(&compared, (p * 23.0).min(1.0), 23, &LIMITS), Word::Higher);
        assert_eq!(verdict(&compared, p * 24.0, 24, &LIMITS), Word::Inconclusive(Reason::ManyComparisons));
    }

    #[test]
    fn nothing_at_all_on_both_sides_is_equal_and_nothing_beside_something_is_not() {
        let verdict = |baseline: &[f64], condition: &[f64]| {
            let compared = compare(baseline, condition);
            verdict(&compared, compared.p.unwrap(), 1, &LIMITS)
        };
        assert_eq!(verdict(&[0.0; 6], &[0.0; 6]), Word::Equivalent);
        assert_eq!(verdict(&[0.0; 6], &[10.0, 10.5, 10.0, 10.2, 10.1, 9.9]), Word::Higher);
        assert_eq!(compare(&[0.0; 6], &[1.0; 6]).ratio, None);
    }
}
