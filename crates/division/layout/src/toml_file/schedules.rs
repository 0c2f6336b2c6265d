//! What changes by itself: `[[schedule]]`.

use std::time::Duration;

use settings::GroupName;

use super::keys;
use crate::collect::{Collector, Twice};
use crate::diagnostic::Diagnostic;
use crate::names::cut;
use crate::origin::Spanned;
use crate::reader::{Name, Reader, Takes as _, Value, entries};
use crate::schedule::{Calendar, Event, Missed, When, parse_span};
use crate::scheduled::{Overlay, Schedule};
use crate::unit_name::UnitName;

/// One key of a schedule with what it says, at its place.
type Said<'v, 'i, T> = Option<(&'v Name<'i>, &'v Value<'i>, Option<T>)>;

/// What a schedule says of its times.
#[derive(Default)]
struct Times<'v, 'i> {
    at: Said<'v, 'i, Calendar>,
    after: Said<'v, 'i, Duration>,
    on: Said<'v, 'i, Event>,
    until: Said<'v, 'i, Calendar>,
    every: Said<'v, 'i, Duration>,
    missed: Said<'v, 'i, Missed>,
}

/// The longest name of a program that the kernel knows a process by.
const LONGEST_NAME: usize = 15;

impl Reader<'_> {
    pub(super) fn schedules(&mut self, value: &Value<'_>) -> Vec<Schedule> {
        let tables = self.tables(value, keys::SCHEDULE);
        tables.into_iter().filter_map(|value| self.schedule(value)).collect()
    }

    fn schedule(&mut self, value: &Value<'_>) -> Option<Schedule> {
        let (mut name, mut overlays) = (None, None);
        let mut times = Times::default();
        for (key, value) in self.table(value, "in 'schedule'", keys::SCHEDULE)? {
            match &**key.get_ref() {
                "name" => name = self.schedule_name(value),
                "at" => times.at = Some((key, value, self.calendar(value))),
                "after" => times.after = Some((key, value, self.span(value))),
                "on" => times.on = Some((key, value, self.event(value))),
                "until" => times.until = Some((key, value, self.calendar(value))),
                "every" => times.every = Some((key, value, self.span(value))),
                "missed" => times.missed = Some((key, value, Missed::read(self, value))),
                _ => overlays = Some(self.overlays(value)),
            }
        }
        self.refuse_alone(&times);
        let ends = times.until.as_ref().map(|(_, place, _)| self.origin(*place));
        let when = self.when(value, times)?;
        let Some(name) = name else {
            return self.refuse(
                value,
                "a schedule has a name".to_owned(),
                "name = \"night\", as the history shows it",
            );
        };
        let Some(overlays) = overlays.filter(|overlays| !overlays.is_empty()) else {
            let what = format!("schedule '{}' changes nothing", name.value);
            return self.refuse(value, what, "groups.NAME = { cpus = 4 }");
        };
        Some(Schedule { name: name.value, when, until: ends, overlays, origin: name.origin })
    }

    /// Refuses keys without the one that they go with.
    fn refuse_alone(&mut self, times: &Times<'_, '_>) {
        let Times { at, after, until, every, missed, .. } = times;
        let until = until.as_ref().map(|said| (said.0, "at", at.is_some()));
        let missed = missed.as_ref().map(|said| (said.0, "at", at.is_some()));
        let every = every.as_ref().map(|said| (said.0, "after", after.is_some()));
        for (key, with, is_there) in [until, missed, every].into_iter().flatten() {
            if !is_there {
                let message = format!("'{}' goes with '{with}' only", cut(key.get_ref()));
                let hint = "at = \"22:00\" with until = \"06:00\"; after = \"600s\" with every = \"600s\"";
                self.error(Diagnostic::error(message).at(self.origin(key)).hint(hint));
            }
        }
    }

    fn when(&mut self, value: &Value<'_>, times: Times<'_, '_>) -> Option<Spanned<When>> {
        let Times { at, after, on, until, every, missed } = times;
        let keys = [
            at.as_ref().map(|said| said.0),
            after.as_ref().map(|said| said.0),
            on.as_ref().map(|said| said.0),
        ];
        let keys: Vec<&Name<'_>> = keys.into_iter().flatten().collect();
        if keys.len() != 1 {
            let error = Diagnostic::error("a schedule has one of 'at', 'after' and 'on'");
            let place = keys.get(1).map_or_else(|| self.origin(value), |key| self.origin(*key));
            self.error(
                error.at(place).hint("such as at = \"Mon..Fri 22:00\"; write two schedules for two of them"),
            );
            return None;
        }
        let (place, when) = match (at, after, on) {
            (Some((_, place, at)), ..) => {
                let until = match until {
                    Some((.., until)) => Some(until?),
                    None => None,
                };
                let missed = missed.and_then(|(.., missed)| missed).unwrap_or_default();
                (place, When::At { at: at?, until, missed })
            }
            (_, Some((_, place, after)), _) => {
                let every = match every {
                    Some((.., every)) => Some(every?),
                    None => None,
                };
                (place, When::After { after: after?, every })
            }
            (.., on) => {
                let (_, place, event) = on?;
                (place, When::On(event?))
            }
        };
        Some(Spanned::new(when, self.origin(place)))
    }

    fn schedule_name(&mut self, value: &Value<'_>) -> Option<Spanned<String>> {
        let text = self.text(value, "a name, such as \"night\"")?;
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if text.is_empty() || text.len() > 64 || !text.chars().all(is_allowed) {
            let what = format!("'{}' is no name of a schedule", cut(text));
            return self.refuse(value, what, "letters, digits, -, _ and ., at most 64 of them");
        }
        Some(Spanned::new(text.to_owned(), self.origin(value)))
    }

    fn calendar(&mut self, value: &Value<'_>) -> Option<Calendar> {
        let text = self.text(value, "a calendar, such as \"Mon..Fri 22:00\"")?;
        match text.parse::<Calendar>() {
            Ok(calendar) => Some(calendar),
            Err(error) => self.refuse(value, error.to_string(), &error.hint),
        }
    }

    fn span(&mut self, value: &Value<'_>) -> Option<Duration> {
        let text = self.text(value, "a span of time, such as \"600s\"")?;
        let span = parse_span(text);
        if span.is_none() {
            let what = format!("'{}' is no span of time", cut(text));
            self.wrong(value, what, "from 100ms to 100 years, such as \"600s\", \"10min\" or \"1h 30m\"");
        }
        span
    }

    fn event(&mut self, value: &Value<'_>) -> Option<Event> {
        let (mut unit, mut process, mut state) = (None, None, None);
        let entries = self.table(value, "in 'on'", keys::ON)?;
        for (key, value) in entries {
            match &**key.get_ref() {
                "unit" => unit = Some(self.event_unit(value)?),
                "process" => process = Some(self.event_process(value)?),
                _ => state = Some(value),
            }
        }
        match (unit, process) {
            (Some(name), None) => {
                const STATES: [(&str, bool); 2] = [("active", true), ("inactive", false)];
                let active = state.map_or(Some(true), |value| self.word(value, &STATES))?;
                Some(Event::Unit { name, active })
            }
            (None, Some(program)) => {
                const STATES: [(&str, bool); 2] = [("start", true), ("end", false)];
                let runs = state.map_or(Some(true), |value| self.word(value, &STATES))?;
                Some(Event::Process { program, runs })
            }
            _ => {
                let hint =
                    "such as { unit = \"backup.service\", state = \"active\" } or { process = \"pg_dump\" }";
                self.refuse(value, "an event is of a unit or of a process".to_owned(), hint)
            }
        }
    }

    fn event_unit(&mut self, value: &Value<'_>) -> Option<String> {
        let text = self.text(value, "a unit's name, such as \"backup.service\"")?;
        // any kind of unit has a state: timers, mounts and targets too
        let kinds = [
            ".service", ".scope", ".slice", ".target", ".timer", ".mount", ".socket", ".path", ".swap",
            ".device",
        ];
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || ":-_.\\@".contains(c);
        let has_kind = kinds.iter().any(|kind| text.strip_suffix(kind).is_some_and(|name| !name.is_empty()));
        if !has_kind || text.len() > 255 || !text.chars().all(is_allowed) {
            let hint = match UnitName::new(text) {
                Err(error) if !has_kind => error.hint(),
                _ => "one unit with its kind, such as \"backup.service\"".to_owned(),
            };
            return self.refuse(value, format!("'{}' is no name of a unit", cut(text)), &hint);
        }
        Some(text.to_owned())
    }

    fn event_process(&mut self, value: &Value<'_>) -> Option<String> {
        let text = self.text(value, "a program, such as \"pg_dump\" or \"/usr/bin/pg_dump\"")?;
        let is_path = text.starts_with('/');
        if text.is_empty() || text.contains(char::is_control) || (text.contains('/') && !is_path) {
            let what = format!("'{}' is no program", cut(text));
            return self.refuse(value, what, "a name such as \"pg_dump\", or a path from the root");
        }
        if !is_path && text.len() > LONGEST_NAME {
            let what = format!("the kernel cuts names of processes to {LONGEST_NAME} bytes");
            return self.refuse(value, what, "give the program's path from the root");
        }
        Some(text.to_owned())
    }

    fn overlays(&mut self, value: &Value<'_>) -> Vec<Overlay> {
        let mut overlays: Vec<Overlay> = Vec::new();
        for (key, table) in self.named_tables(value).unwrap_or_default() {
            let mut body = Collector::new(Twice::Refused);
            let place = format!("of a schedule's group '{}'", cut(key.get_ref()));
            for (key, value) in entries(table) {
                self.demand(key, value, &place, &keys::SCHEDULED, &mut body);
            }
            let demands = body.finish();
            match GroupName::new(key.get_ref()) {
                Ok(group) => {
                    let (cpus, mems, settings) = (demands.cpus, demands.mems, demands.settings);
                    overlays.push(Overlay { group, cpus, mems, settings, origin: self.origin(key) });
                }
                Err(error) => {
                    let diagnostic = Diagnostic::error(error.to_string()).at(self.origin(key));
                    self.error(diagnostic.hint(error.hint()));
                }
            }
        }
        overlays
    }
}
