//! One sample: its middle and its spread.

/// The mean; `None` without values.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The median; `None` without values.
pub fn median(values: &[f64]) -> Option<f64> {
    quantile(values, 0.5)
}

/// The quantile at `p` of 0 to 1: between order statistics linearly (type 7 of Hyndman and Fan 1996, "Sample Quantiles
/// in Statistical Packages"; the default of R and NumPy). `None` without values or with another `p`.
pub fn quantile(values: &[f64], p: f64) -> Option<f64> {
    if values.is_empty() || !(0.0..=1.0).contains(&p) {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let place = p * (sorted.len() - 1) as f64;
    let below = sorted[place.floor() as usize];
    let above = sorted[place.ceil() as usize];
    Some(below + (place - place.floor()) * (above - below))
}

/// Coefficient of variation: the sample standard deviation (n − 1) as a share of the mean. `None` with fewer than two
/// values, or with a mean of 0, of which nothing is a share.
pub fn variation(values: &[f64]) -> Option<f64> {
    let mean = mean(values)?;
    if values.len() < 2 || mean == 0.0 {
        return None;
    }
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Some((squares / (values.len() - 1) as f64).sqrt() / mean.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SciPy's and NumPy's results have the digits they were printed with.
    fn near(seen: Option<f64>, expected: f64) {
        let seen = seen.unwrap();
        assert!((seen - expected).abs() <= 1e-12 * expected.abs().max(1.0), "{seen} is not {expected}");
    }

    /// NumPy 2.4.6: `numpy.quantile([1, 2, 3, 4, 10], [0, .1, .25, .5, .9, 1])` and
    /// `numpy.quantile([9, 1, 5, 4, 7.5, 2], [.025, .25, .3, .5, .975])`.
    #[test]
    fn quantiles_are_those_of_numpy() {
        let odd = [1.0, 2.0, 3.0, 4.0, 10.0];
        for (p, expected) in [(0.0, 1.0), (0.1, 1.4), (0.25, 2.0), (0.5, 3.0), (0.9, 7.6), (1.0, 10.0)] {
            near(quantile(&odd, p), expected);
        }
        let even = [9.0, 1.0, 5.0, 4.0, 7.5, 2.0];
        for (p, expected) in [(0.025, 1.125), (0.25, 2.5), (0.3, 3.0), (0.5, 4.5), (0.975, 8.8125)] {
            near(quantile(&even, p), expected);
        }
    }

    #[test]
    fn nothing_has_no_median_and_one_value_no_variation() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[4.0]), Some(4.0));
        assert_eq!(quantile(&[4.0], 1.5), None);
        assert_eq!(quantile(&[4.0], f64::NAN), None);
        assert_eq!(variation(&[4.0]), None);
        assert_eq!(variation(&[-1.0, 1.0]), None);
    }

    /// 2, 4, 4, 4, 5, 5, 7, 9: mean 5, sum of squares 32, so the sample variance is 32/7.
    #[test]
    fn variation_is_the_sample_standard_deviation_by_the_mean() {
        near(variation(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]), (32.0_f64 / 7.0).sqrt() / 5.0);
        near(variation(&[-9.0, -11.0]), 2.0_f64.sqrt() / 10.0);
    }
}
