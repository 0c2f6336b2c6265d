//! The units of systemd that the layout in effect has as groups: what gives such a group more is a change of the layout,
//! as systemd takes the drop-in file of Ringfence after its own.

use std::path::PathBuf;

use kernel::GroupName;
use units::hint;

use crate::{
    Again, Failure, Target,
    in_effect::{Groups, add, drop_undecided},
    record::Kind,
    state::State,
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoundUnit {
    /// The group as the layout names it.
    pub group: String,
    /// The unit's name.
    pub unit: String,
    /// The unit's control group, named from the hierarchy's root.
    pub level: String,
}

impl Bound {
    /// The unit that has this control group.
    pub fn at(&self, level: &str) -> Option<&BoundUnit> {
        self.units.iter().find(|one| one.level == level)
    }

    /// The unit of that name.
    pub fn of_unit(&self, unit: &str) -> Option<&BoundUnit> {
        self.units.iter().find(|one| one.unit == unit)
    }

    /// The change of the layout that gives a group these settings, each a name with a value as a user writes it.
    pub fn change(&self, group: &str, settings: &[(&str, String)]) -> String {
        hint::in_layout(&hint::layout_lines(settings), group, self.layout.as_deref())
    }
}

/// The commands for the layout in effect. Who may not read the history finds no layout.
pub fn again(state: &State, target: Target<'_>) -> Again {
    let head = crate::layout_in_effect(state, target).ok().flatten();
    Again::of(state, target.host, head.and_then(|head| head.file))
}

/// The units of the layout in effect. Reads the records alone.
///
/// # Errors
/// [`Failure::State`].
pub fn bound(state: &State, target: Target<'_>) -> Result<Bound, Failure> {
    let Some(head) = crate::layout_in_effect(state, target)? else { return Ok(Bound::default()) };
    let mut groups = Groups::new();
    for &generation in &head.in_effect {
        let Some(record) = state.record_in_effect(generation)? else { continue };
        if record.head.kind != Kind::Set {
            add(&record, target, &mut groups);
        }
    }
    drop_undecided(&head, target, &mut groups);
    let unit = |(group, decided): (String, crate::in_effect::Decided)| {
        let drop_in = decided.drop_in?;
        let level = GroupName::new(&format!("/{}", drop_in.place.path)).ok()?.to_string();
        Some(BoundUnit { group, unit: drop_in.unit, level })
    };
    Ok(Bound { units: groups.into_iter().filter_map(unit).collect(), layout: head.file })
}
