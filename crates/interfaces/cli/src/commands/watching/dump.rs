//! `dump`: what was recorded, between two moments.

use std::time::SystemTime;

use exporters::{
    metrics::{Bounds, History, Selection},
    view::{self, Numbers, Of, Picture},
};
use monitor::{Log, Window};

use super::{chosen, directory, printer::Printer, time, warn_of, watch::BACK};
use crate::{args, failure::Failure, output};

pub fn dump(args: &args::Dump, as_json: bool) -> Result<(), Failure> {
    if args.openmetrics && as_json {
        return Err(Failure::usage("use --openmetrics or --json, not both"));
    }
    let since = args.since.unwrap_or(SystemTime::UNIX_EPOCH);
    if args.until.is_some_and(|until| until < since) {
        return Err(Failure::usage(format!("{} is before {}", time(args.until), time(args.since)))
            .hint("--since names the earlier moment"));
    }
    let directory = directory(&args.log);
    let log = Log::open(&directory)?;
    let shown =
        if args.openmetrics { metrics(args, &log, since)? } else { figures(args, as_json, &log, since)? };
    if !shown {
        output::warning(&nothing(args, &log));
    }
    Ok(())
}

fn nothing(args: &args::Dump, log: &Log) -> String {
    let of = if args.groups.is_empty() { "" } else { " of these groups" };
    match log.begins() {
        Some(begin) => {
            format!("nothing was recorded{of} in that time; the log begins at {}", time(Some(begin)))
        }
        None => "the log is empty".to_owned(),
    }
}

/// A picture per sample; whether there was any.
fn figures(args: &args::Dump, as_json: bool, log: &Log, since: SystemTime) -> Result<bool, Failure> {
    let choices = chosen(&args.fields)?;
    if let Some(worked_out) = choices.iter().find(|choice| matches!(choice.of, Of::Derived(_)))
        && args.raw
        && !args.fields.is_empty()
    {
        return Err(Failure::usage(format!("{} is worked out of several fields", worked_out.of.name()))
            .hint("leave --raw away, or name fields alone"));
    }
    let numbers = if args.raw { Numbers::Raw } else { Numbers::Figures };
    let mut printer = Printer::new(args.csv, as_json)?;
    let mut window: Option<Window> = None;
    let mut any = false;
    // rates have their beginning before the first moment
    let mut samples = log.between(since.checked_sub(BACK).unwrap_or(since), args.until);
    while let Some(sample) = samples.next_sample()? {
        let window = window.get_or_insert_with(|| view::window_for(&sample));
        window.push(&sample);
        if sample.at < Some(since) {
            continue;
        }
        if let Some(picture) = Picture::new(window, &choices, numbers, &args.groups) {
            any |= !picture.rows.is_empty() || !picture.machine.is_empty();
            printer.print(&picture)?;
        }
    }
    warn_of(samples.torn());
    Ok(any)
}

/// Raw numbers with their times; whether there was any sample.
fn metrics(args: &args::Dump, log: &Log, since: SystemTime) -> Result<bool, Failure> {
    let choices = chosen(&args.fields)?;
    let is_chosen = |field: &'static monitor::Field| {
        let is_it = |of: &Of| matches!(of, Of::Group(one) | Of::Machine(one) if *one == field);
        args.fields.is_empty() || choices.iter().any(|choice| is_it(&choice.of))
    };
    let is_shown = |group: &str| view::is_shown(group, &args.groups);
    let wanted = Selection { field: &is_chosen, group: &is_shown };
    let mut history = History::default();
    let mut any = false;
    let mut samples = log.between(since, args.until);
    while let Some(sample) = samples.next_sample()? {
        any |= args.groups.is_empty() || sample.groups.rows().iter().any(|group| is_shown(group));
        history.add(&sample, Bounds::default(), &wanted);
    }
    warn_of(samples.torn());
    output::text(&history.text())?;
    Ok(any)
}
