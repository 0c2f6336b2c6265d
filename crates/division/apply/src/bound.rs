//! The units of systemd that the layout in effect has as groups: what gives such a group more is a change of the layout,
//! as systemd takes the drop-in file of Ringfence after its own.

use std::path::PathBuf;

use kernel::GroupName;
use layout::{Desired, UnitName};
use system::files::{self, Trust};
use units::hint;

use crate::{
    Again, Failure, Target,
    in_effect::{DropIn, Groups, add, drop_undecided},
    record::{Head, Kind},
    state::{State, in_place},
};

/// Which groups of the layout in effect are units.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Bound {
    /// The units.
    pub units: Vec<BoundUnit>,
    /// The layout's file or directory, if that is known.
    pub layout: Option<PathBuf>,
}

/// A unit that is a group of the layout.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BoundUnit {
    /// The group as the layout names it.
    pub group: String,
    /// The unit's name.
    pub unit: String,
    /// The unit's control group, named from the hierarchy's root.
    pub level: String,
    /// Settings that the layout's file gives it by other names, each with that name: `cpu.max`, `cpu.cfs_quota_us`.
    pub by_other_names: Vec<(&'static str, String)>,
}

impl Bound {
    /// The unit that has this control group.
    pub fn at(&self, level: &str) -> Option<&BoundUnit> {
        self.units.iter().find(|one| one.level == level)
    }

    /// The unit of that name, or the template that it has its limits of.
    pub fn of_unit(&self, unit: &str) -> Option<&BoundUnit> {
        let is_of = |one: &&BoundUnit| UnitName::of_file_name(&one.unit).is_ok_and(|name| name.fits(unit));
        self.units.iter().find(|one| one.unit == unit).or_else(|| self.units.iter().find(is_of))
    }

    /// The change of the layout that gives a group these settings, each a name with a value as a user writes it.
    pub fn change(&self, group: &str, settings: &[(&str, String)]) -> String {
        let unit = self.units.iter().find(|one| one.group == group);
        let others = unit.iter().flat_map(|unit| &unit.by_other_names);
        let given: Vec<&str> = others
            .filter(|(name, _)| settings.iter().any(|(given, _)| given == name))
            .map(|(_, other)| other.as_str())
            .collect();
        let mut change = hint::layout_lines(settings);
        if !given.is_empty() {
            change.push_str(&format!(" in place of {}", given.join(" and ")));
        }
        hint::in_layout(&change, group, self.layout.as_deref())
    }
}

/// The commands for the layout in effect. Who may not read the history finds no layout.
pub fn again(state: &State, target: Target<'_>) -> Again {
    let head = crate::layout_in_effect(state, target).ok().flatten();
    Again::of(state, target.host, head.and_then(|head| head.file))
}

/// The units of the layout in effect, from the records, with what its file calls their settings.
///
/// # Errors
/// [`Failure::State`].
pub fn bound(state: &State, target: Target<'_>) -> Result<Bound, Failure> {
    let Some((head, groups)) = of_layout(state, target)? else { return Ok(Bound::default()) };
    let unit = |(group, decided): (String, crate::in_effect::Decided)| {
        let drop_in = decided.drop_in?;
        let level = GroupName::new(&format!("/{}", drop_in.place.path)).ok()?.to_string();
        Some(BoundUnit { group, unit: drop_in.unit, level, by_other_names: Vec::new() })
    };
    let mut units: Vec<BoundUnit> = groups.into_iter().filter_map(unit).collect();
    if let Some(path) = head.file.as_ref().filter(|_| !units.is_empty()) {
        let desired = files::read_layout(path, Trust::of_this_process()).0.desired.unwrap_or_default();
        for unit in &mut units {
            unit.by_other_names = other_names(&desired, &unit.group);
        }
    }
    Ok(Bound { units, layout: head.file })
}

/// The units that groups of the layout in effect are, each with where its group is, or would be. A template stands for all units that
/// fit ([`running_units`](crate::running_units)).
///
/// # Errors
/// [`Failure::State`].
pub fn bound_units(state: &State, target: Target<'_>) -> Result<Vec<(String, plan::Place)>, Failure> {
    Ok(drop_ins(state, target)?.map(|drop_in| (drop_in.unit, drop_in.place)).collect())
}

/// The services of the layout in effect that are divided: each with its unit's name, where its group is, and the groups in it. Of a
/// template it stands for all units that fit.
///
/// # Errors
/// [`Failure::State`].
pub fn divided_services(
    state: &State,
    target: Target<'_>,
) -> Result<Vec<(String, plan::Place, plan::Inside)>, Failure> {
    let service = |drop_in: DropIn| {
        let inside = plan::Inside::of_text(&drop_in.text)?;
        Some((drop_in.unit, drop_in.place, inside))
    };
    Ok(drop_ins(state, target)?.filter_map(service).collect())
}

fn drop_ins(state: &State, target: Target<'_>) -> Result<impl Iterator<Item = DropIn>, Failure> {
    let groups = of_layout(state, target)?.map(|(_, groups)| groups).unwrap_or_default();
    Ok(groups.into_values().filter_map(|decided| decided.drop_in))
}

/// What the layout in effect decides about each group.
fn of_layout(state: &State, target: Target<'_>) -> Result<Option<(Head, Groups)>, Failure> {
    let Some(head) = crate::layout_in_effect(state, target)? else { return Ok(None) };
    let mut groups = Groups::new();
    let mut in_effect = head.in_effect.clone();
    in_place(&state.joined()?, &mut in_effect);
    for generation in in_effect {
        let Some(record) = state.record_in_effect(generation)? else { continue };
        if record.head.kind != Kind::Set {
            add(&record, target, &mut groups);
        }
    }
    drop_undecided(&head, target, &mut groups);
    Ok(Some((head, groups)))
}

/// A second line for the same setting would be refused.
fn other_names(desired: &Desired, group: &str) -> Vec<(&'static str, String)> {
    let group = desired.groups.iter().find(|one| one.name.to_string() == group);
    let settings = group.iter().flat_map(|group| &group.demands.settings);
    let other = settings.filter(|one| one.found.name != one.found.setting.name);
    other.map(|one| (one.found.setting.name, one.found.name.to_string())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_of_the_layout_names_the_lines_that_it_replaces() {
        let text = "[groups.pg]\nunit = \"pg.service\"\ncpu.cfs_quota_us = 20000\ncpu.cfs_period_us = 100000\n\
            memory.max = \"1G\"\n";
        let desired = layout::read(&[layout::Source::new("l.toml", text)]).desired.unwrap();
        let unit = BoundUnit {
            group: "pg".to_owned(),
            by_other_names: other_names(&desired, "pg"),
            ..BoundUnit::default()
        };
        let bound = Bound { units: vec![unit], layout: Some("/l.toml".into()) };
        let change = |name, value: &str| bound.change("pg", &[(name, value.to_owned())]);
        let then = "of group pg in /l.toml, then: ringfence apply /l.toml";
        let lines = "set cpu.max = \"50%\" in place of cpu.cfs_quota_us and cpu.cfs_period_us";
        assert_eq!(change("cpu.max", "50%"), format!("{lines} {then}"));
        assert_eq!(change("memory.max", "2G"), format!("set memory.max = \"2G\" {then}"));
    }
}
