//! Our own TOML into a draft. The TOML itself is read by the `toml` crate, which goes on after an error; what stands in
//! it is read here, by hand rather than by `serde`, since that stops at the first thing that is wrong.

mod cpus;
mod group;
mod isolate;
mod keys;
mod latency;
mod machine;
mod matching;
mod people;
mod range;
mod rules;
mod schedules;
mod setting;
mod syntax;

pub(crate) use cpus::{CpuTable, MemTable};
pub(crate) use keys::{DEFAULTS, GROUP, LATENCY, ON, SCHEDULE, SCHEDULED, TEMPLATE, TOP};
pub use latency::http_address;
pub(crate) use machine::Bounds;
pub(crate) use matching::MatchTable;
pub(crate) use rules::{RULE, ToTable, rule_pairs};

use toml::de::DeTable;

use crate::desired::{Power, Systemd};
use crate::diagnostic::{Diagnostic, Report};
use crate::merge::Draft;
use crate::names::{Names, cut};
use crate::reader::{Keyed as _, Name, Reader, Table, Takes, entries, names};
use crate::source::{Places, Source};

/// Reads one file; all that is wrong is reported.
pub(crate) fn read(source: &Source, names: &mut Names, report: &mut Report) -> Draft {
    let places = Places::new(source);
    let (table, errors) = DeTable::parse_recoverable(places.text());
    let broken = syntax::report(&errors, &places, report);
    let mut draft = Draft::default();
    if !report.is_hopeless() {
        let mut reader = Reader { places: &places, names, report, broken, key: 0..0 };
        reader.file(table.get_ref(), &mut draft);
    }
    draft
}

/// The TOML of another kind of file of ours, and its syntax errors in our words, in the order of the lines.
pub fn toml_table(source: &Source) -> (Table<'_>, Vec<Diagnostic>) {
    let places = Places::new(source);
    let (table, errors) = DeTable::parse_recoverable(places.text());
    let mut report = Report::default();
    syntax::report(&errors, &places, &mut report);
    (table.into_inner(), report.finish(std::slice::from_ref(source)))
}

/// Sections that may be there once only.
const SINGLE: [&str; 5] = ["reserve", "power", "isolate", "host", "defaults"];

impl Reader<'_> {
    fn file(&mut self, table: &Table<'_>, draft: &mut Draft) {
        let desired = &mut draft.desired;
        for (key, value) in entries(table) {
            let name = &**key.get_ref();
            match name {
                "groups" | "templates" => {}
                "rules" => desired.rules = self.each(value, &RULE),
                "schedule" => desired.schedules = self.schedules(value),
                "mounts" => desired.mounts = self.mounts(value),
                "reserve" => desired.reserve = self.reserve(value),
                "power" => desired.power = Power::read(self, value).unwrap_or_default(),
                "isolate" => desired.isolate = self.machine_knobs(value),
                "host" => desired.assertions = self.assertions(value),
                "defaults" => desired.defaults = self.defaults(value),
                "systemd" => desired.systemd = self.each(value, Systemd::KEYS),
                _ => self.unknown_top(key),
            }
            if let Some(single) = SINGLE.into_iter().find(|single| *single == name) {
                draft.sections.push((single, self.origin(key)));
            }
        }
        for (key, value) in entries(table) {
            match &**key.get_ref() {
                "groups" => self.groups("", value, &mut desired.groups),
                "templates" => self.templates(value, &mut desired.templates),
                _ => {}
            }
        }
    }

    fn unknown_top(&mut self, key: &Name<'_>) {
        let name = &**key.get_ref();
        let group_key = GROUP.iter().any(|known| known.name == name);
        if group_key || self.names.begins(name) || self.names.find(name).is_some() {
            let error = Diagnostic::error(format!("'{}' stands in no group", cut(name))).at(self.origin(key));
            self.error(error.hint("put it below a line such as [groups.oltp1]"));
            return;
        }
        self.unknown_key(key, "at the top of the file", &names(TOP));
    }
}
