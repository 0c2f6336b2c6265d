//! Rules made ready for judging many processes: names resolved to numbers once, texts to bytes. A rule that names an
//! account which does not exist takes nobody, and is reported.

use kernel::GroupName;
use layout::{Account, Condition, Controllers, Matcher, NamePattern, Origin, Rule, Who};

use crate::{Goal, Names, RequestedProgram, led::Led};

/// Rules in order; the first that fits a process counts.
#[derive(Debug, Clone)]
pub struct Rules {
    pub(crate) rules: Vec<Compiled>,
    pub(crate) led: Led,
}

/// An account in a rule that is not known. The rule takes no process: one more word for it would be a guess.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{error}; the rule takes no process")]
pub struct Unknown {
    /// The rule, from 0.
    pub rule: usize,
    /// Where it was said.
    pub origin: Origin,
    /// Why it is not known.
    pub error: String,
}

#[derive(Debug, Clone)]
pub(crate) struct Compiled {
    pub fit: Fit,
    /// As it was said, for explanations: `oracle:/usr/bin/fio`.
    pub shown: String,
    pub origin: Origin,
    pub goals: Vec<Aim>,
    pub ignore: bool,
    pub ignore_rt: bool,
    /// Why it takes nobody.
    pub unknown: Option<String>,
}

/// Where a rule leads.
#[derive(Debug, Clone)]
pub(crate) struct Aim {
    pub controllers: Controllers,
    pub pattern: NamePattern,
    /// The group's name where it is the same for all processes.
    pub fixed: Option<GroupName>,
    /// The name of a group in the process's unit.
    pub within: Option<String>,
}

/// What a process must be like; all parts must fit.
#[derive(Debug, Clone)]
pub(crate) struct Fit {
    pub who: Whose,
    pub program: Option<RequestedProgram>,
    pub also: Vec<Also>,
}

#[derive(Debug, Clone)]
pub(crate) enum Whose {
    Anyone,
    User {
        uid: u32,
        name: String,
    },
    /// Effective, supplementary, or by the group's list.
    Group {
        gid: u32,
        name: String,
        /// Ascending.
        members: Vec<u32>,
    },
    /// An account that does not exist.
    Nobody,
}

#[derive(Debug, Clone)]
pub(crate) enum Also {
    Parent(RequestedProgram),
    Ancestor(RequestedProgram),
    Session(RequestedProgram),
    Any(Vec<Fit>),
    Not(Vec<Fit>),
    /// All others, which need no preparation.
    As(Condition),
}

impl Rules {
    /// Makes rules ready. Those that name an unknown account are reported, and take nobody; whether that is an error is the
    /// caller's to say (libcgroup's daemon logs it and goes on).
    pub fn compile(rules: &[Rule], names: &dyn Names) -> (Rules, Vec<Unknown>) {
        let mut compiled = Vec::with_capacity(rules.len());
        let mut unknown = Vec::new();
        for (index, rule) in rules.iter().enumerate() {
            let mut wrong = Vec::new();
            let fit = fit(&rule.matcher, names, &mut wrong);
            let first = wrong.first().map(|(error, _)| error.clone());
            unknown.extend(wrong.into_iter().map(|(error, origin)| Unknown { rule: index, origin, error }));
            compiled.push(Compiled {
                fit,
                shown: shown(&rule.matcher),
                origin: rule.matcher.origin.clone(),
                goals: rule.targets.iter().map(Aim::new).collect(),
                ignore: rule.ignore,
                ignore_rt: rule.ignore_rt,
                unknown: first,
            });
        }
        (Rules { rules: compiled, led: Led::of(rules) }, unknown)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.rules.len()
    }

    /// Is there none?
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// A rule's place in its file; `None` if there is no such rule.
    pub fn origin(&self, rule: usize) -> Option<&Origin> {
        Some(&self.rules.get(rule)?.origin)
    }

    /// What a rule takes, in short, as cgrules.conf writes it.
    pub fn shown(&self, rule: usize) -> &str {
        self.rules.get(rule).map_or("", |rule| rule.shown.as_str())
    }
}

impl Aim {
    fn new(target: &layout::Target) -> Aim {
        Aim {
            controllers: target.controllers.clone(),
            pattern: target.group.clone(),
            fixed: target.group.name().filter(|_| target.within.is_none()),
            within: target.within.clone(),
        }
    }

    pub(crate) fn goal(&self, group: GroupName) -> Goal {
        Goal { controllers: self.controllers.clone(), pattern: self.pattern.clone(), group }
    }
}

fn fit(matcher: &Matcher, names: &dyn Names, wrong: &mut Vec<(String, Origin)>) -> Fit {
    let who = match &matcher.who {
        Who::Anyone => Whose::Anyone,
        Who::User(account) => match number(account, &|name| names.user(name)) {
            Ok(uid) => Whose::User { uid, name: account.to_string() },
            Err(error) => nobody(error, matcher, wrong),
        },
        Who::GroupMember(account) => match number(account, &|name| names.group(name)) {
            Ok(gid) => {
                let name = account.to_string();
                let mut members = names.members(&name);
                members.sort_unstable();
                Whose::Group { gid, name, members }
            }
            Err(error) => nobody(error, matcher, wrong),
        },
    };
    let program = matcher.process.as_ref().map(RequestedProgram::new);
    let also = matcher.also.iter().map(|condition| also(condition, names, wrong)).collect();
    Fit { who, program, also }
}

fn number(account: &Account, look_up: &dyn Fn(&str) -> Result<u32, String>) -> Result<u32, String> {
    match account {
        Account::Id(number) => Ok(*number),
        Account::Name(name) => look_up(name),
    }
}

fn nobody(error: String, matcher: &Matcher, wrong: &mut Vec<(String, Origin)>) -> Whose {
    wrong.push((error, matcher.origin.clone()));
    Whose::Nobody
}

fn also(condition: &Condition, names: &dyn Names, wrong: &mut Vec<(String, Origin)>) -> Also {
    let mut all = |inner: &[Matcher]| inner.iter().map(|matcher| fit(matcher, names, wrong)).collect();
    match condition {
        Condition::Parent(process) => Also::Parent(RequestedProgram::new(process)),
        Condition::Ancestor(process) => Also::Ancestor(RequestedProgram::new(process)),
        Condition::Session(process) => Also::Session(RequestedProgram::new(process)),
        Condition::Any(inner) => Also::Any(all(inner)),
        Condition::Not(inner) => Also::Not(all(inner)),
        other => Also::As(other.clone()),
    }
}

fn shown(matcher: &Matcher) -> String {
    let program = matcher.process.as_ref().map(|process| format!(":{process}")).unwrap_or_default();
    let more = if matcher.also.is_empty() { "" } else { " …" };
    format!("{}{program}{more}", matcher.who)
}
