//! `GROUP.cpu-on.SET` of an experiment: how many CPUs' time a group used on a named set of CPUs. It answers whether a
//! group that should leave CPUs alone does so, by the kernel's accounts and not by its settings.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use experiment::{Experiment, Note, measure, rescale::Rescaled};
use kernel::{GroupName, Host};
use monitor::PerCpu;
use units::CpuSet;

use workloads::Span;

use crate::{Error, groups::Groups};

/// What is counted.
#[derive(Default)]
pub(crate) struct SharedCpus {
    figures: Vec<Figure>,
    /// Why some are not.
    pub notes: Vec<Note>,
}

struct Figure {
    /// `GROUP.cpu-on.SET`
    name: String,
    group: String,
    cpus: CpuSet,
    counts: PerCpu,
}

/// At one moment: CPU time by figure.
pub(crate) struct Mark {
    at: Instant,
    used: Vec<Option<Duration>>,
}

impl SharedCpus {
    /// Those that its measures name. The groups are there.
    pub fn new(
        host: &Host,
        experiment: &Experiment,
        cpus: &Rescaled,
        groups: &Groups,
    ) -> Result<SharedCpus, Error> {
        let mut found = SharedCpus::default();
        let terms = experiment.measure.iter().flat_map(|measure| measure::names(&measure.is));
        for term in terms {
            let Some((group, set)) = term.split_once(".cpu-on.") else { continue };
            let (true, Some(cpus)) = (experiment.group.contains_key(group), cpus.sets.get(set)) else {
                continue;
            };
            if found.figures.iter().any(|figure| figure.name == term) {
                continue;
            }
            let name: GroupName = groups.name(group)?;
            match PerCpu::new(host, &name, cpus) {
                Ok(counts) => {
                    let (name, group, cpus) = (term.to_owned(), group.to_owned(), cpus.clone());
                    found.figures.push(Figure { name, group, cpus, counts });
                }
                Err(why) => {
                    let (figure, why) = (term.to_owned(), why.to_string());
                    found.notes.push(Note::NotMeasured { figure, why });
                }
            }
        }
        Ok(found)
    }

    pub fn mark(&mut self, host: &Host) -> Mark {
        let used = self.figures.iter_mut().map(|figure| {
            let read = figure.counts.read(host)?;
            Some(figure.cpus.iter().filter_map(|cpu| read.get(&cpu)).sum())
        });
        Mark { used: used.collect(), at: Instant::now() }
    }

    /// Between two moments, of the groups that `of` chooses. With `span`, that is the time that rates are of.
    pub fn readings(
        &self,
        of: &dyn Fn(&str) -> bool,
        [from, to]: [&Mark; 2],
        span: Option<Span>,
    ) -> BTreeMap<String, f64> {
        let marks = Span { from: from.at, to: to.at };
        let span = span.unwrap_or(marks);
        let elapsed = span.to.duration_since(span.from).as_secs_f64();
        let each = self.figures.iter().zip(from.used.iter().zip(&to.used));
        let each = each.filter(|(figure, _)| of(&figure.group)).filter_map(|(figure, (from, to))| {
            let used = (*to)?.saturating_sub((*from)?).as_secs_f64();
            (elapsed > 0.0).then(|| (figure.name.clone(), used / elapsed))
        });
        each.collect()
    }
}
