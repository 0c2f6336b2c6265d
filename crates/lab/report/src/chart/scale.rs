//! From values to places: linear and logarithmic scales with ticks at round numbers. Every finite value has a place
//! between both ends; what a logarithm can't show stands at the low end.

use experiment::number::{self, Unit};

/// A scale.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
    log: bool,
}

/// Beyond this no difference of two values overflows.
const MOST: f64 = 1e200;
/// Decades that a logarithmic scale shows at most.
const DECADES: f64 = 16.0;

impl Scale {
    /// Over these values, with 0, for bars; ends at round numbers.
    pub fn from_zero(values: impl Iterator<Item = f64>, ticks: usize) -> Scale {
        Scale::linear(values.chain([0.0]), ticks)
    }

    /// Over these values; ends at round numbers.
    pub fn linear(values: impl Iterator<Item = f64>, ticks: usize) -> Scale {
        let (low, high) = ends(values).unwrap_or((0.0, 1.0));
        let (low, high) = match high - low {
            span if span > low.abs().max(high.abs()) * 1e-9 => (low, high),
            _ if high == 0.0 => (0.0, 1.0),
            _ => (low - low.abs() * 0.05, high + high.abs() * 0.05),
        };
        let step = step(high - low, ticks);
        let (low, high) = ((low / step).floor() * step, (high / step).ceil() * step);
        Scale { low, high, from: 0.0, to: 1.0, log: false }
    }

    /// Over the positive ones of these values, from one power of ten to another.
    pub fn logarithmic(values: impl Iterator<Item = f64>) -> Scale {
        let (low, high) = ends(values.filter(|value| *value > 0.0)).unwrap_or((1.0, 10.0));
        let high = high.max(1e-190).log10().ceil();
        let low = low.max(1e-200).log10().floor().max(high - DECADES).min(high - 1.0);
        Scale { low: 10f64.powf(low), high: 10f64.powf(high), from: 0.0, to: 1.0, log: true }
    }

    /// One of both.
    pub fn new(log: bool, values: impl Iterator<Item = f64>, ticks: usize) -> Scale {
        if log { Scale::logarithmic(values) } else { Scale::from_zero(values, ticks) }
    }

    /// Exactly from here to there.
    pub fn exactly(low: f64, high: f64) -> Scale {
        let high = if high > low { high } else { low + 1.0 };
        Scale { low, high, from: 0.0, to: 1.0, log: false }
    }

    /// Logarithmic, exactly from here to there, both above 0.
    pub fn within_decades(low: f64, high: f64) -> Scale {
        let high = if high > low { high } else { low * 2.0 };
        Scale { low, high, from: 0.0, to: 1.0, log: true }
    }

    /// With its ends at these places; `from` may be greater, as a vertical axis wants it.
    pub fn between(self, from: f64, to: f64) -> Scale {
        Scale { from, to, ..self }
    }

    /// Where a value is: never beyond the ends.
    pub fn at(&self, value: f64) -> f64 {
        let share = if self.log {
            if value > 0.0 { (value / self.low).log10() / (self.high / self.low).log10() } else { 0.0 }
        } else {
            (value - self.low) / (self.high - self.low)
        };
        let share = if share.is_nan() { 0.0 } else { share.clamp(0.0, 1.0) };
        self.from + (self.to - self.from) * share
    }

    /// The value at a share of the way from the low end to the high one.
    pub fn value(&self, share: f64) -> f64 {
        match self.log {
            true => self.low * (self.high / self.low).powf(share),
            false => self.low + (self.high - self.low) * share,
        }
    }

    /// Whether a value is between its ends.
    pub fn reaches(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    /// Where bars begin.
    pub fn base(&self) -> f64 {
        self.at(if self.log { self.low } else { 0.0 })
    }

    /// Its logarithmic kind.
    pub fn is_log(&self) -> bool {
        self.log
    }

    /// Round numbers from end to end, about this many, each as it is written in this unit, and the unit's name.
    pub fn ticks<'a>(&self, about: usize, unit: &'a str) -> (Vec<(f64, String)>, &'a str) {
        if self.log { (self.log_ticks(about, unit), "") } else { self.linear_ticks(about, unit) }
    }

    fn linear_ticks<'a>(&self, about: usize, unit: &'a str) -> (Vec<(f64, String)>, &'a str) {
        let most = self.low.abs().max(self.high.abs());
        let unit = Unit::fitting(unit, most);
        let step = step((self.high - self.low) / unit.by, about);
        let (low, high) = (self.low / unit.by, self.high / unit.by);
        let (by, prefix) = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "K")]
            .into_iter()
            .find(|(by, _)| (*by..*by * 1e3).contains(&(most / unit.by)) && most / unit.by >= 1e4)
            .unwrap_or((1.0, ""));
        let decimals = usize::try_from(-(step / by).log10().floor() as i64).unwrap_or(0);
        let plain = decimals <= 6 && most / unit.by < 1e15;
        let first = (low / step - 1e-6).ceil();
        let count = ((high / step + 1e-6).floor() - first).clamp(0.0, 100.0) as usize;
        let tick = |index: usize| {
            let value = (first + index as f64) * step;
            let text = if value == 0.0 {
                "0".to_owned()
            } else if plain && (by > 1.0 || decimals > 0) {
                format!("{:.decimals$}{prefix}", value / by)
            } else {
                number::short(value)
            };
            (value * unit.by, text)
        };
        ((0..=count).map(tick).collect(), unit.name)
    }

    fn log_ticks(&self, about: usize, unit: &str) -> Vec<(f64, String)> {
        let (low, high) = (self.low.log10().round() as i32, self.high.log10().round() as i32);
        let every = ((high - low) as usize).div_ceil(about.max(2)).max(1);
        let mut ticks = Vec::new();
        for power in (low..=high).step_by(every) {
            for factor in if high - low == 1 { &[1.0, 2.0, 5.0][..] } else { &[1.0] } {
                // through the text: 10^-6 is then the same number that people write
                let value: f64 = format!("{factor}e{power}").parse().unwrap_or(self.low);
                if value <= self.high * 1.001 {
                    ticks.push((value, number::with_unit(value, unit)));
                }
            }
        }
        ticks
    }
}

fn ends(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    let values = values.filter(|value| value.is_finite()).map(|value| value.clamp(-MOST, MOST));
    values.fold(None, |ends, value| match ends {
        None => Some((value, value)),
        Some((low, high)) => Some((low.min(value), high.max(value))),
    })
}

/// 1, 2 or 5 times a power of ten, so that about this many steps fill the span.
fn step(span: f64, about: usize) -> f64 {
    let raw = (span / about.max(1) as f64).max(1e-300);
    let power = 10f64.powf(raw.log10().floor());
    let factor = [1.0, 2.0, 5.0].into_iter().find(|factor| factor * power >= raw * 0.999).unwrap_or(10.0);
    factor * power
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn texts(scale: &Scale, unit: &str) -> Vec<String> {
        scale.ticks(5, unit).0.into_iter().map(|(_, text)| text).collect()
    }

    #[test]
    fn ticks_are_round_numbers_in_the_unit_that_fits() {
        let scale = Scale::from_zero([19_900.0, 35_700.0].into_iter(), 5);
        assert_eq!(texts(&scale, "1/s"), ["0", "10K", "20K", "30K", "40K"]);
        let scale = Scale::from_zero([0.000_4, 0.001_9].into_iter(), 5);
        assert_eq!(texts(&scale, "s"), ["0", "0.5", "1.0", "1.5", "2.0"]);
        assert_eq!(scale.ticks(5, "s").1, "ms");
        let scale = Scale::logarithmic([9.2, 43_800.0].into_iter());
        assert_eq!(texts(&scale, ""), ["1", "10", "100", "1,000", "10K", "100K"]);
        let scale = Scale::logarithmic([3e-6, 8e-6].into_iter());
        assert_eq!(texts(&scale, "s"), ["1 µs", "2 µs", "5 µs", "10 µs"]);
    }

    proptest! {
        #[test]
        fn every_value_has_a_place_between_the_ends(
            values in proptest::collection::vec(proptest::num::f64::ANY, 0..6), other in proptest::num::f64::ANY,
            log: bool, about in 2usize..9,
        ) {
            let scale = Scale::new(log, values.iter().copied(), about).between(300.0, 20.0);
            for value in values.iter().chain([&other, &0.0]) {
                let place = scale.at(*value);
                prop_assert!((20.0..=300.0).contains(&place), "{value} at {place} of {scale:?}");
            }
            let (ticks, _) = scale.ticks(about, "s");
            prop_assert!(ticks.len() <= 3 * about + 8, "{ticks:?}");
            for (value, _) in ticks {
                prop_assert!((19.9..=300.1).contains(&scale.at(value)));
            }
        }
    }
}
