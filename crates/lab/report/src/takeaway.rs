//! What a reader should take home: one sentence or two, before anything else. Every number in it is in the results.

use experiment::results::{Comparison, TargetReached, Verdict};

use crate::view::{View, place_name};
use crate::words;
use experiment::number;

/// Farther from its target than this, a figure has missed it.
const MISSED: f64 = 0.05;

/// The sentences.
pub fn takeaway(view: View<'_>) -> String {
    let results = view.results;
    let mut said = Vec::new();
    said.extend(of_targets(view, &results.targets));
    said.extend(of_comparisons(view, &results.comparisons));
    if said.is_empty() {
        said.extend(of_medians(view));
    }
    if said.is_empty() {
        said.push("No run counts: there is nothing to say yet.".to_owned());
    }
    if !results.complete {
        said.push("Runs are missing, so this may change.".to_owned());
    }
    said.join(" ")
}

/// How close the figures come to what was requested, and the one that is farthest.
fn of_targets(view: View<'_>, targets: &[TargetReached]) -> Option<String> {
    let known: Vec<(&TargetReached, f64)> =
        targets.iter().filter_map(|one| Some((one, one.off?.abs()))).collect();
    let (farthest, off) = known.iter().max_by(|one, other| one.1.total_cmp(&other.1))?;
    let missed = known.iter().filter(|(_, off)| *off > MISSED).count();
    let unit = view.unit(&farthest.measure);
    let place = place_name((&farthest.condition, farthest.load.as_deref()));
    let figure = farthest.median.map_or_else(String::new, |median| number::with_unit(median, unit));
    let target = number::with_unit(farthest.target, unit);
    let count = known.len();
    Some(match missed {
        0 if count == 1 => {
            format!("“{place}” reaches its target within {}: {figure} of {target}.", number::percent(*off))
        }
        0 => format!(
            "All {count} targets are reached within {}; the farthest is “{place}” with {figure} of {target}.",
            number::percent(*off)
        ),
        missed => format!(
            "{missed} of {count} targets are missed by more than {}; the farthest is “{place}” with {figure} of {target}.",
            number::percent(MISSED)
        ),
    })
}

/// The largest difference, and how many there are.
fn of_comparisons(view: View<'_>, comparisons: &[Comparison]) -> Option<String> {
    let first = comparisons.first()?;
    let size =
        |one: &Comparison| one.ratio.filter(|ratio| *ratio > 0.0).map_or(0.0, |ratio| ratio.ln().abs());
    let decided =
        || comparisons.iter().filter(|one| matches!(one.verdict, Verdict::Faster | Verdict::Slower));
    let largest = decided().max_by(|one, other| size(one).total_cmp(&size(other)));
    let equal = comparisons.iter().filter(|one| one.verdict == Verdict::Equivalent).count();
    let open = comparisons.iter().filter(|one| one.verdict == Verdict::Inconclusive).count();
    let Some(largest) = largest else {
        return Some(match equal {
            0 if open == 1 => format!("The comparison is inconclusive: {}.", first.because),
            0 => format!("All {open} comparisons are inconclusive. The first: {}.", first.because),
            equal => format!("No relevant difference in {equal} of {} comparisons.", comparisons.len()),
        });
    };
    let mut said = format!("{}.", words::say(view, largest).headline);
    if comparisons.len() > 1 {
        let better = decided().filter(|one| one.verdict == Verdict::Faster).count();
        let worse = decided().count() - better;
        let counts = [
            (better, "better"),
            (worse, "worse"),
            (equal, "without a relevant difference"),
            (open, "inconclusive"),
        ];
        let counts: Vec<String> = counts
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{count} {what}"))
            .collect();
        said += &format!(" Of {} comparisons: {}.", comparisons.len(), counts.join(", "));
    }
    Some(said)
}

/// The first measure's highest and lowest median.
fn of_medians(view: View<'_>) -> Option<String> {
    let measure = view.results.experiment.measure.first()?;
    let cells = view.results.cells.iter().filter(|cell| cell.measure == measure.name);
    let mut known: Vec<(String, f64)> = cells
        .filter_map(|cell| Some((place_name((&cell.condition, cell.load.as_deref())), cell.median?)))
        .collect();
    known.sort_by(|one, other| one.1.total_cmp(&other.1));
    let reported = |value: f64| number::with_unit(value, &measure.unit);
    Some(match known.as_slice() {
        [] => return None,
        [(place, value)] => format!("{}: {} in “{place}”.", measure.name, reported(*value)),
        [(lowest, low), .., (highest, high)] => format!(
            "{}: from {} in “{lowest}” to {} in “{highest}”. There is no comparison.",
            measure.name,
            reported(*low),
            reported(*high)
        ),
    })
}
