//! All runs of an experiment in their order, each again while a gate rejects it, and what they say after each. Where
//! hardly any run counts it ends early.

use std::{
    sync::mpsc::{RecvTimeoutError, channel},
    time::{Duration, Instant},
};

use experiment::{
    Experiment, Note, Results,
    design::{self, Planned},
    results::{Environment, Run, SCHEMA},
    summary,
};

use super::{
    Request, Step, gate, hopeless, interrupted,
    runner::{CellOf, Runner},
    sampling::figure_unit,
    store::{Manifest, Store, text_of},
};
use workloads::Stop;

use crate::Error;

/// Makes what is missing of them. A rejected run is made again at once, so that its block stays together.
pub(super) fn runs(
    runner: &mut Runner<'_>,
    request: &mut Request<'_>,
    begun: &mut Manifest,
    store: &mut Store,
) -> Result<Results, Error> {
    let experiment = runner.context.experiment;
    let mut runs = store.runs()?;
    let order =
        design::order(experiment, runner.context.lengths.order, begun.design.seed, begun.design.repetitions);
    let environment = store.environment()?;
    let clock = Instant::now();
    let earlier = begun.took;
    // a part that goes on has attempts of its own: the machine may be quieter now
    let part = runs.len();
    let planned =
        experiment::planned_seconds(experiment, &runner.context.lengths) / order.len().max(1) as f64;
    let mut time = TimeLeft::new(Duration::try_from_secs_f64(planned).unwrap_or_default());
    let mut stopped = None;
    for (number, planned) in order.iter().enumerate() {
        let cell = CellOf { condition: &planned.cell.condition, load: planned.cell.load.as_deref() };
        let before = runs.len();
        while let Some(attempt) = next_attempt(&runs, part, planned, experiment.gates.retries) {
            request.stop.check()?;
            (request.progress)(&Step::Run {
                number: number + 1,
                of: order.len(),
                condition: cell.condition,
                load: cell.load,
                attempt,
                left: time.of(order.len() - number, clock.elapsed()),
            });
            let numbers = Run {
                number: runs.len() as u32 + 1,
                block: planned.block,
                attempt,
                condition: planned.cell.condition.clone(),
                load: planned.cell.load.clone(),
                ..Run::default()
            };
            let run_number = numbers.number;
            let made = runner.run(cell, numbers);
            let mut run = made.map_err(|source| source.of_run(run_number, cell.condition, cell.load))?;
            (run.figures, _) = experiment::figures(experiment, &run, &figure_unit); // its cell says if one is missing
            store.add(&run)?;
            if let Some(why) = &run.rejected {
                (request.progress)(&Step::Rejected(why));
            }
            runs.push(run);
            begun.took = earlier + clock.elapsed().as_secs_f64();
            begun.design.took = begun.took;
            store.begun(begun)?;
            work_out(&request.stop, experiment, begun, &runs, None, &environment, store)?;
        }
        if runs.len() > before {
            time.finished(clock.elapsed());
        }
        if order.get(number + 1).is_some_and(|next| next.block != planned.block) {
            stopped = hopeless::stopped(&runs[part..]);
        }
        if stopped.is_some() {
            break;
        }
    }
    work_out(&request.stop, experiment, begun, &runs, stopped, &environment, store)
}

/// How often a wait looks whether a stop was requested.
const LOOK: Duration = Duration::from_millis(50);

/// Works out what the runs say, and writes it. With thousands of runs this takes longer than somebody who pressed Ctrl-C
/// should wait: the thread that does it is then left to end with the process, as it changes nothing.
fn work_out(
    stop: &Stop,
    experiment: &Experiment,
    begun: &Manifest,
    runs: &[Run],
    stopped: Option<Note>,
    environment: &Environment,
    store: &Store,
) -> Result<Results, Error> {
    let (experiment, begun, runs, environment) =
        (experiment.clone(), begun.clone(), runs.to_vec(), environment.clone());
    let (done, results) = channel();
    let work = move || {
        let mut results = said(&experiment, &begun, runs, environment);
        results.notes.splice(0..0, stopped);
        let text = text_of(&results);
        let _ = done.send((results, text)); // nobody waits for it after a stop
    };
    let thread = std::thread::Builder::new().name("results".to_owned()).spawn(work);
    thread.map_err(|source| Error::system("cannot start a thread", source))?;
    let (results, text) = loop {
        match results.recv_timeout(LOOK) {
            Ok(done) => break done,
            Err(RecvTimeoutError::Timeout) => stop.check()?,
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Error::cannot("the results can't be worked out".to_owned()));
            }
        }
    };
    let text = text.map_err(|source| workloads::Error::Report { name: "results".to_owned(), source })?;
    store.results(&text)?;
    Ok(results)
}

/// Which attempt of a planned run is next; `None` if one counts, or there were enough from the run `part` on.
fn next_attempt(runs: &[Run], part: usize, planned: &Planned, retries: u32) -> Option<u32> {
    let same = |run: &&Run| {
        run.block == planned.block && run.condition == planned.cell.condition && run.load == planned.cell.load
    };
    let counts = runs.iter().filter(same).any(|run| run.rejected.is_none());
    let number = |runs: &[Run]| u32::try_from(runs.iter().filter(same).count()).unwrap_or(u32::MAX);
    (!counts && number(&runs[part..]) <= retries).then(|| number(runs) + 1)
}

/// What the runs so far say.
fn said(experiment: &Experiment, begun: &Manifest, runs: Vec<Run>, environment: Environment) -> Results {
    let (cells, comparisons) = summary::summarise(experiment, &begun.design, &runs);
    let planned = design::cells(experiment).len() * begun.design.repetitions as usize;
    let complete = runs.iter().filter(|run| run.rejected.is_none()).count() >= planned;
    Results {
        schema: SCHEMA,
        experiment: experiment.clone(),
        environment,
        design: begun.design.clone(),
        spans: experiment::spans(experiment),
        targets: summary::targets(experiment, &cells),
        cells,
        comparisons,
        notes: notes(begun, &runs),
        complete,
        runs,
    }
}

/// What was known at the beginning, and what runs reported, once.
fn notes(begun: &Manifest, runs: &[Run]) -> Vec<Note> {
    let mut notes = begun.notes.clone();
    // what interrupted is said of the runs with the longest latencies
    let of_runs = runs.iter().flat_map(|run| &run.notes);
    for note in of_runs.filter(|note| !matches!(note, Note::Interrupted { .. })) {
        if !notes.contains(note) {
            notes.push(note.clone());
        }
    }
    notes.extend(interrupted::longest(runs));
    notes.extend(gate::busy_machine(runs));
    notes
}

/// How long the rest takes: each planned run as long as those so far with all their attempts, else as planned.
struct TimeLeft {
    planned: Duration,
    finished: u32,
    took: Duration,
}

impl TimeLeft {
    fn new(planned: Duration) -> TimeLeft {
        TimeLeft { planned, finished: 0, took: Duration::ZERO }
    }

    /// A planned run counts, or was given up, `elapsed` after the beginning.
    fn finished(&mut self, elapsed: Duration) {
        (self.finished, self.took) = (self.finished + 1, elapsed);
    }

    /// Of so many planned runs, the present one with them.
    fn of(&self, runs: usize, elapsed: Duration) -> Duration {
        let one = self.took.checked_div(self.finished).unwrap_or(elapsed + self.planned);
        one.saturating_mul(u32::try_from(runs).unwrap_or(u32::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use experiment::design::CellKey;

    fn run(block: u32, condition: &str, rejected: bool) -> Run {
        let rejected = rejected.then(|| "foreign CPU".to_owned());
        Run { block, condition: condition.to_owned(), rejected, ..Run::default() }
    }

    #[test]
    fn a_rejected_run_is_made_again_until_one_counts_or_it_was_enough() {
        let planned = |condition: &str| Planned {
            block: 1,
            cell: CellKey { condition: condition.to_owned(), load: None },
        };
        let runs = [run(1, "a", true), run(1, "a", false), run(1, "b", true), run(2, "c", false)];
        let next = |part, condition, retries| next_attempt(&runs, part, &planned(condition), retries);
        assert_eq!(next(0, "a", 3), None);
        assert_eq!(next(0, "b", 3), Some(2));
        assert_eq!(next(0, "b", 0), None, "no retries are wanted");
        assert_eq!(next(4, "b", 0), Some(2), "resumed, what no run of counts is made again");
        assert_eq!(next(0, "c", 3), Some(1), "another block's run is not this one");
    }

    #[test]
    fn what_several_runs_report_is_noted_once() {
        let note = |text: &str| Note::Workload { workload: "'w'".to_owned(), text: text.to_owned() };
        let begun = Manifest {
            design: Default::default(),
            device: None,
            layouts: Default::default(),
            built_in: Vec::new(),
            move_others: false,
            notes: vec![note("rescaled")],
            took: 0.0,
            gates: Default::default(),
        };
        let with = |notes: &[&str]| Run {
            notes: notes.iter().map(|text| note(text)).collect(),
            ..run(1, "a", false)
        };
        let runs = [with(&["not real-time"]), with(&[]), with(&["one node", "not real-time"])];
        assert_eq!(notes(&begun, &runs), ["rescaled", "not real-time", "one node"].map(note));
    }

    /// faults G5: retries were not counted, so that the time left was wrong by up to five times.
    #[test]
    fn what_is_left_follows_the_runs_so_far_with_all_their_attempts() {
        let seconds = Duration::from_secs;
        let mut time = TimeLeft::new(seconds(10));
        assert_eq!(time.of(2, Duration::ZERO), seconds(20));
        assert_eq!(time.of(2, seconds(30)), seconds(80), "the first one is made a fourth time");
        time.finished(seconds(40));
        time.finished(seconds(60));
        assert_eq!(time.of(3, seconds(75)), seconds(90));
    }
}
