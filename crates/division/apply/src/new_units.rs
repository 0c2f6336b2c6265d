//! Units that fit a pattern of the layout in effect and that nobody has bound yet: they came after the apply.

use layout::{Desired, UnitName};
use plan::Problem;
use serde::{Deserialize, Serialize};

use crate::{GroupStatus, Target, expansion};

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewUnit {
    /// The group that the next apply makes it.
    pub group: String,
    /// The unit.
    pub unit: String,
}

/// The units that fit a pattern of the layout and are none of these groups.
///
/// # Errors
/// systemd does not answer, or a unit that came later is bound twice.
pub fn new_units(
    target: Target<'_>,
    desired: &Desired,
    groups: &[GroupStatus],
) -> Result<Vec<NewUnit>, Vec<Problem>> {
    let expansion = expansion(target, desired)?;
    let is_pattern = |unit: &&UnitName| unit.is_pattern();
    if plan::units(&expansion.desired).iter().any(is_pattern) || plan::patterns(desired).is_empty() {
        return Ok(Vec::new());
    }
    // by a drop-in file of its own, or of its template
    let is_bound = |unit: &str| {
        let mut bound = groups.iter().filter_map(|group| group.unit.as_ref());
        bound.any(|bound| UnitName::of_file_name(&bound.name).is_ok_and(|name| name.fits(unit)))
    };
    let by_pattern = expansion.desired.groups.iter().filter(|group| desired.group(&group.name).is_none());
    let found = by_pattern.filter_map(|group| {
        let unit = &group.demands.unit.as_ref().filter(|unit| !unit.value.is_template())?.value;
        let unit = unit.to_string();
        (!is_bound(&unit)).then(|| NewUnit { group: group.name.to_string(), unit })
    });
    Ok(found.collect())
}
