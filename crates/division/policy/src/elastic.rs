//! What a group may have.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use units::CpuSet;

use crate::share::{Claim, divide};
use crate::{Error, Units};

/// A group whose CPU set changes with its load.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Elastic {
    /// Its name.
    pub name: String,
    /// CPUs that it always has, at least 1.
    pub min: usize,
    /// CPUs that it never has more of, not below `min`.
    pub max: usize,
    /// Its share beside others' where not all can have what they could use, from 1.
    pub weight: u32,
    /// Do its tasks run only where nobody else wants to (`cpu.idle`)? Then it has `min` CPUs of its own, and borrows up to `max`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub borrows: bool,
}

/// Elastic groups that share CPUs, as a layout has them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Scope {
    /// What they share: no other group of the layout names one of these CPUs.
    pub pool: CpuSet,
    /// In the layout's order.
    pub groups: Vec<Elastic>,
    /// Of groups that are units of systemd: the name of the unit's control group.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub units: BTreeMap<String, String>,
    /// Of general groups, which have one set together while power is saved: CPUs of others, from which they stay far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saving: Option<CpuSet>,
    /// Of general groups: do the CPUs that they leave idle save energy, too?
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub frequency: bool,
}

impl Scope {
    /// The name of a group's directory.
    pub fn directory<'s>(&'s self, group: &'s Elastic) -> &'s str {
        self.units.get(&group.name).unwrap_or(&group.name)
    }
}

/// A group's bounds in units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// Never fewer.
    pub min: usize,
    /// Never more.
    pub max: usize,
    /// Its share.
    pub weight: u32,
}

impl Elastic {
    /// The bounds in units: a guarantee is rounded up, a limit down, but not below the guarantee.
    ///
    /// # Errors
    /// What is wrong with the group by itself.
    pub fn sizes(&self, units: &Units) -> Result<Sizes, Error> {
        if self.min == 0 {
            return Err(Error::NoMinimum(self.name.clone()));
        }
        if self.min > self.max {
            return Err(Error::MinOverMax { name: self.name.clone(), min: self.min, max: self.max });
        }
        if self.weight == 0 {
            return Err(Error::NoWeight(self.name.clone()));
        }
        let min = self.min.div_ceil(units.width());
        Ok(Sizes { min, max: (self.max / units.width()).min(units.len()).max(min), weight: self.weight })
    }
}

/// The bounds of all groups.
///
/// # Errors
/// What is wrong with a group, or with all of them together.
pub(crate) fn sizes(groups: &[Elastic], units: &Units) -> Result<Vec<Sizes>, Error> {
    let mut names: Vec<&str> = groups.iter().map(|group| group.name.as_str()).collect();
    names.sort_unstable();
    if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(Error::Twice(twice[0].to_owned()));
    }
    let sizes = groups.iter().map(|group| group.sizes(units)).collect::<Result<Vec<_>, _>>()?;
    let wanted = sizes.iter().map(|size| size.min).sum();
    if wanted > units.len() {
        return Err(Error::TooMuch { wanted, unit: units.word(), there: units.len() });
    }
    Ok(sizes)
}

/// The static division: each its guarantee, and of the rest its weighted share up to its limit.
pub fn static_sizes(sizes: &[Sizes], units: usize) -> Vec<usize> {
    let claims: Vec<Claim> =
        sizes.iter().map(|size| Claim { min: size.min, want: size.max, weight: size.weight }).collect();
    divide(units, &claims)
}
