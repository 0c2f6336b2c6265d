//! What a process must match, as keys of our own TOML.

use crate::matcher::{Condition, Matcher, Who};
use crate::reader::{Pairs, Takes as _, array, table, text, toml_key as key};

pub(super) fn matcher_pairs(matcher: &Matcher) -> Pairs {
    let mut pairs = Pairs::new();
    match &matcher.who {
        Who::User(user) => pairs.extend(user.write().map(|user| ("user", user))),
        Who::GroupMember(group) => pairs.extend(group.write().map(|group| ("group", group))),
        Who::Anyone if matcher.process.is_none() && matcher.also.is_empty() => {
            pairs.push(("user", text("*")))
        }
        Who::Anyone => {}
    }
    pairs.extend(matcher.process.as_ref().map(|process| ("process", text(&process.to_string()))));
    condition_pairs(matcher, &mut pairs);
    pairs.extend(matcher.strict.then(|| ("strict", "true".to_owned())));
    pairs
}

fn condition_pairs(matcher: &Matcher, pairs: &mut Pairs) {
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
