//! What an experiment means: names that must be there, settings, times, figures. Everything that is wrong is reported at
//! once, each with its place. Pure: devices and the machine's size are what the caller knows.

mod isolation;
mod ranges;
mod tables;
mod terms;
mod workloads;

use std::collections::{BTreeMap, BTreeSet, HashSet};

use layout::{Diagnostic, Source};
use settings::{DeviceNumber, Facts};
use units::Bytes;

use crate::{
    Places,
    file::{ChartKind, CpusFrom, Experiment, Measure, Settings},
    measure::names,
    read::MOST_ERRORS,
    rescale::Rescaled,
    times::{Lengths, seconds, within},
    unit,
};

/// What a check knows beside the file.
pub struct CheckContext<'k> {
    /// The named CPUs as they are here.
    pub cpus: &'k Rescaled,
    /// This machine's memory and CPUs, and its devices.
    pub facts: &'k dyn Facts,
    /// Figures of groups beside `cpu`, `memory` and `throttled`, each with its unit.
    pub group_figures: &'k [(&'k str, String)],
    /// Figures of the machine, each with its unit.
    pub machine_figures: &'k [(&'k str, String)],
}

/// Everything that is wrong with it, in the order of the lines.
pub fn check(
    experiment: &Experiment,
    source: &Source,
    places: &Places,
    known: &CheckContext<'_>,
) -> Vec<Diagnostic> {
    let conditions = experiment.condition.iter().map(|one| one.name.as_str()).collect();
    let mut check = Check { experiment, source, places, known, conditions, found: Vec::new() };
    check.names();
    check.lengths();
    check.cpus();
    check.devices();
    check.groups();
    check.workloads();
    check.conditions();
    check.options();
    check.events();
    check.measures();
    check.comparisons();
    check.tables();
    let mut found = check.found;
    found.sort_by_key(|one| one.origin.as_ref().map(|origin| (origin.line, origin.column)));
    found
}

impl CheckContext<'_> {
    /// The unit of a figure of groups or of the machine.
    fn unit(&self, figure: &str) -> Option<String> {
        let all = self.group_figures.iter().chain(self.machine_figures);
        all.clone().find(|(name, _)| *name == figure).map(|(_, unit)| unit.clone())
    }
}

struct Check<'c> {
    experiment: &'c Experiment,
    source: &'c Source,
    places: &'c Places,
    known: &'c CheckContext<'c>,
    /// Looked up for every name, so that many conditions don't cost their square.
    conditions: HashSet<&'c str>,
    found: Vec<Diagnostic>,
}

/// The facts with the experiment's own devices, which are not there yet.
struct WithDevices<'f> {
    facts: &'f dyn Facts,
}

/// Stands for a device that the lab makes later.
const UNMADE: &str = "/dev/made-by-the-lab";

impl Facts for WithDevices<'_> {
    fn memory(&self) -> Option<Bytes> {
        self.facts.memory()
    }

    fn cpus(&self) -> Option<usize> {
        self.facts.cpus()
    }

    fn device(&self, path: &str) -> Result<DeviceNumber, String> {
        if path == UNMADE { Ok(DeviceNumber { major: 7, minor: 0 }) } else { self.facts.device(path) }
    }
}

impl Check<'_> {
    fn error(&mut self, path: &str, message: String, hint: Option<String>) {
        // a place costs a walk through the text
        if self.found.len() >= MOST_ERRORS {
            return;
        }
        let origin = self.source.origin(self.places.value(path));
        self.found.push(Diagnostic::error(message).at(origin).maybe_hint(hint));
    }

    fn error_at_key(&mut self, path: &str, message: String, hint: Option<String>) {
        if self.found.len() >= MOST_ERRORS {
            return;
        }
        let origin = self.source.origin(self.places.key(path));
        self.found.push(Diagnostic::error(message).at(origin).maybe_hint(hint));
    }

    /// A name that must be one of those.
    fn one_of<'n>(&mut self, path: &str, what: &str, name: &str, known: impl Iterator<Item = &'n str>) {
        let known: Vec<&str> = known.collect();
        if !known.contains(&name) {
            self.error(path, format!("there is no {what} '{name}'"), Some(near(name, &known)));
        }
    }

    fn names(&mut self) {
        let plain = |name: &str| {
            !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        };
        let name = &self.experiment.name;
        if !plain(name) || name.len() > 64 {
            self.error(
                "name",
                format!("'{name}' is no name for an experiment"),
                Some("letters, digits and '-', at most 64".to_owned()),
            );
        }
        for of in ["condition", "load", "measure"] {
            let names: Vec<&String> = match of {
                "condition" => self.experiment.condition.iter().map(|one| &one.name).collect(),
                "load" => self.experiment.load.iter().map(|one| &one.name).collect(),
                _ => self.experiment.measure.iter().map(|one| &one.name).collect(),
            };
            let mut seen = BTreeSet::new();
            for (index, name) in names.into_iter().enumerate() {
                if !seen.insert(name) {
                    self.error(&format!("{of}.{index}.name"), format!("{of} '{name}' is given twice"), None);
                }
            }
            if seen.is_empty() && of != "load" {
                self.error_at_key(of, format!("there is no {of}"), None);
            }
        }
        if self.experiment.workload.is_empty() {
            self.error_at_key("workload", "there is no workload".to_owned(), None);
        }
    }

    fn lengths(&mut self) {
        let (usual, quick) = (&self.experiment.lengths, &self.experiment.quick);
        for (before, lengths) in [("", usual), ("quick.", quick)] {
            let times = [
                ("duration", &lengths.duration),
                ("warm-up", &lengths.warm_up),
                ("steady-within", &lengths.steady_within),
                ("sample", &lengths.sample),
            ];
            for (key, text) in times {
                let path = format!("{before}{key}");
                match text.as_deref().map(seconds) {
                    Some(Err(why)) => self.error(&path, why, None),
                    Some(Ok(time)) if key == "duration" && time.is_zero() => {
                        self.error(&path, "a run takes some time".to_owned(), None);
                    }
                    _ => {}
                }
            }
            if lengths.repetitions == Some(0) {
                self.error(
                    &format!("{before}repetitions"),
                    "at least one repetition is made".to_owned(),
                    None,
                );
            }
        }
        let gates = &self.experiment.gates;
        let shares = [
            ("foreign-cpu", gates.foreign_cpu),
            ("steal", gates.steal),
            ("variation-warn", gates.variation_warn),
            ("variation", gates.variation),
        ];
        for (key, share) in shares.into_iter().filter(|(_, share)| !(0.0..=1.0).contains(share)) {
            let hint = Some("0.05 is 5 %".to_owned());
            self.error(&format!("gates.{key}"), format!("{share} is no share of 1"), hint);
        }
    }

    fn cpus(&mut self) {
        let sets = &self.experiment.cpus;
        for (name, set) in sets {
            let path = format!("cpus.{name}");
            if set.count == Some(0) {
                self.error(&format!("{path}.count"), "a set has at least one CPU".to_owned(), None);
            }
            let of = self.experiment.machine.as_ref().map(|machine| machine.cpus);
            if let (Some(count), Some(of)) = (set.count, of)
                && count > of
            {
                self.error(&format!("{path}.count"), format!("the study's machine has {of} CPUs"), None);
            }
            match (set.from, &set.after) {
                (CpusFrom::After, None) => self.error_at_key(&path, format!("'{path}' lacks 'after'"), None),
                (CpusFrom::After, Some(other)) => self.other_set(&path, "after", name, other),
                (_, Some(_)) => {
                    self.error(&format!("{path}.after"), "needs from = \"after\"".to_owned(), None)
                }
                _ => {}
            }
            match (set.from, &set.before) {
                (CpusFrom::Before, None) => {
                    self.error_at_key(&path, format!("'{path}' lacks 'before'"), None);
                }
                (CpusFrom::Before, Some(other)) => self.other_set(&path, "before", name, other),
                (_, Some(_)) => {
                    self.error(&format!("{path}.before"), "needs from = \"before\"".to_owned(), None)
                }
                _ => {}
            }
            if let Some(other) = &set.within {
                self.other_set(&path, "within", name, other);
                if set.node.is_some() {
                    let hint = Some("give the node to the other set".to_owned());
                    self.error(&format!("{path}.node"), format!("'{path}' is within '{other}'"), hint);
                }
            }
        }
    }

    fn other_set(&mut self, path: &str, key: &str, name: &str, other: &str) {
        let others = self.experiment.cpus.keys().filter(|key| *key != name).map(String::as_str);
        self.one_of(&format!("{path}.{key}"), "other set of CPUs", other, others);
    }

    fn devices(&mut self) {
        for (name, device) in &self.experiment.device {
            self.device(name, device);
            if self.experiment.cpus.contains_key(name) {
                self.error_at_key(&format!("device.{name}"), format!("'{name}' is a set of CPUs too"), None);
            }
        }
    }

    fn groups(&mut self) {
        if let Some(group) = &self.experiment.others {
            self.one_of("others", "group", group, self.experiment.group.keys().map(String::as_str));
        }
        for (group, settings) in &self.experiment.group {
            // a layout has groups in groups
            let sound = group.len() <= 64
                && group.split('/').all(|name| {
                    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
                    !name.is_empty() && name.bytes().all(plain)
                });
            if !sound {
                let hint = Some("letters, digits, '-' and '_'".to_owned());
                self.error_at_key(
                    &format!("group.{group}"),
                    format!("'{group}' is no name for a group"),
                    hint,
                );
            }
            if self.experiment.workload.contains_key(group) {
                // GROUP.cpu and WORKLOAD.rate share their names
                self.error_at_key(&format!("group.{group}"), format!("'{group}' is a workload too"), None);
            }
            self.settings(&format!("group.{group}"), settings);
        }
    }

    fn settings(&mut self, path: &str, settings: &Settings) {
        let devices: BTreeMap<String, String> =
            self.experiment.device.keys().map(|name| (name.clone(), UNMADE.to_owned())).collect();
        for (name, value) in settings {
            let path = format!("{path}.{name}");
            let found = match settings::find(name) {
                Ok(found) => found,
                Err(error) => {
                    self.error_at_key(&path, error.to_string(), Some(error.hint()));
                    continue;
                }
            };
            match self.known.cpus.fill(value, &devices) {
                Err(unknown) => {
                    let known: Vec<&str> = self
                        .experiment
                        .cpus
                        .keys()
                        .chain(self.experiment.device.keys())
                        .map(String::as_str)
                        .collect();
                    let hint = near(&unknown, &known);
                    self.error(&path, format!("nothing is named '{{{unknown}}}'"), Some(hint));
                }
                Ok(filled) => {
                    if let Err(error) = found.parse(&filled, &WithDevices { facts: self.known.facts }) {
                        self.error(&path, error.to_string(), error.hint());
                    }
                }
            }
        }
    }

    /// Group → settings of a condition or an event.
    fn settings_of_groups(&mut self, path: &str, settings: &BTreeMap<String, Settings>) {
        for (group, settings) in settings {
            let path = format!("{path}.settings.{group}");
            if !self.experiment.group.contains_key(group) {
                let hint = near(group, &keys(&self.experiment.group));
                self.error_at_key(&path, format!("there is no group '{group}'"), Some(hint));
            }
            self.settings(&path, settings);
        }
    }

    fn conditions_named(&mut self, path: &str, names: &[String]) {
        for (index, name) in names.iter().enumerate() {
            self.condition(&format!("{path}.conditions.{index}"), name);
        }
    }

    /// The name of a condition.
    fn condition(&mut self, path: &str, name: &str) {
        if !self.conditions.contains(name) {
            let known = self.experiment.condition.iter().map(|condition| condition.name.as_str());
            self.one_of(path, "condition", name, known);
        }
    }

    fn conditions(&mut self) {
        for (index, condition) in self.experiment.condition.iter().enumerate() {
            self.settings_of_groups(&format!("condition.{index}"), &condition.settings);
            for (group, cpus) in &condition.elastic {
                let path = format!("condition.{index}.elastic.{group}");
                let known = self.experiment.group.keys().map(String::as_str);
                self.one_of(&path, "group", group, known);
                self.threads(&format!("{path}.min"), &cpus.min);
                self.threads(&format!("{path}.max"), &cpus.max);
                if cpus.weight == 0 {
                    self.error(&format!("{path}.weight"), "a weight is at least 1".to_owned(), None);
                }
            }
            self.isolation(index, condition);
        }
    }

    fn events(&mut self) {
        for (index, event) in self.experiment.event.iter().enumerate() {
            let path = format!("event.{index}");
            for quick in [false, true] {
                let span = Lengths::of(self.experiment, quick).duration;
                if let Err(why) = within(&event.at, span) {
                    let why = if quick { format!("with --quick: {why}") } else { why };
                    self.error(&format!("{path}.at"), why, None);
                    break;
                }
            }
            self.conditions_named(&path, &event.conditions);
            self.settings_of_groups(&path, &event.settings);
        }
    }

    fn measures(&mut self) {
        for (index, measure) in self.experiment.measure.iter().enumerate() {
            let path = format!("measure.{index}");
            for term in names(&measure.is) {
                self.term(&format!("{path}.is"), term);
            }
            if measure.is.matches('/').count() > 1 {
                self.error(&format!("{path}.is"), "a measure has one quotient at most".to_owned(), None);
            }
            self.unit(&path, measure);
            for condition in measure.target.keys() {
                self.condition(&format!("{path}.target.{condition}"), condition);
            }
            if let Some((_, value)) = measure.target.iter().find(|(_, value)| **value <= 0.0) {
                self.error(&format!("{path}.target"), format!("a target of {value} is not above 0"), None);
            }
            let span = Lengths::of(self.experiment, false).duration;
            for (end, text) in measure.between.iter().flatten().enumerate() {
                if let Err(why) = within(text, span) {
                    self.error(&format!("{path}.between.{end}"), why, None);
                }
            }
        }
    }

    /// Does its unit fit its figure?
    fn unit(&mut self, path: &str, measure: &Measure) {
        let known = |figure: &str| self.known.unit(figure);
        if let Err(misfit) = unit::factor(self.experiment, measure, &known) {
            let message = format!("{:?} is not a unit of {}", measure.unit, misfit.figure);
            self.error(&format!("{path}.unit"), message, Some(format!("possible are {}", misfit.possible)));
        }
    }

    fn comparisons(&mut self) {
        let measures = || self.experiment.measure.iter().map(|one| one.name.as_str());
        let loads = || self.experiment.load.iter().map(|one| one.name.as_str());
        for (index, one) in self.experiment.comparison.iter().enumerate() {
            let path = format!("comparison.{index}");
            self.one_of(&format!("{path}.measure"), "measure", &one.measure, measures());
            self.condition(&format!("{path}.baseline"), &one.baseline);
            self.condition(&format!("{path}.condition"), &one.condition);
            if let Some(load) = &one.load {
                self.one_of(&format!("{path}.load"), "load", load, loads());
            }
            if !(0.0..1.0).contains(&one.margin) {
                let hint = Some("0.05 is 5 %".to_owned());
                self.error(&format!("{path}.margin"), format!("{} is no margin", one.margin), hint);
            }
        }
        for (index, one) in self.experiment.published.iter().enumerate() {
            let path = format!("published.{index}");
            self.one_of(&format!("{path}.measure"), "measure", &one.measure, measures());
            self.condition(&format!("{path}.condition"), &one.condition);
            if let Some(baseline) = &one.baseline {
                self.condition(&format!("{path}.baseline"), baseline);
            }
            if let Some(load) = &one.load {
                self.one_of(&format!("{path}.load"), "load", load, loads());
            }
        }
        for (index, chart) in self.experiment.chart.iter().enumerate() {
            self.conditions_named(&format!("chart.{index}"), &chart.conditions);
            for (number, of) in chart.of.iter().enumerate() {
                let path = format!("chart.{index}.of.{number}");
                match chart.kind {
                    ChartKind::Time | ChartKind::Histogram => self.term(&path, of),
                    ChartKind::Tasks => {
                        self.one_of(&path, "group", of, self.experiment.group.keys().map(String::as_str));
                    }
                    _ => self.one_of(&path, "measure", of, measures()),
                }
            }
            for (condition, set) in chart.ideal.iter().flat_map(|ideal| &ideal.cpus) {
                let path = format!("chart.{index}.ideal.cpus.{condition}");
                self.condition(&path, condition);
                self.one_of(&path, "set of CPUs", set, self.experiment.cpus.keys().map(String::as_str));
            }
            if let Some(ideal) = &chart.ideal {
                let path = format!("chart.{index}.ideal.from");
                self.one_of(&path, "condition with CPUs", &ideal.from, ideal.cpus.keys().map(String::as_str));
            }
            for (number, line) in chart.line.iter().enumerate() {
                let path = format!("chart.{index}.line.{number}");
                if let Some(condition) = &line.condition {
                    self.condition(&format!("{path}.condition"), condition);
                }
            }
        }
    }
}

fn keys<V>(map: &BTreeMap<String, V>) -> Vec<&str> {
    map.keys().map(String::as_str).collect()
}

fn near(name: &str, known: &[&str]) -> String {
    match (units::nearest(name, known.iter().copied()).as_slice(), known) {
        ([], []) => "the file has none".to_owned(),
        ([], known) => format!("known are {}", known.join(", ")),
        (near, _) => format!("did you mean {}?", near.join(" or ")),
    }
}

#[cfg(test)]
mod tests;
