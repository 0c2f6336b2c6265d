//! The demands of one group while its file is read: settings checked as they come, those of cpusets turned into
//! demands of CPUs and memory nodes, and nothing taken twice. Of all readers.

use std::collections::HashMap;

use settings::{NamedSetting, Value, ValueError};
use units::NodeSet;

use crate::assigned::{Assigned, adds_up, overlap, part};
use crate::demand::{CpuDemand, MemDemand};
use crate::desired::Demands;
use crate::diagnostic::{Diagnostic, Report};
use crate::names::AnyMachine;
use crate::origin::{Origin, Spanned};

/// What a setting given twice means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Twice {
    /// An error.
    Refused,
    /// The later one counts, with a warning, as libcgroup's users are used to.
    LastCounts,
}

/// The demands of one group so far.
pub(crate) struct Collector {
    demands: Demands,
    twice: Twice,
    /// By setting and huge page size.
    given: HashMap<(&'static str, Option<String>), Vec<Setting>>,
}

/// A setting, or a part of one, that was given.
struct Setting {
    part: Option<usize>,
    origin: Origin,
    /// Its index in [`Demands::settings`], if it has one.
    index: Option<usize>,
}

impl Collector {
    pub(crate) fn new(twice: Twice) -> Collector {
        Collector { demands: Demands::default(), twice, given: HashMap::new() }
    }

    /// The demands, with everything but settings still to be said directly.
    pub(crate) fn demands(&mut self) -> &mut Demands {
        &mut self.demands
    }

    pub(crate) fn finish(mut self) -> Demands {
        // most groups have few, and thousands of groups room for four each
        self.demands.settings.shrink_to_fit();
        self.demands
    }

    /// Notes that what `found` stands for is said at `name`, in the words `called`; false, and reported, if it may not
    /// be said again.
    pub(crate) fn say(
        &mut self,
        found: &NamedSetting,
        called: &str,
        name: &Origin,
        report: &mut Report,
    ) -> bool {
        let part = part(found);
        let given = self.given.entry((found.setting.name, found.size.clone())).or_default();
        let Some(before) = given.iter_mut().find(|other| overlap(other.part, part, found)) else {
            given.push(Setting { part, origin: name.clone(), index: None });
            return true;
        };
        let (message, hint): (fn(String) -> Diagnostic, _) = match self.twice {
            Twice::LastCounts if adds_up(found) => return true,
            Twice::LastCounts => (Diagnostic::warning, "the later one counts"),
            Twice::Refused => (Diagnostic::error, "keep one of them"),
        };
        let origin = std::mem::replace(&mut before.origin, name.clone());
        let named = format!("'{called}' is given twice");
        report.push(message(named).at(name.clone()).also(origin, "first given here").hint(hint));
        self.twice == Twice::LastCounts
    }

    /// Takes a setting with its value's text, both at their places.
    pub(crate) fn assign(
        &mut self,
        found: NamedSetting,
        text: &str,
        name: Origin,
        value_at: Origin,
        report: &mut Report,
    ) {
        self.take(found, (text, None), name, value_at, report);
    }

    /// Takes one that follows the group's load, from its least value to its largest.
    pub(crate) fn assign_range(
        &mut self,
        found: NamedSetting,
        (least, most): (&str, &str),
        name: Origin,
        value_at: Origin,
        report: &mut Report,
    ) {
        self.take(found, (least, Some(most)), name, value_at, report);
    }

    fn take(
        &mut self,
        found: NamedSetting,
        (text, most): (&str, Option<&str>),
        name: Origin,
        value_at: Origin,
        report: &mut Report,
    ) {
        let read = found.parse(text, &AnyMachine);
        if !self.say(&found, &found.name, &name, report) {
            return;
        }
        let value = match read {
            Ok(value) => value,
            Err(error) => {
                let diagnostic = Diagnostic::error(error.to_string());
                let diagnostic = match error {
                    ValueError::ReadOnly { .. } => diagnostic.at(name).hint("it can only be read"),
                    _ => diagnostic.of_value().at(value_at),
                };
                report.push(diagnostic.maybe_hint(error.hint()));
                return;
            }
        };
        match (found.setting.name, value) {
            ("cpuset.cpus", _) if text.trim() == "all" => {
                self.demands.cpus = Some(Spanned::new(CpuDemand::All, value_at));
            }
            // an empty set is what a group has that nothing is said about
            ("cpuset.cpus", Value::Cpus(cpus)) => {
                let cpus = (!cpus.is_empty()).then(|| Spanned::new(CpuDemand::These(cpus), value_at));
                self.demands.cpus = cpus;
            }
            ("cpuset.mems", Value::Nodes(nodes)) => {
                self.demands.mems = these(nodes).map(|nodes| Spanned::new(nodes, value_at));
            }
            _ => {
                let most = most.map(|most| most.trim().to_owned());
                self.keep(Assigned { found, text: text.trim().to_owned(), most, origin: name });
            }
        }
    }

    fn keep(&mut self, assigned: Assigned) {
        let found = &assigned.found;
        let part = part(found);
        let given = self.given.get_mut(&(found.setting.name, found.size.clone()));
        let given = given.and_then(|given| given.iter_mut().find(|given| overlap(given.part, part, found)));
        let settings = &mut self.demands.settings;
        match given.as_ref().and_then(|given| settings.get_mut(given.index?)) {
            Some(rules) if adds_up(&rules.found) => rules.text = format!("{}; {}", rules.text, assigned.text),
            Some(before) => *before = assigned,
            None => {
                if let Some(given) = given {
                    given.index = Some(settings.len());
                }
                settings.push(assigned);
            }
        }
    }
}

fn these(nodes: NodeSet) -> Option<MemDemand> {
    (!nodes.is_empty()).then_some(MemDemand::These(nodes))
}
