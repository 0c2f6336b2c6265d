//! The groups of the layout in effect whose settings follow their load: what each has between its bounds, what it lends, and its
//! last change. Only reads.

use std::collections::HashMap;

use kernel::{GroupName, Host};
use policy::{Elastic, Scope};
use serde::Serialize;
use units::CpuSet;

use crate::{
    Bounds, Failure, Resize, Resizes, State, Target, elastic::cpus_of, ranges::RangeStatus,
    status::layout_in_effect,
};

/// Such a group.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Following {
    /// Its name.
    pub group: String,
    /// The CPUs that it may use; `None`: they do not follow its load, or it is not there.
    pub cpus: Option<CpuSet>,
    /// How many it may have, if they follow its load.
    pub bounds: Option<Bounds>,
    /// CPUs of its own that others have, too.
    #[serde(skip_serializing_if = "CpuSet::is_empty")]
    pub lent: CpuSet,
    /// CPUs that it has and others own.
    #[serde(skip_serializing_if = "CpuSet::is_empty")]
    pub borrowed: CpuSet,
    /// Its other settings that follow its load.
    pub ranges: Vec<RangeStatus>,
    /// Its last change, as far back as changes are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<Resize>,
}

/// All of them, by name.
///
/// # Errors
/// [`Failure::State`].
pub fn following(state: &State, target: Target<'_>) -> Result<Vec<Following>, Failure> {
    let Some(head) = layout_in_effect(state, target)? else { return Ok(Vec::new()) };
    let mut all: Vec<Following> =
        head.upkeep.elastic.iter().flat_map(|scope| of_scope(target.host, scope)).collect();
    for range in &head.upkeep.ranges {
        let status = RangeStatus::of(target.host, range);
        match all.iter_mut().find(|one| one.group == range.group) {
            Some(one) => one.ranges.extend(status),
            None => {
                all.push(Following { ranges: status.into_iter().collect(), ..Following::named(&range.group) })
            }
        }
    }
    let changes = if all.is_empty() { Vec::new() } else { Resizes::of(state).last(usize::MAX)? };
    let mut last: HashMap<String, Resize> = HashMap::new();
    last.extend(changes.into_iter().map(|change| (change.group.clone(), change)));
    for one in &mut all {
        one.last = last.remove(&one.group);
    }
    all.sort_by(|one, other| one.group.cmp(&other.group));
    Ok(all)
}

fn of_scope(host: &Host, scope: &Scope) -> Vec<Following> {
    let has = |one: &Elastic| cpus_of(host, &GroupName::new(scope.directory(one)).ok()?).ok();
    let sets: Vec<Option<CpuSet>> = scope.groups.iter().map(has).collect();
    let all = |borrow: bool| {
        let of = scope.groups.iter().zip(&sets).filter(move |(one, _)| one.borrows == borrow);
        of.filter_map(|(_, cpus)| cpus.as_ref()).fold(CpuSet::new(), |all, cpus| all.union(cpus))
    };
    // general groups have one set together
    let (own, borrowed) = if scope.saving.is_some() { Default::default() } else { (all(false), all(true)) };
    let one = |(one, cpus): (&Elastic, Option<CpuSet>)| {
        let (lent, borrows) = match (&cpus, one.borrows) {
            (Some(cpus), false) => (cpus.intersection(&borrowed), CpuSet::new()),
            (Some(cpus), true) => (CpuSet::new(), cpus.intersection(&own)),
            (None, _) => Default::default(),
        };
        let bounds = Some(Bounds::of(scope, one));
        Following { cpus, bounds, lent, borrowed: borrows, ..Following::named(&one.name) }
    };
    scope.groups.iter().zip(sets).map(one).collect()
}

impl Following {
    fn named(group: &str) -> Following {
        Following {
            group: group.to_owned(),
            cpus: None,
            bounds: None,
            lent: CpuSet::new(),
            borrowed: CpuSet::new(),
            ranges: Vec::new(),
            last: None,
        }
    }

    /// What it has and may have, a line for each setting.
    pub fn lines(&self) -> Vec<String> {
        let cpus = self.bounds.as_ref().map(|bounds| {
            let mut text = bounds.words(self.cpus.as_ref().map_or(0, CpuSet::len));
            for (verb, cpus) in [("lends", &self.lent), ("borrows", &self.borrowed)] {
                if !cpus.is_empty() {
                    let plural = if cpus.len() == 1 { "" } else { "s" };
                    text.push_str(&format!(", {verb} CPU{plural} {cpus}"));
                }
            }
            text
        });
        cpus.into_iter().chain(self.ranges.iter().map(ToString::to_string)).collect()
    }
}
