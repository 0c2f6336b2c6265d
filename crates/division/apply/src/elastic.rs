//! Elastic groups of the layout in effect: whether what one has is within its bounds, and the change of its CPUs.

use kernel::{GroupName, Host};
use plan::{CPUS, Place};
use policy::{Elastic, Scope};
use serde::Serialize;
use settings::{Controller, Version};
use units::{CpuSet, group_path};

use crate::{
    Error, Target,
    act::{Act, Entry},
    carry_out::carry_out_unrecorded,
    reading::content,
};

/// The bounds of an elastic group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
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
    /// Those of a group, if it is one of these, or on v1, where it follows, below one.
    pub(crate) fn find(scopes: &[Scope], group: &str) -> Option<Bounds> {
        let of_scope = |scope: &Scope| {
            let is_own = |one: &&Elastic| group_path::is_at_or_below(group, &one.name);
            let Elastic { min, max, weight, .. } = scope.groups.iter().find(is_own)?;
            let (max, saves_power) = ((*max).min(scope.pool.len()), scope.saving.is_some());
            Some(Bounds { min: *min, max, weight: *weight, pool: scope.pool.clone(), saves_power })
        };
        scopes.iter().find_map(of_scope)
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

/// Gives an elastic group other CPUs: a set that only adds to what it has, or only takes from it. On v1 the groups below
/// follow. Reads back, and rolls back on a refusal; no generation of the history is made.
///
/// # Errors
/// The kernel's refusal, with the cause; then the group has what it had, but for what the error names.
pub fn resize(target: Target<'_>, group: &GroupName, to: &CpuSet) -> Result<(), Error> {
    let seat = target.host.seat(group, Controller::Cpuset)?;
    let place = Place { hierarchy: seat.at.id, path: seat.path, version: seat.at.version };
    carry_out_unrecorded(target, entries(target.host, group, place, to))
}

/// Gives general groups all CPUs that they share, as they had before power was saved. Those that are gone, and CPUs that are
/// offline, are left out.
///
/// # Errors
/// The kernel's refusal, with the cause; the groups before it have theirs.
pub fn end_saving(target: Target<'_>, scopes: &[Scope], online: &CpuSet) -> Result<Vec<String>, Error> {
    let mut changed = Vec::new();
    for scope in scopes.iter().filter(|scope| scope.saving.is_some()) {
        let all = scope.pool.intersection(online);
        for one in &scope.groups {
            let Ok(group) = GroupName::new(scope.directory(one)) else { continue };
            let Ok(has) = cpus_of(target.host, &group) else { continue };
            if has != all && has.is_subset(&all) {
                resize(target, &group, &all)?;
                changed.push(one.name.clone());
            }
        }
    }
    Ok(changed)
}

/// The writes in the kernel's order: on v1 a group below never has a CPU that the one above has not.
fn entries(host: &Host, group: &GroupName, place: Place, to: &CpuSet) -> Vec<Entry> {
    let entry = |place: Place, cpus: &CpuSet| Entry {
        group: group.to_string(),
        act: Act::Write { place, file: CPUS.to_owned(), text: cpus.to_string() },
        why: "its load changed".to_owned(),
        restores: false,
        before: crate::act::Before::default(),
    };
    let list = |place: &Place| content(host, place, CPUS).and_then(|text| text.trim().parse::<CpuSet>().ok());
    let own = list(&place).unwrap_or_default();
    let mut below = match place.version {
        Version::V2 => Vec::new(),
        Version::V1 => {
            host.kernel().descendants(&host.hierarchies()[place.hierarchy], &place.path).unwrap_or_default()
        }
    };
    below.sort_by_key(String::len); // a group's path is longer than those above it
    let below = below.into_iter().map(|path| Place { path, ..place.clone() });
    let below: Vec<(Place, CpuSet)> =
        below.filter_map(|place| Some((place.clone(), list(&place)?))).collect();
    let is_more = own.is_subset(to);
    let followers = below.into_iter().filter_map(|(place, cpus)| {
        let then = if is_more && cpus == own { to.clone() } else { cpus.intersection(to) };
        let then = if then.is_empty() && !cpus.is_empty() { to.clone() } else { then };
        (then != cpus).then(|| entry(place, &then))
    });
    let mut entries: Vec<Entry> = std::iter::once(entry(place.clone(), to)).chain(followers).collect();
    if !is_more {
        entries.reverse();
    }
    entries
}
