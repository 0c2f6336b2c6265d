//! All runs of an experiment in their order, each again while a gate rejects it, and what they say after each.

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
    Request, Step, gate, interrupted,
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
    let planned =
        experiment::planned_seconds(experiment, &runner.context.lengths) / order.len().max(1) as f64;
    let planned_run = Duration::try_from_secs_f64(planned).unwrap_or_default();
    let mut made = 0;
    for (number, planned) in order.iter().enumerate() {
        let cell = CellOf { condition: &planned.cell.condition, load: planned.cell.load.as_deref() };
        while let Some(attempt) = next_attempt(&runs, planned, experiment.gates.retries) {
            request.stop.check()?;
            (request.progress)(&Step::Run {
                number: number + 1,
                of: order.len(),
                condition: cell.condition,
                load: cell.load,
                attempt,
                left: left(order.len() - number, made, clock.elapsed(), planned_run),
            });
            let numbers = Run {
                number: runs.len() as u32 + 1,
                block: planned.block,
                attempt,
                condition: planned.cell.condition.clone(),
                load: planned.cell.load.clone(),
                ..Run::default()
            };
            let mut run = runner.run(cell, numbers)?;
            (run.figures, _) = experiment::figures(experiment, &run, &figure_unit); // its cell says if one is missing
            store.add(&run)?;
            if let Some(why) = &run.rejected {
                (request.progress)(&Step::Rejected(why));
            }
            runs.push(run);
            made += 1;
            begun.took = earlier + clock.elapsed().as_secs_f64();
            begun.design.took = begun.took;
            store.begun(begun)?;
            work_out(&request.stop, experiment, begun, &runs, &environment, store)?;
        }
    }
    work_out(&request.stop, experiment, begun, &runs, &environment, store)
}

/// How often a wait looks whether a stop was requested.
const LOOK: Duration = Duration::from_millis(50);

/// Works out what the runs say, and writes it. Of thousands of runs that takes longer than who stops an experiment
/// should wait: the thread that does it is then left to end with the process, as it changes nothing.
fn work_out(
    stop: &Stop,
    experiment: &Experiment,
    begun: &Manifest,
    runs: &[Run],
    environment: &Environment,
    store: &Store,
) -> Result<Results, Error> {
    let (experiment, begun, runs, environment) =
        (experiment.clone(), begun.clone(), runs.to_vec(), environment.clone());
    let (done, results) = channel();
    let work = move || {
        let results = said(&experiment, &begun, runs, environment);
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

/// Which attempt of a planned run is next; `None` if one counts, or there were enough.
fn next_attempt(runs: &[Run], planned: &Planned, retries: u32) -> Option<u32> {
    let same = |run: &&Run| {
        run.block == planned.block && run.condition == planned.cell.condition && run.load == planned.cell.load
    };
    let before: Vec<&Run> = runs.iter().filter(same).collect();
    let counts = before.iter().any(|run| run.rejected.is_none());
    let made = u32::try_from(before.len()).unwrap_or(u32::MAX);
    (!counts && made <= retries).then(|| made + 1)
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

/// The estimated time of the `number` runs left: each as long as the `made` ones on average, or as `planned`.
fn left(number: usize, made: u32, took: Duration, planned: Duration) -> Duration {
    let one = if made > 0 { took / made } else { planned };
    one.saturating_mul(u32::try_from(number).unwrap_or(u32::MAX))
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
        assert_eq!(next_attempt(&runs, &planned("a"), 3), None);
        assert_eq!(next_attempt(&runs, &planned("b"), 3), Some(2));
        assert_eq!(next_attempt(&runs, &planned("b"), 0), None, "no retries are wanted");
        assert_eq!(next_attempt(&runs, &planned("c"), 3), Some(1), "another block's run is not this one");
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
        };
        let with = |notes: &[&str]| Run {
            notes: notes.iter().map(|text| note(text)).collect(),
            ..run(1, "a", false)
        };
        let runs = [with(&["not real-time"]), with(&[]), with(&["one node", "not real-time"])];
        assert_eq!(notes(&begun, &runs), ["rescaled", "not real-time", "one node"].map(note));
    }

    #[test]
    fn what_is_left_follows_the_runs_so_far() {
        let second = Duration::from_secs(1);
        assert_eq!(left(2, 0, second, 10 * second), 20 * second);
        assert_eq!(left(2, 3, 45 * second, 10 * second), 30 * second);
    }
}
