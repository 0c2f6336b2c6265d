//! Which devices groups may use: rules change what is there one by one, so what they would make of it is worked out
//! first, and nothing is written that changes nothing.

use kernel::device_program::{DeviceAccess, Verb};
use settings::{DeviceClass, DeviceRule, Value, Version};

use crate::{Action, Observed, Place, Step, values::Valued};

/// The steps for all rules of one group: what is denied first, then what is allowed; none if that is so already.
pub(crate) fn steps(of_group: &[&Valued<'_>], observed: &Observed) -> Vec<Step> {
    let verb = |valued: &Valued<'_>| match valued.found.setting.name {
        "devices.deny" => Verb::Deny,
        _ => Verb::Allow,
    };
    let mut sorted: Vec<&Valued<'_>> = of_group.to_vec();
    sorted.sort_by_key(|valued| verb(valued) == Verb::Allow);
    let rules: Vec<(&Valued<'_>, Verb, &DeviceRule)> = sorted
        .iter()
        .flat_map(|valued| rules(valued).iter().map(|rule| (*valued, verb(valued), rule)))
        .collect();
    let held = sorted.first().and_then(|first| held(&first.place, observed));
    if held.is_some_and(|held| changes_nothing(&held, &rules)) {
        return Vec::new();
    }
    rules.iter().map(|(valued, _, rule)| step(valued, rule)).collect()
}

fn rules<'v>(valued: &'v Valued<'_>) -> &'v [DeviceRule] {
    match &valued.value {
        Value::Rules(rules) => rules,
        _ => &[],
    }
}

/// What the group may use now. v1 does not tell what is denied to a group that may use everything else: there such
/// rules are written again.
fn held(place: &Place, observed: &Observed) -> Option<DeviceAccess> {
    let seen = observed.group(place)?;
    if place.version == Version::V2 {
        return seen.devices.as_deref()?.parse().ok();
    }
    let list = seen.files.get("devices.list")?;
    let found = settings::lookup("devices.list")?;
    let Value::Rules(allowed) = found.decode(Version::V1, &|_| Some(list.clone())).ok()? else { return None };
    let mut access = DeviceAccess::all();
    if allowed.iter().any(|rule| rule.class == DeviceClass::All) {
        return Some(access);
    }
    let all = DeviceRule {
        class: DeviceClass::All,
        major: None,
        minor: None,
        read: true,
        write: true,
        mknod: true,
    };
    access.change(Verb::Deny, &all, None, false).ok()?;
    allowed.iter().try_for_each(|rule| access.change(Verb::Allow, rule, None, false)).ok()?;
    Some(access)
}

fn changes_nothing(held: &DeviceAccess, rules: &[(&Valued<'_>, Verb, &DeviceRule)]) -> bool {
    let mut after = held.clone();
    rules.iter().all(|(_, verb, rule)| after.change(*verb, rule, None, false).is_ok()) && after == *held
}

fn step(valued: &Valued<'_>, rule: &DeviceRule) -> Step {
    let setting = valued.found.setting.name.to_owned();
    let text = match rule.class {
        DeviceClass::All => "a".to_owned(),
        _ => rule.to_string(),
    };
    let place = valued.place.clone();
    let why = format!("{} = {text}", valued.found.name);
    let action = match place.version {
        Version::V1 => Action::Write { place, file: setting, text, before: None },
        Version::V2 => Action::SetDevices { place, setting, rule: text },
    };
    Step { group: valued.group.clone(), action, why }
}
