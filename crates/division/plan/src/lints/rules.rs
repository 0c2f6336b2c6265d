//! Lints of rules: groups that nothing makes.

use std::collections::BTreeSet;

use layout::Condition;
use units::hint::Command;

use super::Looked;
use crate::{Lint, LintKind};

/// Rules of a layout that has nothing but rules: the groups that they name, once each. Where there are groups, reading the
/// layout says which are missing.
pub(super) fn without_group(looked: &Looked<'_>, lints: &mut Vec<Lint>) {
    let desired = looked.desired;
    if !desired.groups.is_empty() || !desired.templates.is_empty() {
        return;
    }
    let mut seen = BTreeSet::new();
    for target in desired.rules.iter().flat_map(|rule| &rule.targets) {
        // a name with codes is made when a process needs it
        let Some(name) = target.group.name().filter(|name| !name.path().is_empty()) else { continue };
        if !seen.insert(name.clone()) {
            continue;
        }
        let message = format!("a rule puts processes into group '{name}', which the layout does not have");
        let create = Command::ringfence("create").group(&name);
        let lint = Lint::new(LintKind::NoSuchGroup, Some(&name), message).at(&target.origin);
        lints.push(lint.hint(format!("add the group to the layout, or make it before: {create}")));
    }
}

/// Rules for processes of services, which stay with systemd.
pub(super) fn of_services(looked: &Looked<'_>, lints: &mut Vec<Lint>) {
    for rule in looked.desired.all_rules().iter().filter(|rule| !rule.ignore) {
        let service = rule.matcher.also.iter().find_map(|condition| match condition {
            Condition::Unit(unit) if unit.as_str().ends_with(".service") => Some(unit.as_str()),
            _ => None,
        });
        let Some(unit) = service else { continue };
        let message = format!(
            "a rule takes processes of {unit}, which are not moved out of it: systemd would lose them"
        );
        let lint = Lint::new(LintKind::OfService, None, message).at(&rule.matcher.origin);
        lints.push(lint.hint(format!(
            "limit the service where it is: {} AllowedCPUs=… MemoryMax=…; or divide it: a group in the group with its unit = (docs/roles.md)",
            Command::new("systemctl set-property").arg(unit)
        )));
    }
}
