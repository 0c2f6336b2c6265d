//! Elastic groups of the layout in effect: whether what one has is within its bounds, and the change of its CPUs.

use kernel::{GroupName, Host};
use plan::{Action, CPUS, Place};
use policy::{Elastic, Scope};
use serde::{Deserialize, Serialize};
use settings::{Controller, Version};
use units::{CpuSet, group_path};

use crate::{
    Error, Originals, Presence, Target,
    carry_out::carry_out_unrecorded,
    entry::Entry,
    originals::{Noted, Original},
    performer::name,
    reading::content,
};

/// The bounds of an elastic group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bounds {
    /// Never fewer CPUs.
    pub min: usize,
    /// Never more; no more than the CPUs that it shares with others.
    pub max: usize,
    /// Its share beside other elastic groups.
    pub weight: u32,
    /// The CPUs that they share.
    pub pool: CpuSet,
    /// Is it a general group, which has fewer CPUs to save power?
    pub saves_power: bool,
}

impl Bounds {
    /// Those of a group, if it is one of these.
    pub(crate) fn find(scopes: &[Scope], group: &str) -> Option<Bounds> {
        Bounds::first(scopes, |name| name == group)
    }

    /// Of a group below one of these, which on v1 follows it: at least one CPU, and no more than the one above.
    pub(crate) fn above(scopes: &[Scope], group: &str) -> Option<Bounds> {
        let above = Bounds::first(scopes, |name| group_path::is_below(group, name))?;
        Some(Bounds { min: 1, ..above })
    }

    fn first(scopes: &[Scope], is_meant: impl Fn(&str) -> bool) -> Option<Bounds> {
        let of_scope = |scope: &Scope| {
            let one = scope.groups.iter().find(|one| is_meant(&one.name))?;
            Some(Bounds::of(scope, one))
        };
        scopes.iter().find_map(of_scope)
    }

    pub(crate) fn of(scope: &Scope, one: &Elastic) -> Bounds {
        let Elastic { min, max, weight, .. } = *one;
        let (max, saves_power) = (max.min(scope.pool.len()), scope.saving.is_some());
        Bounds { min, max, weight, pool: scope.pool.clone(), saves_power }
    }

    /// What a group with this number of CPUs has of them, in words.
    pub fn words(&self, has: usize) -> String {
        let Bounds { min, max, weight, .. } = self;
        match self.saves_power {
            true => format!("saves power: {has} of {max} CPUs, at least {min}"),
            false => format!("elastic: {has} of {min} to {max} CPUs, weight {weight}"),
        }
    }

    /// Is this content of a file what resizing may have written? `None` if it does not write that file.
    pub(crate) fn allow(&self, file: &str, content: &str) -> Option<bool> {
        let cpus: CpuSet = (file == CPUS).then(|| content.trim().parse().ok())??;
        Some((self.min..=self.max).contains(&cpus.len()) && cpus.is_subset(&self.pool))
    }
}

/// The CPUs that a group may use, by its own list.
///
/// # Errors
/// The group or its list is not there.
pub fn cpus_of(host: &Host, group: &GroupName) -> Result<CpuSet, Error> {
    let text = host.read(&host.seat(group, Controller::Cpuset)?, group, CPUS)?;
    Ok(text.trim().parse().unwrap_or_default())
}

/// Gives an elastic group other CPUs. On v1 the groups below follow: each has those of its own list that the group above
/// has, or all of them where that leaves none. Reads back, and rolls back on a refusal; no generation of the history is made,
/// but `originals` has what the lists contained.
///
/// # Errors
/// The kernel's refusal, with the cause; then the group has what it had, but for what the error names.
pub fn resize(
    target: Target<'_>,
    originals: &Originals,
    group: &GroupName,
    to: &CpuSet,
) -> Result<(), Error> {
    let seat = target.host.seat(group, Controller::Cpuset)?;
    let place = Place { hierarchy: seat.at.id, path: seat.path, version: seat.at.version };
    let now = |place: &Place| content(target.host, place, CPUS);
    let lists = lists(target.host, &|place| originals.first(place, CPUS), &now, &place, to);
    let name = group.to_string();
    let noted = lists.iter().map(|list| Noted {
        group: name.clone(),
        place: list.place.clone(),
        file: CPUS.to_owned(),
        below: list.below.as_ref().map(|below| (below.own.to_string(), below.has_all)),
    });
    originals.note(target, noted.collect())?;
    let entries = entries(&name, "its load changed", &lists);
    carry_out_unrecorded(target, entries)
}

/// Gives general groups all CPUs that they share, as they had before power was saved. Those that are gone, or that somebody
/// made again, and CPUs that are offline, are left out.
///
/// # Errors
/// The kernel's first refusal, with the cause; all other groups have theirs.
pub fn end_saving(
    target: Target<'_>,
    originals: &Originals,
    scopes: &[Scope],
    online: &CpuSet,
) -> Result<Vec<String>, Error> {
    let (mut changed, mut refused) = (Vec::new(), None);
    for scope in scopes.iter().filter(|scope| scope.saving.is_some()) {
        let all = scope.pool.intersection(online);
        for one in &scope.groups {
            let Ok(group) = GroupName::new(scope.directory(one)) else { continue };
            if originals.presence(target.host, &group, CPUS)? != Presence::There {
                continue;
            }
            let Ok(has) = cpus_of(target.host, &group) else { continue };
            if has != all && has.is_subset(&all) {
                match resize(target, originals, &group, &all) {
                    Ok(()) => changed.push(one.name.clone()),
                    Err(error) => drop(refused.get_or_insert(error)),
                }
            }
        }
    }
    refused.map_or(Ok(changed), Err)
}

/// A group's list of CPUs on its way to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct List {
    pub place: Place,
    pub now: CpuSet,
    pub to: CpuSet,
    /// Of one below the group.
    below: Option<Below>,
}

/// What a list below an elastic group is by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Below {
    own: CpuSet,
    /// Has it all CPUs of the group above, whichever these are?
    has_all: bool,
}

impl Below {
    /// The list where the group above has these CPUs.
    fn within(&self, above: &CpuSet) -> CpuSet {
        let both = self.own.intersection(above);
        match self.own.is_empty() {
            true => CpuSet::new(),
            false if self.has_all || both.is_empty() => above.clone(),
            false => both,
        }
    }
}

/// The lists that change with a group's: its own, and on v1 those of the groups below, parents before children. `first`: what
/// a list contained before it followed the group's; `now`: what it contains.
pub(crate) fn lists(
    host: &Host,
    first: &dyn Fn(&Place) -> Option<Original>,
    now: &dyn Fn(&Place) -> Option<String>,
    place: &Place,
    to: &CpuSet,
) -> Vec<List> {
    let list = |place: &Place| now(place).and_then(|text| text.trim().parse::<CpuSet>().ok());
    let first = |place: &Place| {
        let line = first(place)?;
        Some(Below { own: line.text.trim().parse().ok()?, has_all: line.has_all })
    };
    let now = list(place).unwrap_or_default();
    let mut all = vec![List { place: place.clone(), now, to: to.clone(), below: None }];
    let mut paths = match place.version {
        Version::V2 => Vec::new(),
        Version::V1 => {
            host.kernel().descendants(&host.hierarchies()[place.hierarchy], &place.path).unwrap_or_default()
        }
    };
    paths.sort_by_key(|path| path.matches('/').count());
    for path in paths {
        let parent = group_path::parent(&path).unwrap_or_default().to_owned();
        let place = Place { path, ..place.clone() };
        let (Some(now), Some(above)) = (list(&place), all.iter().find(|list| list.place.path == parent))
        else {
            continue;
        };
        // somebody may have changed it since
        let known = first(&place).filter(|below| below.within(&above.now) == now);
        let below = known.unwrap_or_else(|| Below { own: now.clone(), has_all: now == above.now });
        let to = below.within(&above.to);
        all.push(List { place, now, to, below: Some(below) });
    }
    all
}

/// The writes in the kernel's order, as on v1 a group below never has a CPU that the one above has not: lists grow from the
/// top down, and then shrink from the deepest up.
pub(crate) fn entries(group: &str, why: &str, lists: &[List]) -> Vec<Entry> {
    let entry = |place: &Place, cpus: &CpuSet| Entry {
        group: name(group),
        action: Action::Write { place: place.clone(), file: CPUS.to_owned(), text: cpus.to_string() },
        why: why.to_owned(),
        restores: false,
        before: crate::entry::Before::default(),
    };
    let changing = || lists.iter().filter(|list| list.now != list.to);
    let grow = changing().filter(|list| !list.to.is_subset(&list.now));
    let grow = grow.map(|list| entry(&list.place, &list.now.union(&list.to)));
    let shrink = changing().filter(|list| !list.now.is_subset(&list.to)).rev();
    grow.chain(shrink.map(|list| entry(&list.place, &list.to))).collect()
}
