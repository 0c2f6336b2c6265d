//! `watch`: pictures of the groups one after the other, or one of the log.

use std::time::{Duration, SystemTime};

use exporters::view::{self, Choice, Numbers, Of, Part, Picture};
use kernel::Host;
use monitor::{Log, Perf, Window};

use super::{beats::Beats, chosen, directory, host, names, printer::Printer, sampler, tasks, time, warn_of};
use crate::{args, failure::Failure, output};

/// Counters that are read seldom have their rates from readings this far back, at most.
pub const BACK: Duration = Duration::from_secs(300);

pub fn watch(args: &args::Watch, as_json: bool) -> Result<(), Failure> {
    match args.tasks {
        true => tasks::tasks(&args.pictures, as_json),
        false => pictures(&args.pictures, args.perf, as_json),
    }
}

/// `counts`: with the events that the kernel counts.
pub fn pictures(args: &args::Pictures, counts: bool, as_json: bool) -> Result<(), Failure> {
    let mut printer = Printer::new(args.csv, as_json)?;
    let mut choices = chosen(&args.fields)?;
    let sort = args.sort.as_deref().map(|name| sorted_by(name, &mut choices)).transpose()?;
    let mut show = |window: &Window, tops: &[String], live: Option<(&Host, Option<&Perf>)>| {
        let Some(mut picture) = Picture::new(window, &choices, Numbers::Figures, tops) else { return Ok(()) };
        if let Some((host, perf)) = live {
            picture.name_devices(&choices, system::block_device_name);
            view::complete(&mut picture, host);
            perf.inspect(|perf| view::add_events(&mut picture, perf));
        }
        if let Some(sort) = &sort {
            picture.sort_by(sort);
        }
        printer.print(&picture)
    };
    match args.at {
        Some(moment) => show(&recorded(args, moment)?, &args.groups, None),
        None => live(args, counts, &choices, |host, window, perf| show(window, &[], Some((host, perf)))),
    }
}

/// A picture per beat; the first beat only begins the rates.
fn live(
    args: &args::Pictures,
    counts: bool,
    choices: &[Choice],
    mut show: impl FnMut(&Host, &Window, Option<&Perf>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let host = host()?;
    // what costs more is read with every sample of a few groups: somebody looks on
    let mut sampler = sampler(&host, &args.groups, 1)?;
    sampler.only(&host, |field| choices.iter().any(|choice| choice.of.needs(field)));
    let mut perf = if counts { Some(Perf::new(&host, &names(&args.groups)?)?) } else { None };
    let mut beats = Beats::new(args.interval)?;
    let mut window = None;
    let mut left = if args.once { Some(1) } else { args.count };
    while let Some(beat) = beats.next()? {
        let sample = sampler.tick(&host, beat)?;
        if let Some(perf) = &mut perf {
            perf.look(&host, sample.groups.rows());
        }
        match &mut window {
            None => {
                let uncounted = perf.as_ref().map(Perf::uncounted).unwrap_or_default();
                uncounted.iter().for_each(|events| output::warning(&events.to_string()));
                let mut first = view::window_for(sample);
                first.push(sample);
                window = Some(first);
                // once more all of every group, so that each counter has a rate from the first picture on
                sampler.refresh();
            }
            Some(window) => {
                window.push(sample);
                show(&host, window, perf.as_ref())?;
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
fn recorded(args: &args::Pictures, moment: SystemTime) -> Result<Window, Failure> {
    let directory = directory(&args.log);
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
    let (times, mut samples) = log.leading_to(&found, BACK)?;
    for _ in times {
        if let Some(sample) = samples.next_sample()? {
            window.push(&sample);
        }
    }
    Ok(window)
}

/// The column by which groups are sorted; it is shown too.
pub fn sorted_by(name: &str, choices: &mut Vec<Choice>) -> Result<String, Failure> {
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
