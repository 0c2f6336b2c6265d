//! What a comparison says, in words that need no statistics. Every number in them is in the results.

use experiment::file::Better;
use experiment::results::{Cell, Comparison, TargetReached, Verdict};
use experiment::{Warning, number};

use crate::published::{Stands, stands};
use crate::view::{View, place_name};

/// What a reader learns of a comparison; nothing is said twice.
#[derive(Debug, Clone, PartialEq)]
pub struct Said {
    /// The verdict's key, for colours.
    pub verdict: &'static str,
    /// The word that people read.
    pub badge: &'static str,
    /// `throughput: “all CPUs” is 34 % above “one CPU”`.
    pub headline: String,
    /// Both figures, and the ratio with its interval.
    pub size: String,
    /// The test, or why nothing can be said; and how many runs it rests on.
    pub sure: String,
    /// How it stands to what was published.
    pub published: Option<String>,
    /// What the experiment's author says of it.
    pub note: Option<String>,
}

/// What a cell's figures lack.
pub fn warnings(cell: &Cell) -> String {
    let words: Vec<String> = cell.warnings.iter().map(Warning::to_string).collect();
    words.join("; ")
}

/// The key of a verdict.
fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Faster => "faster",
        Verdict::Slower => "slower",
        Verdict::Equivalent => "equivalent",
        Verdict::Inconclusive => "inconclusive",
    }
}

fn badge(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Faster => "better",
        Verdict::Slower => "worse",
        Verdict::Equivalent => "no relevant difference",
        Verdict::Inconclusive => "inconclusive",
    }
}

/// Everything that is said of it.
pub fn say(view: View<'_>, comparison: &Comparison) -> Said {
    Said {
        verdict: verdict(comparison.verdict),
        badge: badge(comparison.verdict),
        headline: headline(comparison),
        size: size(view, comparison),
        sure: sure(view, comparison),
        published: published(comparison),
        note: comparison.note.as_deref().map(note),
    }
}

/// A note that begins with `published:` is what others found, and no warning.
fn note(text: &str) -> String {
    match text.strip_prefix("published:") {
        Some(result) => format!("Published result: {}.", result.trim().trim_end_matches('.')),
        None => format!("Note: {text}"),
    }
}

fn headline(comparison: &Comparison) -> String {
    let (condition, baseline) = (&comparison.condition, &comparison.baseline);
    let under = comparison.load.as_ref().map_or_else(String::new, |load| format!(", under {load}"));
    let measure = &comparison.measure;
    let stands = match (comparison.verdict, comparison.ratio) {
        (Verdict::Equivalent, _) => {
            return format!("{measure}: “{condition}” and “{baseline}”{under}");
        }
        (Verdict::Inconclusive, _) => return format!("{measure}: “{condition}” against “{baseline}”{under}"),
        (_, Some(ratio)) if ratio >= 2.0 => format!("is {} times", number::ratio(ratio)),
        (_, Some(ratio)) if ratio > 1.0 => format!("is {} above", number::percent(ratio - 1.0)),
        (_, Some(ratio)) if ratio < 1.0 => format!("is {} below", number::percent(1.0 - ratio)),
        _ => "is not equal to".to_owned(),
    };
    format!("{measure}: “{condition}” {stands} “{baseline}”{under}")
}

fn size(view: View<'_>, comparison: &Comparison) -> String {
    let unit = view.unit(&comparison.measure);
    let (Some((of_baseline, of_condition)), Some(ratio)) = (comparison.medians, comparison.ratio) else {
        return "There are no figures of both to compare.".to_owned();
    };
    let interval = comparison.interval.map_or_else(
        || "too few runs for an interval".to_owned(),
        |(low, high)| {
            format!(
                "ratio {}, {} interval {} to {}",
                number::ratio(ratio),
                number::coverage(comparison.coverage()),
                number::ratio(low),
                number::ratio(high)
            )
        },
    );
    let better = match view.better(&comparison.measure) {
        Better::Higher => "",
        Better::Lower => " Less is better.",
    };
    format!(
        "{} against {} ({interval}).{better}",
        number::with_unit(of_condition, unit),
        number::with_unit(of_baseline, unit)
    )
}

/// The test and the runs; of what is open, why it is.
fn sure(view: View<'_>, comparison: &Comparison) -> String {
    let runs = runs(comparison);
    match (comparison.verdict, comparison.p_holm.or(comparison.p)) {
        (Verdict::Inconclusive, _) if !comparison.because.is_empty() => {
            format!("Why: {} ({runs}).", comparison.because)
        }
        (Verdict::Equivalent, _) => {
            format!("The interval lies within ± {}; {runs}.", number::percent(comparison.margin))
        }
        (_, Some(p)) => {
            let among = match view.results.comparisons.len() {
                0 | 1 => String::new(),
                many => format!(" after correction for {many} comparisons"),
            };
            format!("p = {}{among}; {runs}.", number::short(p))
        }
        (_, None) => format!("No test was possible; {runs}."),
    }
}

fn runs(comparison: &Comparison) -> String {
    let ((baseline, condition), (of_baseline, of_condition)) = (comparison.runs, comparison.rejected);
    match of_baseline + of_condition {
        0 => format!("{condition} and {baseline} runs"),
        rejected => format!("{condition} and {baseline} runs, {rejected} more rejected"),
    }
}

/// `10 reads/s: 9.97/s measured, 0.3 % below its target of 10/s; every run within 1 %`.
pub fn target(view: View<'_>, reached: &TargetReached) -> String {
    let unit = view.unit(&reached.measure);
    let place = place_name((&reached.condition, reached.load.as_deref()));
    let target = number::with_unit(reached.target, unit);
    let (Some(median), Some(off)) = (reached.median, reached.off) else {
        return format!("{place} ({}): no run counts; the target is {target}", reached.measure);
    };
    let stands = match off {
        off if off.abs() < 5e-5 => "exactly its target of".to_owned(),
        off if off > 0.0 => format!("{} above its target of", number::percent(off)),
        off => format!("{} below its target of", number::percent(-off)),
    };
    let runs = match reached.farthest {
        Some(farthest) if reached.runs > 1 => {
            format!("; all {} runs within {}", reached.runs, number::percent(farthest.abs()))
        }
        _ => String::new(),
    };
    format!(
        "{place} ({}): {} measured, {stands} {target}{runs}",
        reached.measure,
        number::with_unit(median, unit)
    )
}

fn published(comparison: &Comparison) -> Option<String> {
    let (value, source) = comparison.published.as_ref()?;
    let said = format!("Published: {} ({source}).", number::ratio(*value));
    match stands(*value, comparison.ratio, comparison.interval, comparison.margin) {
        Stands::Unknown => Some(said),
        Stands::Open(why) => Some(format!("{said} Whether it agrees is open: {why}.")),
        stands => Some(format!("{said} It {}.", stands.words())),
    }
}
