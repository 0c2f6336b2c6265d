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

use super::{
    busiest::Others,
    elapsed::since,
    elastic,
    gate::{self, FOREIGN},
};
use experiment::statistics;
use workloads::Span;

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

    /// `GROUP.FIGURE` and `machine.FIGURE` between two marks, of the groups that `of` chooses (`machine` as a group):
    /// counters per second; levels as the mean of the samples. With `span`, all that was counted between the marks was
    /// within it, and it is the time that rates are of.
    pub fn readings(
        &self,
        of: &dyn Fn(&str) -> bool,
        samples: &Samples,
        [from, to]: [&Mark; 2],
        span: Option<Span>,
    ) -> BTreeMap<String, f64> {
        let last = span.map_or(to.at, |span| span.to);
        let within = samples.taken.iter().filter(|(at, _)| *at >= from.at && *at <= last);
        let mut within: Vec<&Sample> = within.map(|(_, sample)| sample).collect();
        if span.is_none() || within.is_empty() {
            within.push(&to.sample);
        }
        let between_marks = to.at.duration_since(from.at).as_secs_f64();
        let seconds = span.map_or(between_marks, |span| span.to.duration_since(span.from).as_secs_f64());
        let longer = if seconds > 0.0 { between_marks / seconds } else { 1.0 };
        self.each(|name, figure, table, row| match (of(name), figure.is_counter()) {
            (false, _) => None,
            (true, true) => {
                figure.between(table(&from.sample), table(&to.sample), row).map(|rate| rate * longer)
            }
            (true, false) => {
                mean(within.iter().filter_map(|sample| figure.between(table(sample), table(sample), row)))
            }
        })
        .filter_map(|(name, _, value)| Some((name, value?)))
        .collect()
    }

    /// Values over time, in seconds since the span's beginning.
    pub fn series(&self, samples: &Samples, from: Instant) -> Vec<Series> {
        let points = |_: &str, figure: &Figure, table: TableOf, row: &str| -> Vec<(f64, f64)> {
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
        work_out: impl Fn(&str, &Figure, TableOf, &str) -> V + 's,
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
            let value = work_out(of, figure, table, &row);
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
    /// the hypervisor took. With `io` the kernel's threads and interrupts may work for the experiment, and for whom is not
    /// known: what other programs used is limited alone, the rest recorded.
    pub fn gates(
        &self,
        gates: &Gates,
        io: bool,
        [from, to]: [&Mark; 2],
        outside: Duration,
        others: &Others,
    ) -> Vec<Gate> {
        let elapsed = to.at.duration_since(from.at);
        let used = Figure::of("cpu.usage", monitor::GROUP_FIELDS)
            .and_then(|used| used.between(&from.sample.groups, &to.sample.groups, &self.parent));
        let groups = used.unwrap_or(0.0) * elapsed.as_secs_f64();
        let own = Duration::from_secs_f64(groups.max(0.0)) + to.own.saturating_sub(from.own) + outside;
        let ran = to.ran.zip(from.ran).map(|(to, from)| to.saturating_sub(from));
        let all = to.ticks.others_since(from.ticks, own, ran, elapsed);
        let programs = programs(all.other, others, ran.is_some(), to.ticks.cpus()).filter(|_| io);
        let gate = |name: &str, seen, at_most| Gate { name: name.to_owned(), seen, at_most, instead: None };
        let mut seen = vec![gate(FOREIGN, programs.unwrap_or(all.other), Some(gates.foreign_cpu))];
        seen.extend(programs.map(|programs| Gate {
            instead: Some(gate::KERNEL_INSTEAD.to_owned()),
            ..gate(gate::KERNEL, (all.other - programs).max(0.0), None)
        }));
        seen.push(gate(gate::STEAL, all.steal, Some(gates.steal)));
        seen
    }
}

/// The share of all CPUs' time that other programs had, of what was neither the experiment's nor idle; the rest is the
/// kernel's threads and interrupts. `None` where these can't be seen. Where the kernel counts all tasks' time (`counted`), its
/// threads' is taken off. Ticks count too much where CPUs fall asleep and wake thousands of times a second, as with I/O: there
/// the programs' own time is added up.
fn programs(other: f64, used: &Others, counted: bool, cpus: u64) -> Option<f64> {
    let share = |used: f64| used / cpus.max(1) as f64;
    let kernel = share(used.kernel?);
    Some(if counted { (other - kernel).max(0.0) } else { share(used.programs) })
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

#[cfg(test)]
mod tests {
    use super::*;

    /// faults G1: with I/O the kernel's threads may work for the experiment; other programs never do.
    #[test]
    fn other_programs_are_foreign_and_the_kernels_threads_are_apart() {
        let used = |programs, kernel| Others { programs, kernel, ..Others::default() };
        let near = |seen: Option<f64>, expected: f64| (seen.unwrap() - expected).abs() < 1e-9;
        // of two CPUs others had 90 %, of which the kernel's threads 0.4 CPUs
        assert!(near(programs(0.9, &used(1.4, Some(0.4)), true, 2), 0.7));
        // ticks said 8 % too much
        assert!(near(programs(0.98, &used(1.4, Some(0.4)), false, 2), 0.7));
        assert!(near(programs(0.1, &used(0.0, Some(0.4)), true, 2), 0.0));
        assert_eq!(programs(0.9, &used(1.8, None), true, 2), None);
    }
}
