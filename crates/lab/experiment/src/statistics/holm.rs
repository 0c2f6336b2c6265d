//! Many tests at once: Holm's correction.

/// The p-values after Holm's step-down correction (Holm 1979, "A Simple Sequentially Rejective Multiple Test
/// Procedure"): rejecting those below a level keeps the chance of any false rejection below it, however the tests depend
/// on one another. In the order given.
pub fn holm(p: &[f64]) -> Vec<f64> {
    let mut by_size: Vec<usize> = (0..p.len()).collect();
    by_size.sort_by(|&a, &b| p[a].total_cmp(&p[b]));
    let mut corrected = vec![1.0; p.len()];
    let mut so_far = 0.0_f64;
    for (rank, &index) in by_size.iter().enumerate() {
        so_far = so_far.max((p.len() - rank) as f64 * p[index]).min(1.0);
        corrected[index] = so_far;
    }
    corrected
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(given: &[f64], expected: &[f64]) {
        let seen = holm(given);
        assert_eq!(seen.len(), expected.len());
        assert!(
            seen.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12),
            "{seen:?} is not {expected:?}"
        );
    }

    /// The formula of R's `p.adjust(p, "holm")`, `pmin(1, cummax((n - i + 1L) * p[o]))[ro]`, by hand for the p-values of
    /// the example of `Dmisc::holm`: sorted .001×5, .007×4, .014×3, .031×2 = .062, .042×1 raised to .062.
    #[test]
    fn corrected_values_are_those_of_r() {
        near(&[0.042, 0.001, 0.031, 0.014, 0.007], &[0.062, 0.005, 0.062, 0.042, 0.028]);
    }

    /// Wikipedia, "Holm–Bonferroni method", example: of .01, .04, .03, .005 at 5 % only .005 and .01 are rejected.
    #[test]
    fn the_published_example_rejects_two_of_four() {
        near(&[0.01, 0.04, 0.03, 0.005], &[0.03, 0.06, 0.06, 0.02]);
    }

    #[test]
    fn one_test_is_left_alone_and_none_exceeds_one() {
        near(&[], &[]);
        near(&[0.03], &[0.03]);
        near(&[0.9, 0.8, 0.8], &[1.0, 1.0, 1.0]);
    }
}
