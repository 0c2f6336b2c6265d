//! `watch --tasks`: where the tasks of groups ran last, how much they ran and how long they waited.

use std::{
    collections::BTreeSet,
    time::{Instant, SystemTime},
};

use exporters::view::{self, Ran};
use kernel::{GroupName, Host};
use monitor::Task;
use serde_json::json;

use super::{
    beats::Beats,
    host, names,
    printer::{headline, line},
    time,
};
use crate::{args, failure::Failure, output};

pub fn tasks(args: &args::Pictures, as_json: bool) -> Result<(), Failure> {
    let names = names(&args.groups)?;
    let host = host()?;
    let mut beats = Beats::new(args.interval)?;
    let mut before: Option<(Instant, Vec<Task>)> = None;
    let mut left = if args.once { Some(1) } else { args.count };
    let (mut first, mut trail) = (true, view::Trail::default());
    while let Some(beat) = beats.next()? {
        let (clock, at) = (Instant::now(), SystemTime::now());
        let now = all(&host, &names)?;
        if let Some((was, before)) = &before {
            let mut ran = view::ran_between(before, now.clone(), clock.duration_since(*was));
            trail.follow(&mut ran);
            let cpus = view::cpus_of(&ran);
            if as_json {
                let late = beat.late.as_secs_f64();
                line(
                    &json!({ "at": time(Some(at)), "late_sec": late, "missed": beat.missed, "cpus": cpus, "tasks": ran }),
                )?;
            } else {
                let more = match ran.is_empty() {
                    true => "  no task".to_owned(),
                    false => format!("  {}, last on CPU {cpus}", units::counted(ran.len(), "task")),
                };
                let head = headline(Some(at), beat, std::mem::take(&mut first), &more);
                output::text(&format!(
                    "{head}{}{}",
                    view::task_table(&ran),
                    differences(&host, &names, &ran)
                ))?;
            }
            left = left.map(|left| left - 1);
            if left == Some(0) {
                break;
            }
        }
        before = Some((clock, now));
    }
    Ok(())
}

/// A line for each named group whose tasks are not the same in all of its hierarchies.
fn differences(host: &Host, names: &[GroupName], tasks: &[Ran]) -> String {
    let names: BTreeSet<String> = names.iter().map(ToString::to_string).collect();
    let below = tasks.iter().map(|ran| ran.task.group.as_str());
    let groups: BTreeSet<&str> = names.iter().map(String::as_str).chain(below).collect();
    let groups: Vec<&str> = groups.into_iter().collect();
    let line = |(group, members): (String, monitor::Members)| {
        let differences = members.differences().filter(|_| names.contains(&group))?;
        Some(format!("note: tasks of {} by hierarchy: {differences}\n", units::printable(&group)))
    };
    monitor::members(host, &groups).into_iter().filter_map(line).collect()
}

fn all(host: &Host, names: &[GroupName]) -> Result<Vec<Task>, Failure> {
    let mut all: Vec<Task> = Vec::new();
    for name in names {
        for task in monitor::tasks(host, name)? {
            // a group and one below it may both be named
            if !all.iter().any(|known| known.process.pid == task.process.pid) {
                all.push(task);
            }
        }
    }
    Ok(all)
}
