//! Our own TOML, one key a line, with a comment where a v1 name does not mean quite the same on v2.

use std::fmt::Write as _;

use settings::{Fidelity, Side, Version, Via};

use crate::assigned::Assigned;
use crate::desired::{Defaults, Demands, Desired};
use crate::isolate::knob;
use crate::latency::{EVERY, Latency, LatencySource, LatencyUnit};
use crate::origin::Spanned;
use crate::reader::{Keyed as _, Pairs, Takes, array, table, text, toml_key as key};
use crate::rule::Rule;
use crate::schedule::{Event, Missed, When, span_text};
use crate::scheduled::{Overlay, Schedule};
use crate::toml_file::rule_pairs;

/// What is desired as a layout file; read again, it is the same.
pub fn to_toml(desired: &Desired) -> String {
    let mut out = Writer { text: String::new() };
    out.section("host", &desired.assertions.pairs());
    out.section("reserve", &desired.reserve.pairs());
    out.section("power", &desired.power.pairs());
    if let Some(isolate) = &desired.isolate {
        out.header("isolate");
        isolate.value.rows.iter().for_each(|(name, value)| out.line(name, &knob(value.as_deref())));
    }
    out.defaults(&desired.defaults);
    out.mounts(desired);
    out.systemd(desired);
    // our own layouts don't name the root: what libcgroup's file sets there is left to the reader
    for group in desired.groups.iter().filter(|group| group.name == settings::GroupName::root()) {
        out.text.push_str("\n# left out, as a layout does not name the root of a hierarchy:\n");
        for assigned in &group.demands.settings {
            let value = assigned.text.replace('\n', "; ");
            let _ = writeln!(out.text, "#   {} = {value}", assigned.found.name);
        }
    }
    let groups = desired.groups.iter().filter(|group| group.name != settings::GroupName::root());
    for group in groups {
        out.header(&format!("groups.{}", key(&group.name.to_string())));
        out.demands(&group.demands, &desired.defaults);
        let matches: Vec<String> = group.matches.iter().filter_map(Takes::write).collect();
        if !matches.is_empty() {
            out.line("match", &array(&matches));
        }
    }
    for template in &desired.templates {
        out.header(&format!("templates.{}", key(&template.name.to_string())));
        out.demands(&template.demands, &desired.defaults);
    }
    desired.rules.iter().for_each(|rule| out.rule(rule));
    desired.schedules.iter().for_each(|schedule| out.schedule(schedule));
    out.text
}

/// What a schedule changes, a text for each group: `db/oltp: cpus = 4, memory.max = "8G"`.
pub fn changes(schedule: &Schedule) -> Vec<String> {
    let of_group = |overlay: &Overlay| {
        let mut pairs: Vec<String> = Vec::new();
        pairs.extend(overlay.cpus.write().map(|cpus| format!("cpus = {cpus}")));
        pairs.extend(overlay.mems.write().map(|mems| format!("mems = {mems}")));
        let assigned = overlay.settings.iter();
        pairs.extend(
            assigned.map(|assigned| format!("{} = {}", assigned.found.name, assigned_value(assigned))),
        );
        format!("{}: {}", overlay.group, pairs.join(", "))
    };
    schedule.overlays.iter().map(of_group).collect()
}

fn measured(latency: &Latency) -> String {
    let Latency { source, p99, every, unit } = latency;
    let mut pairs = match source {
        LatencySource::Command { command } => {
            let words: Vec<String> = command.iter().map(|word| text(word)).collect();
            vec![("command", array(&words))]
        }
        LatencySource::Log { log, pattern } => vec![("log", text(log)), ("pattern", text(pattern))],
        LatencySource::Prometheus { prometheus, metric } => {
            vec![("prometheus", text(prometheus)), ("metric", text(&metric.to_string()))]
        }
    };
    pairs.push(("p99", text(&p99.to_string())));
    pairs.extend((*every != EVERY).then(|| ("every", text(&every.to_string()))));
    pairs.extend((*unit != LatencyUnit::default()).then(|| ("unit", text(unit.name()))));
    table(&pairs)
}

struct Writer {
    text: String,
}

impl Writer {
    fn header(&mut self, name: &str) {
        let gap = if self.text.is_empty() { "" } else { "\n" };
        let _ = writeln!(self.text, "{gap}[{name}]"); // a String takes everything
    }

    fn line(&mut self, key: &str, value: &str) {
        let _ = writeln!(self.text, "{key} = {value}");
    }

    /// A key, if its value says more than its absence.
    fn said(&mut self, key: &str, value: &impl Takes) {
        value.write().iter().for_each(|value| self.line(key, value));
    }

    fn section(&mut self, name: &str, pairs: &Pairs) {
        if !pairs.is_empty() {
            self.header(name);
            pairs.iter().for_each(|(key, value)| self.line(key, value));
        }
    }

    fn defaults(&mut self, defaults: &Defaults) {
        if *defaults == Defaults::default() {
            return;
        }
        self.header("defaults");
        let Defaults { mems, placement, smt, pool, tasks, admin, keep, settings } = defaults;
        self.said("placement", placement);
        self.said("smt", smt);
        self.said("pool", pool);
        self.said("mems", mems);
        self.said("tasks", tasks);
        self.said("admin", admin);
        self.said("keep", keep);
        self.settings(&settings.iter().collect::<Vec<_>>());
    }

    fn mounts(&mut self, desired: &Desired) {
        if desired.mounts.is_empty() {
            return;
        }
        self.header("mounts");
        for mount in &desired.mounts {
            self.line(&key(&mount.subsystem.to_string()), &text(&mount.path));
        }
    }

    fn systemd(&mut self, desired: &Desired) {
        for Spanned { value: systemd, .. } in &desired.systemd {
            self.header("[systemd]");
            self.text.push_str("# not used: groups live below a unit that Ringfence asks systemd for\n");
            systemd.pairs().iter().for_each(|(key, value)| self.line(key, value));
        }
    }

    fn demands(&mut self, demands: &Demands, defaults: &Defaults) {
        let unit = demands.unit.as_ref().map(|unit| unit.value.as_str().to_owned());
        self.said("unit", &unit);
        self.said("cpus", &demands.cpus);
        self.said("mems", &own(&demands.mems, &defaults.mems));
        self.said("exclusive", &demands.exclusive);
        self.said("isolate", &demands.isolate);
        demands.latency.iter().for_each(|latency| self.line("latency", &measured(&latency.value)));
        self.said("tasks", &own(&demands.tasks, &defaults.tasks));
        self.said("admin", &own(&demands.admin, &defaults.admin));
        self.said("keep", &demands.keep.filter(|keep| defaults.keep != Some(*keep)));
        let controllers: Vec<String> =
            demands.controllers.iter().map(|name| text(&name.value.to_string())).collect();
        if !controllers.is_empty() {
            self.line("controllers", &array(&controllers));
        }
        let is_own = |assigned: &&Assigned| {
            let same = |default: &Assigned| {
                default.found.name == assigned.found.name
                    && (&default.text, &default.most) == (&assigned.text, &assigned.most)
            };
            !defaults.settings.iter().any(same)
        };
        self.settings(&demands.settings.iter().filter(is_own).collect::<Vec<_>>());
    }

    fn settings(&mut self, settings: &[&Assigned]) {
        for assigned in settings {
            let name = &assigned.found.name;
            if let Some(note) = note(assigned) {
                let _ = writeln!(self.text, "# {note}");
            }
            // `cpu.max` with a value leaves no room for a `cpu.max.burst` below it
            let below = settings.iter().any(|other| {
                name.strip_prefix(other.found.name.as_str()).is_some_and(|rest| rest.starts_with('.'))
            });
            let dotted = name.split('.').map(key).collect::<Vec<_>>().join(".");
            let name = if below { text(name) } else { dotted };
            self.line(&name, &assigned_value(assigned));
        }
    }

    fn schedule(&mut self, schedule: &Schedule) {
        self.header("[schedule]");
        self.line("name", &text(&schedule.name));
        when_pairs(&schedule.when.value).iter().for_each(|(key, value)| self.line(key, value));
        for Overlay { group, cpus, mems, settings, .. } in &schedule.overlays {
            self.header(&format!("schedule.groups.{}", key(&group.to_string())));
            self.said("cpus", cpus);
            self.said("mems", mems);
            self.settings(&settings.iter().collect::<Vec<_>>());
        }
    }

    fn rule(&mut self, rule: &Rule) {
        let gap = if self.text.is_empty() { "" } else { "\n" };
        let _ = writeln!(self.text, "{gap}[[rules]]");
        rule_pairs(rule).iter().for_each(|(key, value)| self.line(key, value));
    }
}

/// The keys of when a schedule is due.
fn when_pairs(when: &When) -> Pairs {
    match when {
        When::At { at, until, missed } => {
            let mut pairs = vec![("at", text(&at.to_string()))];
            pairs.extend(until.as_ref().map(|until| ("until", text(&until.to_string()))));
            pairs.extend((*missed == Missed::Skip).then(|| ("missed", text("skip"))));
            pairs
        }
        When::After { after, every } => {
            let mut pairs = vec![("after", text(&span_text(*after)))];
            pairs.extend(every.map(|every| ("every", text(&span_text(every)))));
            pairs
        }
        When::On(event) => {
            let state = |on: bool, words: [&str; 2]| ("state", text(words[usize::from(!on)]));
            vec![(
                "on",
                table(&match event {
                    Event::Unit { name, active } => {
                        vec![("unit", text(name)), state(*active, ["active", "inactive"])]
                    }
                    Event::Process { program, runs } => {
                        vec![("process", text(program)), state(*runs, ["start", "end"])]
                    }
                }),
            )]
        }
    }
}

/// What is said of a group itself, not by the defaults.
fn own<T: Clone + PartialEq>(said: &Option<Spanned<T>>, default: &Option<Spanned<T>>) -> Option<Spanned<T>> {
    let by_default = |said: &&Spanned<T>| default.as_ref().is_some_and(|default| default.value == said.value);
    said.as_ref().filter(|said| !by_default(said)).cloned()
}

/// How a setting named as v1 names it does something else on v2.
fn note(assigned: &Assigned) -> Option<String> {
    let found = &assigned.found;
    let of_v1 = match found.via {
        Via::File { version, .. } => version == Version::V1,
        Via::Canonical => found.side(Version::V2).binding().is_none(),
    };
    let how = |version| match found.side(version).binding()?.fidelity {
        Fidelity::Approximate(how) => Some(how),
        Fidelity::Exact => None,
    };
    match found.side(Version::V2) {
        _ if !of_v1 => None,
        Side::Lacks { instead } => Some(format!("cgroup v2 has no {}: {instead}", found.name)),
        Side::Has(_) => match (how(Version::V2), how(Version::V1)) {
            (Some(how), _) => Some(format!("on cgroup v2 nearly the same as {}: {how}", found.canonical())),
            // the row says what v2 means by it
            (None, Some(how)) => {
                Some(format!("on cgroup v2 nearly the same, {}; on v1: {how}", found.canonical()))
            }
            (None, None) => None,
        },
    }
}

/// A setting's value: as a number where it reads back as the same text.
fn value(value: &str) -> String {
    match value.parse::<i64>() {
        Ok(number) if number.to_string() == value => value.to_owned(),
        _ => text(value),
    }
}

/// A setting's value, or the two that it is between.
fn assigned_value(assigned: &Assigned) -> String {
    match &assigned.most {
        Some(most) => table(&vec![("min", value(&assigned.text)), ("max", value(most))]),
        None => value(&assigned.text),
    }
}
