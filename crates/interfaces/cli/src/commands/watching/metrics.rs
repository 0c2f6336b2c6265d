//! `metrics`: one sample as OpenMetrics, or as a text file for a collector; with what was applied to the groups and whether
//! their partitions hold, as far as the kernel and the history show it without a daemon.

use std::{collections::HashSet, io::IsTerminal};

use apply::{Running, State, Target};
use exporters::{
    metrics::{Bounds, Desired, Format, InUnits, Partition, Writer, replace, write},
    view,
};
use kernel::Host;
use monitor::Beat;

use super::{host, sampler};
use crate::{args, failure::Failure, output};

pub fn metrics(args: &args::Metrics) -> Result<(), Failure> {
    let host = host()?;
    let mut sampler = sampler(&host, &args.groups, 1)?;
    let sample = sampler.tick(&host, Beat::default())?;
    // collectors of text files read the older format alone
    let format = if args.textfile.is_some() { Format::Text } else { Format::OpenMetrics };
    let bounds = Bounds { groups: args.most, ..Bounds::default() };
    let mut text = String::new();
    let mut writer = Writer::new(&mut text, format);
    let desired = desired(&host);
    let own: HashSet<&str> =
        desired.iter().flat_map(|all| &all.groups).map(|one| one.group.as_str()).collect();
    let groups = sample.groups.rows();
    let in_units = InUnits::of(desired.as_ref(), groups);
    let are = in_units.are();
    write(sample, bounds, &|group| own.contains(group) || are.contains(group), &mut writer);
    in_units.write(&mut writer);
    Partition::write(&Partition::all(&host, groups), bounds, &mut writer);
    if let Some(mut desired) = desired.clone() {
        // those that are gone are named too
        desired.groups.retain(|one| view::is_shown(&one.group, &args.groups));
        desired.write(bounds, &mut writer);
    }
    writer.end();
    match &args.textfile {
        // the format leaves names as they are, and what they hold could write anywhere on a screen
        None if std::io::stdout().is_terminal() => output::text(&printable(&text)),
        None => output::text(&text),
        Some(path) => replace(path, &text)
            .map_err(|error| Failure::new(format!("cannot write {}: {error}", path.display()))),
    }
}

fn printable(text: &str) -> String {
    text.lines().map(|line| units::printable(line) + "\n").collect()
}

/// What was applied; `None` if nothing was, or with a warning if the history can't be read.
fn desired(host: &Host) -> Option<Desired> {
    let state = State::peek(apply::state_directory());
    match apply::status(&state, Target { host, system: &Running::new() }) {
        Ok(statuses) if statuses.is_empty() => None,
        Ok(statuses) => Some(Desired::of(&statuses, |_, _| true)),
        Err(failure) => {
            output::warning(&format!("what was applied is left out: {failure}"));
            None
        }
    }
}
