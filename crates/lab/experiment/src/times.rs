//! Times as people write them in an experiment (`30s`, `2min`, `50%`), and its lengths with their defaults.

use std::time::Duration;

use crate::file::{self, Order};

/// The longest time that is taken: a day.
const LONGEST: Duration = Duration::from_secs(86_400);

/// A time with its unit.
///
/// # Errors
/// In words.
pub fn seconds(text: &str) -> Result<Duration, String> {
    let time = humantime::parse_duration(text.trim())
        .map_err(|_| format!("'{text}' is no time, such as 500ms, 30s or 2min"))?;
    if time > LONGEST { Err(format!("'{text}' is more than a day")) } else { Ok(time) }
}

/// A time from the beginning of a span, or a share of it.
///
/// # Errors
/// In words; also if it is behind the span's end.
pub fn within(text: &str, span: Duration) -> Result<Duration, String> {
    let time = match text.trim().strip_suffix('%') {
        None => seconds(text)?,
        Some(number) => {
            let share = number.trim().parse::<f64>().ok().filter(|share| (0.0..=100.0).contains(share));
            let share = share.ok_or_else(|| format!("'{text}' is no share from 0% to 100%"))?;
            span.mul_f64(share / 100.0)
        }
    };
    if time > span {
        return Err(format!("'{text}' is behind the end of the run, which takes {} s", span.as_secs_f64()));
    }
    Ok(time)
}

/// How often and how long, with nothing left open but the seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lengths {
    /// Blocks.
    pub repetitions: u32,
    /// Of what counts.
    pub duration: Duration,
    /// At least so long before it.
    pub warm_up: Duration,
    /// At most so long before it.
    pub steady_within: Duration,
    /// Between two samples; zero: none.
    pub sample: Duration,
    /// If one is given.
    pub seed: Option<u64>,
    /// Of the cells in a block.
    pub order: Order,
}

impl Lengths {
    /// The experiment's, with those of `--quick` before them if that was requested. A text that is no time counts as not
    /// given: the check says it.
    pub fn of(experiment: &file::Experiment, quick: bool) -> Lengths {
        let (usual, quicker) = (&experiment.lengths, &experiment.quick);
        let time = |of: fn(&file::Lengths) -> &Option<String>| {
            let quicker = of(quicker).as_ref().filter(|_| quick);
            quicker.or(of(usual).as_ref()).and_then(|text| seconds(text).ok())
        };
        let warm_up = time(|lengths| &lengths.warm_up).unwrap_or(Duration::from_secs(5));
        let repetitions = quicker.repetitions.filter(|_| quick).or(usual.repetitions).unwrap_or(6);
        Lengths {
            repetitions,
            duration: time(|lengths| &lengths.duration).unwrap_or(Duration::from_secs(30)),
            warm_up,
            steady_within: time(|lengths| &lengths.steady_within).unwrap_or(4 * warm_up).max(warm_up),
            sample: time(|lengths| &lengths.sample).unwrap_or(Duration::from_millis(200)),
            seed: quicker.seed.filter(|_| quick).or(usual.seed),
            order: quicker.order.filter(|_| quick).or(usual.order).unwrap_or(Order::Randomised),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_a_unit_and_ends_within_its_span() {
        assert_eq!(seconds("2min"), Ok(Duration::from_secs(120)));
        assert_eq!(seconds("0s"), Ok(Duration::ZERO));
        for wrong in ["30", "", "-1s", "1e9s", "soon", "2days"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
        let span = Duration::from_secs(20);
        assert_eq!(within("50%", span), Ok(Duration::from_secs(10)));
        assert_eq!(within("5s", span), Ok(Duration::from_secs(5)));
        for wrong in ["101%", "-1%", "21s", "x%"] {
            assert!(within(wrong, span).is_err(), "{wrong}");
        }
    }
}
