//! Owners of the files that take tasks, where the kernel asks for more than their right.

use layout::{Account, Person};
use settings::Version;
use units::hint::Command;

use crate::{Lint, LintKind, homes::Home};

/// On cgroup v2 only who may write to the group above both places moves a process (cgroup-v2.rst, Delegation Containment).
pub(crate) fn from_outside(homes: &[Home<'_>], lints: &mut Vec<Lint>) {
    for home in homes.iter().filter(|home| !home.is_systemds()) {
        let Some(tasks) = &home.group.demands.tasks else { continue };
        let Some(owner) = owner(&tasks.value) else { continue };
        if !home.places.values().any(|place| place.version == Version::V2) {
            continue;
        }
        let name = &home.group.name;
        let message = format!(
            "on cgroup v2 {owner} can't move processes into group '{name}' from a group that is not theirs: the kernel also requires write access to cgroup.procs of the common ancestor"
        );
        let asks = Command::ringfence("move").group(name);
        let lint = Lint::new(LintKind::TasksFromOutside, Some(name), message).at(&tasks.origin);
        lints.push(
            lint.hint(format!(
                "with ringfenced running, `{asks} PID` asks it to move one of their processes"
            )),
        );
    }
}

/// In words, who is not root.
fn owner(person: &Person) -> Option<String> {
    let is_root = |account: &Account| matches!(account, Account::Id(0)) || account.to_string() == "root";
    let named = |what, account: &Option<Account>| {
        Some(format!("{what} {}", account.as_ref().filter(|account| !is_root(account))?))
    };
    named("user", &person.user).or_else(|| named("group", &person.group))
}
