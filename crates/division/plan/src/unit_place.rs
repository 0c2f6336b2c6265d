//! Groups that are units of systemd: which units a layout names, and where their control groups are.

use layout::{Spanned, UnitName};
use settings::Version;
use units::hint::{Command, toml, unmask};

use crate::{Observed, Place, Problem, SeenUnit};

/// The units that a layout's groups are.
pub fn units(desired: &layout::Desired) -> Vec<&UnitName> {
    desired.groups.iter().filter_map(|group| Some(&group.demands.unit.as_ref()?.value)).collect()
}

/// Where the group of a unit is, if the machine has such a unit and it can be given settings.
pub(crate) fn place(
    group: &layout::Group,
    Spanned { value: unit, origin }: &Spanned<UnitName>,
    observed: &Observed,
    problems: &mut Vec<Problem>,
) -> Option<Place> {
    let refused = |message: String, hint: String| Problem::Value {
        group: group.name.to_string(),
        message,
        origin: origin.clone(),
        hint: Some(hint),
    };
    let show = || Command::new("systemctl status").arg(unit.as_str()).to_string();
    let path = match &observed.units {
        // a machine that is not at hand
        None => unit.path_in("system.slice"),
        Some(units) => match units.get(unit.as_str()) {
            None => {
                let what = if unit.is_pattern() { "are units" } else { "is a unit" };
                problems.push(refused(
                    format!("{unit} {what} of systemd, which does not run here"),
                    "leave out unit, and move the processes into the group (match, ringfence move)"
                        .to_owned(),
                ));
                return None;
            }
            Some(SeenUnit { load, near, .. }) if load == "not-found" => {
                let hint = match near.as_slice() {
                    [] => "systemctl list-unit-files --type=service shows those that exist".to_owned(),
                    near => format!("did you mean {}?", near.join(" or ")),
                };
                problems.push(refused(format!("systemd has no unit {unit}"), hint));
                return None;
            }
            Some(SeenUnit { load, .. }) if load == "masked" => {
                let message = format!("{unit} is masked: systemd never starts it");
                problems.push(refused(message, unmask(unit.as_str())));
                return None;
            }
            Some(SeenUnit { load, .. }) if load != "loaded" => {
                problems.push(refused(format!("systemd can't load {unit} ({load})"), show()));
                return None;
            }
            Some(seen) => seen.path.clone(),
        },
    };
    let Some(hierarchy) = observed.hierarchies.iter().position(|at| at.version == Version::V2) else {
        problems.push(refused(
            "a unit's settings need cgroup v2, which is not mounted".to_owned(),
            "boot with systemd.unified_cgroup_hierarchy=1".to_owned(),
        ));
        return None;
    };
    Some(Place { hierarchy, path, version: Version::V2 })
}

/// What works for a unit that can't be a partition itself: a slice at the top for it alone.
pub(crate) fn own_slice(unit: &UnitName) -> String {
    let stem = unit.as_str().rsplit_once('.').map_or(unit.as_str(), |(stem, _)| stem);
    // a hyphen would put the slice into another
    let stem: String = stem.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    let slice = format!("{stem}.slice");
    let systemctl = |verb: &'static str| Command::new(verb).arg(unit.as_str());
    format!(
        "a slice of its own at the top can be a partition: [{}] Slice={slice} ({}), {}, and unit = {} in the layout",
        unit.section(),
        systemctl("systemctl edit"),
        systemctl("systemctl restart"),
        toml(&slice)
    )
}
