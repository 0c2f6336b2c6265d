//! `lab`: experiments, from their file to their results.

mod layouts;
mod progress;
mod studies;
mod text;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::SystemTime,
};

use experiment::{Experiment, Known, Places, Results, rescale};
use kernel::Host;
use lab::{
    Program,
    run::{self, Request},
};
use layout::{Diagnostic, Source};
use serde_json::json;
use topology::Machine;

use self::layouts::Layouts;
use super::{host, host_even_unmounted, stop_on_signals};
use crate::{
    args::{Lab, LabCommand, LabRun},
    failure::{ATTENTION, Failure, INTERRUPTED, USAGE},
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
        LabCommand::Show { study } => output::text(studies::find(study)?.text)?,
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
    let text = std::fs::read_to_string(of)
        .map_err(|error| Failure::new(format!("cannot read {}: {error}", of.display())))?;
    Ok(Source::new(&of.display().to_string(), &text))
}

/// Reads and checks it; everything that is wrong is told. Its layouts are read by their paths, or are `kept` already.
fn read(source: &Source, machine: &Machine, kept: Option<BTreeMap<String, String>>) -> Result<Read, Failure> {
    let found = experiment::read(source);
    let (mut experiment, mut diagnostics) = (found.experiment, found.diagnostics);
    let mut layouts = Layouts::from(source, kept);
    if let Some(experiment) = &mut experiment {
        diagnostics.extend(layouts.add(experiment, &found.places, machine));
        diagnostics.extend(meaning(experiment, source, &found.places, machine));
    }
    match experiment {
        Some(experiment) if diagnostics.is_empty() => {
            Ok(Read { experiment, text: source.text.to_string(), layouts })
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

fn meaning(experiment: &Experiment, source: &Source, places: &Places, machine: &Machine) -> Vec<Diagnostic> {
    // what can't be had here is no mistake of the file: its names are checked as on the study's machine
    let cpus = rescale::rescale(experiment, machine).unwrap_or_else(|_| rescale::anywhere(experiment));
    let (groups, of_machine) = (run::group_figures(), run::machine_figures());
    let known =
        Known { cpus: &cpus, facts: &system::Live, group_figures: &groups, machine_figures: &of_machine };
    experiment::check(experiment, source, places, &known)
}

fn check(of: &Path, as_json: bool) -> Result<(), Failure> {
    let machine = Machine::live()?;
    let source = source(of)?;
    let read = read(&source, &machine, None);
    if as_json {
        let diagnostics = read.as_ref().err().map(|failure| &failure.diagnostics[..]).unwrap_or_default();
        output::json(&json!({ "diagnostics": diagnostics }))?;
        return read.map(drop);
    }
    let Read { experiment, .. } = read?;
    let lengths = experiment::Lengths::of(&experiment, false);
    let cells = experiment.condition.len() * experiment.load.len().max(1);
    let mut text = format!(
        "{}: no error; {} of {} conditions{}, {} s each after a warm-up\n",
        source.name,
        runs(cells * lengths.repetitions as usize),
        experiment.condition.len(),
        match experiment.load.len() {
            0 => String::new(),
            loads => format!(" under {loads} loads"),
        },
        lengths.duration.as_secs_f64(),
    );
    match rescale::rescale(&experiment, &machine) {
        Ok(cpus) => {
            let mut here = experiment.clone();
            let left_out = experiment::here(&mut here, &cpus, machine.online().len());
            // if nothing is left, that is why
            let left_out = left_out.unwrap_or_else(|why| vec![why]);
            cpus.notes.iter().chain(&left_out).for_each(|note| text += &format!("note: {note}\n"));
        }
        Err(why) => text += &format!("note: not reproducible here: {why}\n"),
    }
    output::text(&text)
}

fn runs(count: usize) -> String {
    if count == 1 { "1 run".to_owned() } else { format!("{count} runs") }
}

fn run(args: &LabRun, as_json: bool) -> Result<u8, Failure> {
    if !rustix::process::geteuid().is_root() {
        return Err(
            Failure::new("an experiment makes groups, which needs root").hint("sudo ringfence lab run …")
        );
    }
    let machine = Machine::live()?;
    let (source, kept, directory) = match &args.resume {
        Some(directory) => {
            let text = run::text_in(directory).map_err(failed)?;
            let name = directory.join("experiment.toml");
            let kept = run::layouts_in(directory).map_err(failed)?;
            (Source::new(&name.display().to_string(), &text), Some(kept), directory.clone())
        }
        None => {
            let source = source(args.experiment.as_deref().unwrap_or(Path::new("")))?;
            (source, None, args.directory.clone().unwrap_or_default())
        }
    };
    let Read { experiment, text, layouts } = read(&source, &machine, kept)?;
    let host = host()?;
    clean_up(&host)?;
    if let Err(why) = rescale::rescale(&experiment, &machine) {
        return Err(Failure::new(format!("not reproducible here: {why}")).code(NOT_HERE));
    }
    let named = || {
        let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string().replace(':', "");
        PathBuf::from("ringfence-results").join(format!("{}-{now}", experiment.name))
    };
    let directory = if directory.as_os_str().is_empty() { named() } else { directory };
    let stop = stop_on_signals()?;
    let mut progress = progress::Progress::new();
    let done = run::run(
        &host,
        &machine,
        Request {
            experiment,
            text,
            layouts: layouts.texts,
            notes: layouts.notes,
            quick: args.quick,
            repetitions: args.repetitions,
            seed: args.seed,
            built_in: args.built_in,
            move_others: args.move_others,
            device: args.device.clone(),
            directory: directory.clone(),
            resume: args.resume.is_some(),
            program: Program::this("worker"),
            stop: &stop,
            progress: &mut |step| progress.tell(step),
        },
    );
    progress.end();
    if done.is_err()
        && let Ok(results) = run::results(&directory)
    {
        // what there is of an experiment that ended early can be looked at
        draw(&results, &directory)?;
    }
    let results = match done {
        Ok(results) => results,
        Err(lab::Error::Interrupted) => {
            let failure = Failure::new("interrupted; everything is put back").code(INTERRUPTED);
            return Err(match directory.join("runs.jsonl").exists() {
                true => failure.hint(format!("go on by ringfence lab run --resume {}", directory.display())),
                false => failure,
            });
        }
        Err(error) => return Err(failed(error)),
    };
    tell(&results, &directory, as_json)?;
    Ok(if results.complete { 0 } else { ATTENTION })
}

/// Draws the report, and prints what it says first.
fn tell(results: &Results, directory: &Path, as_json: bool) -> Result<(), Failure> {
    draw(results, directory)?;
    if as_json { output::json(results) } else { output::text(&text::of(results, directory)) }
}

fn draw(results: &Results, directory: &Path) -> Result<(), Failure> {
    write(directory, report::files(results).map_err(Failure::new)?)
}

fn write(directory: &Path, files: Vec<report::File>) -> Result<(), Failure> {
    for file in files {
        let path = directory.join(&file.path);
        let made = path.parent().map_or(Ok(()), std::fs::create_dir_all);
        made.and_then(|()| std::fs::write(&path, &file.bytes))
            .map_err(|error| Failure::new(format!("cannot write {}: {error}", path.display())))?;
    }
    Ok(())
}

fn report(directory: &Path, as_json: bool) -> Result<(), Failure> {
    tell(&run::results(directory).map_err(failed)?, directory, as_json)
}

fn compare(baseline: &Path, directory: &Path, as_json: bool) -> Result<(), Failure> {
    let (one, other) = (run::results(baseline).map_err(failed)?, run::results(directory).map_err(failed)?);
    let (name, other_name) = (baseline.display().to_string(), directory.display().to_string());
    let compared = report::compare(
        report::Named { name: &name, results: &one },
        report::Named { name: &other_name, results: &other },
    );
    if as_json {
        let cells = compared
            .cells
            .iter()
            .map(|beside| json!({ "first": beside.first, "second": beside.second, "ratio": beside.ratio }));
        let cells: Vec<_> = cells.collect();
        return output::json(
            &json!({ "names": compared.names, "cells": cells, "differs": compared.differs }),
        );
    }
    output::text(&compared.markdown())
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
        output::warning(&format!("a killed experiment had left {what}: removed"));
    }
    left(&cleaned)
}

fn left(cleaned: &run::Cleaned) -> Result<(), Failure> {
    match cleaned.left.first() {
        None => Ok(()),
        Some(why) => {
            Err(Failure::new(format!("what a killed experiment left can't be removed: {why}"))
                .code(ATTENTION))
        }
    }
}

fn failed(error: lab::Error) -> Failure {
    let failure = Failure::new(&error);
    let failure = error.hint().into_iter().fold(failure, Failure::hint);
    if matches!(error, lab::Error::Option { .. }) { failure.code(USAGE) } else { failure }
}
