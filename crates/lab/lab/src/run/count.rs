//! What counts of a run: from when to when, its events and samples, and what is recorded of it. A run is as long as the file
//! says; one of commands lasts until they have ended, and their groups are measured over just that time.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant, SystemTime},
};

use experiment::{
    Note,
    file::{Event, Settings, applies},
    results::{EventDone, Gate, Run},
    within,
};
use workloads::{Outcome, Span};

use super::{
    artifacts::Artifacts,
    busiest::{Look, Others},
    elapsed::since,
    gate,
    interrupted::Watched,
    runner::{Beats, CellOf, Ready, Runner},
    sampling::{Mark, Samples, Sampling},
    shared_cpus, ungrouped,
};
use crate::Error;

/// A span may be longer than was requested by this share, or by a second.
const LATE: f64 = 0.1;

/// How often it is looked whether a command has ended.
const LOOK: Duration = Duration::from_millis(5);

/// All counters at one time.
struct Edge {
    counters: Mark,
    shared: shared_cpus::Mark,
}

/// Commands of a run that are measured from their start to their end.
#[derive(Default)]
struct Commands {
    /// Their places among the runner's workloads.
    running: Vec<usize>,
    /// Of those that have ended, by their places.
    spans: BTreeMap<usize, Span>,
    /// Groups in which commands run alone, with the commands' places.
    groups: BTreeMap<String, Vec<usize>>,
    /// Of groups whose commands have ended: from the first one's start to the last one's end, and the counters after it.
    ended: BTreeMap<String, (Span, Edge)>,
    /// Something else is measured that lasts as long as the file says.
    beside: bool,
}

impl Commands {
    fn of(runner: &Runner<'_>, cell: CellOf<'_>) -> Commands {
        let mut found = Commands::default();
        for (place, workload) in runner.workloads.iter().enumerate() {
            if workload.name.is_none() || !workload.is_in(cell) {
                continue;
            }
            if !workload.runs_to_its_end {
                found.beside = true;
                continue;
            }
            found.running.push(place);
            let experiment = runner.context.experiment;
            let alone =
                |group: &str| experiment::runs_to_its_end(experiment, group, cell.condition, cell.load);
            if let Some(group) = workload.group.as_ref().filter(|group| alone(group)) {
                found.groups.entry(group.clone()).or_default().push(place);
            }
        }
        found.beside |= found.running.is_empty();
        found
    }

    fn are_over(&self) -> bool {
        self.running.is_empty()
    }

    /// When the last one ended.
    fn end(&self) -> Option<Instant> {
        self.spans.values().map(|span| span.to).max()
    }

    /// Looks which have ended.
    fn look(&mut self, runner: &mut Runner<'_>) -> Result<(), Error> {
        let spans = &mut self.spans;
        self.running.retain(|place| match runner.workloads[*place].driver.own_span() {
            Some(span) => spans.insert(*place, span).is_some(),
            None => true,
        });
        for (group, places) in &self.groups {
            if self.ended.contains_key(group) {
                continue;
            }
            let spans: Option<Vec<Span>> =
                places.iter().map(|place| self.spans.get(place).copied()).collect();
            let Some(whole) = spans.and_then(|spans| spans.into_iter().reduce(both)) else { continue };
            self.ended.insert(group.clone(), (whole, runner.edge()?));
        }
        Ok(())
    }

    /// What each workload and group was measured over, in seconds since what counts began.
    fn recorded(&self, workloads: &[Ready], from: Instant) -> BTreeMap<String, (f64, f64)> {
        let named = |place: &usize| workloads[*place].name.clone();
        let own = self.spans.iter().filter_map(|(place, span)| Some((named(place)?, *span)));
        let groups = self.ended.iter().map(|(group, (span, _))| (group.clone(), *span));
        groups.chain(own).map(|(name, span)| (name, (since(span.from, from), since(span.to, from)))).collect()
    }
}

/// From the earlier beginning to the later end.
fn both(one: Span, other: Span) -> Span {
    Span { from: one.from.min(other.from), to: one.to.max(other.to) }
}

/// What was measured of a run.
struct Counted {
    begin: Edge,
    end: Edge,
    samples: Samples,
    commands: Commands,
    /// CPU time of workloads in no group.
    outside: Duration,
    others: Others,
}

impl Runner<'_> {
    /// What counts.
    pub(super) fn count(
        &mut self,
        cell: CellOf<'_>,
        settings: &BTreeMap<String, Settings>,
        run: &mut Run,
        mut samples: Samples,
    ) -> Result<Span, Error> {
        let experiment = self.context.experiment;
        let outside_before = self.outside();
        let others_before = Look::now();
        let begin = self.edge()?;
        run.began = humantime::format_rfc3339_millis(SystemTime::now()).to_string();
        let watched = Watched::begin(experiment, cell.condition, settings, |list| self.fill(list).ok());
        let mut commands = Commands::of(self, cell);
        let from = Instant::now();
        self.begin(cell);
        self.until_over(cell, from, run, &mut samples, &mut commands)?;
        let last = commands.end().filter(|_| !commands.beside);
        let span = Span { from, to: last.unwrap_or_else(Instant::now) };
        run.notes.extend(watched.and_then(Watched::end));
        let end = self.edge()?;
        let outside = ungrouped::used(&outside_before, &self.outside());
        run.seconds = span.to.duration_since(span.from).as_secs_f64();
        let others = Look::now().others_since(&others_before, self.context.parent);
        self.end(cell, run, span)?;
        self.record(cell, run, Counted { begin, end, samples, commands, outside, others }, span);
        Ok(span)
    }

    fn edge(&mut self) -> Result<Edge, Error> {
        let shared = self.meters.shared_cpus.mark(self.context.host);
        Ok(Edge { counters: self.meters.sampling.mark(self.context.host)?, shared })
    }

    /// What knows no warm-up starts: loads first, as everywhere.
    fn begin(&mut self, cell: CellOf<'_>) {
        for is_load in [true, false] {
            let all = self.workloads.iter_mut();
            all.filter(|one| one.name.is_none() == is_load && one.is_in(cell))
                .for_each(|one| one.driver.begin());
        }
    }

    /// Makes events and takes samples until what counts is over.
    fn until_over(
        &mut self,
        cell: CellOf<'_>,
        from: Instant,
        run: &mut Run,
        samples: &mut Samples,
        commands: &mut Commands,
    ) -> Result<(), Error> {
        let experiment = self.context.experiment;
        let to = from + self.context.lengths.duration;
        let mut events: Vec<(Instant, &Event)> = experiment
            .event
            .iter()
            .filter(|event| applies(&event.conditions, cell.condition))
            .filter_map(|event| Some((from + within(&event.at, self.context.lengths.duration).ok()?, event)))
            .collect();
        events.sort_by_key(|(at, _)| *at);
        let mut events = events.into_iter().peekable();
        let mut beats = Beats::new(self.context.lengths.sample, from);
        loop {
            let over = if commands.are_over() { to } else { Instant::now() + LOOK };
            let event = events.peek().map_or(over, |(at, _)| *at);
            self.nap(cell, over.min(event).min(beats.next()))?;
            if let Some((_, event)) = events.next_if(|(at, _)| *at <= Instant::now()) {
                let begun = Instant::now();
                let (settings, _) = self.set(&event.settings)?;
                let took = begun.elapsed().as_secs_f64();
                run.events.push(EventDone {
                    at: since(begun, from),
                    took,
                    label: event.label.clone(),
                    settings,
                });
            }
            commands.look(self)?;
            if commands.are_over() && (!commands.beside || Instant::now() >= to) {
                break;
            }
            beats.take(self.context.host, &mut self.meters.sampling, samples)?;
        }
        run.notes.extend(events.map(|(_, event)| not_reached(event)));
        Ok(())
    }

    /// CPU times of the workloads that run in no group.
    fn outside(&self) -> ungrouped::Times {
        if self.workloads.iter().all(|workload| workload.group.is_some()) {
            return ungrouped::Times::new();
        }
        ungrouped::times(self.context.parent)
    }

    /// Ends the workloads, what is measured first, and takes their figures.
    fn end(&mut self, cell: CellOf<'_>, run: &mut Run, span: Span) -> Result<(), Error> {
        let mut written = Vec::new();
        for is_load in [false, true] {
            for workload in &mut self.workloads {
                if workload.name.is_none() != is_load || !workload.is_in(cell) {
                    continue;
                }
                let Outcome { readings, latencies, series, files, notes } = workload.driver.stop(span)?;
                let reported =
                    notes.into_iter().map(|text| Note::Workload { workload: workload.title(), text });
                run.notes.extend(reported);
                written.extend(files.into_iter().map(|file| (workload.label(), workload.title(), file)));
                let Some(name) = &workload.name else { continue };
                let named = |figure: &str| format!("{name}.{figure}");
                run.readings.extend(readings.into_iter().map(|(figure, value)| (named(&figure), value)));
                run.latencies.extend(latencies.into_iter().map(|(figure, value)| (named(&figure), value)));
                run.series.extend(series.into_iter().map(|mut one| {
                    one.name = named(&one.name);
                    one
                }));
            }
        }
        // not before all have ended: the disk is theirs until then
        let Some(results) = &self.results else { return Ok(()) };
        let mut artifacts = Artifacts::begin(results, run.number)?;
        for (label, title, file) in &written {
            run.notes.extend(artifacts.add(label, title, file)?);
        }
        run.files = artifacts.paths;
        Ok(())
    }

    fn record(&self, cell: CellOf<'_>, run: &mut Run, counted: Counted, span: Span) {
        let Counted { begin, end, samples, commands, outside, others } = counted;
        let has_own = |group: &str| commands.ended.contains_key(group);
        let mut readings = |of: &dyn Fn(&str) -> bool, end: &Edge, own: Option<Span>| {
            let marks = [&begin.counters, &end.counters];
            run.readings.extend(self.meters.sampling.readings(of, &samples, marks, own));
            let marks = [&begin.shared, &end.shared];
            run.readings.extend(self.meters.shared_cpus.readings(of, marks, own));
        };
        readings(&|group| !has_own(group), &end, None);
        for (group, (own, end)) in &commands.ended {
            readings(&|name| name == group, end, Some(*own));
        }
        run.spans = commands.recorded(&self.workloads, span.from);
        run.series.extend(self.meters.sampling.series(&samples, span.from));
        let gates = &self.context.experiment.gates;
        let io = gates.io || self.workloads.iter().any(|workload| workload.is_io && workload.is_in(cell));
        let marks = [&begin.counters, &end.counters];
        run.gates = self.meters.sampling.gates(gates, io, marks, outside, &others);
        run.tasks = Sampling::tasks(samples, span.from);
        // events and the end came too late: something made the lab itself wait
        let requested = self.context.lengths.duration.as_secs_f64();
        let late = Gate {
            name: gate::LATE.to_owned(),
            seen: (run.seconds - requested).max(0.0) / requested,
            at_most: Some(LATE.max(1.0 / requested)),
            instead: None,
        };
        run.gates.push(match commands.spans.is_empty() {
            true => late,
            false => Gate { at_most: None, instead: Some(gate::LATE_INSTEAD.to_owned()), ..late },
        });
        run.rejected = run.gates.iter().find_map(gate::rejection);
        let apart = run.gates.iter().any(|gate| gate.name == gate::KERNEL);
        if gate::disturbed(run).is_some() {
            run.busiest = if apart { others.busiest } else { others.all() };
        }
        if apart {
            run.kernel_threads = others.kernel_threads;
        }
    }
}

fn not_reached(event: &Event) -> Note {
    let label = if event.label.is_empty() { String::new() } else { format!(" ({})", event.label) };
    Note::NotReached { event: format!("{}{label}", event.at) }
}
