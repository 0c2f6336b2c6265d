//! Groups whose CPUs follow their load during a run: the daemon's resizing of them, and what it did.

use std::collections::BTreeMap;

use daemon::{Resized, Resizer};
use experiment::{
    Experiment,
    file::{Condition, Settings},
    rescale::Rescaled,
    results::{Run, Series},
    statistics,
};
use policy::{Division as _, Elastic, Parameters, Policy, Scope, Units};
use topology::Machine;
use units::CpuSet;
use workloads::Span;

use super::{elapsed::since, substitute::threads};
use crate::{Error, groups::Groups};

/// Figures of elastic groups, each with its unit.
pub(super) const FIGURES: [(&str, &str); 3] = [(RESIZES, "1/s"), (REACTION, "s"), (CPUS, "CPUs")];
/// Written changes of its set, per second.
const RESIZES: &str = "resizes";
/// From the beginning of a burst of its workload until it was given more CPUs: the median of the run's bursts.
const REACTION: &str = "reaction";
/// How many its set has.
const CPUS: &str = "cpus";
/// The series of a workload that says when its bursts begin.
const BURSTS: &str = "bursts";

/// The elastic groups of one condition.
pub(super) struct ElasticGroups {
    scope: Scope,
    /// By the experiment's names of the groups: what each has at first.
    first: BTreeMap<String, CpuSet>,
}

/// They are resized now.
pub(super) struct Resizing {
    groups: ElasticGroups,
    resizer: Resizer,
}

/// The settings that some condition's elastic groups need.
pub(super) fn settings(conditions: &[Condition]) -> impl Iterator<Item = &str> {
    conditions.iter().any(|condition| !condition.elastic.is_empty()).then_some(plan::CPUS).into_iter()
}

impl ElasticGroups {
    /// `None`: the condition has none.
    pub fn of(
        rescaled: &Rescaled,
        groups: &Groups,
        condition: &Condition,
        settings: &BTreeMap<String, Settings>,
    ) -> Result<Option<ElasticGroups>, Error> {
        if condition.elastic.is_empty() {
            return Ok(None);
        }
        let machine = Machine::live().map_err(|error| Error::cannot(error.to_string()))?;
        let pool = machine.online().clone();
        let mut scope = Scope { pool, ..Scope::default() };
        for (group, cpus) in &condition.elastic {
            let count = |text: &str| Ok::<_, Error>(usize::try_from(threads(text, rescaled)?).unwrap_or(0));
            let idle = settings.get(group).and_then(|settings| settings.get("cpu.idle"));
            scope.groups.push(Elastic {
                name: groups.name(group)?.to_string(),
                min: count(&cpus.min)?,
                max: count(&cpus.max)?,
                weight: cpus.weight,
                borrows: idle.is_some_and(|value| value == "1"),
            });
        }
        let failed = |error: policy::Error| Error::cannot(format!("condition '{}': {error}", condition.name));
        let units = Units::of(&machine, &scope.pool).map_err(failed)?;
        let policy = Policy::new(&scope.groups, units, Parameters::default()).map_err(failed)?;
        let names = condition.elastic.keys().cloned();
        let first = names.enumerate().map(|(index, name)| (name, policy.cpus(index))).collect();
        Ok(Some(ElasticGroups { scope, first }))
    }

    /// What they have at first becomes a setting of theirs, which is put back after the run.
    pub fn add_settings(&self, settings: &mut BTreeMap<String, Settings>) {
        for (group, cpus) in &self.first {
            settings.entry(group.clone()).or_default().insert(plan::CPUS.to_owned(), cpus.to_string());
        }
    }

    /// Begins to resize them.
    pub fn start(self) -> Result<Resizing, Error> {
        let resizer = Resizer::start(self.scope.clone());
        let resizer = resizer.map_err(|source| Error::system("cannot start a thread", source))?;
        Ok(Resizing { groups: self, resizer })
    }
}

impl Resizing {
    /// Ends it, and adds what it did to the run.
    pub fn end(self, run: &mut Run, span: Span, bursts_of: &BTreeMap<String, String>) -> Result<(), Error> {
        let changes = self.resizer.end().map_err(|why| Error::cannot(format!("no resizing: {why}")))?;
        let names = self.groups.first.keys().zip(&self.groups.scope.groups);
        for (name, elastic) in names {
            let own: Vec<&Resized> =
                changes.iter().filter(|one| one.group == elastic.name && one.refused.is_none()).collect();
            let bursts = bursts_of.get(name).map(|workload| format!("{workload}.{BURSTS}"));
            let bursts = bursts.and_then(|bursts| run.series.iter().find(|series| series.name == bursts));
            let bursts: Vec<f64> =
                bursts.iter().flat_map(|series| &series.points).map(|(at, _)| *at).collect();
            let steps = own.iter().map(|one| (since(one.at, span.from), one.to.len() as f64)).collect();
            let first = self.groups.first.get(name).map_or(0, CpuSet::len) as f64;
            add(run, name, &Steps { first, steps }, &bursts);
        }
        Ok(())
    }
}

/// How many CPUs a group had: at first, and from each time on.
struct Steps {
    first: f64,
    steps: Vec<(f64, f64)>,
}

impl Steps {
    fn at(&self, time: f64) -> f64 {
        self.steps.iter().rev().find(|(at, _)| *at <= time).map_or(self.first, |(_, cpus)| *cpus)
    }

    /// From there until the first growth behind it, if it comes before the other time.
    fn growth(&self, from: f64, to: f64) -> Option<f64> {
        let had = self.at(from);
        let grown = self.steps.iter().find(|(at, cpus)| (from..to).contains(at) && *cpus > had)?;
        Some(grown.0 - from)
    }
}

fn add(run: &mut Run, group: &str, had: &Steps, bursts: &[f64]) {
    let named = |figure: &str| format!("{group}.{figure}");
    let within = had.steps.iter().filter(|(at, _)| (0.0..run.seconds).contains(at)).count();
    run.readings.insert(named(RESIZES), within as f64 / run.seconds);
    let ends = bursts.iter().skip(1).copied().chain([run.seconds]);
    let grown: Vec<f64> = bursts.iter().zip(ends).filter_map(|(from, to)| had.growth(*from, to)).collect();
    run.readings.extend(statistics::median(&grown).map(|median| (named(REACTION), median)));
    let mut points = Vec::new();
    let mut before = had.first;
    for (at, cpus) in &had.steps {
        points.extend([(*at, before), (*at, *cpus)]);
        before = *cpus;
    }
    points.push((run.seconds, before));
    let from = points.first().map_or(0.0, |(at, _)| at.min(0.0));
    points.insert(0, (from, had.first));
    let times = [0.0, run.seconds].into_iter().chain(had.steps.iter().map(|(at, _)| *at));
    let mut times: Vec<f64> = times.filter(|at| (0.0..=run.seconds).contains(at)).collect();
    times.sort_by(f64::total_cmp);
    let area: f64 = times.windows(2).map(|pair| had.at(pair[0]) * (pair[1] - pair[0])).sum();
    run.readings.insert(named(CPUS), area / run.seconds);
    run.series.push(Series { name: named(CPUS), unit: "CPUs".to_owned(), points });
}

/// Group → the workload that runs in it.
pub(super) fn workloads_of(experiment: &Experiment, condition: &str) -> BTreeMap<String, String> {
    let applies = |only: &[String]| experiment::file::applies(only, condition);
    let all = experiment.workload.iter().filter(|(_, workload)| applies(&workload.conditions));
    all.filter_map(|(name, workload)| Some((workload.group.clone()?, name.clone()))).collect()
}

/// Of a figure that elastic groups alone have.
pub(super) fn unit(figure: &str) -> Option<String> {
    FIGURES.iter().find(|(name, _)| *name == figure).map(|(_, unit)| (*unit).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_and_reactions_are_those_of_the_span() {
        let mut run = Run { seconds: 20.0, ..Run::default() };
        // grown before what counts; shrunk at 6; grown 0.2 behind the burst at 8, not at all in the one at 18
        let had = Steps { first: 1.0, steps: vec![(-2.0, 2.0), (6.0, 1.0), (8.2, 2.0)] };
        add(&mut run, "oltp", &had, &[8.0, 18.0]);
        assert_eq!(run.readings["oltp.resizes"], 0.1);
        assert!((run.readings["oltp.reaction"] - 0.2).abs() < 1e-9);
        assert!((run.readings["oltp.cpus"] - (2.0 * 20.0 - 2.2) / 20.0).abs() < 1e-9);
        assert_eq!(run.series[0].points.first(), Some(&(-2.0, 1.0)));
    }

    #[test]
    fn without_a_growth_there_is_no_reaction() {
        let mut run = Run { seconds: 10.0, ..Run::default() };
        add(&mut run, "oltp", &Steps { first: 1.0, steps: Vec::new() }, &[8.0]);
        assert_eq!(run.readings.get("oltp.reaction"), None);
        assert_eq!((run.readings["oltp.resizes"], run.readings["oltp.cpus"]), (0.0, 1.0));
    }
}
