//! Our own TOML into a draft. The TOML itself is read by the `toml` crate, which goes on after an error; what stands in
//! it is read here, by hand rather than by `serde`, since that stops at the first thing that is wrong.

mod conditions;
mod cpus;
mod group;
mod isolate;
mod latency;
mod machine;
mod range;
mod rules;
mod schedules;
mod setting;
mod syntax;
mod value;

pub use latency::http_address;

use std::collections::BTreeSet;

use toml::Spanned as At;
use toml::de::{DeString, DeTable, DeValue};

use crate::desired::Desired;
use crate::diagnostic::{Diagnostic, Report};
use crate::keys::{self, Key};
use crate::merge::Draft;
use crate::names::{Names, cut};
use crate::origin::Origin;
use crate::source::{Places, Source};

type Table<'i> = DeTable<'i>;
type Value<'i> = At<DeValue<'i>>;
type Name<'i> = At<DeString<'i>>;

/// Reads one file; all that is wrong is reported.
pub(crate) fn read(source: &Source, names: &mut Names, report: &mut Report) -> Draft {
    let places = Places::new(source);
    let (table, errors) = DeTable::parse_recoverable(places.text());
    let broken = syntax::report(&errors, &places, report);
    let mut draft = Draft::default();
    if !report.is_hopeless() {
        let mut reader = Reader { places: &places, names, report, broken };
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

/// One file on its way.
struct Reader<'r> {
    places: &'r Places<'r>,
    names: &'r mut Names,
    report: &'r mut Report,
    /// Lines with a syntax error: what they seem to say is not worth a second complaint.
    broken: BTreeSet<usize>,
}

impl Reader<'_> {
    fn file(&mut self, table: &Table<'_>, draft: &mut Draft) {
        let Desired {
            rules, reserve, power, isolate, assertions, defaults, mounts, systemd, schedules, ..
        } = &mut draft.desired;
        for (key, value) in entries(table) {
            let origin = self.origin(key);
            let single = match &**key.get_ref() {
                "groups" | "templates" => continue,
                "rules" => {
                    *rules = self.rules(value);
                    continue;
                }
                "schedule" => {
                    *schedules = self.schedules(value);
                    continue;
                }
                "mounts" => {
                    *mounts = self.mounts(value);
                    continue;
                }
                "reserve" => {
                    *reserve = self.reserve(value);
                    "reserve"
                }
                "power" => {
                    *power = self.power(value);
                    "power"
                }
                "isolate" => {
                    *isolate = self.machine_knobs(value);
                    "isolate"
                }
                "host" => {
                    *assertions = self.assertions(value);
                    "host"
                }
                "defaults" => {
                    *defaults = self.defaults(value);
                    "defaults"
                }
                "systemd" => {
                    *systemd = self.systemd(value);
                    continue;
                }
                _ => {
                    self.unknown_top(key);
                    continue;
                }
            };
            draft.sections.push((single, origin));
        }
        for (key, value) in entries(table) {
            match &**key.get_ref() {
                "groups" => self.groups("", value, &mut draft.desired.groups),
                "templates" => self.templates(value, &mut draft.desired.templates),
                _ => {}
            }
        }
    }

    fn origin<T>(&self, at: &At<T>) -> Origin {
        self.places.origin(at.span())
    }

    fn error(&mut self, diagnostic: Diagnostic) {
        let line = diagnostic.origin.as_ref().map(|origin| origin.line);
        if !line.is_some_and(|line| self.broken.contains(&line)) {
            self.report.push(diagnostic);
        }
    }

    fn unknown_top(&mut self, key: &Name<'_>) {
        let name = &**key.get_ref();
        let group_key = keys::names(keys::GROUP).any(|known| known == name);
        if group_key || self.names.begins(name) || self.names.find(name).is_some() {
            let error = Diagnostic::error(format!("'{}' stands in no group", cut(name))).at(self.origin(key));
            self.error(error.hint("put it below a line such as [groups.oltp1]"));
            return;
        }
        self.unknown_key(key, "at the top of the file", keys::TOP);
    }

    fn unknown_key(&mut self, key: &Name<'_>, place: &str, known: &[Key]) {
        self.unknown_key_of(key, place, &keys::names(known).collect::<Vec<_>>());
    }

    fn unknown_key_of(&mut self, key: &Name<'_>, place: &str, known: &[&str]) {
        let name = &**key.get_ref();
        let near = if self.report.is_full() || name.len() > 100 {
            Vec::new()
        } else {
            units::nearest(name, known.iter().copied())
        };
        let hint = match near.as_slice() {
            [] => format!("known are {}", known.join(", ")),
            near => format!("did you mean {}?", near.join(" or ")),
        };
        self.unknown_key_hint(key, place, hint);
    }

    fn unknown_key_hint(&mut self, key: &Name<'_>, place: &str, hint: String) {
        let error = Diagnostic::error(format!("unknown key '{}' {place}", cut(key.get_ref())));
        self.error(error.at(self.origin(key)).hint(hint));
    }
}

/// A table's entries in the order of the file.
fn entries<'t, 'i>(table: &'t Table<'i>) -> Vec<(&'t Name<'i>, &'t Value<'i>)> {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    entries
}
