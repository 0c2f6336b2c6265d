//! Two experiments beside each other: cells of the same condition, load and measure with the ratio of their medians and its interval,
//! and what differs between the machines, methods and settings. No statistics of its own: a ratio here is no verdict.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use experiment::Results;
use experiment::results::{Cell, Design};

use crate::difference;
use crate::markdown::escape;
use crate::view::View;
use experiment::{number, summary};

/// Results and what they are called, such as their directory.
#[derive(Debug, Clone, Copy)]
pub struct Named<'a> {
    /// Over their column.
    pub name: &'a str,
    /// Themselves.
    pub results: &'a Results,
}

/// Both, compared.
#[derive(Debug, Clone, PartialEq)]
pub struct Compared {
    /// What the two are called.
    pub names: (String, String),
    /// Cells of the first, in its order, then those that only the second has.
    pub cells: Vec<CellPair>,
    /// What is not the same in both: name, in the first, in the second.
    pub differs: Vec<(String, String, String)>,
}

/// A cell in both.
#[derive(Debug, Clone, PartialEq)]
pub struct CellPair {
    /// Of the measure.
    pub unit: String,
    /// In the first, if it is there.
    pub first: Option<Cell>,
    /// In the second, if it is there.
    pub second: Option<Cell>,
    /// Median of the second by that of the first.
    pub ratio: Option<f64>,
    /// Its 95 % interval, as far as the runs' noise goes.
    pub interval: Option<(f64, f64)>,
}

/// Lays two results beside each other.
pub fn compare(first: Named<'_>, second: Named<'_>) -> Compared {
    let (one, other) = (View::of(first.results), View::of(second.results));
    let same = |cell: &Cell, wanted: &Cell| {
        cell.condition == wanted.condition && cell.load == wanted.load && cell.measure == wanted.measure
    };
    let find =
        |view: View<'_>, wanted: &Cell| view.results.cells.iter().find(|cell| same(cell, wanted)).cloned();
    let of_first = one.results.cells.iter().map(|cell| (Some(cell.clone()), find(other, cell)));
    let only_second = other.results.cells.iter().filter(|cell| find(one, cell).is_none());
    let cells = of_first.chain(only_second.map(|cell| (None, Some(cell.clone()))));
    let cells = cells.map(|(first, second)| {
        let named = first.as_ref().or(second.as_ref()).map_or("", |cell| cell.measure.as_str());
        let unit = [one, other].into_iter().map(|view| view.unit(named)).find(|unit| !unit.is_empty());
        let beside = first.as_ref().zip(second.as_ref()).and_then(|(one, two)| summary::beside(one, two));
        CellPair {
            unit: unit.unwrap_or_default().to_owned(),
            ratio: beside.map(|(ratio, _)| ratio),
            interval: beside.and_then(|(_, interval)| interval),
            first,
            second,
        }
    });
    Compared {
        names: (first.name.to_owned(), second.name.to_owned()),
        cells: cells.collect(),
        differs: differs(one, other),
    }
}

/// Facts, method, then settings per condition.
fn differs(one: View<'_>, other: View<'_>) -> Vec<(String, String, String)> {
    let mut all = Vec::new();
    let facts = |view: View<'_>| -> Vec<(String, String)> {
        let mut facts = view.results.environment.facts.clone();
        facts.extend(method(&view.results.design));
        facts.extend(foreign_cpu(view));
        facts.push(("complete".to_owned(), if view.results.complete { "yes" } else { "no" }.to_owned()));
        facts
    };
    collect(&mut all, &facts(one), &facts(other));
    let conditions: BTreeSet<&str> = one.conditions(&[]).into_iter().chain(other.conditions(&[])).collect();
    for condition in conditions {
        let settings = |view: View<'_>| -> Vec<(String, String)> {
            let had: BTreeMap<_, _> = difference::of_condition(view, condition);
            let named = |((of, name), (requested, _))| (format!("{condition}: {of} · {name}"), requested);
            if view.conditions(&[]).contains(&condition) {
                had.into_iter().map(named).collect()
            } else {
                Vec::new()
            }
        };
        collect(&mut all, &settings(one), &settings(other));
    }
    all
}

/// What other programs used during the runs that count: a difference of it is one between the results.
fn foreign_cpu(view: View<'_>) -> Option<(String, String)> {
    let counted = view.results.runs.iter().filter(|run| run.rejected.is_none());
    let gates = counted.filter_map(|run| run.gates.iter().find(|gate| gate.name == "foreign CPU"));
    let seen: Vec<f64> = gates.map(|gate| gate.seen).collect();
    let low = seen.iter().copied().reduce(f64::min)?;
    let high = seen.iter().copied().reduce(f64::max)?;
    let range = format!("{} to {} in runs that count", number::percent(low), number::percent(high));
    Some(("foreign CPU".to_owned(), range))
}

fn method(design: &Design) -> Vec<(String, String)> {
    let named = |name: &str, value: String| (name.to_owned(), value);
    let mut all = vec![
        named("repetitions", design.repetitions.to_string()),
        named("each run", number::duration(design.duration)),
        named("warm-up", number::duration(design.warm_up)),
        named("quick", if design.quick { "yes" } else { "no" }.to_owned()),
        named("seed", design.seed.to_string()),
    ];
    all.extend(
        design
            .cpus
            .iter()
            .map(|(name, study, here)| named(&format!("CPUs “{name}”"), format!("{here} ({study})"))),
    );
    all
}

fn collect(all: &mut Vec<(String, String, String)>, one: &[(String, String)], other: &[(String, String)]) {
    let value = |list: &[(String, String)], name: &str| {
        list.iter().find(|(one, _)| one == name).map_or_else(|| "–".to_owned(), |(_, value)| value.clone())
    };
    let mut seen: Vec<&str> = Vec::new();
    for (name, _) in one.iter().chain(other) {
        if seen.contains(&name.as_str()) {
            continue;
        }
        seen.push(name);
        let (first, second) = (value(one, name), value(other, name));
        if first != second {
            all.push((name.clone(), first, second));
        }
    }
}

const WARNING: &str = "The ratios are of runs made at different times: what changed on the machine in between is in \
                       them, and not in their 95 % intervals. They are no verdict; for one, make both conditions of one \
                       experiment.";

impl CellPair {
    fn name(&self) -> [&str; 3] {
        let cell = self.first.as_ref().or(self.second.as_ref());
        cell.map_or(["", "", ""], |cell| {
            [&cell.measure, &cell.condition, cell.load.as_deref().unwrap_or("undisturbed")]
        })
    }

    fn words(&self) -> [String; 3] {
        let reported = |cell: &Option<Cell>| {
            let Some(cell) = cell else { return "missing".to_owned() };
            let reported = |value: f64| number::long_with_unit(value, &self.unit);
            let Some(median) = cell.median else { return "no run counts".to_owned() };
            let interval = cell.interval.map_or_else(String::new, |(low, high)| {
                format!(" ({} to {})", reported(low), reported(high))
            });
            format!("{}{interval}, {} runs", reported(median), cell.values.len())
        };
        [
            reported(&self.first),
            reported(&self.second),
            self.ratio.map_or_else(|| "–".to_owned(), |ratio| self.ratio_words(ratio)),
        ]
    }
}

impl CellPair {
    fn ratio_words(&self, ratio: f64) -> String {
        let interval = self.interval.map(|(low, high)| (number::ratio(low), number::ratio(high)));
        let interval = interval.map_or_else(String::new, |(low, high)| format!(" ({low} to {high})"));
        number::ratio(ratio) + &interval
    }
}

impl Compared {
    /// As Markdown.
    pub fn markdown(&self) -> String {
        let names = (escape(&self.names.0), escape(&self.names.1));
        let mut out = format!("# {} and {}\n\n{WARNING}\n\n", names.0, names.1);
        let _ = writeln!(out, "| measure | condition | load | {} | {} | ratio |", names.0, names.1);
        out.push_str("|---|---|---|--:|--:|--:|\n");
        for cell in &self.cells {
            let fields = cell.name().map(escape).into_iter().chain(cell.words().map(|word| escape(&word)));
            let _ = writeln!(out, "| {} |", fields.collect::<Vec<_>>().join(" | "));
        }
        out.push_str("\n## What is not the same in both\n\n");
        if self.differs.is_empty() {
            out.push_str("Nothing that was recorded.\n");
            return out;
        }
        let _ = writeln!(out, "| of | {} | {} |\n|---|---|---|", names.0, names.1);
        for (name, first, second) in &self.differs {
            let _ = writeln!(out, "| {} | {} | {} |", escape(name), escape(first), escape(second));
        }
        out
    }
}
