//! What the groups of a run get and use, from `watch`'s samples: figures over the span that counts, and values over time;
//! and what the rest of the machine did meanwhile.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use experiment::{
    Experiment,
    file::Gates,
    measure,
    results::{Gate, Series, TaskSeen},
};
use kernel::{GroupName, Host};
use monitor::{Beat, Descriptors, Field, Groups, Instance, Kind, Options, Sample, Sampler, Table, rates};
use units::group_path;

use super::{elapsed::since, elastic, gate::FOREIGN};
use crate::{
    Error,
    load::{Ticks, all_tasks},
};

/// Short names of groups' figures, and the fields that they are.
const SHORT: [(&str, &str); 3] =
    [("cpu", "cpu.usage"), ("memory", "memory.current"), ("throttled", "cpu.throttled.time")];

/// Samples closer than this, as those about the beginning of what counts may be, make no rate: counters are reported in steps.
const LEAST: Duration = Duration::from_millis(10);

/// A group with more tasks than this has no row for each.
const MOST_TASKS: usize = 256;

/// What stands before the machine's figures.
const MACHINE: &str = "machine";

/// All fields of groups, by their own names, and what elastic groups have beside, each with its unit.
pub fn group_figures() -> Vec<(&'static str, String)> {
    let fields = monitor::GROUP_FIELDS.iter().map(|field| (field.name, unit(field)));
    fields.chain(elastic::FIGURES.iter().map(|(name, unit)| (*name, (*unit).to_owned()))).collect()
}

/// All fields of the machine, by their own names, each with its unit.
pub fn machine_figures() -> Vec<(&'static str, String)> {
    monitor::MACHINE_FIELDS.iter().map(|field| (field.name, unit(field))).collect()
}

/// The unit of a figure of groups or of the machine, by its own name or a short one.
pub(crate) fn figure_unit(name: &str) -> Option<String> {
    let name = SHORT.iter().find(|(short, _)| *short == name).map_or(name, |(_, field)| field);
    let mut fields = monitor::GROUP_FIELDS.iter().chain(monitor::MACHINE_FIELDS);
    fields.find(|field| field.name == name).map(unit).or_else(|| elastic::unit(name))
}

/// A field that is requested.
struct Figure {
    /// As the experiment names it.
    name: String,
    field: &'static Field,
    /// Of this NUMA node alone.
    node: Option<u32>,
}

impl Figure {
    /// `memory.current`, `memory.node.anon.0`.
    fn of(name: &str, fields: &'static [Field]) -> Option<Figure> {
        let (all, node) = measure::node(name);
        let field = fields.iter().find(|field| field.name == all)?;
        Some(Figure { name: name.to_owned(), field, node })
    }

    /// Between two samples; of several CPUs, nodes or devices their sum.
    fn between(&self, before: &Table, after: &Table, row: &str) -> Option<f64> {
        let at = after.row(row)?;
        let columns = after.columns().named(self.field.name);
        let columns = columns.filter(|column| match (self.node, after.columns().list()[*column].instance) {
            (Some(node), Instance::Node(of)) => node == of,
            (Some(_), _) => false,
            (None, _) => true,
        });
        let figures = columns.filter_map(|column| rates::between(before, after, at, column)?.value);
        figures.reduce(|one, other| one + other)
    }

    fn is_counter(&self) -> bool {
        matches!(self.field.kind, Kind::Counter)
    }
}

/// Samples one experiment's groups.
pub(crate) struct Sampling {
    sampler: Sampler<Descriptors>,
    parent: String,
    groups: Vec<String>,
    /// Of each group.
    figures: Vec<Figure>,
    /// Of the machine.
    machine: Vec<Figure>,
}

/// What one run's samples said so far.
#[derive(Default)]
pub(crate) struct Samples {
    /// When each was taken.
    taken: Vec<(Instant, Sample)>,
    /// Number → name, group, and where it ran.
    tasks: BTreeMap<u32, Ran>,
}

/// The groups' or the machine's figures of a sample.
type TableOf = fn(&Sample) -> &Table;

/// Where a task ran last, at each look.
type Ran = (String, String, Vec<(Instant, u32)>);

/// The beginning of what counts, as the machine's counters have it.
pub(crate) struct Mark {
    at: Instant,
    ticks: Ticks,
    /// CPU time of all tasks, where the kernel counts it.
    ran: Option<Duration>,
    own: Duration,
    sample: Sample,
}

impl Sampling {
    pub fn new(host: &Host, parent: &str, experiment: &Experiment) -> Result<Sampling, Error> {
        let name = GroupName::new(parent)?;
        let _ = Descriptors::allow_more(); // where that is refused, files are opened again each time
        let options = Options { groups: Groups::Named(vec![name]), slow_every: 5 };
        let sampler = Sampler::new(host, Descriptors::new(), options, true);
        let groups: Vec<String> = experiment.group.keys().cloned().collect();
        let figure_of = |(short, field): &(&str, &str)| {
            Figure::of(field, monitor::GROUP_FIELDS)
                .map(|figure| Figure { name: (*short).to_owned(), ..figure })
        };
        let mut figures: Vec<Figure> = SHORT.iter().filter_map(figure_of).collect();
        let mut machine: Vec<Figure> = Vec::new();
        let measured = experiment.measure.iter().flat_map(|measure| measure::names(&measure.is));
        let charted = experiment.chart.iter().flat_map(|chart| chart.of.iter().map(String::as_str));
        for term in measured.chain(charted) {
            let Some((of, figure)) = term.trim().split_once('.') else { continue };
            let (all, fields) = match of {
                MACHINE => (&mut machine, monitor::MACHINE_FIELDS),
                group if groups.iter().any(|known| known == group) => (&mut figures, monitor::GROUP_FIELDS),
                _ => continue,
            };
            if all.iter().all(|known| known.name != figure) {
                all.extend(Figure::of(figure, fields));
            }
        }
        Ok(Sampling { sampler, parent: parent.to_owned(), groups, figures, machine })
    }

    /// Takes a sample. `tasks`: also where each task ran last.
    pub fn take(&mut self, host: &Host, samples: &mut Samples, tasks: bool) -> Result<(), Error> {
        let at = Instant::now();
        let sample = self.sampler.tick(host, Beat::default())?.clone();
        samples.taken.push((at, sample));
        if !tasks {
            return Ok(());
        }
        for group in &self.groups {
            let name = GroupName::new(&group_path::join(&self.parent, group))?;
            // tasks that end meanwhile are left out
            let found = monitor::tasks(host, &name).unwrap_or_default();
            if found.len() > MOST_TASKS {
                continue;
            }
            for task in found {
                let row = samples.tasks.entry(task.process.pid);
                let row = row.or_insert_with(|| (task.process.comm.clone(), group.clone(), Vec::new()));
                row.0.clone_from(&task.process.comm);
                row.2.push((at, task.process.last_cpu));
            }
        }
        Ok(())
    }

    /// The counters at the beginning or the end of what counts.
    pub fn mark(&mut self, host: &Host) -> Result<Mark, Error> {
        self.sampler.refresh();
        let failed = |source| Error::system("cannot read /proc/stat", source);
        let (at, ticks) = (Instant::now(), Ticks::now().map_err(failed)?);
        let own = Duration::from_nanos(workloads::process_cpu_time());
        let ran = all_tasks(host);
        Ok(Mark { at, ticks, ran, own, sample: self.sampler.tick(host, Beat::default())?.clone() })
    }

    fn row(&self, group: &str) -> String {
        group_path::join(&self.parent, group)
    }

    /// `GROUP.FIGURE` and `machine.FIGURE` over the span: counters per second; levels as the mean of the samples.
    pub fn readings(&self, samples: &Samples, from: &Mark, to: &Mark) -> BTreeMap<String, f64> {
        let within = samples.taken.iter().filter(|(at, _)| *at >= from.at && *at <= to.at);
        let within: Vec<&Sample> = within.map(|(_, sample)| sample).chain([&to.sample]).collect();
        self.each(|figure, table, row| match figure.is_counter() {
            true => figure.between(table(&from.sample), table(&to.sample), row),
            false => {
                mean(within.iter().filter_map(|sample| figure.between(table(sample), table(sample), row)))
            }
        })
        .filter_map(|(name, _, value)| Some((name, value?)))
        .collect()
    }

    /// Values over time, in seconds since the span's beginning.
    pub fn series(&self, samples: &Samples, from: Instant) -> Vec<Series> {
        let points = |figure: &Figure, table: TableOf, row: &str| -> Vec<(f64, f64)> {
            let points = samples.taken.windows(2).filter_map(|pair| {
                let [(earlier, before), (at, after)] = pair else { return None };
                if at.duration_since(*earlier) < LEAST {
                    return None;
                }
                Some((since(*at, from), figure.between(table(before), table(after), row)?))
            });
            points.collect()
        };
        let all = self.each(points).filter(|(_, _, points)| !points.is_empty());
        all.map(|(name, unit, points)| Series { name, unit, points }).collect()
    }

    /// Every figure of every group, and of the machine: its name, its unit, and what is worked out of it.
    fn each<'s, V: 's>(
        &'s self,
        work_out: impl Fn(&Figure, TableOf, &str) -> V + 's,
    ) -> impl Iterator<Item = (String, String, V)> + 's {
        let groups: TableOf = |sample| &sample.groups;
        let machine: TableOf = |sample| &sample.machine;
        let of_group =
            move |group: &'s String| self.figures.iter().map(move |one| (group.as_str(), one, groups));
        let of_groups = self.groups.iter().flat_map(of_group);
        let all = of_groups.chain(self.machine.iter().map(move |one| (MACHINE, one, machine)));
        all.map(move |(of, figure, table)| {
            // the machine's only row has no name
            let row = if of == MACHINE { String::new() } else { self.row(of) };
            let value = work_out(figure, table, &row);
            (format!("{of}.{}", figure.name), unit(figure.field), value)
        })
    }

    /// Where each task ran.
    pub fn tasks(samples: Samples, from: Instant) -> Vec<TaskSeen> {
        let row = |(tid, (name, group, seen)): (u32, Ran)| TaskSeen {
            tid,
            name,
            group,
            cpus: seen.into_iter().map(|(at, cpu)| (since(at, from), cpu)).collect(),
        };
        samples.tasks.into_iter().map(row).collect()
    }

    /// What the rest of the machine did: CPU time that no group of the experiment and not the lab itself used, and what
    /// the hypervisor took.
    /// With `io` the kernel's threads work for the experiment, too, and for whom is not known.
    pub fn gates(&self, gates: &Gates, io: bool, from: &Mark, to: &Mark, outside: Duration) -> Vec<Gate> {
        let elapsed = to.at.duration_since(from.at);
        let used = Figure::of("cpu.usage", monitor::GROUP_FIELDS)
            .and_then(|used| used.between(&from.sample.groups, &to.sample.groups, &self.parent));
        let groups = used.unwrap_or(0.0) * elapsed.as_secs_f64();
        let own = Duration::from_secs_f64(groups.max(0.0)) + to.own.saturating_sub(from.own) + outside;
        let ran = to.ran.zip(from.ran).map(|(to, from)| to.saturating_sub(from));
        let others = to.ticks.others_since(from.ticks, own, ran, elapsed);
        let gate = |name: &str, seen, at_most| Gate { name: name.to_owned(), seen, at_most };
        vec![
            gate(FOREIGN, others.other, (!io).then_some(gates.foreign_cpu)),
            gate("steal", others.steal, Some(gates.steal)),
        ]
    }
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let values: Vec<f64> = values.collect();
    statistics::mean(&values)
}

fn unit(field: &Field) -> String {
    match monitor::FigureUnit::of(field) {
        monitor::FigureUnit::Cpus => "CPUs".to_owned(),
        monitor::FigureUnit::Bytes => "bytes".to_owned(),
        monitor::FigureUnit::PerSecond => "1/s".to_owned(),
        unit => unit.symbol().to_owned(),
    }
}
