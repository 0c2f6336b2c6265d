//! `lab`: experiments, from their file to their results.

mod layouts;
mod progress;
mod studies;
mod text;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use experiment::{
    CheckContext, Experiment, Note, Places, Results, file,
    rescale::{self, Rescaled},
};
use kernel::Host;
use lab::{
    OwnDirectory,
    run::{self, Request},
};
use layout::{Diagnostic, Source};
use serde_json::{Value, json};
use system::files::{self, Trust};
use topology::Machine;
use units::hint::Command;
use workloads::{Program, Stop};

use self::layouts::Layouts;
use super::{host, host_even_unmounted, stop_on_signals};
use crate::{
    args::{Lab, LabCommand, LabRun},
    failure::{ATTENTION, Failure, INTERRUPTED, USAGE, printable_lines},
    output,
};

/// The experiment is not reproducible on this machine.
const NOT_HERE: u8 = 4;

pub fn lab(args: &Lab, as_json: bool) -> Result<u8, Failure> {
    match &args.command {
        LabCommand::List => {
            clean_up_if_root()?;
            studies::list(as_json)?;
        }
        LabCommand::Show { study } => studies::show(study, as_json)?,
        LabCommand::Check { experiment } => check(experiment, as_json)?,
        LabCommand::Run(run) => return self::run(run, as_json),
        LabCommand::Report { directory } => report(directory, as_json)?,
        LabCommand::Compare { baseline, directory } => compare(baseline, directory, as_json)?,
        LabCommand::Clean => clean(as_json)?,
    }
    Ok(0)
}

/// An experiment whose file is right.
struct Read {
    experiment: Experiment,
    text: String,
    layouts: Layouts,
    /// Its named sets of CPUs on this machine, or why it is not reproducible here.
    cpus: Result<Rescaled, String>,
}

/// A study's text or a file's, by what is there.
fn source(of: &Path) -> Result<Source, Failure> {
    // a directory of results may have a study's name
    if !of.is_file()
        && let Some(study) = of.to_str().filter(|name| !name.contains('/') && !name.ends_with(".toml"))
    {
        let study = studies::find(study)?;
        return Ok(Source::new(&format!("{}.toml", study.name), study.text));
    }
    // what root runs must not be another user's to change
    let loaded = files::load(&[of.to_owned()], Trust::of_this_process());
    if let Some(error) = loaded.diagnostics.first() {
        let failure = Failure::usage(error.message.clone());
        return Err(error.hint.iter().cloned().fold(failure, Failure::hint));
    }
    loaded.sources.into_iter().next().ok_or_else(|| Failure::new(format!("cannot read {}", of.display())))
}

/// Reads and checks it; all errors are printed. Its layouts are read by their paths, or are those that were `recorded`.
fn read(
    source: &Source,
    machine: &Machine,
    recorded: Option<BTreeMap<String, String>>,
) -> Result<Read, Failure> {
    let found = experiment::read(source);
    let (mut experiment, mut diagnostics) = (found.experiment, found.diagnostics);
    let mut layouts = Layouts::from(source, recorded);
    let mut cpus = Err(String::new());
    if let Some(experiment) = &mut experiment {
        diagnostics.extend(layouts.add(experiment, &found.places, machine));
        cpus = rescale::rescale(experiment, machine);
        diagnostics.extend(meaning(experiment, source, &found.places, &cpus));
    }
    match experiment {
        Some(experiment) if diagnostics.is_empty() => {
            Ok(Read { experiment, text: source.text.to_string(), layouts, cpus })
        }
        _ => {
            output::error(&layout::render(&diagnostics, &layouts.sources));
            let count = diagnostics.len();
            let errors = if count == 1 { "1 error".to_owned() } else { format!("{count} errors") };
            let failure = Failure::usage(format!("{} has {errors}; nothing was run", source.name));
            Err(Failure { diagnostics, ..failure })
        }
    }
}

fn meaning(
    experiment: &Experiment,
    source: &Source,
    places: &Places,
    cpus: &Result<Rescaled, String>,
) -> Vec<Diagnostic> {
    // what this machine lacks is no error of the file: its names are checked as on the study's machine
    let cpus = cpus.clone().unwrap_or_else(|_| rescale::anywhere(experiment));
    let (groups, of_machine) = (run::group_figures(), run::machine_figures());
    let known = CheckContext {
        cpus: &cpus,
        facts: &system::Live,
        group_figures: &groups,
        machine_figures: &of_machine,
    };
    experiment::check(experiment, source, places, &known)
}

fn check(of: &Path, as_json: bool) -> Result<(), Failure> {
    let machine = Machine::live()?;
    let source = source(of)?;
    let read = read(&source, &machine, None);
    let Read { experiment, cpus, .. } = read?;
    if as_json {
        let notes: Vec<Value> = experiment::gate_notes(&experiment)
            .iter()
            .map(|note| json!({ "note": note, "text": note.to_string() }))
            .collect();
        let spans = experiment::spans(&experiment);
        return output::json(&json!({ "diagnostics": [], "notes": notes, "spans": spans }));
    }
    let lengths = experiment::Lengths::of(&experiment, false);
    let cells = experiment.condition.len() * experiment.load.len().max(1);
    let mut text = format!(
        "{}: no error; {} of {} conditions{}, {} each after a warm-up\n",
        source.name,
        runs(cells * lengths.repetitions as usize),
        experiment.condition.len(),
        match experiment.load.len() {
            0 => String::new(),
            loads => format!(" under {loads} loads"),
        },
        each_run(&experiment, &lengths),
    );
    for (option, quick) in [("", false), (" --quick", true)] {
        let lengths = experiment::Lengths::of(&experiment, quick);
        let seconds = experiment::planned_seconds(&experiment, &lengths);
        text += &format!("lab run{option}: about {}\n", studies::about(seconds));
        if let Some(why) = experiment::Plan::of(&experiment, lengths.repetitions).too_few() {
            text += &format!("warning: with lab run{option}, {why}\n");
        }
    }
    let mut measures: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (measure, span) in experiment::spans(&experiment) {
        measures.entry(span).or_default().push(measure);
    }
    for (span, measures) in measures {
        text += &format!("over {span}: {}\n", measures.join(", "));
    }
    for note in experiment::gate_notes(&experiment) {
        text += &format!("note: {note}\n");
    }
    match cpus {
        Ok(cpus) => {
            let mut here = experiment.clone();
            let left_out = experiment::leave_out(&mut here, &cpus, machine.online().len());
            let words = |notes: &[Note]| notes.iter().map(Note::to_string).collect::<Vec<String>>();
            // if nothing is left, that is why
            let left_out = left_out.map_or_else(|why| vec![why], |notes| words(&notes));
            let notes = words(&cpus.notes).into_iter().chain(left_out);
            notes.for_each(|note| text += &format!("note: {note}\n"));
        }
        Err(why) => text += &format!("note: not reproducible here: {why}\n"),
    }
    output::text(&text)
}

/// How long what counts of each run is.
fn each_run(experiment: &Experiment, lengths: &experiment::Lengths) -> String {
    let seconds = format!("{} s", lengths.duration.as_secs_f64());
    let mut measured = experiment.workload.values().map(|workload| &workload.driver);
    let some = measured.clone().any(file::Driver::runs_to_its_end);
    match (some, measured.all(file::Driver::runs_to_its_end)) {
        (false, _) => seconds,
        (true, true) => format!("as long as their commands take (planned: {seconds})"),
        (true, false) => format!("{seconds} and until their commands have ended"),
    }
}

fn runs(count: usize) -> String {
    if count == 1 { "1 run".to_owned() } else { format!("{count} runs") }
}

/// Which experiment is run, and where its results go.
struct Task {
    source: Source,
    /// The layouts as an earlier run recorded them.
    recorded: Option<BTreeMap<String, String>>,
    /// The results that are continued.
    resume: Option<Arc<OwnDirectory>>,
}

impl Task {
    fn of(args: &LabRun) -> Result<Task, Failure> {
        let Some(directory) = &args.resume else {
            let source = source(args.experiment.as_deref().unwrap_or(Path::new("")))?;
            return Ok(Task { source, recorded: None, resume: None });
        };
        let own = OwnDirectory::open(directory).map_err(failed)?;
        let text = run::text_in(&own).map_err(failed)?;
        let name = own.path().join("experiment.toml");
        let recorded = run::layouts_in(&own).map_err(failed)?;
        let source = Source::new(&name.display().to_string(), &text);
        Ok(Task { source, recorded: Some(recorded), resume: Some(Arc::new(own)) })
    }
}

/// Where results of a run that is none other's continuation go.
fn new_directory(args: &LabRun, experiment: &Experiment) -> PathBuf {
    let given = args.directory.clone().filter(|directory| !directory.as_os_str().is_empty());
    given.unwrap_or_else(|| {
        let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string().replace(':', "");
        PathBuf::from("ringfence-results").join(format!("{}-{now}", experiment.name))
    })
}

fn run(args: &LabRun, as_json: bool) -> Result<u8, Failure> {
    if !rustix::process::geteuid().is_root() {
        return Err(
            Failure::new("an experiment makes groups, which needs root").hint("sudo ringfence lab run …")
        );
    }
    let machine = Machine::live()?;
    let Task { source, recorded, resume } = Task::of(args)?;
    let Read { experiment, text, layouts, cpus } = read(&source, &machine, recorded)?;
    let host = host()?;
    clean_up(&host)?;
    let not_here = |why| Failure::new(format!("not reproducible here: {why}")).code(NOT_HERE);
    let cpus = cpus.map_err(not_here)?;
    let directory = match &resume {
        Some(own) => own.path().to_owned(),
        None => {
            warn_of_lengths(&experiment, args);
            new_directory(args, &experiment)
        }
    };
    let stop = stop_on_signals()?;
    let mut progress = progress::Progress::new();
    let done = run::run(
        &host,
        &machine,
        Request {
            experiment,
            cpus,
            text,
            layouts: layouts.texts,
            notes: layouts.notes,
            quick: args.quick,
            repetitions: args.repetitions,
            seed: args.seed,
            gates: run::GivenGates {
                foreign_cpu: args.foreign_cpu,
                steal: args.steal,
                variation: args.variation,
                retries: args.retries,
            },
            built_in: args.built_in,
            move_others: args.move_others,
            device: args.device.clone(),
            directory: directory.clone(),
            resume,
            program: Program::this("worker"),
            stop: Stop::new(stop),
            progress: &mut |step| progress.show(step),
        },
    );
    progress.end();
    let results = match done {
        Ok(results) => results,
        Err(error) if error.is_interruption() => return Err(interrupted(&directory)),
        Err(error) => {
            show_what_there_is(&directory, as_json)?;
            return Err(failed(error));
        }
    };
    show(&results, &OwnDirectory::open(&directory).map_err(failed)?, as_json)?;
    Ok(if results.complete { 0 } else { ATTENTION })
}

/// Of an experiment that failed; who stops one wants it to end at once.
fn show_what_there_is(directory: &Path, as_json: bool) -> Result<(), Failure> {
    if let Ok(own) = OwnDirectory::open(directory)
        && let Ok(results) = run::results(&own)
    {
        draw(&results, &own)?;
        if results.complete && !as_json {
            output::text(&text::of(&results, own.path()))?;
        }
    }
    Ok(())
}

fn interrupted(directory: &Path) -> Failure {
    let failure = Failure::new("interrupted; everything was rolled back").code(INTERRUPTED);
    if !OwnDirectory::open(directory).is_ok_and(|own| run::has_runs(&own)) {
        return failure;
    }
    let directory = directory.display().to_string();
    failure.hint(format!(
        "{} continues it, {} draws what there is",
        Command::ringfence("lab run --resume").arg(&directory),
        Command::ringfence("lab report").arg(&directory)
    ))
}

/// Before hours are spent: what the runs can't show, and an option that changes nothing.
fn warn_of_lengths(experiment: &Experiment, args: &LabRun) {
    if args.quick && experiment.quick == Default::default() {
        output::warning("the experiment has no [quick]: --quick changes nothing");
    }
    let lengths = experiment::Lengths::of(experiment, args.quick);
    let repetitions = args.repetitions.unwrap_or(lengths.repetitions);
    if let Some(why) = experiment::Plan::of(experiment, repetitions).too_few() {
        output::warning(&why);
    }
}

/// Draws the report, and prints what it says first.
fn show(results: &Results, directory: &OwnDirectory, as_json: bool) -> Result<(), Failure> {
    draw(results, directory)?;
    if as_json { output::json(results) } else { output::text(&text::of(results, directory.path())) }
}

fn draw(results: &Results, directory: &OwnDirectory) -> Result<(), Failure> {
    write(directory, report::files(results, &absolute(directory.path())).map_err(Failure::new)?)
}

/// For commands that are to work from anywhere.
fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

fn write(directory: &OwnDirectory, files: Vec<report::File>) -> Result<(), Failure> {
    files.iter().try_for_each(|file| directory.write(&file.path, &file.bytes)).map_err(failed)
}

fn open_results(directory: &Path) -> Result<(OwnDirectory, Results), Failure> {
    let own = OwnDirectory::open(directory).map_err(failed)?;
    let results = run::results(&own).map_err(failed)?;
    Ok((own, results))
}

fn report(directory: &Path, as_json: bool) -> Result<(), Failure> {
    let (own, results) = open_results(directory)?;
    show(&results, &own, as_json)
}

fn compare(baseline: &Path, directory: &Path, as_json: bool) -> Result<(), Failure> {
    let ((_, one), (_, other)) = (open_results(baseline)?, open_results(directory)?);
    if one.experiment.name != other.experiment.name {
        return Err(Failure::usage(format!(
            "{} is of the experiment '{}', {} of '{}': only results of the same experiment are compared",
            baseline.display(),
            one.experiment.name,
            directory.display(),
            other.experiment.name
        )));
    }
    let (name, other_name) = (baseline.display().to_string(), directory.display().to_string());
    let compared = report::compare(
        report::Named { name: &name, results: &one },
        report::Named { name: &other_name, results: &other },
    );
    if as_json {
        let cells = compared
            .cells
            .iter()
            .map(|beside| json!({ "first": beside.first, "second": beside.second, "ratio": beside.ratio, "interval": beside.interval }));
        let cells: Vec<_> = cells.collect();
        return output::json(
            &json!({ "names": compared.names, "cells": cells, "differs": compared.differs }),
        );
    }
    output::text(&printable_lines(&compared.markdown()))
}

fn clean(as_json: bool) -> Result<(), Failure> {
    let cleaned = run::clean(&host()?).map_err(failed)?;
    if as_json {
        output::json(&cleaned)?;
    } else {
        let removed = cleaned.removed.iter().map(|what| format!("removed {what}\n"));
        output::text(&removed.collect::<String>())?;
    }
    left(&cleaned)
}

/// Where there may be something to remove, and the right to do it.
fn clean_up_if_root() -> Result<(), Failure> {
    if rustix::process::geteuid().is_root() { clean_up(&host_even_unmounted()?) } else { Ok(()) }
}

/// Before anything else is made.
fn clean_up(host: &Host) -> Result<(), Failure> {
    let cleaned = run::clean(host).map_err(failed)?;
    for what in &cleaned.removed {
        output::warning(&format!("a killed experiment left {what} behind: removed"));
    }
    left(&cleaned)
}

fn left(cleaned: &run::Cleaned) -> Result<(), Failure> {
    if cleaned.left.is_empty() {
        return Ok(());
    }
    let why = cleaned.left.join("; ");
    let failure = Failure::new(format!("cannot remove what a killed experiment left behind: {why}"));
    Err(cleaned.hint().into_iter().fold(failure.code(ATTENTION), Failure::hint))
}

fn failed(error: lab::Error) -> Failure {
    let failure = Failure::new(&error);
    let failure = error.hint().into_iter().fold(failure, Failure::hint);
    let of_run = match &error {
        lab::Error::Run { source, .. } => source,
        other => other,
    };
    if matches!(of_run, lab::Error::Workload(workloads::Error::Option { .. })) {
        failure.code(USAGE)
    } else {
        failure
    }
}
