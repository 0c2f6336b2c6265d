//! libcgroup's cgrules.conf.

use std::fmt::Write as _;

use super::Export;
use super::writes::comment;
use crate::desired::Desired;
use crate::diagnostic::Diagnostic;
use crate::matcher::Process;
use crate::rule::{Controllers, Rule};

/// All rules as lines of cgrules.conf, the groups' own behind the others.
pub fn to_cgrules(desired: &Desired) -> Export {
    let (mut text, mut lost) = (String::new(), Vec::new());
    for rule in desired.all_rules() {
        match lines(&rule) {
            Ok(lines) => text.push_str(&lines),
            Err(warning) => {
                text.push_str(&comment("", &warning));
                lost.push(warning);
            }
        }
    }
    Export { text, lost }
}

fn lines(rule: &Rule) -> Result<String, Diagnostic> {
    let lost = |what: &str| Err(Diagnostic::warning(what).at(rule.matcher.origin.clone()));
    if !rule.matcher.also.is_empty() || matches!(rule.matcher.process, Some(Process::Glob(_))) {
        return lost("cgrules.conf knows processes by user, group and program only");
    }
    if rule.matcher.strict {
        return lost("cgrules.conf knows no strict rules");
    }
    let mut user = rule.matcher.who.to_string();
    if let Some(process) = &rule.matcher.process {
        let process = process.to_string();
        if process.contains('"') {
            return lost("cgrules.conf has no way to write a quote");
        }
        let quoted = process.contains(|c: char| c.is_whitespace() || c == '#');
        user = if quoted { format!("{user}:\"{process}\"") } else { format!("{user}:{process}") };
    }
    let options = match (rule.ignore, rule.ignore_rt) {
        (true, true) => "\tignore,ignore_rt",
        (true, false) => "\tignore",
        (false, true) => "\tignore_rt",
        (false, false) => "",
    };
    if rule.targets.is_empty() {
        // a group must stand there, though no process is moved
        return Ok(format!("{user}\t*\t/{options}\n"));
    }
    let mut text = String::new();
    for (index, target) in rule.targets.iter().enumerate() {
        let controllers = match &target.controllers {
            Controllers::All => "*".to_owned(),
            Controllers::These(these) => these.iter().map(ToString::to_string).collect::<Vec<_>>().join(","),
        };
        let group = target.group.to_string();
        if group.contains('"') || controllers.contains('"') {
            return lost("cgrules.conf has no way to write a quote");
        }
        let group = if group.contains(char::is_whitespace) { format!("\"{group}\"") } else { group };
        let user = if index == 0 { user.as_str() } else { "%" };
        let _ = writeln!(text, "{user}\t{controllers}\t{group}{options}"); // a String takes everything
    }
    Ok(text)
}
