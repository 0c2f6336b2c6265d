//! Two samples: are they apart by more than chance, and how far? By ranks, so that no shape of the noise is assumed.

use statrs::distribution::{ContinuousCDF, Normal};

use crate::statistics::median;

/// This many values of both together are tested exactly; with more the normal approximation is right to the third
/// digit.
const EXACT: usize = 100;

/// Mann and Whitney's test, two-sided.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MannWhitney {
    /// In how many pairs the second sample's value is the larger one; a tie counts half.
    pub u: f64,
    /// The probability of a `u` at least as far from its mean if both samples come from the same distribution.
    pub p: f64,
    /// By counting all divisions of the values into two samples, else by the normal approximation with corrections for
    /// continuity and ties.
    pub exact: bool,
}

/// The test (Mann and Whitney 1947, "On a Test of Whether one of Two Random Variables is Stochastically Larger than
/// the Other"). Ties have their mean rank; the exact distribution is that of these ranks over all divisions, so ties
/// need no approximation. `None` without values in either.
pub fn mann_whitney(first: &[f64], second: &[f64]) -> Option<MannWhitney> {
    if first.is_empty() || second.is_empty() {
        return None;
    }
    let ranks = doubled_ranks(first, second);
    let sum: usize = ranks[first.len()..].iter().sum();
    let (count, all) = (second.len(), ranks.len());
    let u = (sum - count * (count + 1)) as f64 / 2.0;
    let exact = all <= EXACT;
    let p = if exact { counted(&ranks, count, sum) } else { approximated(&ranks, count, sum) };
    Some(MannWhitney { u, p, exact })
}

/// The smallest p that the exact test can give with this many values in each sample, however far apart they are: 0.1 at
/// 3 and 3, 0.029 at 4 and 4, 0.0022 at 6 and 6.
pub fn smallest_p(first: usize, second: usize) -> f64 {
    // 2 / C(first + second, first)
    let divisions: f64 = (1..=first).map(|step| (second + step) as f64 / step as f64).product();
    (2.0 / divisions).min(1.0)
}

/// Hodges and Lehmann's estimate of how much larger the second sample is, in its unit: the median of all pairs'
/// differences (1963, "Estimates of Location Based on Rank Tests"). `None` without values in either.
pub fn hodges_lehmann(first: &[f64], second: &[f64]) -> Option<f64> {
    let apart: Vec<f64> =
        second.iter().flat_map(|above| first.iter().map(move |below| above - below)).collect();
    median(&apart)
}

/// Twice the rank of each value among all: mean ranks of ties are halves, so these are whole.
fn doubled_ranks(first: &[f64], second: &[f64]) -> Vec<usize> {
    let all: Vec<f64> = first.iter().chain(second).copied().collect();
    let count = |holds: &dyn Fn(f64) -> bool| all.iter().filter(|other| holds(**other)).count();
    all.iter().map(|&value| 2 * count(&|other| other < value) + count(&|other| other == value) + 1).collect()
}

/// Of all ways to choose `count` of the ranks, the share whose sum is at least as far from the mean as this one.
fn counted(ranks: &[usize], count: usize, sum: usize) -> f64 {
    let most: usize = ranks.iter().sum();
    // ways[chosen][sum]: one rank after the other is taken or not
    let mut ways = vec![vec![0.0_f64; most + 1]; count + 1];
    ways[0][0] = 1.0;
    for (seen, &rank) in ranks.iter().enumerate() {
        for chosen in (1..=count.min(seen + 1)).rev() {
            let (fewer, these) = ways.split_at_mut(chosen);
            for total in rank..=most {
                these[0][total] += fewer[chosen - 1][total - rank];
            }
        }
    }
    let mean = count * (ranks.len() + 1);
    let far = sum.abs_diff(mean);
    let (mut as_far, mut all) = (0.0, 0.0);
    for (total, number) in ways[count].iter().enumerate() {
        all += number;
        as_far += if total.abs_diff(mean) >= far { *number } else { 0.0 };
    }
    as_far / all
}

/// By the normal distribution with the ranks' own variance, which holds the correction for ties; half a unit is
/// taken off for continuity.
fn approximated(ranks: &[usize], count: usize, sum: usize) -> f64 {
    let (all, chosen) = (ranks.len() as f64, count as f64);
    let mean = all + 1.0; // of doubled ranks
    let squares: f64 = ranks.iter().map(|&rank| (rank as f64 - mean).powi(2)).sum();
    let variance = chosen * (all - chosen) / (all * (all - 1.0)) * squares;
    if variance == 0.0 {
        return 1.0; // all are tied
    }
    let far = ((sum as f64 - chosen * mean).abs() - 1.0).max(0.0);
    (2.0 * Normal::standard().sf(far / variance.sqrt())).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn p(first: &[f64], second: &[f64]) -> f64 {
        mann_whitney(first, second).unwrap().p
    }

    fn near(seen: f64, expected: f64) {
        assert!((seen / expected - 1.0).abs() < 1e-9, "{seen} is not {expected}");
    }

    /// Hollander and Wolfe 1973, permeability of the placenta, as in R's `?wilcox.test`; `wilcox.test(x, y)` gives
    /// W = 35, p = 0.2544 and, with `conf.int = TRUE`, a difference in location of 0.305.
    const PERMEABILITY: ([f64; 10], [f64; 5]) =
        ([0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46], [1.15, 0.88, 0.90, 0.74, 1.21]);

    #[test]
    fn the_example_of_r_has_rs_p_and_shift() {
        let (term, early) = PERMEABILITY;
        let test = mann_whitney(&early, &term).unwrap();
        assert_eq!(test.u, 35.0);
        assert!(test.exact);
        near(test.p, 0.2544122544122544); // scipy.stats.mannwhitneyu(x, y, method='exact') of SciPy 1.17.1
        near(hodges_lehmann(&early, &term).unwrap(), 0.305);
    }

    /// SciPy's documentation of `mannwhitneyu`: ages at the diagnosis of diabetes, U = 17, p = 0.1111111111111111.
    #[test]
    fn the_example_of_scipy_has_scipys_p() {
        let (males, females) = ([19.0, 22.0, 16.0, 29.0, 24.0], [20.0, 11.0, 17.0, 12.0]);
        assert_eq!(mann_whitney(&females, &males).unwrap().u, 17.0);
        near(p(&females, &males), 1.0 / 9.0);
        near(p(&males, &females), 1.0 / 9.0);
    }

    /// Critical values of U, two-sided at 5 % (Mann and Whitney's table as in Siegel 1956, "Nonparametric Statistics",
    /// table K; the p are SciPy 1.17.1's): at that U the difference is significant, at the next one it is not.
    #[test]
    fn critical_values_are_those_of_the_published_table() {
        for (m, n, critical, known) in [
            (4, 4, 0, 0.02857142857142857),
            (5, 5, 2, 0.031746031746031744),
            (6, 6, 5, 0.04112554112554113),
            (7, 8, 10, 0.04009324009324009),
            (10, 10, 23, 0.04325705254497823),
            (20, 20, 127, 0.04909032518937244),
        ] {
            near(with_u(m, n, critical).p, known);
            assert!(with_u(m, n, critical + 1).p > 0.05);
        }
    }

    /// Two samples without ties in which this many pairs have the larger value in the second.
    fn with_u(m: usize, n: usize, u: usize) -> MannWhitney {
        // the second sample below the first, then some of it lifted over all of the first, and one of it in between
        let first: Vec<f64> = (1..=m).map(|place| place as f64).collect();
        let second: Vec<f64> = (0..n)
            .map(|place| {
                let lifted = if place < u / m {
                    m
                } else if place == u / m {
                    u % m
                } else {
                    0
                };
                lifted as f64 + (place + 1) as f64 / (n + 2) as f64
            })
            .collect();
        let test = mann_whitney(&first, &second).unwrap();
        assert_eq!(test.u, u as f64);
        test
    }

    /// Ties: `scipy.stats.permutation_test` of SciPy 1.17.1 over all divisions, with the distance of the midrank sum
    /// from its mean as statistic.
    #[test]
    fn ties_are_counted_not_approximated() {
        near(p(&[1.0, 2.0, 2.0, 3.0, 4.0, 4.0], &[2.0, 3.0, 4.0, 5.0, 5.0, 6.0]), 0.12554112554112554);
        near(p(&[1.0, 1.0, 2.0, 3.0], &[2.0, 2.0, 4.0, 5.0, 5.0, 6.0]), 0.06190476190476191);
        near(p(&[1.0, 1.0, 1.0, 1.0], &[1.0, 1.0, 2.0]), 0.42857142857142855);
        near(p(&[10.0; 6], &[11.0; 6]), 0.0021645021645021645);
        near(p(&[10.0; 6], &[10.0; 6]), 1.0);
    }

    #[test]
    fn the_exact_p_is_that_of_trying_every_division() {
        let values = [3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0, 5.0, 3.0, 5.0];
        let (first, second) = values.split_at(7);
        let ranks = doubled_ranks(first, second);
        let distance = |chosen: u32| {
            let sum: usize = (0..11).filter(|place| chosen >> place & 1 == 1).map(|place| ranks[place]).sum();
            sum.abs_diff(4 * 12)
        };
        let divisions: Vec<u32> = (0_u32..1 << 11).filter(|chosen| chosen.count_ones() == 4).collect();
        let seen = distance(0b111_1000_0000);
        let as_far = divisions.iter().filter(|&&chosen| distance(chosen) >= seen).count();
        near(p(first, second), as_far as f64 / divisions.len() as f64);
    }

    #[test]
    fn the_smallest_p_is_that_of_samples_wholly_apart() {
        for (m, n) in [(3, 3), (4, 4), (3, 8), (5, 5), (6, 6), (10, 10)] {
            let first: Vec<f64> = (0..m).map(f64::from).collect();
            let second: Vec<f64> = (100..100 + n).map(f64::from).collect();
            near(smallest_p(m as usize, n as usize), p(&first, &second));
        }
        assert_eq!(smallest_p(0, 6), 1.0);
        assert!(smallest_p(3, 3) > 0.05 && smallest_p(4, 4) < 0.05);
    }

    /// 60 and 55 values of one decimal, with many ties: SciPy 1.17.1's
    /// `mannwhitneyu(a, b, method='asymptotic')` gives U = 1088, p = 0.0016635469965885215.
    #[test]
    fn many_values_have_scipys_approximated_p() {
        let first = [
            8.4, 7.4, 9.5, 10.8, 12.3, 10.2, 8.9, 8.4, 11.5, 13.3, 10.5, 7.5, 8.1, 13.2, 10.4, 6.5, 9.8, 7.7,
            8.7, 9.0, 8.6, 11.1, 9.9, 8.8, 10.8, 11.7, 6.7, 9.5, 8.0, 9.7, 7.4, 10.0, 9.9, 9.4, 7.9, 9.2,
            7.8, 7.3, 10.4, 7.8, 12.3, 11.4, 6.0, 10.5, 7.8, 10.1, 10.1, 6.0, 9.5, 9.5, 11.9, 7.6, 11.5, 7.8,
            9.3, 8.3, 12.9, 11.1, 14.9, 11.3,
        ];
        let second = [
            12.7, 12.7, 9.8, 10.9, 13.7, 10.2, 11.4, 11.0, 12.2, 10.3, 10.7, 11.5, 11.2, 9.3, 12.8, 8.4, 8.6,
            8.4, 12.9, 10.3, 9.1, 8.7, 11.8, 8.9, 8.5, 12.2, 8.6, 10.4, 11.0, 10.1, 10.9, 13.7, 10.0, 8.5,
            7.3, 10.6, 10.3, 11.5, 10.1, 10.0, 9.6, 10.0, 11.3, 10.2, 11.2, 14.8, 12.0, 7.8, 14.5, 11.7, 9.1,
            12.8, 11.0, 9.8, 9.7,
        ];
        let test = mann_whitney(&second, &first).unwrap();
        assert_eq!(test.u, 1088.0);
        assert!(!test.exact);
        near(test.p, 0.0016635469965885215);
    }

    #[test]
    fn nothing_is_not_compared() {
        assert_eq!(mann_whitney(&[], &[1.0]), None);
        assert_eq!(hodges_lehmann(&[1.0], &[]), None);
        assert_eq!(p(&[1.0; 80], &[1.0; 80]), 1.0);
    }
}
