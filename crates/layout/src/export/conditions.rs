//! What else a process must be like, as keys of our own TOML.

use super::toml::{Pairs, array, key, matcher_pairs, table, text};
use crate::condition::Condition;
use crate::rule::Matcher;

pub(super) fn condition_pairs(matcher: &Matcher, pairs: &mut Pairs) {
    let mut variables = Vec::new();
    for condition in &matcher.also {
        pairs.push(match condition {
            Condition::Command(expression) => ("command", text(expression.as_str())),
            Condition::Parent(process) => ("parent", text(&process.to_string())),
            Condition::Ancestor(process) => ("ancestor", text(&process.to_string())),
            Condition::Session(process) => ("session", text(&process.to_string())),
            Condition::Unit(glob) => ("unit", text(glob.as_str())),
            Condition::Container(glob) => ("container", text(glob.as_str())),
            Condition::Present(glob) => ("in", text(glob.as_str())),
            Condition::Any(inner) => ("any", inline(inner)),
            Condition::Not(inner) => ("not", inline(inner)),
            Condition::Environment { name, value } => {
                variables.push(format!("{} = {}", key(name), text(value.as_str())));
                continue;
            }
        });
    }
    if !variables.is_empty() {
        pairs.push(("environment", format!("{{ {} }}", variables.join(", "))));
    }
}

fn inline(matchers: &[Matcher]) -> String {
    array(&matchers.iter().map(|matcher| table(&matcher_pairs(matcher))).collect::<Vec<_>>())
}
