//! The v1 device filter: what groups may use, stored and changed by [`DeviceAccess`], and handed down to the groups
//! below.

use rustix::io::Errno;
use settings::{
    Controller::Devices,
    devices::{DeviceAccess, Forbidden, Verb, rule},
};

use crate::state::{File, Place, State, file};

const LIST: &str = "devices.list";

pub(super) const FILES: &[File] = &[
    file(LIST, Devices, "").everywhere().reads(|state, place, _| Ok(access(state, place).list_text())),
    file("devices.allow", Devices, "")
        .everywhere()
        .writes(|state, place, _, text| change(state, place, Verb::Allow, text))
        .write_only(),
    file("devices.deny", Devices, "")
        .everywhere()
        .writes(|state, place, _, text| change(state, place, Verb::Deny, text))
        .write_only(),
];

/// What was never changed is everything.
fn access(state: &State, place: &Place) -> DeviceAccess {
    state.value(place, LIST).parse().unwrap_or_else(|_| DeviceAccess::all())
}

/// A new group may use what its parent may.
pub(super) fn take_over(state: &mut State, place: &Place, parent: &Place) {
    let access = access(state, parent);
    state.set(place, LIST, access.to_string());
}

fn change(state: &mut State, place: &Place, verb: Verb, text: &str) -> Result<(), Errno> {
    let rule = rule(text.trim()).ok_or(Errno::INVAL)?;
    let parent = place.parent().map(|parent| access(state, &parent));
    let mut own = access(state, place);
    let below = state.descendants(place);
    own.change(verb, &rule, parent.as_ref(), !below.is_empty()).map_err(|forbidden| match forbidden {
        Forbidden::HasChildren => Errno::INVAL,
        Forbidden::Parent => Errno::PERM,
    })?;
    state.set(place, LIST, own.to_string());
    if verb == Verb::Allow {
        return Ok(());
    }
    // parents come before their children
    for below in below {
        let Some(parent) = below.parent().map(|parent| access(state, &parent)) else { continue };
        let mut narrowed = access(state, &below);
        narrowed.narrow(&rule, &own, &parent);
        state.set(&below, LIST, narrowed.to_string());
    }
    Ok(())
}
