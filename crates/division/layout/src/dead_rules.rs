//! Rules that take no process, as one before them takes all of theirs. Compares what was said, and knows no account: of a user
//! and a group it can't say which has which.

use std::collections::HashMap;

use crate::desired::Desired;
use crate::diagnostic::{Diagnostic, Report};
use crate::matcher::{Matcher, Process, Who};

/// Rules of one user and program with other conditions, or of one user for the beginnings of names, that a later rule is compared
/// with: a layout of many rules must not cost the square of them.
const COMPARED: usize = 16;

/// The rules so far.
#[derive(Default)]
struct Earlier<'r> {
    by_program: HashMap<(&'r Who, Option<&'r Process>), Vec<&'r Matcher>>,
    prefixes: HashMap<&'r Who, Vec<&'r Matcher>>,
}

/// Warns of each, at the first that takes its processes.
pub(crate) fn dead_rules(desired: &Desired, report: &mut Report) {
    let mut earlier = Earlier::default();
    let rules = desired.all_rules();
    for matcher in rules.iter().map(|rule| &rule.matcher) {
        if let Some(taker) = earlier.taker(matcher) {
            let warning = Diagnostic::warning("this rule takes no process: one before it takes all of them");
            let warning = warning.at(matcher.origin.clone()).also(taker.origin.clone(), "this one");
            report.push(warning.hint(
                "put it before that one; a rule gives processes several groups by several targets, in cgrules.conf by a line with %",
            ));
        }
        earlier.add(matcher);
    }
}

impl<'r> Earlier<'r> {
    fn taker(&self, matcher: &Matcher) -> Option<&'r Matcher> {
        let of = |who: &'_ Who| {
            let process = matcher.process.as_ref();
            let same = [None, process].into_iter().filter_map(|process| self.by_program.get(&(who, process)));
            same.chain(self.prefixes.get(who)).flatten().copied().find(|one| takes_all(one, matcher))
        };
        of(&Who::Anyone).or_else(|| of(&matcher.who))
    }

    fn add(&mut self, matcher: &'r Matcher) {
        let keep = |rules: &mut Vec<&'r Matcher>| {
            if rules.len() < COMPARED {
                rules.push(matcher);
            }
        };
        keep(self.by_program.entry((&matcher.who, matcher.process.as_ref())).or_default());
        if let Some(Process::Prefix(_)) = matcher.process {
            keep(self.prefixes.entry(&matcher.who).or_default());
        }
    }
}

/// Is there no process that the second takes and the first does not? Their users are known to fit.
fn takes_all(first: &Matcher, second: &Matcher) -> bool {
    let program = match (&first.process, &second.process) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(first), Some(second)) => first == second || begins(first, second),
    };
    program && first.also.iter().all(|condition| second.also.contains(condition))
}

/// Does all that the second may be begin as the first says?
fn begins(first: &Process, second: &Process) -> bool {
    let Process::Prefix(prefix) = first else { return false };
    match second {
        Process::Name(text) => !prefix.contains('/') && text.starts_with(prefix),
        Process::Path(text) => prefix.contains('/') && text.starts_with(prefix),
        Process::Prefix(text) => text.contains('/') == prefix.contains('/') && text.starts_with(prefix),
        Process::Glob(_) => false,
    }
}
