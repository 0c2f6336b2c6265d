//! The tables that an experiment requests beside those of every report: load profiles, top events, rankings. As texts in
//! rows, however they are then written. A load profile and its events are of one run, the one with the middle figure, so
//! that their numbers belong together; nothing is worked out but sums, quotients and orders of its readings.

use experiment::file::{Better, Table, TableKind};
use experiment::results::Run;

use crate::view::{Place, View, place_name};
use experiment::number;

/// A table.
#[derive(Debug, Clone, PartialEq)]
pub struct Grid {
    /// What it says.
    pub title: String,
    /// What to know of it.
    pub caption: &'static str,
    /// Over its columns, and whether these hold numbers.
    pub heads: Vec<(&'static str, bool)>,
    /// One below the other.
    pub parts: Vec<Part>,
}

/// A part of a table, such as that of a condition.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// Whose; `None`: the table has one part.
    pub name: Option<String>,
    /// As long as there are heads.
    pub rows: Vec<Vec<String>>,
}

/// Lines of a load profile: the name, and the driver's reading (per second).
const PROFILE: [(&str, &str); 6] = [
    ("DB Time(s)", "db-time"),
    ("DB CPU(s)", "db-cpu"),
    ("Logical reads", "reads"),
    ("User calls", "calls"),
    ("Executes", "executions"),
    ("Transactions", "transactions"),
];

/// What a load profile is reported per, beside per second: the head, and the reading that it is divided by.
const PER: [(&str, &str); 3] =
    [("per transaction", "transactions"), ("per exec", "executions"), ("per call", "calls")];

/// On what DB Time is spent: the event, the readings of its seconds and of its waits (per second), its class.
const EVENTS: [(&str, &str, Option<&str>, &str); 3] = [
    ("DB CPU", "db-cpu", None, "CPU"),
    ("resmgr:cpu quantum", "cpu-quantum", Some("cpu-quantum-waits"), "Scheduler"),
    ("run-queue wait", "run-queue", None, "Operating system"),
];

/// Of all times, in a driver's readings.
const ALL_TIME: &str = "db-time";

/// Those that the experiment requests.
pub fn all(view: View<'_>) -> Vec<Grid> {
    view.results.experiment.table.iter().map(|requested| grid(view, requested)).collect()
}

fn grid(view: View<'_>, requested: &Table) -> Grid {
    let (caption, heads, parts) = match requested.kind {
        TableKind::LoadProfile => {
            let per = PER.iter().map(|(head, _)| (*head, true));
            let heads = [("", false), ("per second", true)].into_iter().chain(per).collect();
            (MIDDLE, heads, of_runs(view, requested, profile))
        }
        TableKind::TopEvents => {
            let heads = vec![
                ("event", false),
                ("waits", true),
                ("seconds", true),
                ("average ms", true),
                ("% DB time", true),
                ("class", false),
            ];
            (MIDDLE, heads, of_runs(view, requested, events))
        }
        TableKind::Ranking => {
            let heads = vec![
                ("rank", true),
                ("condition", false),
                ("median", true),
                ("of the best", true),
                ("published", true),
                ("rank published", true),
            ];
            (RANKED, heads, ranking(view, requested))
        }
    };
    Grid { title: requested.title.clone(), caption, heads, parts }
}

const MIDDLE: &str = "Of one run per condition: the one with the middle figure.";
const RANKED: &str = "By medians; only the verdicts say whether two of them really differ.";

fn of_runs(view: View<'_>, requested: &Table, rows: fn(&Run, &str) -> Vec<Vec<String>>) -> Vec<Part> {
    let places = view.loads().into_iter().flat_map(|load| {
        view.conditions(&requested.conditions).into_iter().map(move |condition| (condition, load))
    });
    let part = |place: Place<'_>| {
        let rows = rows(view.middle(place)?, &requested.of);
        (!rows.is_empty()).then(|| Part { name: Some(place_name(place)), rows })
    };
    places.filter_map(part).collect()
}

fn reading(run: &Run, of: &str, name: &str) -> Option<f64> {
    run.readings.get(&format!("{of}.{name}")).copied()
}

fn profile(run: &Run, of: &str) -> Vec<Vec<String>> {
    let row = |(name, figure): &(&str, &str)| {
        let per_second = reading(run, of, figure)?;
        let per = PER.iter().map(|(_, by)| {
            let by = reading(run, of, by).filter(|by| *by > 0.0);
            by.map_or_else(|| "–".to_owned(), |by| number::long(per_second / by))
        });
        Some([(*name).to_owned(), number::long(per_second)].into_iter().chain(per).collect())
    };
    PROFILE.iter().filter_map(row).collect()
}

fn events(run: &Run, of: &str) -> Vec<Vec<String>> {
    let Some(all) = reading(run, of, ALL_TIME).filter(|all| *all > 0.0) else { return Vec::new() };
    let mut events: Vec<(f64, Vec<String>)> = Vec::new();
    for (name, figure, waits, class) in EVENTS {
        let Some(time) = reading(run, of, figure).filter(|time| *time > 0.0) else { continue };
        let waits = waits.and_then(|waits| reading(run, of, waits)).filter(|waits| *waits > 0.0);
        let reported = |number: Option<f64>| number.map_or_else(|| "–".to_owned(), number::long);
        let row = [
            name.to_owned(),
            reported(waits.map(|waits| (waits * run.seconds).round())),
            number::long(time * run.seconds),
            reported(waits.map(|waits| time / waits * 1e3)),
            format!("{:.1}", time / all * 100.0),
            class.to_owned(),
        ];
        events.push((time, row.into()));
    }
    events.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    events.into_iter().map(|(_, row)| row).collect()
}

fn ranking(view: View<'_>, requested: &Table) -> Vec<Part> {
    let loads = view.loads();
    let part = |load: Option<&str>| {
        let cells = view.conditions(&requested.conditions).into_iter();
        let cells: Vec<_> =
            cells.filter_map(|condition| view.cell((condition, load), &requested.of)).collect();
        let better = view.better(&requested.of);
        let measured: Vec<(&str, Option<f64>)> =
            cells.iter().map(|cell| (cell.condition.as_str(), cell.median)).collect();
        let published: Vec<(&str, Option<f64>)> = cells
            .iter()
            .map(|cell| (cell.condition.as_str(), cell.published.as_ref().map(|(value, _)| *value)))
            .collect();
        let (ranks, ranks_published) = (ranked(&measured, better), ranked(&published, better));
        let best = ranks.first().and_then(|(_, value)| *value).filter(|best| *best != 0.0);
        let unit = view.unit(&requested.of);
        let row = |(index, (condition, value)): (usize, &(&str, Option<f64>))| {
            let place = ranks_published.iter().position(|(name, value)| name == condition && value.is_some());
            let published = place.and_then(|place| ranks_published[place].1);
            let reported = |number: Option<f64>, words: &dyn Fn(f64) -> String| {
                number.map_or_else(|| "–".to_owned(), words)
            };
            vec![
                value.map_or_else(|| "–".to_owned(), |_| (index + 1).to_string()),
                (*condition).to_owned(),
                reported(*value, &|value| number::long_with_unit(value, unit)),
                reported(value.zip(best).map(|(value, best)| value / best), &number::ratio),
                reported(published, &|value| number::long_with_unit(value, unit)),
                place.map_or_else(|| "–".to_owned(), |place| (place + 1).to_string()),
            ]
        };
        let rows: Vec<Vec<String>> = ranks.iter().enumerate().map(row).collect();
        let name = load.filter(|_| loads.len() > 1).map(str::to_owned);
        (!rows.is_empty()).then_some(Part { name, rows })
    };
    loads.iter().filter_map(|load| part(*load)).collect()
}

/// The best first; those without a value last, in the file's order.
fn ranked<'c>(all: &[(&'c str, Option<f64>)], better: Better) -> Vec<(&'c str, Option<f64>)> {
    let mut ranked = all.to_vec();
    ranked.sort_by(|(_, one), (_, other)| match (one, other) {
        (Some(one), Some(other)) if better == Better::Higher => other.total_cmp(one),
        (Some(one), Some(other)) => one.total_cmp(other),
        (one, other) => other.is_some().cmp(&one.is_some()),
    });
    ranked
}
