//! Groups, templates and defaults: what is desired of each, and groups in groups.

use settings::GroupName;
use toml::de::DeValue;

use super::keys;
use super::matching::MatchTable;
use crate::assigned::Assigned;
use crate::collect::{Collector, Twice};
use crate::demand::{Placement, Pool, Smt};
use crate::desired::{Defaults, Group, Template};
use crate::diagnostic::Diagnostic;
use crate::names::cut;
use crate::origin::{Origin, Spanned};
use crate::pattern::{NamePattern, PatternError};
use crate::people::{Person, TASKS_KEYS};
use crate::reader::{Key, Keyed as _, Name, Reader, Table, Takes, Value, entries, kind, names};
use crate::rule::Subsystem;
use crate::unit_name::UnitName;

/// Does a group's table contain only groups inside it?
fn only_leads_below(table: &Table<'_>) -> bool {
    table.len() == 1 && entries(table).iter().all(|(key, _)| &**key.get_ref() == "groups")
}

impl Reader<'_> {
    /// The groups of a table, and those in them. `parent` is "" or ends in a slash.
    pub(super) fn groups(&mut self, parent: &str, value: &Value<'_>, into: &mut Vec<Group>) {
        let Some(groups) = self.named_tables(value) else { return };
        for (key, table) in groups {
            if self.report.is_hopeless() {
                return;
            }
            let path = format!("{parent}{}", key.get_ref());
            match GroupName::new(&path) {
                // a table that only contains groups below requests nothing of the root
                Ok(name) if name == GroupName::root() && !only_leads_below(table) => {
                    let error = Diagnostic::error("the root of a hierarchy can't be a group of a layout");
                    let hint = "what is not in any group is in the root, and has what groups leave; give the group a \
                                name, such as [groups.db], or use reserve for the rest of the system";
                    self.error(error.at(self.origin(key)).hint(hint));
                }
                Ok(name) => self.group(name, key, table, into),
                Err(error) => {
                    let diagnostic = Diagnostic::error(error.to_string()).at(self.origin(key));
                    self.error(diagnostic.hint(error.hint()));
                }
            }
        }
    }

    fn group(&mut self, name: GroupName, key: &Name<'_>, table: &Table<'_>, into: &mut Vec<Group>) {
        let mut body = Collector::new(Twice::Refused);
        let (mut matches, mut below) = (Vec::new(), None);
        let place = format!("in group '{name}'");
        for (key, value) in entries(table) {
            match &**key.get_ref() {
                "match" => matches = self.each(value, MatchTable::KEYS),
                "groups" => below = Some(value),
                _ => self.demand(key, value, &place, keys::GROUP, &mut body),
            }
        }
        // a table that only leads to groups below was not requested itself
        if !only_leads_below(table) {
            let origin = self.origin(key);
            into.push(Group { name: name.clone(), demands: body.finish(), matches, origin });
        }
        if let Some(below) = below {
            let parent = if name == GroupName::root() { "/".to_owned() } else { format!("{name}/") };
            self.groups(&parent, below, into);
        }
    }

    pub(super) fn templates(&mut self, value: &Value<'_>, into: &mut Vec<Template>) {
        let Some(templates) = self.named_tables(value) else { return };
        for (key, table) in templates {
            let mut body = Collector::new(Twice::Refused);
            let place = format!("in template '{}'", cut(key.get_ref()));
            for (key, value) in entries(table) {
                self.demand(key, value, &place, &keys::TEMPLATE, &mut body);
            }
            if let Some(name) = self.pattern(key.get_ref(), self.places.origin(key.span())) {
                into.push(Template { name, demands: body.finish(), origin: self.origin(key) });
            }
        }
    }

    pub(super) fn defaults(&mut self, value: &Value<'_>) -> Defaults {
        let DeValue::Table(table) = value.get_ref() else {
            self.wrong_type(value, "a table");
            return Defaults::default();
        };
        let mut defaults = Defaults::default();
        let mut body = Collector::new(Twice::Refused);
        for (key, value) in entries(table) {
            match &**key.get_ref() {
                "placement" => defaults.placement = Placement::read(self, value),
                "smt" => defaults.smt = Smt::read(self, value),
                "pool" => defaults.pool = Pool::read(self, value),
                "cpus" | "exclusive" => self.never_by_default(self.places.origin(key.span())),
                _ => self.demand(key, value, "in the defaults", &keys::DEFAULTS, &mut body),
            }
        }
        let demands = body.finish();
        if let Some(cpus) = demands.cpus {
            self.never_by_default(cpus.origin);
        } else if demands.exclusive || demands.settings.iter().any(Assigned::is_flag) {
            self.never_by_default(self.origin(value));
        }
        Defaults {
            mems: demands.mems,
            tasks: demands.tasks,
            admin: demands.admin,
            keep: demands.keep,
            settings: demands.settings,
            ..defaults
        }
    }

    fn never_by_default(&mut self, origin: Origin) {
        let error = Diagnostic::error("CPUs are never given by default").at(origin);
        self.error(error.hint("give each group its own; { like = \"oltp1\" } shares another group's"));
    }

    /// One key of a group, template or the defaults, as far as `known` has it; settings too.
    pub(super) fn demand(
        &mut self,
        key: &Name<'_>,
        value: &Value<'_>,
        place: &str,
        known: &[Key],
        body: &mut Collector,
    ) {
        if self.report.is_hopeless() {
            return;
        }
        let name = &**key.get_ref();
        if !known.iter().any(|known| known.name == name) {
            let table = matches!(value.get_ref(), DeValue::Table(_));
            match self.names.find(name).is_some() || name.contains('.') || (table && self.names.begins(name))
            {
                true => self.setting(name, key, value, body),
                false => self.unknown_key_or_setting(key, place, known),
            }
            return;
        }
        // what a key and a setting both say must not be said by both
        let setting = match name {
            "cpus" => Some("cpuset.cpus"),
            "mems" => Some("cpuset.mems"),
            "exclusive" => Some("cpuset.cpu_exclusive"),
            _ => None,
        };
        if let Some(found) = setting.and_then(|setting| self.names.find(setting)) {
            let origin = self.origin(key);
            if !body.say(&found, name, &origin, self.report) {
                return;
            }
        }
        match name {
            "cpus" => body.demands().cpus = Takes::read(self, value),
            "mems" => body.demands().mems = Takes::read(self, value),
            "exclusive" => body.demands().exclusive = bool::read(self, value).unwrap_or(false),
            "tasks" => body.demands().tasks = self.tasks(value),
            "admin" => body.demands().admin = Takes::read(self, value),
            "isolate" => body.demands().isolate = Takes::read(self, value),
            "latency" => body.demands().latency = self.latency(value).map(Box::new),
            "keep" => body.demands().keep = Takes::read(self, value),
            "unit" => body.demands().unit = self.unit(value),
            _ => body.demands().controllers = self.controllers(value),
        }
    }

    fn tasks(&mut self, value: &Value<'_>) -> Option<Spanned<Person>> {
        let tasks = self.keyed(value, "in 'tasks'", &Person::KEYS[..TASKS_KEYS])?;
        Some(Spanned::new(tasks, self.origin(value)))
    }

    fn unit(&mut self, value: &Value<'_>) -> Option<Spanned<UnitName>> {
        let DeValue::String(text) = value.get_ref() else {
            return self.refuse_type(value, "a unit's name, such as \"postgresql.service\"");
        };
        match UnitName::new(text) {
            Ok(unit) => Some(Spanned::new(unit, self.origin(value))),
            Err(error) => self.refuse(value, error.to_string(), &error.hint()),
        }
    }

    fn unknown_key_or_setting(&mut self, key: &Name<'_>, place: &str, known: &[Key]) {
        let near_keys = units::nearest(&cut(key.get_ref()), names(known));
        let roots = settings::all().filter_map(|setting| setting.name.split_once('.')).map(|(root, _)| root);
        let near_roots = units::nearest(&cut(key.get_ref()), roots);
        let hint = match (near_keys.as_slice(), near_roots.as_slice()) {
            ([], []) => {
                format!("known are {}, and settings such as memory.max", names(known).join(", "))
            }
            ([], [root, ..]) => format!("did you mean a setting such as {root}.…?"),
            (near, _) => format!("did you mean {}?", near.join(" or ")),
        };
        self.unknown_key_hint(key, place, hint);
    }

    /// A table of tables, those that are none reported and left out.
    pub(super) fn named_tables<'v, 'i>(
        &mut self,
        value: &'v Value<'i>,
    ) -> Option<Vec<(&'v Name<'i>, &'v Table<'i>)>> {
        let DeValue::Table(tables) = value.get_ref() else {
            return self.refuse_type(value, "a table of names, such as [groups.oltp1]");
        };
        let mut named = Vec::new();
        for (key, value) in entries(tables) {
            match value.get_ref() {
                DeValue::Table(table) => named.push((key, table)),
                other => {
                    let found = kind(other);
                    let message = format!("expected a table for '{}', found {found}", cut(key.get_ref()));
                    self.wrong(value, message, "such as { cpus = 8 }");
                }
            }
        }
        Some(named)
    }

    pub(super) fn pattern(&mut self, text: &str, origin: Origin) -> Option<NamePattern> {
        match NamePattern::new(text) {
            Ok(pattern) => Some(pattern),
            Err(error) => {
                let hint = match &error {
                    PatternError::UnknownCode { .. } => {
                        "codes are %u %U %g %G %p %P; \\\\% is a per cent sign"
                    }
                    PatternError::Name { .. } => "a name is made of parts like 'db/oltp1'",
                };
                let hint =
                    if self.in_literal(&origin) { hint.replace("\\\\", "\\") } else { hint.to_owned() };
                self.error(Diagnostic::error(error.to_string()).at(origin).hint(hint));
                None
            }
        }
    }

    fn in_literal(&self, origin: &Origin) -> bool {
        self.places.line(origin).is_some_and(|(line, at)| line[at..].starts_with('\''))
    }

    /// Controllers by name, each once.
    pub(super) fn controllers(&mut self, value: &Value<'_>) -> Vec<Spanned<Subsystem>> {
        let mut found: Vec<Spanned<Subsystem>> = Vec::new();
        for (text, value) in self.texts(value, "the name of a controller") {
            match Subsystem::new(text) {
                Some(subsystem) if found.iter().any(|other| other.value == subsystem) => {}
                Some(subsystem) => found.push(Spanned::new(subsystem, self.origin(value))),
                None => {
                    let (message, hint) = crate::rule::no_controller(text);
                    self.wrong(value, message, &hint);
                }
            }
        }
        found
    }
}
