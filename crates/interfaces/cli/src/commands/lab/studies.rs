//! The studies that come with the program: their list, and which one a name means.

use std::collections::BTreeSet;

use experiment::{Experiment, Lengths};
use layout::Source;
use serde::Serialize;
use serde_json::json;

use crate::{
    failure::Failure,
    output,
    studies::{STUDIES, Study},
};

pub fn find(name: &str) -> Result<&'static Study, Failure> {
    STUDIES.iter().find(|study| study.name == name).ok_or_else(|| {
        let near = units::nearest(name, STUDIES.iter().map(|study| study.name));
        let failure = Failure::usage(format!("there is no study and no file '{name}'"));
        match near.as_slice() {
            [] => failure.hint("ringfence lab list shows the studies; a file's name ends in .toml"),
            near => failure.hint(format!("did you mean {}?", near.join(" or "))),
        }
    })
}

pub fn show(name: &str, as_json: bool) -> Result<(), Failure> {
    let study = find(name)?;
    match as_json {
        true => output::json(&json!({ "study": study.name, "text": study.text })),
        false => output::text(study.text),
    }
}

pub fn list(as_json: bool) -> Result<(), Failure> {
    let read = |study: &Study| {
        let read = experiment::read(&Source::new(study.name, study.text));
        read.experiment.map(|experiment| Entry::of(study.name, &experiment))
    };
    let all: Vec<Entry> = STUDIES.iter().filter_map(read).collect();
    if as_json {
        return output::json(&json!({ "studies": all }));
    }
    let mut text =
        format!("{:16}  {:>7}  {:>7}  {:10}  {:13}  TITLE\n", "STUDY", "QUICK", "FULL", "TOOLS", "NEEDS");
    for one in &all {
        let tools = if one.tools.is_empty() { "-".to_owned() } else { one.tools.join(" ") };
        let (quick, full) = (about(one.quick_seconds), about(one.seconds));
        text += &format!(
            "{:16}  {quick:>7}  {full:>7}  {tools:10}  {:13}  {}\n",
            one.name,
            one.needs(),
            one.title
        );
    }
    output::text(&text)
}

/// A study as it is listed.
#[derive(Serialize)]
struct Entry {
    name: &'static str,
    title: String,
    /// Of all runs with `--quick`, as planned.
    #[serde(rename = "quick_planned_sec")]
    quick_seconds: f64,
    /// Of all runs.
    #[serde(rename = "planned_sec")]
    seconds: f64,
    tools: Vec<&'static str>,
    needs_cpus: u32,
    needs_nodes: u32,
}

impl Entry {
    fn of(name: &'static str, experiment: &Experiment) -> Entry {
        let seconds =
            |quick| experiment::planned_seconds(experiment, &Lengths::of(experiment, quick)).round();
        let loads = experiment.load.iter().flat_map(|load| &load.workload);
        let tools = experiment
            .workload
            .values()
            .chain(loads)
            .filter_map(|one| one.driver.row().tool)
            .map(|tool| tool.title);
        let tools: BTreeSet<&str> = tools.collect();
        let machine = experiment.machine.as_ref();
        Entry {
            name,
            title: experiment.title.clone(),
            quick_seconds: seconds(true),
            seconds: seconds(false),
            tools: tools.into_iter().collect(),
            needs_cpus: machine.map_or(1, |machine| machine.needs_cpus),
            needs_nodes: machine.map_or(1, |machine| machine.needs_nodes),
        }
    }

    fn needs(&self) -> String {
        let count = |count: u32, of: &str| match count {
            1 => format!("1 {of}"),
            many => format!("{many} {of}s"),
        };
        match self.needs_nodes {
            0 | 1 => count(self.needs_cpus, "CPU"),
            nodes => count(nodes, "NUMA node"),
        }
    }
}

/// `140 s`, `20 min`, `1h05min`.
pub fn about(seconds: f64) -> String {
    if seconds < 300.0 {
        return format!("{:.0} s", seconds.max(1.0));
    }
    let minutes = (seconds / 60.0).ceil().max(1.0) as u64;
    match (minutes / 60, minutes % 60) {
        (0, minutes) => format!("{minutes} min"),
        (hours, 0) => format!("{hours} h"),
        (hours, minutes) => format!("{hours}h{minutes:02}min"),
    }
}
