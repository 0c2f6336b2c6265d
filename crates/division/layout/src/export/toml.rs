//! Our own TOML, one key a line, with a comment where a v1 name does not mean quite the same on v2.

use std::fmt::Write as _;

use schedule::{Event, Missed, When, span_text};
use settings::{Fidelity, Side, Version, Via};
use units::Limit;

use super::conditions::matcher_pairs;
use super::pairs::{Pairs, account, array, key, table, text};
use crate::assigned::Assigned;
use crate::demand::{CpuAmount, CpuDemand, CpuSpec, MemDemand, MemoryAmount, Near, Placement, Pool, Smt};
use crate::desired::{Defaults, Demands, Desired, Expected, Keep};
use crate::isolate::{Isolate, LEVELS};
use crate::latency::{EVERY, Latency, LatencySource, LatencyUnit};
use crate::origin::Spanned;
use crate::people::Person;
use crate::rule::{Controllers, Rule, Subsystem, Target};
use crate::scheduled::{Overlay, Schedule};

/// What is desired as a layout file; read again, it is the same.
pub fn to_toml(desired: &Desired) -> String {
    let mut out = Writer { text: String::new() };
    out.host(desired);
    out.reserve(desired);
    out.power(desired);
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
        let matches: Vec<String> =
            group.matches.iter().map(|matcher| table(&matcher_pairs(matcher))).collect();
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
        pairs.extend(overlay.cpus.as_ref().map(|demand| format!("cpus = {}", cpus(&demand.value))));
        pairs.extend(overlay.mems.as_ref().map(|demand| format!("mems = {}", mems(&demand.value))));
        let assigned = overlay.settings.iter();
        pairs.extend(
            assigned.map(|assigned| format!("{} = {}", assigned.found.name, assigned_value(assigned))),
        );
        format!("{}: {}", overlay.group, pairs.join(", "))
    };
    schedule.overlays.iter().map(of_group).collect()
}

/// A level where it is one, else the rows.
fn isolated(isolate: &Isolate) -> String {
    let level = LEVELS.into_iter().find(|word| Isolate::of_level(word).as_ref() == Some(isolate));
    let rows = isolate.rows.iter().map(|(name, value)| format!("{name} = {}", knob(value.as_deref())));
    let budget = [("per-second", isolate.budget.per_second), ("longest-us", isolate.budget.longest_us)];
    let budget = budget.into_iter().filter_map(|(key, most)| Some(format!("{key} = {}", most?)));
    let budget: Vec<String> = budget.collect();
    let budget = (!budget.is_empty()).then(|| format!("budget = {{ {} }}", budget.join(", ")));
    let all = || rows.chain(budget).collect::<Vec<String>>().join(", ");
    level.map_or_else(|| format!("{{ {} }}", all()), text)
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

fn knob(value: Option<&str>) -> String {
    match value {
        None => "true".to_owned(),
        Some(number) if number.parse::<i64>().is_ok() => number.to_owned(),
        Some(word) => text(word),
    }
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

    fn section(&mut self, name: &str, pairs: &Pairs) {
        if !pairs.is_empty() {
            self.header(name);
            pairs.iter().for_each(|(key, value)| self.line(key, value));
        }
    }

    fn host(&mut self, desired: &Desired) {
        let host = &desired.assertions;
        let mut pairs = Pairs::new();
        pairs.extend(host.hostname.as_ref().map(|name| ("hostname", text(&name.value))));
        pairs.extend(host.model.as_ref().map(|model| ("model", text(&model.value))));
        pairs.extend(host.nodes.as_ref().map(|nodes| ("nodes", expected(&nodes.value, |n| n.to_string()))));
        pairs.extend(host.cpus.as_ref().map(|cpus| ("cpus", expected(&cpus.value, |n| n.to_string()))));
        // a plain amount of memory would mean a tenth more or less
        let memory =
            host.memory.as_ref().map(|memory| bounds(&memory.value, |bytes| text(&bytes.to_string())));
        pairs.extend(memory.map(|memory| ("memory", memory)));
        self.section("host", &pairs);
    }

    fn reserve(&mut self, desired: &Desired) {
        let mut pairs = Pairs::new();
        pairs.extend(desired.reserve.cpus.as_ref().map(|demand| ("cpus", cpus(&demand.value))));
        let memory = desired.reserve.memory.as_ref().map(|memory| match memory.value {
            MemoryAmount::Bytes(bytes) => text(&bytes.to_string()),
            MemoryAmount::Percent(share) => text(&format!("{share}%")),
        });
        pairs.extend(memory.map(|memory| ("memory", memory)));
        self.section("reserve", &pairs);
    }

    fn power(&mut self, desired: &Desired) {
        let mut pairs = Pairs::new();
        pairs.extend(desired.power.saving.then(|| ("saving", "true".to_owned())));
        pairs.extend(desired.power.floor.as_ref().map(|floor| ("floor", floor.value.to_string())));
        pairs.extend(desired.power.frequency.as_ref().map(|_| ("frequency", "true".to_owned())));
        self.section("power", &pairs);
    }

    fn defaults(&mut self, defaults: &Defaults) {
        if *defaults == Defaults::default() {
            return;
        }
        self.header("defaults");
        let mut pairs = wishes(defaults.placement, defaults.smt, defaults.pool);
        pairs.extend(defaults.mems.as_ref().map(|demand| ("mems", mems(&demand.value))));
        pairs.extend(defaults.tasks.as_ref().map(|tasks| ("tasks", person(&tasks.value))));
        pairs.extend(defaults.admin.as_ref().map(|admin| ("admin", person(&admin.value))));
        pairs.extend(defaults.keep.map(|keep| ("keep", text(keep_word(keep)))));
        pairs.iter().for_each(|(key, value)| self.line(key, value));
        self.settings(&defaults.settings.iter().collect::<Vec<_>>());
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
            let mut pairs = Pairs::new();
            pairs.extend(systemd.slice.as_ref().map(|slice| ("slice", text(slice))));
            pairs.extend(systemd.scope.as_ref().map(|scope| ("scope", text(scope))));
            pairs.extend(systemd.set_default.then(|| ("set_default", "true".to_owned())));
            pairs.extend(systemd.pid.map(|pid| ("pid", pid.to_string())));
            pairs.iter().for_each(|(key, value)| self.line(key, value));
        }
    }

    fn demands(&mut self, demands: &Demands, defaults: &Defaults) {
        let mut pairs = Pairs::new();
        pairs.extend(demands.unit.as_ref().map(|unit| ("unit", text(unit.value.as_str()))));
        pairs.extend(demands.cpus.as_ref().map(|demand| ("cpus", cpus(&demand.value))));
        pairs.extend(own(&demands.mems, &defaults.mems).map(|demand| ("mems", mems(demand))));
        pairs.extend(demands.exclusive.then(|| ("exclusive", "true".to_owned())));
        pairs.extend(demands.isolate.as_ref().map(|isolate| ("isolate", isolated(&isolate.value))));
        pairs.extend(demands.latency.as_ref().map(|latency| ("latency", measured(&latency.value))));
        pairs.extend(own(&demands.tasks, &defaults.tasks).map(|tasks| ("tasks", person(tasks))));
        pairs.extend(own(&demands.admin, &defaults.admin).map(|admin| ("admin", person(admin))));
        let keep = demands.keep.filter(|keep| defaults.keep != Some(*keep));
        pairs.extend(keep.map(|keep| ("keep", text(keep_word(keep)))));
        let controllers: Vec<String> =
            demands.controllers.iter().map(|name| text(&name.value.to_string())).collect();
        pairs.extend((!controllers.is_empty()).then(|| ("controllers", array(&controllers))));
        pairs.iter().for_each(|(key, value)| self.line(key, value));
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
        for Overlay { group, cpus: new_cpus, mems: new_mems, settings, .. } in &schedule.overlays {
            self.header(&format!("schedule.groups.{}", key(&group.to_string())));
            new_cpus.iter().for_each(|demand| self.line("cpus", &cpus(&demand.value)));
            new_mems.iter().for_each(|demand| self.line("mems", &mems(&demand.value)));
            self.settings(&settings.iter().collect::<Vec<_>>());
        }
    }

    fn rule(&mut self, rule: &Rule) {
        let gap = if self.text.is_empty() { "" } else { "\n" };
        let _ = writeln!(self.text, "{gap}[[rules]]");
        let mut pairs = matcher_pairs(&rule.matcher);
        match rule.targets.as_slice() {
            [] => {}
            [Target { controllers, group, .. }] => {
                pairs.push(("to", text(&group.to_string())));
                pairs.extend(controller_list(controllers).map(|list| ("controllers", list)));
            }
            several => {
                let tables = several.iter().map(|target| {
                    let mut pairs = vec![("group", text(&target.group.to_string()))];
                    pairs.extend(controller_list(&target.controllers).map(|list| ("controllers", list)));
                    table(&pairs)
                });
                pairs.push(("to", array(&tables.collect::<Vec<_>>())));
            }
        }
        pairs.extend(rule.ignore.then(|| ("ignore", "true".to_owned())));
        pairs.extend(rule.ignore_rt.then(|| ("ignore_rt", "true".to_owned())));
        pairs.iter().for_each(|(key, value)| self.line(key, value));
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
fn own<'d, T: PartialEq>(said: &'d Option<Spanned<T>>, default: &Option<Spanned<T>>) -> Option<&'d T> {
    let said = said.as_ref()?;
    let by_default = default.as_ref().is_some_and(|default| default.value == said.value);
    (!by_default).then_some(&said.value)
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

fn cpus(demand: &CpuDemand) -> String {
    match demand {
        CpuDemand::All | CpuDemand::General => text("all"),
        CpuDemand::These(cpus) => text(&cpus.to_string()),
        CpuDemand::OfNodes(nodes) => table(&vec![("node", nodes_value(nodes))]),
        CpuDemand::Like(name) => table(&vec![("like", text(&name.to_string()))]),
        CpuDemand::Some(spec) => spec_value(spec),
    }
}

fn spec_value(spec: &CpuSpec) -> String {
    let mut pairs = Pairs::new();
    match spec.amount {
        CpuAmount::Count(count) => pairs.push(("count", count.to_string())),
        CpuAmount::Cores(count) => pairs.push(("cores", count.to_string())),
        CpuAmount::Percent(share) => pairs.push(("count", text(&format!("{share}%")))),
        CpuAmount::Between { min, max } => {
            pairs.push(("min", min.to_string()));
            pairs.extend(max.at().map(|max| ("max", max.to_string())));
        }
    }
    pairs.extend(spec.weight.map(|weight| ("weight", weight.to_string())));
    pairs.extend(spec.nodes.as_ref().map(|nodes| ("node", nodes_value(nodes))));
    let near: Vec<String> = spec.near.iter().map(|near| text(&near_text(near))).collect();
    match near.as_slice() {
        [] => {}
        [one] => pairs.push(("near", one.clone())),
        several => pairs.push(("near", array(several))),
    }
    // cores are whole
    let smt = spec.smt.filter(|_| !matches!(spec.amount, CpuAmount::Cores(_)));
    pairs.extend(wishes(spec.placement, smt, spec.pool));
    match (pairs.as_slice(), spec.amount) {
        ([(_, amount)], CpuAmount::Count(_) | CpuAmount::Percent(_)) => amount.clone(),
        _ => table(&pairs),
    }
}

fn nodes_value(nodes: &units::NodeSet) -> String {
    match (nodes.len(), nodes.first()) {
        (1, Some(node)) => node.to_string(),
        _ => text(&nodes.to_string()),
    }
}

fn near_text(near: &Near) -> String {
    match near {
        Near::Node(node) => format!("node:{node}"),
        Near::Device(device) => format!("device:{device}"),
        Near::Group(name) => format!("group:{name}"),
    }
}

fn wishes(placement: Option<Placement>, smt: Option<Smt>, pool: Option<Pool>) -> Pairs {
    let placement = placement.map(|placement| match placement {
        Placement::Pack => "pack",
        Placement::Spread => "spread",
    });
    let smt = smt.map(|smt| match smt {
        Smt::WholeCores => "whole-cores",
        Smt::Threads => "threads",
        Smt::Any => "any",
    });
    let pool = pool.map(|pool| match pool {
        Pool::Shared => "shared",
        Pool::Exclusive => "exclusive",
    });
    let words = [("placement", placement), ("smt", smt), ("pool", pool)];
    words.into_iter().filter_map(|(key, word)| Some((key, text(word?)))).collect()
}

fn keep_word(keep: Keep) -> &'static str {
    match keep {
        Keep::Repair => "repair",
        Keep::Report => "report",
        Keep::Off => "off",
    }
}

fn mems(demand: &MemDemand) -> String {
    match demand {
        MemDemand::Local => text("local"),
        MemDemand::All => text("all"),
        MemDemand::These(nodes) => text(&nodes.to_string()),
        MemDemand::Like(name) => table(&vec![("like", text(&name.to_string()))]),
    }
}

fn person(person: &Person) -> String {
    let mut pairs = Pairs::new();
    pairs.extend(person.user.as_ref().map(|user| ("user", account(user))));
    pairs.extend(person.group.as_ref().map(|group| ("group", account(group))));
    pairs.extend(person.mode.map(|mode| ("mode", text(&mode.to_string()))));
    pairs.extend(person.directory_mode.map(|mode| ("directory_mode", text(&mode.to_string()))));
    pairs.extend(person.all_files.then(|| ("all_files", "true".to_owned())));
    table(&pairs)
}

fn controller_list(controllers: &Controllers) -> Option<String> {
    let Controllers::These(these) = controllers else { return None };
    Some(array(&these.iter().map(|name: &Subsystem| text(&name.to_string())).collect::<Vec<_>>()))
}

/// One number where from and to are the same.
fn expected<T: PartialEq>(expected: &Expected<T>, shown: impl Fn(&T) -> String) -> String {
    match &expected.max {
        Limit::At(max) if *max == expected.min => shown(&expected.min),
        _ => bounds(expected, shown),
    }
}

fn bounds<T>(expected: &Expected<T>, shown: impl Fn(&T) -> String) -> String {
    let mut pairs = vec![("min", shown(&expected.min))];
    if let Limit::At(max) = &expected.max {
        pairs.push(("max", shown(max)));
    }
    table(&pairs)
}

/// A setting's value, or the two that it is between.
fn assigned_value(assigned: &Assigned) -> String {
    match &assigned.most {
        Some(most) => table(&vec![("min", value(&assigned.text)), ("max", value(most))]),
        None => value(&assigned.text),
    }
}
