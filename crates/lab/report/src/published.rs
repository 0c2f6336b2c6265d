//! Where what was published and what was measured agree and where not: a line for every published ratio, also for those
//! that two published figures make. A ratio agrees if it lies in the interval seen here or within the margin of its
//! comparison; else it is reported by how much it differs. An interval so wide that it holds no effect too shows nothing.

use experiment::results::Comparison;

use crate::view::{View, pair};
use experiment::number;

/// A published ratio beside the one seen here.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// `throughput, all CPUs : one CPU`.
    pub what: String,
    /// Published.
    pub published: f64,
    /// Seen here; `None`: no run counts.
    pub here: Option<f64>,
    /// Of that, if there were runs enough.
    pub interval: Option<(f64, f64)>,
    /// How both stand to each other.
    pub stands: Stands,
    /// Where it was published.
    pub source: String,
    /// A warning that belongs to it.
    pub note: Option<String>,
}

/// How a published ratio stands to the one seen here.
#[derive(Debug, Clone, PartialEq)]
pub enum Stands {
    /// As good as equal: why.
    Agrees(String),
    /// By how much, and whether the effect goes the same way.
    Differs(String),
    /// The interval here holds what was published, and that there is no effect at all.
    Open(String),
    /// There is nothing to compare with.
    Unknown,
}

impl Stands {
    /// In one sentence.
    pub fn words(&self) -> String {
        match self {
            Stands::Agrees(why) => format!("agrees: {why}"),
            Stands::Differs(how) => format!("differs: {how}"),
            Stands::Open(why) => format!("open: {why}"),
            Stands::Unknown => "not measured here".to_owned(),
        }
    }
}

/// All of them: those of the comparisons, then those that the experiment names and no comparison has.
pub fn lines(view: View<'_>) -> Vec<Line> {
    let results = view.results;
    let compared = results.comparisons.iter().filter_map(of_comparison);
    let rest = results.experiment.published.iter().filter_map(|one| {
        let baseline = one.baseline.as_deref()?;
        let is_same = |other: &&Comparison| {
            (other.measure.as_str(), other.baseline.as_str(), other.condition.as_str())
                == (one.measure.as_str(), baseline, one.condition.as_str())
                && (one.load.is_none() || one.load == other.load)
        };
        if results.comparisons.iter().any(|other| is_same(&other)) {
            return None;
        }
        let load = one.load.as_deref();
        let median = |condition: &str| view.cell((condition, load), &one.measure)?.median;
        let here = median(&one.condition).zip(median(baseline)).filter(|(_, below)| *below != 0.0);
        let here = here.map(|(above, below)| above / below);
        let under = load.map_or_else(String::new, |load| format!(", {load}"));
        Some(Line {
            what: format!("{}, {} : {baseline}{under}", one.measure, one.condition),
            published: one.value,
            here,
            interval: None,
            stands: stands(one.value, here, None, 0.05),
            source: one.source.clone(),
            note: None,
        })
    });
    compared.chain(rest).collect()
}

fn of_comparison(comparison: &Comparison) -> Option<Line> {
    let (published, source) = comparison.published.as_ref()?;
    Some(Line {
        what: format!("{}, {}", comparison.measure, pair(comparison)),
        published: *published,
        here: comparison.ratio,
        interval: comparison.interval,
        stands: stands(*published, comparison.ratio, comparison.interval, comparison.margin),
        source: source.clone(),
        note: comparison.note.clone(),
    })
}

/// How a published ratio stands to the one seen here.
pub fn stands(published: f64, here: Option<f64>, interval: Option<(f64, f64)>, margin: f64) -> Stands {
    let Some(here) = here else { return Stands::Unknown };
    let within = |value: f64| interval.is_some_and(|(low, high)| (low..=high).contains(&value));
    let is_effect = (published - 1.0).abs() > margin;
    if within(published) && within(1.0) && is_effect {
        return Stands::Open("the interval here contains it, but also no effect at all".to_owned());
    }
    if within(published) {
        return Stands::Agrees("it lies in the interval seen here".to_owned());
    }
    let off = here / published - 1.0;
    if off.abs() <= margin {
        return Stands::Agrees(format!("both are within {} of each other", number::percent(margin)));
    }
    let size = format!("{} {} here", number::percent(off.abs()), if off > 0.0 { "more" } else { "less" });
    // a ratio within the margin of 1 is no effect at all
    let effect = |ratio: f64| if (ratio - 1.0).abs() <= margin { 0.0 } else { (ratio - 1.0).signum() };
    let way = match (effect(published), effect(here)) {
        (one, other) if one == other => {
            let weaker = (here - 1.0).abs() < (published - 1.0).abs();
            format!("the same way, but {}", if weaker { "weaker" } else { "stronger" })
        }
        (_, 0.0) => "hardly any effect".to_owned(),
        (0.0, _) => "an effect where hardly any was published".to_owned(),
        _ => "the other way".to_owned(),
    };
    Stands::Differs(format!("{size}, {way}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_published_ratio_agrees_or_differs_by_so_much() {
        let words = |published, here, interval| stands(published, Some(here), interval, 0.05).words();
        for (published, here, interval, said) in [
            (0.90, 0.80, Some((0.7, 0.95)), "agrees: it lies in the interval seen here"),
            (
                0.90,
                0.80,
                Some((0.65, 1.27)),
                "open: the interval here contains it, but also no effect at all",
            ),
            (1.00, 0.98, Some((0.95, 1.03)), "agrees: it lies in the interval seen here"),
            (0.90, 0.92, Some((0.91, 0.93)), "agrees: both are within 5\u{a0}% of each other"),
            (0.90, 0.60, None, "differs: 33\u{a0}% less here, the same way, but stronger"),
            (1.50, 1.20, None, "differs: 20\u{a0}% less here, the same way, but weaker"),
            (1.36, 1.01, None, "differs: 26\u{a0}% less here, hardly any effect"),
            (1.09, 0.80, None, "differs: 27\u{a0}% less here, the other way"),
            (1.00, 1.20, None, "differs: 20\u{a0}% more here, an effect where hardly any was published"),
        ] {
            assert_eq!(words(published, here, interval), said, "{published} {here}");
        }
        assert_eq!(stands(0.9, None, None, 0.05), Stands::Unknown);
    }
}
