//! How long a rate takes to settle after a change: until it is where it stays for a while.

use crate::statistics::quantile::median;

/// The band around the level afterwards is at least this share of it wide, to either side.
const BAND: f64 = 0.10;
/// A rate that is noisier has a band of this many standard deviations; nearly all of its noise is within.
const DEVIATIONS: f64 = 3.0;
/// The standard deviation of normal noise by the median of the second differences, which neither a drift nor a slow swing
/// widens: that of a median absolute deviation (1.4826), of `a - 2b + c` (whose variance is six times that of one).
const NORMAL: f64 = 1.4826 / 2.449_489_742_783_178;
/// With fewer values after the change a level can't be distinguished from a transition.
const LEAST: usize = 6;

/// Seconds from the change at `at` to the first value from which on all of a quarter of what follows are within the band
/// around the level that the rate has afterwards: the median of the second half of what follows. What disturbs it later is
/// no part of the change. Single values that leave the band are noise, so medians of three are looked at. `values` are
/// times and values in the order of time; a time is known no better than they are apart. `None`: too few values follow, or it
/// is never so long within the band.
pub fn settle(values: &[(f64, f64)], at: f64) -> Option<f64> {
    let after: Vec<(f64, f64)> = values.iter().copied().filter(|(time, _)| *time > at).collect();
    if after.len() < LEAST {
        return None;
    }
    let second: Vec<f64> = after[after.len() / 2..].iter().map(|(_, value)| *value).collect();
    let level = median(&second)?;
    let bends: Vec<f64> = second.windows(3).map(|of| (of[0] - 2.0 * of[1] + of[2]).abs()).collect();
    let band = (BAND * level.abs()).max(DEVIATIONS * NORMAL * median(&bends)?);
    let smooth = |place: usize| {
        let around = &after[place.saturating_sub(1)..(place + 2).min(after.len())];
        let around: Vec<f64> = around.iter().map(|(_, value)| *value).collect();
        // the first and the last have one neighbour, of which the worse counts
        match around[..] {
            [one, other] if (one - level).abs() > (other - level).abs() => Some(one),
            [_, other] => Some(other),
            _ => median(&around),
        }
    };
    let inside = |place: usize| smooth(place).is_some_and(|value| (value - level).abs() <= band);
    let while_inside = (after.len() / 4).max(LEAST / 2);
    let stays = |first: &usize| (*first..*first + while_inside).all(inside);
    let first = (0..=after.len() - while_inside).find(stays)?;
    // one that never left its band took no time
    if first == 0 { Some(0.0) } else { after.get(first).map(|(time, _)| time - at) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Five values a second over 20 s, changed at 10 s.
    fn rate(of: impl Fn(f64) -> f64) -> Vec<(f64, f64)> {
        (0..100).map(|place| f64::from(place) * 0.2 + 0.1).map(|time| (time, of(time))).collect()
    }

    fn noise(time: f64) -> f64 {
        // as good as random from one value to the next
        ((time * 12.9898).sin() * 43_758.547).fract() * 80.0
    }

    #[test]
    fn a_step_settles_with_the_first_values_behind_it_and_no_step_at_once() {
        let step = rate(|time| noise(time) + if time < 10.0 { 1000.0 } else { 2000.0 });
        assert_eq!(settle(&step, 10.0), Some(0.0));
        assert_eq!(settle(&rate(noise), 10.0), Some(0.0));
        let late = rate(|time| noise(time) + if time < 11.5 { 1000.0 } else { 2000.0 });
        let took = settle(&late, 10.0).unwrap();
        assert!((1.4..=1.8).contains(&took), "{took}");
    }

    #[test]
    fn a_ramp_settles_where_it_enters_the_band() {
        // from 1000 to 2000 within 4 s: 10 % below 2000 after 3.2 s
        let ramp = rate(|time| 1000.0 + 1000.0 * ((time - 10.0) / 4.0).clamp(0.0, 1.0));
        let took = settle(&ramp, 10.0).unwrap();
        assert!((3.1..=3.5).contains(&took), "{took}");
    }

    #[test]
    fn a_single_value_outside_is_noise_and_a_dip_is_not() {
        let spike = rate(|time| if (15.0..15.2).contains(&time) { 100.0 } else { 1000.0 });
        assert_eq!(settle(&spike, 10.0), Some(0.0));
        let late = rate(|time| if time > 18.0 { 100.0 } else { 1000.0 });
        assert_eq!(settle(&late, 10.0), Some(0.0), "what comes later is no part of the change");
        let dip = rate(|time| if (12.0..13.0).contains(&time) { 100.0 } else { 1000.0 });
        let took = settle(&dip, 10.0).unwrap();
        assert!((2.9..=3.3).contains(&took), "{took}");
    }

    #[test]
    fn what_never_settles_has_no_time() {
        assert_eq!(settle(&rate(|time| (time / 5.0).exp()), 10.0), None);
        assert_eq!(settle(&rate(|time| 1000.0 + 500.0 * (time * 1.5).sin()), 10.0), None);
        assert_eq!(settle(&rate(|_| 1.0), 19.5), None, "too few values follow");
        assert_eq!(settle(&[], 0.0), None);
    }
}
