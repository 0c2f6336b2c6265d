//! `watch`: pictures of the groups one after the other, or one of the log.

use std::time::{Duration, SystemTime};

use watch::{
    Log, Window,
    view::{self, Choice, Numbers, Of, Part, Picture},
};

use super::{beats::Beats, chosen, host, printer::Printer, sampler, tasks, time, warn_of};
use crate::{args, failure::Failure};

/// Counters that are read seldom have their rates from readings this far back, at most.
pub const BACK: Duration = Duration::from_secs(300);

pub fn watch(args: &args::Watch, as_json: bool) -> Result<(), Failure> {
    let mut printer = Printer::new(args.csv, as_json)?;
    if args.tasks {
        return tasks::tasks(args, as_json);
    }
    let mut choices = chosen(&args.fields)?;
    let sort = args.sort.as_deref().map(|name| sorted_by(name, &mut choices)).transpose()?;
    let mut show = |window: &Window, tops: &[String]| {
        let Some(mut picture) = Picture::new(window, &choices, Numbers::Figures, tops) else { return Ok(()) };
        if let Some(sort) = &sort {
            picture.sort_by(sort);
        }
        printer.print(&picture)
    };
    match args.at {
        Some(moment) => show(&recorded(args, moment)?, &args.groups),
        None => live(args, |window| show(window, &[])),
    }
}

/// A picture per beat; the first beat only begins the rates.
fn live(args: &args::Watch, mut show: impl FnMut(&Window) -> Result<(), Failure>) -> Result<(), Failure> {
    let host = host()?;
    // what costs more is read with every sample of a few groups: somebody looks on
    let mut sampler = sampler(&host, &args.groups, 1)?;
    let mut beats = Beats::new(args.interval)?;
    let mut window = None;
    let mut left = if args.once { Some(1) } else { args.count };
    while let Some(beat) = beats.next()? {
        let sample = sampler.tick(&host, beat)?;
        match &mut window {
            None => {
                let mut first = view::window_for(sample);
                first.push(sample);
                window = Some(first);
                // once more all of every group, so that each counter has a rate from the first picture on
                sampler.refresh();
            }
            Some(window) => {
                window.push(sample);
                show(window)?;
                left = left.map(|left| left - 1);
                if left == Some(0) {
                    break;
                }
            }
        }
    }
    Ok(())
}

/// The log up to a moment.
fn recorded(args: &args::Watch, moment: SystemTime) -> Result<Window, Failure> {
    let directory = args.log.directory.clone().unwrap_or_else(watch::log::directory);
    let log = Log::open(&directory)?;
    let (found, torn) = log.at(moment)?;
    warn_of(&torn);
    let Some(found) = found else {
        let failure = Failure::new(format!("nothing was recorded at {} or before", time(Some(moment))));
        return Err(match log.begins() {
            Some(begin) => failure.hint(format!("the log begins at {}", time(Some(begin)))),
            None => failure.hint("ringfence record writes the log"),
        });
    };
    let mut window = view::window_for(&found);
    let begin = found.at.and_then(|at| at.checked_sub(BACK)).unwrap_or(SystemTime::UNIX_EPOCH);
    for sample in log.since(begin) {
        let sample = sample?;
        if sample.at > found.at {
            break;
        }
        window.push(&sample);
    }
    Ok(window)
}

/// The column by which groups are sorted; it is shown too.
fn sorted_by(name: &str, choices: &mut Vec<Choice>) -> Result<String, Failure> {
    let found = view::choices(name)?;
    let [choice] = found.as_slice() else {
        return Err(Failure::usage(format!("'{name}' is {} fields", found.len())).hint("name one of them"));
    };
    if matches!(choice.of, Of::Machine(_)) || choice.part != Part::Sum {
        return Err(Failure::usage(format!("groups can't be sorted by '{name}'"))
            .hint("name a figure of groups, such as cpu.usage"));
    }
    if !choices.contains(choice) {
        choices.push(choice.clone());
    }
    Ok(choice.of.name())
}
