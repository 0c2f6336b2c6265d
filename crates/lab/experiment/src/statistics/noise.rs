//! Noise for the tests' simulations, from a seed.

use crate::statistics::order::SplitMix64;

/// A standard normal number (Box and Muller).
pub fn normal(random: &mut SplitMix64) -> f64 {
    let mut unit = || (random.draw() >> 11) as f64 / (1_u64 << 53) as f64;
    (-2.0 * (1.0 - unit()).ln()).sqrt() * (std::f64::consts::TAU * unit()).cos()
}
