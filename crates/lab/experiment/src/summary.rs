//! What all runs say: a cell per condition, load and measure, and the comparisons with their verdicts. Works on what
//! was recorded alone, so the summary can be worked out again at any time.

use crate::statistics::{self, Compared, Limits, Word};

use crate::{
    Experiment,
    design::{self, CellKey},
    file::{self, Better, Meaning, Measure, Published, applies},
    measure::names,
    note::Warning,
    results::{Cell, Comparison, Design, Run, TargetReached, Verdict},
    verdict_text::{Facts, explain_verdict, within_limit},
};

/// Cells in the file's order of conditions, loads and measures, and comparisons in the file's order; one that names no
/// load is made under each. Holm's correction is over all of them.
pub fn summarise(experiment: &Experiment, design: &Design, runs: &[Run]) -> (Vec<Cell>, Vec<Comparison>) {
    let cells = design::cells(experiment)
        .iter()
        .flat_map(|key| {
            experiment.measure.iter().map(move |measure| cell(experiment, design, runs, key, measure))
        })
        .collect::<Vec<Cell>>();
    let pairs: Vec<Pair<'_>> =
        experiment.comparison.iter().flat_map(|requested| pairs(experiment, runs, requested)).collect();
    let corrected = corrected(&pairs);
    let comparisons =
        pairs.iter().zip(&corrected).map(|(pair, p)| compared(experiment, pair, *p, &corrected)).collect();
    (cells, comparisons)
}

/// Every figure that has a target, beside it, in the order of the file's measures and conditions.
pub fn targets(experiment: &Experiment, cells: &[Cell]) -> Vec<TargetReached> {
    let of = |cell: &Cell| {
        let measure = experiment.measure.iter().find(|measure| measure.name == cell.measure)?;
        let target = *measure.target.get(&cell.condition)?;
        let off = |figure: f64| figure / target - 1.0;
        let far = cell.values.iter().map(|value| off(*value));
        Some(TargetReached {
            measure: cell.measure.clone(),
            condition: cell.condition.clone(),
            load: cell.load.clone(),
            target,
            median: cell.median,
            off: cell.median.map(off),
            farthest: far.reduce(|one, other| if other.abs() > one.abs() { other } else { one }),
            runs: cell.values.len() as u32,
        })
    };
    let mut all: Vec<TargetReached> = cells.iter().filter_map(of).collect();
    let place =
        |reached: &TargetReached| experiment.measure.iter().position(|one| one.name == reached.measure);
    all.sort_by_key(place);
    all
}

/// The same cell of another experiment by this one: the ratio of the medians, and its 95 % interval.
pub fn beside(first: &Cell, second: &Cell) -> Option<(f64, Option<(f64, f64)>)> {
    let (below, above) = first.median.zip(second.median)?;
    let interval = || statistics::ratio_interval(&first.values, &second.values);
    (below != 0.0).then(|| (above / below, interval()))
}

/// The runs of a cell, whether they count or not.
fn runs_of<'a>(runs: &'a [Run], condition: &str, load: Option<&str>) -> Vec<&'a Run> {
    runs.iter().filter(|run| run.condition == condition && run.load.as_deref() == load).collect()
}

/// The figures of those that count. What is not finite was not measured.
fn values(runs: &[&Run], measure: &str) -> Vec<f64> {
    figures(runs.iter().filter(|run| run.rejected.is_none()), measure)
}

fn figures<'r>(runs: impl Iterator<Item = &'r &'r Run>, measure: &str) -> Vec<f64> {
    runs.filter_map(|run| run.figures.get(measure).copied()).filter(|figure| figure.is_finite()).collect()
}

fn rejected(runs: &[&Run]) -> u32 {
    runs.iter().filter(|run| run.rejected.is_some()).count() as u32
}

fn cell(experiment: &Experiment, design: &Design, runs: &[Run], key: &CellKey, measure: &Measure) -> Cell {
    let of_cell = runs_of(runs, &key.condition, key.load.as_deref());
    let values = values(&of_cell, &measure.name);
    let variation = statistics::variation(&values);
    Cell {
        condition: key.condition.clone(),
        load: key.load.clone(),
        measure: measure.name.clone(),
        rejected: rejected(&of_cell),
        rejected_values: figures(of_cell.iter().filter(|run| run.rejected.is_some()), &measure.name),
        median: statistics::median(&values),
        interval: statistics::median_interval(&values),
        variation,
        published: published(experiment, &measure.name, &key.condition, None, key.load.as_deref()),
        warnings: match runs_in(experiment, measure, &key.condition) {
            true => {
                let mut all = warnings(experiment, design, &of_cell, &values, variation);
                all.extend(few_latencies(measure, &of_cell));
                all
            }
            false => Vec::new(), // nothing is missing: there is nothing to measure
        },
        values,
    }
}

/// Do the workloads that a measure is of run in a condition?
fn runs_in(experiment: &Experiment, measure: &Measure, condition: &str) -> bool {
    let workloads = names(&measure.is).filter_map(|name| experiment.workload.get(name.split('.').next()?));
    let mut only = workloads.map(|workload| &workload.conditions);
    only.all(|conditions| applies(conditions, condition))
}

/// What a reader must know of a cell.
fn warnings(
    experiment: &Experiment,
    design: &Design,
    runs: &[&Run],
    values: &[f64],
    variation: Option<f64>,
) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let counted = runs.iter().filter(|run| run.rejected.is_none()).count();
    let unsteady = runs.iter().filter(|run| run.rejected.is_none() && run.steady == Some(false)).count();
    if unsteady > 0 {
        warnings.push(Warning::Unsteady { runs: unsteady as u32, of: counted as u32 });
    }
    match runs.iter().rev().find_map(|run| run.rejected.as_ref()) {
        Some(reason) if counted == 0 => {
            warnings.push(Warning::AllRejected { runs: runs.len() as u32, last: reason.clone() });
        }
        _ if (counted as u32) < design.repetitions => {
            warnings.push(Warning::RunsMissing { runs: counted as u32, of: design.repetitions });
        }
        _ => {}
    }
    if values.len() < counted {
        let without = (counted - values.len()) as u32;
        warnings.push(Warning::NoFigure { runs: without, of: counted as u32 });
    }
    if let Some(variation) = variation.filter(|variation| *variation > experiment.gates.variation_warn) {
        warnings.push(Warning::Varies { percent: variation * 100.0 });
    }
    if (3..6).contains(&values.len()) {
        let percent = (100.0 * statistics::median_coverage(values.len())).floor();
        warnings.push(Warning::Coverage { percent, runs: values.len() as u32 });
    }
    warnings
}

/// Closer to the longest than this, a quantile of latencies is named as one of the longest.
const NEARLY_LONGEST: u64 = 5;

/// faults G5: a P99.9 of 1,600 cycles is about the second longest of them.
fn few_latencies(measure: &Measure, runs: &[&Run]) -> Option<Warning> {
    let few = |name: &str| {
        let (latency, quantile) = name.rsplit_once('.')?;
        let share = match quantile {
            "p95" => 0.05,
            "p99" => 0.01,
            "p999" => 0.001,
            _ => return None,
        };
        let counted = runs.iter().filter(|run| run.rejected.is_none());
        let counts = counted.filter_map(|run| run.latencies.get(latency)).map(|latency| latency.count);
        let count = counts.min().filter(|count| *count > 0)?;
        let place = (count as f64 * share).floor() as u64 + 1;
        let named = place <= NEARLY_LONGEST;
        named.then(|| Warning::FewLatencies { quantile: quantile.to_owned(), count, place })
    };
    names(&measure.is).find_map(few)
}

/// Two cells in one measure.
struct Pair<'a> {
    requested: &'a file::Comparison,
    measure: Option<&'a Measure>,
    load: Option<&'a str>,
    sides: Sides,
    rejected: (u32, u32),
    compared: Compared,
}

/// Values of the baseline and of the condition.
struct Sides(Vec<f64>, Vec<f64>);

fn pairs<'a>(experiment: &'a Experiment, runs: &[Run], requested: &'a file::Comparison) -> Vec<Pair<'a>> {
    let loads: Vec<Option<&str>> = match (requested.load.as_deref(), experiment.load.as_slice()) {
        (None, []) => vec![None],
        (None, loads) => loads.iter().map(|load| Some(load.name.as_str())).collect(),
        (named, _) => vec![named],
    };
    let pair = |load: Option<&'a str>| {
        let (below, above) =
            (runs_of(runs, &requested.baseline, load), runs_of(runs, &requested.condition, load));
        let sides = Sides(values(&below, &requested.measure), values(&above, &requested.measure));
        Pair {
            requested,
            measure: experiment.measure.iter().find(|measure| measure.name == requested.measure),
            load,
            rejected: (rejected(&below), rejected(&above)),
            compared: statistics::compare(&sides.0, &sides.1),
            sides,
        }
    };
    loads.into_iter().map(pair).collect()
}

/// The p after Holm's correction, for pairs that have one.
fn corrected(pairs: &[Pair<'_>]) -> Vec<Option<f64>> {
    let known: Vec<f64> = pairs.iter().filter_map(|pair| pair.compared.p).collect();
    let mut corrected = statistics::holm(&known).into_iter();
    pairs.iter().map(|pair| pair.compared.p.and_then(|_| corrected.next())).collect()
}

fn compared(
    experiment: &Experiment,
    pair: &Pair<'_>,
    p_holm: Option<f64>,
    all: &[Option<f64>],
) -> Comparison {
    let Pair { requested, compared, .. } = pair;
    let limits = Limits { margin: requested.margin, variation: experiment.gates.variation };
    let tests = all.iter().flatten().count();
    let word = statistics::verdict(compared, p_holm.unwrap_or(1.0), tests, &limits);
    let facts = Facts {
        compared,
        word,
        p_holm,
        tests,
        limits: &limits,
        names: (&requested.baseline, &requested.condition),
        variations: (statistics::variation(&pair.sides.0), statistics::variation(&pair.sides.1)),
        unit: pair.measure.map_or("", |measure| measure.unit.as_str()),
    };
    let verdict = verdict(word, pair.measure.map_or(Better::Higher, |measure| measure.better));
    let limit = requested.at_most.and_then(|at_most| within_limit(compared.interval, at_most));
    let because = [Some(explain_verdict(&facts)), limit, meaning(&requested.meaning, verdict)];
    Comparison {
        measure: requested.measure.clone(),
        baseline: requested.baseline.clone(),
        condition: requested.condition.clone(),
        load: pair.load.map(str::to_owned),
        medians: compared.medians,
        ratio: compared.ratio,
        interval: compared.interval,
        shift: compared.shift,
        p: compared.p,
        p_holm,
        runs: (compared.runs.0 as u32, compared.runs.1 as u32),
        rejected: pair.rejected,
        margin: requested.margin,
        verdict,
        because: because.into_iter().flatten().collect::<Vec<String>>().join("; "),
        published: published_ratio(experiment, pair),
        note: requested.note.clone(),
    }
}

/// What the file says that a verdict means.
fn meaning(of: &Meaning, verdict: Verdict) -> Option<String> {
    let text = match verdict {
        Verdict::Faster => &of.better,
        Verdict::Slower => &of.worse,
        Verdict::Equivalent => &of.equivalent,
        Verdict::Inconclusive => &of.inconclusive,
    };
    text.clone()
}

/// "Faster" is better, whichever way that is.
fn verdict(word: Word, better: Better) -> Verdict {
    match (word, better) {
        (Word::Higher, Better::Higher) | (Word::Lower, Better::Lower) => Verdict::Faster,
        (Word::Higher, Better::Lower) | (Word::Lower, Better::Higher) => Verdict::Slower,
        (Word::Equivalent, _) => Verdict::Equivalent,
        (Word::Inconclusive(_), _) => Verdict::Inconclusive,
    }
}

/// What was published of a condition: under this load, else under none in particular.
fn published(
    experiment: &Experiment,
    measure: &str,
    condition: &str,
    baseline: Option<&str>,
    load: Option<&str>,
) -> Option<(f64, String)> {
    let matches = |one: &&Published| {
        one.measure == measure && one.condition == condition && one.baseline.as_deref() == baseline
    };
    let under = |load: Option<&str>| {
        let mut known = experiment.published.iter().filter(matches);
        known.find(|one| one.load.as_deref() == load).map(|one| (one.value, one.source.clone()))
    };
    under(load).or_else(|| under(None))
}

/// The published ratio, or that of two published figures.
fn published_ratio(experiment: &Experiment, pair: &Pair<'_>) -> Option<(f64, String)> {
    let file::Comparison { measure, baseline, condition, .. } = pair.requested;
    published(experiment, measure, condition, Some(baseline), pair.load).or_else(|| {
        let (below, source) = published(experiment, measure, baseline, None, pair.load)?;
        let (above, other) = published(experiment, measure, condition, None, pair.load)?;
        let source = if source == other { source } else { format!("{other}; {source}") };
        (below > 0.0).then(|| (above / below, source))
    })
}

#[cfg(test)]
mod simulated;
#[cfg(test)]
mod tests;
