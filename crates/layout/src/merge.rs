//! Drafts of several files into one [`Desired`]: nothing said twice, defaults given to whoever needs them, parents
//! before children.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use kernel::GroupName;

use crate::collect::part;
use crate::demand::CpuDemand;
use crate::desired::{Assigned, Defaults, Demands, Desired};
use crate::diagnostic::{Diagnostic, Report};
use crate::origin::Origin;

/// What one file says.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    pub desired: Desired,
    /// Sections that may be there once only, and where they are.
    pub sections: Vec<(&'static str, Origin)>,
}

/// Joins what the files say, in their order.
pub(crate) fn merge(drafts: Vec<Draft>, report: &mut Report) -> Desired {
    let mut whole = Desired::default();
    let mut groups = HashMap::new();
    let mut templates = HashMap::new();
    let mut sections = HashMap::new();
    for Draft { desired, sections: given } in drafts {
        for group in desired.groups {
            let what = || format!("group '{}'", group.name);
            if first(&mut groups, group.name.clone(), &group.origin, what, report) {
                whole.groups.push(group);
            }
        }
        for template in desired.templates {
            let what = || format!("template '{}'", template.name);
            if first(&mut templates, template.name.clone(), &template.origin, what, report) {
                whole.templates.push(template);
            }
        }
        whole.rules.extend(desired.rules);
        whole.systemd.extend(desired.systemd);
        for mount in desired.mounts {
            let known = whole
                .mounts
                .iter()
                .any(|other| (&other.subsystem, &other.path) == (&mount.subsystem, &mount.path));
            if !known {
                whole.mounts.push(mount);
            }
        }
        for (section, origin) in given {
            if !first(&mut sections, section, &origin, || format!("'{section}'"), report) {
                continue;
            }
            match section {
                "reserve" => whole.reserve = desired.reserve.clone(),
                "host" => whole.assertions = desired.assertions.clone(),
                _ => whole.defaults = desired.defaults.clone(),
            }
        }
    }
    let defaults = whole.defaults.clone();
    let groups = whole.groups.iter_mut().map(|group| &mut group.demands);
    let templates = whole.templates.iter_mut().map(|template| &mut template.demands);
    groups.chain(templates).for_each(|demands| give(&defaults, demands));
    // stable: the files' order within a depth
    whole.groups.sort_by_cached_key(|group| depth(&group.name));
    whole
}

/// How many groups a group is in; the root is in none, and all others in it.
pub(crate) fn depth(name: &GroupName) -> usize {
    if *name == GroupName::root() { 0 } else { name.path().split('/').count() }
}

/// Notes where something was given; reports it if that is not the first time.
fn first<K: std::hash::Hash + Eq>(
    seen: &mut HashMap<K, Origin>,
    key: K,
    origin: &Origin,
    what: impl Fn() -> String,
    report: &mut Report,
) -> bool {
    let before = match seen.entry(key) {
        Entry::Vacant(vacant) => {
            vacant.insert(origin.clone());
            return true;
        }
        Entry::Occupied(before) => before.get().clone(),
    };
    let error = Diagnostic::error(format!("{} is given twice", what())).at(origin.clone());
    report.push(error.also(before, "first given here").hint("join the two, or rename one"));
    false
}

/// Fills in what demands don't say themselves.
fn give(defaults: &Defaults, demands: &mut Demands) {
    if demands.cpus.is_some() && demands.mems.is_none() {
        demands.mems.clone_from(&defaults.mems);
    }
    if let Some(CpuDemand::Some(spec)) = demands.cpus.as_mut().map(|cpus| &mut cpus.value) {
        spec.placement = spec.placement.or(defaults.placement);
        spec.smt = spec.smt.or(defaults.smt);
        // what is exclusive can't be shared, whatever is usual
        spec.pool = spec.pool.or(defaults.pool.filter(|_| !demands.exclusive));
    }
    if demands.tasks.is_none() {
        demands.tasks.clone_from(&defaults.tasks);
    }
    if demands.admin.is_none() {
        demands.admin.clone_from(&defaults.admin);
    }
    let unsaid = |default: &&Assigned| demands.settings.iter().all(|own| !same(own, default));
    let given: Vec<Assigned> = defaults.settings.iter().filter(unsaid).cloned().collect();
    demands.settings.splice(0..0, given);
}

/// Do two names speak of the same setting, or of the same part of it?
pub(crate) fn same(one: &Assigned, other: &Assigned) -> bool {
    let (one, other) = (&one.found, &other.found);
    let parts = (part(one), part(other));
    let overlap = parts.0 == parts.1 || parts.0.is_none() || parts.1.is_none();
    overlap && one.setting.name == other.setting.name && one.size == other.size
}
