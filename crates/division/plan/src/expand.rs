//! Groups that are bound to units by a pattern: one for each unit that fits, as if the layout named each.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet, HashMap},
};

use layout::{Assigned, CpuDemand, Demands, Desired, Group, Spanned, UnitName};
use settings::GroupName;
use topology::facts;
use units::hint::Command;

use crate::{Lint, LintKind, Observed, Problem};

/// A layout without patterns.
#[derive(Debug)]
pub struct Expansion<'d> {
    /// With a group for each unit.
    pub desired: Cow<'d, Desired>,
    /// Patterns that no unit fits.
    pub lints: Vec<Lint>,
}

/// The patterns of a layout's groups.
pub fn patterns(desired: &Desired) -> Vec<&UnitName> {
    crate::units(desired).into_iter().filter(|unit| unit.is_pattern()).collect()
}

/// Patterns of whose later units systemd has no file that limits them: somebody has to look for these.
pub fn patterns_without_file(desired: &Desired) -> Vec<&UnitName> {
    let groups = desired.groups.iter().filter(|group| template(group).is_none());
    groups
        .filter_map(|group| Some(&group.demands.unit.as_ref()?.value))
        .filter(|unit| unit.is_pattern())
        .collect()
}

/// What stands for a group's units that start later, if they all are given the same: not CPUs that each has for itself, nor what follows
/// its load.
fn template(group: &Group) -> Option<UnitName> {
    let Demands { cpus, exclusive, isolate, latency, settings, unit, .. } = &group.demands;
    let cpus = cpus.as_ref().map(|cpus| &cpus.value);
    let is_named = matches!(cpus, None | Some(CpuDemand::All | CpuDemand::These(_) | CpuDemand::OfNodes(_)));
    let is_alike = |assigned: &Assigned| assigned.most.is_none() && !assigned.is_partition();
    let is_same =
        is_named && !exclusive && isolate.is_none() && latency.is_none() && settings.iter().all(is_alike);
    unit.as_ref()?.value.template().filter(|_| is_same)
}

/// The layout with a group `GROUP/UNIT` for each of these units that fits a group's pattern. Ringfence's own units fit
/// none.
///
/// # Errors
/// A unit that two groups are bound to.
pub fn expand<'d>(desired: &'d Desired, units: &BTreeSet<String>) -> Result<Expansion<'d>, Vec<Problem>> {
    let (mut groups, mut lints) = (Vec::with_capacity(desired.groups.len()), Vec::new());
    // groups in units, by the group of these
    let mut inside: HashMap<&GroupName, Vec<(&Group, &str)>> = HashMap::new();
    let bound = desired.units();
    for group in &desired.groups {
        if let Some((above, name)) = bound.above(group) {
            inside.entry(&above.name).or_default().push((group, name));
        }
    }
    for group in desired.groups.iter().filter(|group| bound.above(group).is_none()) {
        let Some(pattern) = group.demands.unit.as_ref().filter(|unit| unit.value.is_pattern()) else {
            groups.push(group.clone());
            groups.extend(inside.get(&group.name).into_iter().flatten().map(|(inner, _)| (*inner).clone()));
            continue;
        };
        let of_pattern = |unit: &String| own_group(group, pattern, unit);
        let before = groups.len();
        groups.extend(units.iter().filter_map(of_pattern));
        let of_later = template(group).and_then(|template| named(group, pattern, template));
        if groups.len() == before {
            lints.push(unused(group, pattern, of_later.is_some()));
        }
        groups.extend(of_later);
        let inner = inside.get(&group.name).into_iter().flatten();
        let of_each = |(inner, name): &(&Group, &str)| {
            let named = |own: &Group| {
                let name = GroupName::new(&format!("{}/{name}", own.name)).ok()?;
                Some(Group { name, ..(*inner).clone() })
            };
            groups[before..].iter().filter_map(named).collect::<Vec<_>>()
        };
        let inner: Vec<Group> = inner.flat_map(of_each).collect();
        groups.extend(inner);
    }
    let problems = bound_twice(&groups);
    if !problems.is_empty() {
        return Err(problems);
    }
    Ok(Expansion { desired: Cow::Owned(Desired { groups, ..desired.clone() }), lints })
}

/// The group of a unit that fits.
fn own_group(group: &Group, pattern: &Spanned<UnitName>, unit: &str) -> Option<Group> {
    let is_own = [facts::UNIT_NAME, facts::UNIT_SLICE].contains(&unit);
    let unit = UnitName::new(unit).ok().filter(|_| !is_own && pattern.value.fits(unit))?;
    named(group, pattern, unit)
}

/// The same of a unit, or of the template for those that start later.
fn named(group: &Group, pattern: &Spanned<UnitName>, unit: UnitName) -> Option<Group> {
    let named = |name: &str| GroupName::new(&format!("{}/{name}", group.name)).ok();
    // without its kind it may be the name of a kernel file
    let name = named(unit.stem()).or_else(|| named(unit.as_str()))?;
    let mut own = group.clone();
    own.name = name;
    own.demands.unit = Some(Spanned::new(unit, pattern.origin.clone()));
    Some(own)
}

fn unused(group: &Group, pattern: &Spanned<UnitName>, has_template: bool) -> Lint {
    let (nothing, binds) = match has_template {
        true => ("is for those that start later", ""),
        false => ("is nothing yet", "; ringfence apply binds those that are loaded then"),
    };
    let message = format!("no loaded unit fits {}: group '{}' {nothing}", pattern.value, group.name);
    let list = Command::new("systemctl list-units --all").arg(pattern.value.as_str());
    let hint = format!("{list} shows them{binds}");
    Lint::new(LintKind::NoUnit, Some(&group.name), message).at(&pattern.origin).hint(hint)
}

/// Without a machine nobody knows which units fit.
pub(crate) fn lints(desired: &Desired, observed: &Observed, lints: &mut Vec<Lint>) {
    let groups = desired.groups.iter().filter(|_| observed.units.is_none());
    let of_pattern = groups.filter_map(|group| {
        let pattern = group.demands.unit.as_ref().filter(|unit| unit.value.is_pattern())?;
        let message = format!(
            "which units fit {} is known on the machine only: group '{}' is shown as if it was one",
            pattern.value, group.name
        );
        Some(Lint::new(LintKind::NoUnit, Some(&group.name), message).at(&pattern.origin))
    });
    lints.extend(of_pattern);
}

fn bound_twice(groups: &[Group]) -> Vec<Problem> {
    let mut bound: BTreeMap<&UnitName, &Group> = BTreeMap::new();
    let mut problems = Vec::new();
    for group in groups {
        let Some(Spanned { value: unit, origin }) = &group.demands.unit else { continue };
        let Some(first) = bound.insert(unit, group) else { continue };
        problems.push(Problem::Contradiction {
            message: format!("groups '{}' and '{}' are both {unit}", first.name, group.name),
            origin: origin.clone(),
            other: first.demands.unit.as_ref().map_or(&first.origin, |unit| &unit.origin).clone(),
            hint: Some(
                "write the pattern so that the unit does not fit it, or leave out the other group".to_owned(),
            ),
        });
    }
    problems
}

#[cfg(test)]
mod tests {
    use layout::Source;

    use super::*;

    fn desired(text: &str) -> Desired {
        let reading = layout::read(&[Source::new("l.toml", text)]);
        reading.desired.unwrap_or_else(|| panic!("{:?}", reading.diagnostics))
    }

    fn units(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn each_unit_that_fits_is_a_group_as_if_it_was_named() {
        let pattern = desired("[groups.db]\nunit = \"pg@*.service\"\npids.max = 7\n");
        let listed = units(&["pg@15-main.service", "pg@16-main.service", "pg.service", "x@1.service"]);
        let expansion = expand(&pattern, &listed).unwrap();
        let mut named = desired(
            "[groups.\"db/pg@15-main\"]\nunit = \"pg@15-main.service\"\npids.max = 7\n\
             [groups.\"db/pg@16-main\"]\nunit = \"pg@16-main.service\"\npids.max = 7\n\
             [groups.\"db/pg@\"]\nunit = \"pg.service\"\npids.max = 7\n",
        );
        // and what systemd reads for those that start later, which no layout can name
        let of_later = named.groups.iter_mut().find(|group| group.name.to_string() == "db/pg@").unwrap();
        of_later.demands.unit.as_mut().unwrap().value = UnitName::of_directory("pg@.service").unwrap();
        let sorted = |desired: &Desired| {
            let mut groups = desired.without_places().groups;
            groups.sort_by_key(|group| group.name.to_string());
            groups
        };
        assert_eq!(sorted(&expansion.desired), sorted(&named));
        assert!(expansion.lints.is_empty());
        assert_eq!(patterns(&pattern).len(), 1);
    }

    #[test]
    fn a_name_of_a_kernel_file_has_its_kind() {
        let pattern = desired("[groups.a]\nunit = \"*.service\"\npids.max = 7\n");
        let expansion = expand(&pattern, &units(&["cpu.max.service", "ringfence.service"])).unwrap();
        let names: Vec<String> =
            expansion.desired.groups.iter().map(|group| group.name.to_string()).collect();
        assert_eq!(names, ["a/cpu.max.service"], "no drop-in file is for all services");
    }

    #[test]
    fn a_pattern_that_no_unit_fits_is_a_warning() {
        let pattern = desired("[groups.db]\nunit = \"pg@1*.service\"\n");
        let expansion = expand(&pattern, &units(&["pg.service"])).unwrap();
        assert!(expansion.desired.groups.is_empty());
        let [lint] = expansion.lints.as_slice() else { panic!() };
        assert!(lint.message.starts_with("no loaded unit fits pg@1*.service"));
    }

    #[test]
    fn a_unit_of_two_groups_is_refused_with_both_places() {
        let both =
            desired("[groups.db]\nunit = \"pg@*.service\"\n[groups.main]\nunit = \"pg@15-main.service\"\n");
        let problems = expand(&both, &units(&["pg@15-main.service"])).unwrap_err();
        let [problem] = problems.as_slice() else { panic!("{problems:?}") };
        assert_eq!(problem.to_string(), "groups 'db/pg@15-main' and 'main' are both pg@15-main.service");
        let shown = problem.diagnostic();
        assert_eq!((shown.origin.unwrap().line, shown.also[0].0.line), (4, 2));
        assert!(expand(&both, &units(&["pg@16-main.service"])).is_ok());
    }
}
