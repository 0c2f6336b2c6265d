//! What a comparison says, in words that need no statistics. Every number in them is in the results.

use experiment::file::Better;
use experiment::results::{Comparison, Verdict};

use crate::number;
use crate::published::{Stands, stands};
use crate::view::View;

/// What a reader is told of a comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct Said {
    /// The word.
    pub verdict: &'static str,
    /// `throughput: “all CPUs” is faster than “one CPU”`.
    pub headline: String,
    /// By how much, with the interval.
    pub size: String,
    /// How sure that is.
    pub sure: String,
    /// How many runs it rests on.
    pub runs: String,
    /// How it stands to what was published.
    pub published: Option<String>,
}

/// The word of a verdict.
pub fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Faster => "faster",
        Verdict::Slower => "slower",
        Verdict::Equivalent => "equivalent",
        Verdict::Inconclusive => "inconclusive",
    }
}

/// `all CPUs : one CPU`, with the load.
pub fn pair(comparison: &Comparison) -> String {
    let load = comparison.load.as_ref().map_or_else(String::new, |load| format!(", {load}"));
    format!("{} : {}{load}", comparison.condition, comparison.baseline)
}

/// Everything that is told of it.
pub fn say(view: View<'_>, comparison: &Comparison) -> Said {
    Said {
        verdict: verdict(comparison.verdict),
        headline: headline(comparison),
        size: size(view, comparison),
        sure: sure(view, comparison),
        runs: runs(comparison),
        published: published(comparison),
    }
}

fn headline(comparison: &Comparison) -> String {
    let (condition, baseline) = (&comparison.condition, &comparison.baseline);
    let under = comparison.load.as_ref().map_or_else(String::new, |load| format!(", under {load}"));
    let measure = &comparison.measure;
    match comparison.verdict {
        Verdict::Faster => format!("{measure}: “{condition}” is faster than “{baseline}”{under}"),
        Verdict::Slower => format!("{measure}: “{condition}” is slower than “{baseline}”{under}"),
        Verdict::Equivalent => {
            format!("{measure}: “{condition}” and “{baseline}” are as good as equal{under}")
        }
        Verdict::Inconclusive => {
            format!("{measure}: “{condition}” or “{baseline}”, no winner can be told{under}")
        }
    }
}

fn size(view: View<'_>, comparison: &Comparison) -> String {
    let measure = &comparison.measure;
    let unit = view.unit(measure);
    let (Some((of_baseline, of_condition)), Some(ratio)) = (comparison.medians, comparison.ratio) else {
        return format!("{measure}: there are no figures of both to compare.");
    };
    let better = match view.better(measure) {
        Better::Higher => "More is better",
        Better::Lower => "Less is better",
    };
    let how = match ratio {
        ratio if ratio >= 2.0 => format!("{} times as much", number::ratio(ratio)),
        ratio if ratio > 1.0 => format!("{} more", number::percent(ratio - 1.0)),
        ratio if ratio < 1.0 => format!("{} less", number::percent(1.0 - ratio)),
        _ => "just as much".to_owned(),
    };
    let interval = comparison.interval.map_or_else(
        || "too few runs for an interval".to_owned(),
        |(low, high)| {
            format!(
                "ratio {}, 95 % interval {} to {}",
                number::ratio(ratio),
                number::ratio(low),
                number::ratio(high)
            )
        },
    );
    format!(
        "{} against {}, {how} ({interval}). {better}.",
        number::with_unit(of_condition, unit),
        number::with_unit(of_baseline, unit)
    )
}

fn sure(view: View<'_>, comparison: &Comparison) -> String {
    let margin = number::percent(comparison.margin);
    match (comparison.verdict, comparison.p_holm.or(comparison.p)) {
        (Verdict::Faster | Verdict::Slower, Some(p)) => {
            let among = match view.results.comparisons.len() {
                0 | 1 => String::new(),
                many => format!(", counting that {many} comparisons were made"),
            };
            format!(
                "How sure: were both equal, chance would show this {}{among} (p = {}).",
                odds(p),
                number::short(p)
            )
        }
        (Verdict::Faster | Verdict::Slower, None) => "How sure: no test was possible.".to_owned(),
        (Verdict::Equivalent, _) => {
            format!("How sure: the whole interval lies within ± {margin}, which this experiment calls equal.")
        }
        (Verdict::Inconclusive, _) => {
            format!(
                "That is not to say that they are equal: the interval is not within ± {margin}. More runs may tell."
            )
        }
    }
}

fn odds(p: f64) -> String {
    if p <= 0.0 {
        "in practically no experiment".to_owned()
    } else if p >= 0.5 {
        "in most experiments".to_owned()
    } else {
        format!("in about 1 of {} experiments", number::rounded(1.0 / p))
    }
}

fn runs(comparison: &Comparison) -> String {
    let ((baseline, condition), (of_baseline, of_condition)) = (comparison.runs, comparison.rejected);
    let rejected = match of_baseline + of_condition {
        0 => "none rejected".to_owned(),
        rejected => format!("{rejected} rejected"),
    };
    format!("{condition} and {baseline} runs count, {rejected}.")
}

fn published(comparison: &Comparison) -> Option<String> {
    let (value, source) = comparison.published.as_ref()?;
    let said = format!("Published: {} ({source}).", number::ratio(*value));
    match stands(*value, comparison.ratio, comparison.interval, comparison.margin) {
        Stands::Unknown => Some(said),
        Stands::Open(why) => Some(format!("{said} Whether it agrees can't be told: {why}.")),
        stands => Some(format!("{said} It {}.", stands.words())),
    }
}
