//! Finding things in results: which conditions and loads there are and in which order, which runs belong to a cell,
//! which run stands for it. Works nothing out.

use std::path::Path;

use experiment::Results;
use experiment::file::{Better, Measure};
use experiment::results::{Cell, Comparison, Run};

/// Results, looked at.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    /// All of them.
    pub results: &'a Results,
    /// Where they are, for commands; `None` in what is only printed.
    pub directory: Option<&'a Path>,
}

/// A condition under a load.
pub type Place<'a> = (&'a str, Option<&'a str>);

impl<'a> View<'a> {
    /// Of these.
    pub fn of(results: &'a Results) -> View<'a> {
        View { results, directory: None }
    }

    /// Of those in a directory.
    pub fn within(results: &'a Results, directory: &'a Path) -> View<'a> {
        View { results, directory: Some(directory) }
    }

    /// All conditions in the file's order, or those of them that are chosen.
    pub fn conditions(&self, chosen: &[String]) -> Vec<&'a str> {
        let names = self.results.experiment.condition.iter().map(|condition| condition.name.as_str());
        names.filter(|name| chosen.is_empty() || chosen.iter().any(|one| one == name)).collect()
    }

    /// Where a condition is in the file: its colour in every chart.
    pub fn index(&self, condition: &str) -> usize {
        self.results.experiment.condition.iter().position(|one| one.name == condition).unwrap_or(0)
    }

    /// The loads: none, those of the file, and those that only runs name; at least one entry.
    pub fn loads(&self) -> Vec<Option<&'a str>> {
        let runs = &self.results.runs;
        let mut loads: Vec<Option<&str>> = Vec::new();
        if self.results.experiment.load.is_empty() || runs.iter().any(|run| run.load.is_none()) {
            loads.push(None);
        }
        let of_file = self.results.experiment.load.iter().map(|load| Some(load.name.as_str()));
        for load in of_file.chain(runs.iter().map(|run| run.load.as_deref())) {
            if !loads.contains(&load) {
                loads.push(load);
            }
        }
        loads
    }

    /// The measure of this name.
    pub fn measure(&self, name: &str) -> Option<&'a Measure> {
        self.results.experiment.measure.iter().find(|measure| measure.name == name)
    }

    /// Its unit, empty if there is none.
    pub fn unit(&self, measure: &str) -> &'a str {
        self.measure(measure).map_or("", |measure| measure.unit.as_str())
    }

    /// Which way is better.
    pub fn better(&self, measure: &str) -> Better {
        self.measure(measure).map_or(Better::Higher, |measure| measure.better)
    }

    /// The summary of a place in a measure.
    pub fn cell(&self, place: Place<'_>, measure: &str) -> Option<&'a Cell> {
        let (condition, load) = place;
        self.results.cells.iter().find(|cell| {
            cell.condition == condition && cell.load.as_deref() == load && cell.measure == measure
        })
    }

    /// All runs of a place.
    pub fn runs(
        &self,
        (condition, load): (&'a str, Option<&'a str>),
    ) -> impl Iterator<Item = &'a Run> + use<'a> {
        let runs = self.results.runs.iter();
        runs.filter(move |run| run.condition == condition && run.load.as_deref() == load)
    }

    /// Those that count.
    pub fn counted(&self, place: (&'a str, Option<&'a str>)) -> impl Iterator<Item = &'a Run> + use<'a> {
        self.runs(place).filter(|run| run.rejected.is_none())
    }

    /// Those that do not.
    pub fn rejected(&self, place: (&'a str, Option<&'a str>)) -> impl Iterator<Item = &'a Run> + use<'a> {
        self.runs(place).filter(|run| run.rejected.is_some())
    }

    /// The run that counts whose figure in the first measure is the middle one (of an even number: the lower).
    pub fn middle(&self, place: (&'a str, Option<&'a str>)) -> Option<&'a Run> {
        let first = self.results.experiment.measure.first().map(|measure| measure.name.as_str());
        let figure = |run: &Run| first.and_then(|name| run.figures.get(name)).copied().unwrap_or(f64::NAN);
        let mut runs: Vec<&Run> = self.counted(place).collect();
        runs.sort_by(|one, other| figure(one).total_cmp(&figure(other)).then(one.number.cmp(&other.number)));
        let middle = runs.len().saturating_sub(1) / 2;
        runs.get(middle).copied()
    }

    /// The comparison of this measure between two conditions in either direction under a load.
    pub fn comparison(
        &self,
        measure: &str,
        pair: (&str, &str),
        load: Option<&str>,
    ) -> Option<&'a Comparison> {
        self.results.comparisons.iter().find(|one| {
            let both = (one.baseline.as_str(), one.condition.as_str());
            one.measure == measure
                && one.load.as_deref() == load
                && (both == pair || both == (pair.1, pair.0))
        })
    }
}

/// `all CPUs : one CPU`, with the load.
pub fn pair(comparison: &Comparison) -> String {
    let load = comparison.load.as_ref().map_or_else(String::new, |load| format!(", {load}"));
    format!("{} : {}{load}", comparison.condition, comparison.baseline)
}

/// `all CPUs`, or `all CPUs · fsync`.
pub fn place_name((condition, load): Place<'_>) -> String {
    match load {
        None => condition.to_owned(),
        Some(load) => format!("{condition} · {load}"),
    }
}
