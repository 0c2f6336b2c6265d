//! The recorder's log: its times, a moment of it, and figures over time.

use std::{
    collections::BTreeMap,
    path::Path,
    time::{Duration, SystemTime},
};

use answers::Problem;
use exporters::view::{self, Numbers, Picture};
use monitor::{Log, Torn, Window};
use topology::Machine;

use crate::{
    api::{
        groups::{self as api, Sample, SampleSource, Series},
        value::Value,
    },
    live::INTERVAL,
    sample::{About, Figures, columns, millis, sample},
};

/// Counters that are read seldom have their rates from readings this far back, at most.
const BACK: Duration = Duration::from_secs(60);
/// Figures of one answer.
const FIGURES: usize = 8;
const POINTS: std::ops::RangeInclusive<usize> = 2..=2000;
/// Samples of one answer that are read at most: a day of one a second.
const READ: usize = 90_000;

/// Which times the log has.
pub fn times(directory: &Path) -> api::Log {
    let shown = directory.display().to_string();
    let nothing = |problem: String, hint: Option<String>| api::Log {
        directory: shown.clone(),
        begins_ms: None,
        ends_ms: None,
        problem: Some(problem),
        hint,
    };
    let found = Log::open(directory).and_then(|log| Ok((log.begins(), log.at(far())?)));
    match found {
        Err(error) => nothing(error.to_string(), error.hint()),
        Ok((_, (None, _))) => nothing("the log is empty".to_owned(), Some("ringfence record".to_owned())),
        Ok((begins, (Some(last), torn))) => api::Log {
            directory: shown.clone(),
            begins_ms: begins.map(millis),
            ends_ms: last.at.map(millis),
            problem: damage(&torn),
            hint: None,
        },
    }
}

fn far() -> SystemTime {
    SystemTime::now() + Duration::from_secs(365 * 86400)
}

fn damage(torn: &[Torn]) -> Option<String> {
    let all: Vec<String> = torn.iter().map(ToString::to_string).collect();
    (!all.is_empty()).then(|| all.join("; "))
}

fn moment(at_ms: u64) -> Result<SystemTime, Problem> {
    let moment = SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(at_ms));
    moment.filter(|_| at_ms < 253_402_300_800_000).ok_or_else(|| Problem::invalid("there is no such time"))
}

/// The last sample of the log that is not after a moment.
///
/// # Errors
/// The log can't be read, or begins later.
pub fn at(directory: &Path, at_ms: u64, figures: &Figures, machine: &Machine) -> Result<Sample, Problem> {
    let log = Log::open(directory)?;
    let (found, torn) = log.at(moment(at_ms)?)?;
    let Some(found) = found else {
        let begins = log.begins().map(|begins| humantime::format_rfc3339_seconds(begins).to_string());
        let problem = Problem::missing("nothing was recorded at that time or before");
        return Err(problem.maybe_hint(begins.map(|begins| format!("the log begins at {begins}"))));
    };
    let (times, mut samples) = log.leading_to(&found, BACK)?;
    let mut window: Option<Window> = None;
    for _ in &times {
        let Some(sample) = samples.next_sample()? else { break };
        window.get_or_insert_with(|| view::window_for(&sample)).push(&sample);
    }
    let window = window.unwrap_or_else(|| {
        let mut window = view::window_for(&found);
        window.push(&found);
        window
    });
    let sight = figures.sight(&window).ok_or_else(|| Problem::missing("the log has no sample there"))?;
    let about =
        About { seq: 0, source: SampleSource::Log, interval: INTERVAL, owners_version: 0, groups_version: 0 };
    let mut sample = sample(sight, machine, about);
    sample.log_problem = damage(&torn);
    Ok(sample)
}

/// Which figures, of whom, from when to when.
pub struct Wanted<'w> {
    /// A group; `None`: the machine.
    pub group: Option<&'w str>,
    /// Names with commas between.
    pub figures: &'w str,
    /// Milliseconds since 1970.
    pub from_ms: u64,
    /// The same.
    pub to_ms: u64,
    /// The largest number of them.
    pub points: usize,
}

/// Figures over time: of more samples than points, those nearest to the points' times.
///
/// # Errors
/// The log can't be read, or there is no such figure.
pub fn series(directory: &Path, wanted: &Wanted<'_>) -> Result<Series, Problem> {
    if !POINTS.contains(&wanted.points) {
        return Err(Problem::invalid("points are 2 to 2000"));
    }
    if wanted.to_ms < wanted.from_ms {
        return Err(Problem::invalid("the end is before the beginning"));
    }
    let names: Vec<String> =
        wanted.figures.split(',').map(|name| full_name(name.trim(), wanted.group)).collect();
    if names.len() > FIGURES {
        return Err(Problem::invalid(format!("at most {FIGURES} figures at once")));
    }
    let mut choices = Vec::new();
    for name in &names {
        choices.extend(view::choices(name).map_err(|error| {
            let hint = error.hint();
            Problem::invalid(error).hint(hint)
        })?);
    }
    let tops: Vec<String> = wanted.group.iter().map(|group| (*group).to_owned()).collect();
    let log = Log::open(directory)?;
    let (from, to) = (moment(wanted.from_ms)?, moment(wanted.to_ms)?);
    let mut samples = log.between(from, Some(to));
    let gap = (wanted.to_ms - wanted.from_ms) / wanted.points as u64;
    let mut series =
        Series { at_ms: Vec::new(), values: BTreeMap::new(), columns: Vec::new(), problem: None };
    let (mut window, mut next, mut read): (Option<Window>, u64, usize) = (None, wanted.from_ms, 0);
    while let Some(sample) = samples.next_sample()? {
        read += 1;
        if read > READ {
            return Err(Problem::invalid("this is more than a day of samples").hint("ask for less time"));
        }
        let window = window.get_or_insert_with(|| view::window_for(&sample));
        window.push(&sample);
        let at = sample.at.map_or(0, millis);
        if at < next || series.at_ms.len() >= wanted.points {
            continue;
        }
        next = at + gap;
        let Some(picture) = Picture::new(window, &choices, Numbers::Figures, &tops) else { continue };
        add(&mut series, &picture, wanted.group, at);
    }
    series.problem = damage(samples.torn());
    Ok(series)
}

fn full_name(name: &str, group: Option<&str>) -> String {
    let is_machines = group.is_none() && !name.starts_with("machine.");
    if is_machines { format!("machine.{name}") } else { name.to_owned() }
}

fn add(series: &mut Series, picture: &Picture, group: Option<&str>, at: u64) {
    let before = series.at_ms.len();
    series.at_ms.push(at);
    let (headings, values): (Vec<_>, Vec<_>) = match group {
        None => picture.machine.iter().cloned().unzip(),
        Some(group) => {
            let row = picture.rows.iter().find(|row| row.group == group);
            let values = row.map(|row| row.values.clone()).unwrap_or_default();
            (picture.headings.clone(), values)
        }
    };
    for column in columns(&headings) {
        if !series.columns.iter().any(|known| known.name == column.name) {
            series.columns.push(column);
        }
    }
    for (heading, value) in headings.iter().zip(values) {
        let list = series.values.entry(heading.name.clone()).or_default();
        list.resize(before, Value::Missing);
        list.push(value.into());
    }
    for list in series.values.values_mut() {
        list.resize(before + 1, Value::Missing);
    }
}
