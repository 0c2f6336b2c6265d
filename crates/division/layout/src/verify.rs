//! What only the machine can decide, as questions to its owner: is it the right machine, do the users exist.

use std::collections::HashSet;

use units::Bytes;

use crate::desired::{Assertions, Demands, Desired, Expected};
use crate::diagnostic::{Diagnostic, Severity};
use crate::glob::like;
use crate::matcher::{Matcher, Who};
use crate::names::cut;
use crate::origin::{Origin, Spanned};
use crate::people::{Account, Person};
use crate::reading::{STRAIGHT, TYPOGRAPHIC};

/// Facts of a machine. An unknown fact is no error.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HostFacts {
    /// The host's name.
    pub hostname: Option<String>,
    /// The CPU's model name.
    pub model: Option<String>,
    /// Number of NUMA nodes.
    pub nodes: Option<usize>,
    /// Number of online logical CPUs.
    pub cpus: Option<usize>,
    /// `MemTotal`.
    pub memory: Option<Bytes>,
}

/// The users and groups of a system.
pub trait Accounts {
    /// Does a user of that name exist?
    fn is_user(&self, name: &str) -> bool;
    /// Does a group of that name exist?
    fn is_group(&self, name: &str) -> bool;
    /// All users' names, to find near ones; may be empty.
    fn users(&self) -> Vec<String>;
    /// All groups' names, to find near ones; may be empty.
    fn groups(&self) -> Vec<String>;
}

impl Assertions {
    /// Why a layout is not for this machine: one error for each assertion that does not hold.
    pub fn refusals(&self, host: &HostFacts) -> Vec<Diagnostic> {
        let memory = |bytes: &Bytes| bytes.to_string();
        let errors = [
            text("host name", &self.hostname, &host.hostname, |name, host| {
                like(name.as_bytes(), host.as_bytes())
            }),
            text("CPU model", &self.model, &host.model, |part, model| {
                like(format!("*{}*", part.to_lowercase()).as_bytes(), model.to_lowercase().as_bytes())
            }),
            number("NUMA nodes", &self.nodes, host.nodes.as_ref(), usize::to_string),
            number("CPUs", &self.cpus, host.cpus.as_ref(), usize::to_string),
            number("memory", &self.memory, host.memory.as_ref(), memory),
        ];
        errors.into_iter().flatten().collect()
    }
}

fn refusal(origin: &Origin, what: &str, expected: String, actual: String) -> Diagnostic {
    let error = Diagnostic::error(format!(
        "this layout is for another machine: {what} {actual}, expected {expected}"
    ));
    error.at(origin.clone()).hint("change the assertion if the machine is right")
}

fn text(
    what: &str,
    expected: &Option<Spanned<String>>,
    actual: &Option<String>,
    fits: impl Fn(&str, &str) -> bool,
) -> Option<Diagnostic> {
    let (expected, actual) = (expected.as_ref()?, actual.as_ref()?);
    let wrong = !fits(&expected.value, actual);
    wrong.then(|| {
        refusal(&expected.origin, what, format!("'{}'", cut(&expected.value)), format!("'{}'", cut(actual)))
    })
}

fn number<T: PartialOrd>(
    what: &str,
    expected: &Option<Spanned<Expected<T>>>,
    actual: Option<&T>,
    shown: impl Fn(&T) -> String,
) -> Option<Diagnostic> {
    let (expected, actual) = (expected.as_ref()?, actual?);
    let range = match &expected.value {
        Expected { min, max: units::Limit::At(max) } if min == max => shown(min),
        Expected { min, max: units::Limit::At(max) } => format!("{} to {}", shown(min), shown(max)),
        Expected { min, max: units::Limit::Max } => format!("at least {}", shown(min)),
    };
    (!expected.value.holds(actual)).then(|| refusal(&expected.origin, what, range, shown(actual)))
}

impl Desired {
    /// Every place that names a user or group which does not exist: an error where it would be an owner, and a warning in a
    /// rule, which then takes nobody, as the daemon and libcgroup's have it. Numbers need not exist.
    pub fn unknown_accounts(&self, known: &dyn Accounts) -> Vec<Diagnostic> {
        let mut seen = HashSet::new();
        let mut found = Vec::new();
        let mut check = |account: &Account, group: bool, origin: &Origin, severity: Severity| {
            let Account::Name(name) = account else { return };
            let exists = if group { known.is_group(name) } else { known.is_user(name) };
            // defaults stand in many groups, but were said once
            if exists || !seen.insert((origin.clone(), group, name.clone())) {
                return;
            }
            let (what, all) = if group { ("group", known.groups()) } else { ("user", known.users()) };
            let mut message = format!("no {what} '{}' exists on this system", cut(name));
            if severity == Severity::Warning {
                message.push_str(", so this takes nobody");
            }
            let near = units::nearest(name, all.iter().map(String::as_str)).join(" or ");
            let hint = match near.as_str() {
                _ if name.contains(TYPOGRAPHIC) => STRAIGHT.to_owned(),
                "" => {
                    let list = if group { "group" } else { "passwd" };
                    format!("getent {list} lists those that exist; to add it: {what}add {name}")
                }
                near => format!("did you mean {near}?"),
            };
            found.push(Diagnostic { severity, ..Diagnostic::error(message).at(origin.clone()).hint(hint) });
        };
        let defaults = self.defaults.tasks.iter().chain(&self.defaults.admin);
        let of_groups = self.groups.iter().map(|group| &group.demands);
        let demands = of_groups.chain(self.templates.iter().map(|template| &template.demands));
        for Spanned { value: Person { user, group, .. }, origin } in
            demands.flat_map(Demands::people).chain(defaults)
        {
            user.iter().for_each(|user| check(user, false, origin, Severity::Error));
            group.iter().for_each(|group| check(group, true, origin, Severity::Error));
        }
        let matches = self.groups.iter().flat_map(|group| &group.matches);
        let all = matches.chain(self.rules.iter().map(|rule| &rule.matcher));
        for Matcher { who, origin, .. } in all.flat_map(Matcher::with_inner) {
            match who {
                Who::User(account) => check(account, false, origin, Severity::Warning),
                Who::GroupMember(account) => check(account, true, origin, Severity::Warning),
                Who::Anyone => {}
            }
        }
        found
    }
}

impl Demands {
    fn people(&self) -> impl Iterator<Item = &Spanned<Person>> {
        self.tasks.iter().chain(&self.admin)
    }
}
