//! Drafts of several files into one [`Desired`]: nothing said twice (or the later counts, among libcgroup's files),
//! defaults for those that need them, parents before children.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use settings::GroupName;

use crate::assigned::{Assigned, same};
use crate::demand::CpuDemand;
use crate::desired::{Defaults, Demands, Desired, Mount, depth};
use crate::diagnostic::{Diagnostic, Report};
use crate::join;
use crate::origin::Origin;

/// What one file says.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    pub desired: Desired,
    /// Sections that may be there once only, and where they are.
    pub sections: Vec<(&'static str, Origin)>,
    /// What several files say that may be joined is joined, and of what can't be, the later counts: libcgroup's files
    /// have always been read so.
    pub joins: bool,
}

/// Joins what the files say, in their order.
pub(crate) fn merge(drafts: Vec<Draft>, report: &mut Report) -> Desired {
    let mut whole = Desired::default();
    let mut groups = Firsts::default();
    let mut templates = Firsts::default();
    let mut sections = Firsts::default();
    let mut schedules = Firsts::default();
    for Draft { desired, sections: given, joins } in drafts {
        for group in desired.groups {
            let what = || format!("group '{}'", group.name);
            match groups.note(group.name.clone(), (&group.origin, joins), whole.groups.len(), what, report) {
                Noted::New => whole.groups.push(group),
                Noted::Joined(at) => join::demands(&mut whole.groups[at].demands, group.demands, report),
                Noted::Refused => {}
            }
        }
        for template in desired.templates {
            let (what, next) = (|| format!("template '{}'", template.name), whole.templates.len());
            match templates.note(template.name.clone(), (&template.origin, joins), next, what, report) {
                Noted::New => whole.templates.push(template),
                Noted::Joined(at) => join::templates(&mut whole.templates[at], template, report),
                Noted::Refused => {}
            }
        }
        whole.rules.extend(desired.rules);
        whole.systemd.extend(desired.systemd);
        for schedule in desired.schedules {
            let what = || format!("schedule '{}'", schedule.name);
            if matches!(
                schedules.note(schedule.name.clone(), (&schedule.origin, false), 0, what, report),
                Noted::New
            ) {
                whole.schedules.push(schedule);
            }
        }
        for mount in desired.mounts {
            let same = |other: &&mut Mount| match joins {
                true => other.subsystem == mount.subsystem,
                false => (&other.subsystem, &other.path) == (&mount.subsystem, &mount.path),
            };
            match whole.mounts.iter_mut().find(same) {
                None => whole.mounts.push(mount),
                Some(before) if before.path != mount.path => {
                    let name = format!("the mount of '{}'", mount.subsystem);
                    join::later_counts(&name, &mount.origin, &before.origin, report);
                    *before = mount;
                }
                Some(_) => {}
            }
        }
        for (section, origin) in given {
            let what = || format!("'{section}'");
            match sections.note(section, (&origin, joins), 0, what, report) {
                Noted::New => {}
                Noted::Joined(_) => join::later_counts(&what(), &origin, &sections.0[section].0, report),
                Noted::Refused => continue,
            }
            match section {
                "reserve" => whole.reserve = desired.reserve.clone(),
                "power" => whole.power = desired.power.clone(),
                "isolate" => whole.isolate = desired.isolate.clone(),
                "host" => whole.assertions = desired.assertions.clone(),
                _ => whole.defaults = desired.defaults.clone(),
            }
        }
    }
    give_defaults(&mut whole);
    // stable: the files' order within a depth
    whole.groups.sort_by_cached_key(|group| depth(&group.name));
    whole
}

fn give_defaults(whole: &mut Desired) {
    let defaults = whole.defaults.clone();
    let units = whole.units();
    let in_units = whole.groups.iter().filter(|group| units.above(group).is_some());
    let in_units: HashSet<GroupName> = in_units.map(|group| group.name.clone()).collect();
    // the root gets no default owner
    let groups = whole.groups.iter_mut().filter(|group| group.name != GroupName::root());
    let groups = groups.map(|group| {
        let is_systemds = in_units.contains(&group.name) || group.demands.unit.is_some();
        (&mut group.demands, is_systemds)
    });
    let templates = whole.templates.iter_mut().map(|template| (&mut template.demands, false));
    groups.chain(templates).for_each(|(demands, is_systemds)| give(&defaults, demands, is_systemds));
}

/// What was given so far: where first, whether it may be joined, and its index.
struct Firsts<K>(HashMap<K, (Origin, bool, usize)>);

/// What is to be done with what was given.
enum Noted {
    New,
    /// It belongs to what has this index.
    Joined(usize),
    /// Given before, and reported.
    Refused,
}

impl<K> Default for Firsts<K> {
    fn default() -> Firsts<K> {
        Firsts(HashMap::new())
    }
}

impl<K: std::hash::Hash + Eq> Firsts<K> {
    /// Notes where something was given, and if it may be joined with others; `next` is its index if it is new.
    fn note(
        &mut self,
        key: K,
        (origin, joins): (&Origin, bool),
        next: usize,
        what: impl Fn() -> String,
        report: &mut Report,
    ) -> Noted {
        let before = match self.0.entry(key) {
            Entry::Vacant(vacant) => {
                vacant.insert((origin.clone(), joins, next));
                return Noted::New;
            }
            Entry::Occupied(before) => before.into_mut(),
        };
        if joins && before.1 {
            return Noted::Joined(before.2);
        }
        let error = Diagnostic::error(format!("{} is given twice", what())).at(origin.clone());
        report.push(error.also(before.0.clone(), "first given here").hint("join the two, or rename one"));
        Noted::Refused
    }
}

/// Fills in what demands don't say themselves. `is_systemds`: the group is a unit, or in one.
fn give(defaults: &Defaults, demands: &mut Demands, is_systemds: bool) {
    give_cpus(defaults, demands);
    if !is_systemds {
        if demands.tasks.is_none() {
            demands.tasks.clone_from(&defaults.tasks);
        }
        if demands.admin.is_none() {
            demands.admin.clone_from(&defaults.admin);
        }
    }
    demands.keep = demands.keep.or(defaults.keep);
    let unsaid = |default: &&Assigned| demands.settings.iter().all(|own| !same(own, default));
    let given: Vec<Assigned> = defaults.settings.iter().filter(unsaid).cloned().collect();
    demands.settings.splice(0..0, given);
}

/// The same of CPUs and memory nodes alone.
pub(crate) fn give_cpus(defaults: &Defaults, demands: &mut Demands) {
    if demands.cpus.is_some() && demands.mems.is_none() {
        demands.mems.clone_from(&defaults.mems);
    }
    if let Some(CpuDemand::Some(spec)) = demands.cpus.as_mut().map(|cpus| &mut cpus.value) {
        spec.placement = spec.placement.or(defaults.placement);
        spec.smt = spec.smt.or(defaults.smt);
        // what is exclusive can't be shared, whatever is usual
        spec.pool = spec.pool.or(defaults.pool.filter(|_| !demands.exclusive));
    }
}
