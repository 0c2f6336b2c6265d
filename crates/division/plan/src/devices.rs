//! Which devices groups may use: rules change the group's access one by one, and what a group is denied its children
//! are denied as well. So what the rules would make of all groups is worked out first; nothing is written that changes
//! nothing, and every rule stands where the kernel takes it. `a`, everything, is taken only while no group is below:
//! a group's rules come before the making of its children.

use std::collections::{BTreeMap, BTreeSet};

use settings::{
    DeviceClass, DeviceRule, Value, Version,
    devices::{Behavior, DeviceAccess, Forbidden, Verb},
};
use units::group_path;

use crate::{Action, Observed, Place, Problem, Step, values::Valued};

/// The steps for the rules of all groups, parents before their children: what is denied first, then what is allowed;
/// none where that is so already.
pub(crate) fn steps(values: &[Valued<'_>], observed: &Observed, problems: &mut Vec<Problem>) -> Vec<Step> {
    let mut ruled: BTreeMap<(usize, &str), Vec<Ruled<'_>>> = BTreeMap::new();
    for valued in values {
        let Value::Rules(rules) = &valued.value else { continue };
        let verb = if valued.found.setting.name == "devices.deny" { Verb::Deny } else { Verb::Allow };
        let of_group = ruled.entry((valued.place.hierarchy, &valued.place.path)).or_default();
        of_group.extend(rules.iter().map(|rule| Ruled { valued, verb, rule: *rule }));
    }
    let hierarchies: BTreeSet<usize> = ruled.keys().map(|(hierarchy, _)| *hierarchy).collect();
    let mut state = State::new(observed, &hierarchies);
    let mut steps = Vec::new();
    for rules in ruled.values_mut() {
        rules.sort_by_key(|ruled| ruled.verb == Verb::Allow);
        match state.steps(rules) {
            Ok(of_group) => steps.extend(of_group),
            Err(problem) => problems.push(*problem),
        }
    }
    steps
}

/// Puts the rules among the steps that make groups: those of a new group right after it is made, those of one that is
/// there before the first group below it is.
pub(crate) fn between(making: Vec<Step>, rules: Vec<Step>) -> Vec<Step> {
    let mut waiting: BTreeMap<(usize, String), Vec<Step>> = BTreeMap::new();
    for rule in rules {
        let Some(place) = place_of(&rule) else { continue };
        waiting.entry(key(place)).or_default().push(rule);
    }
    let mut all = Vec::with_capacity(making.len() + waiting.len());
    for step in making {
        let made = match &step.action {
            Action::CreateGroup { place } => Some(place.clone()),
            _ => None,
        };
        let cuts = made.iter().flat_map(|made| made.path.match_indices('/').map(|(at, _)| &made.path[..at]));
        let above = made.iter().map(|_| "").chain(cuts);
        let due = above.filter_map(|above| waiting.remove(&(made.as_ref()?.hierarchy, above.to_owned())));
        all.extend(due.flatten());
        all.push(step);
        all.extend(made.and_then(|made| waiting.remove(&key(&made))).into_iter().flatten());
    }
    all.extend(waiting.into_values().flatten());
    all
}

fn place_of(step: &Step) -> Option<&Place> {
    match &step.action {
        Action::Write { place, .. } | Action::SetDevices { place, .. } => Some(place),
        _ => None,
    }
}

/// A rule that is requested.
#[derive(Clone, Copy)]
struct Ruled<'v> {
    valued: &'v Valued<'v>,
    verb: Verb,
    rule: DeviceRule,
}

/// What groups may use, as far as it is known, after the steps so far.
struct State<'o> {
    observed: &'o Observed,
    now: BTreeMap<(usize, String), DeviceAccess>,
}

impl<'o> State<'o> {
    fn new(observed: &'o Observed, hierarchies: &BTreeSet<usize>) -> State<'o> {
        let mut now = BTreeMap::new();
        for &hierarchy in hierarchies {
            let at = &observed.hierarchies[hierarchy];
            for path in at.groups.keys() {
                let place = Place { hierarchy, path: path.clone(), version: at.version };
                if let Some(access) = current_access(&place, observed) {
                    now.insert((hierarchy, path.clone()), access);
                }
            }
        }
        State { observed, now }
    }

    /// The steps of one group's rules.
    fn steps(&mut self, rules: &[Ruled<'_>]) -> Result<Vec<Step>, Box<Problem>> {
        let Some(first) = rules.first() else { return Ok(Vec::new()) };
        let place = &first.valued.place;
        let parent = self.of_parent(place);
        let seen = self.observed.group(place).is_some();
        let own = self.now.get(&key(place)).cloned();
        // a new group has what its parent has, and so has one of v2 without rules of its own
        let start = own.clone().or_else(|| parent.clone()).unwrap_or_else(DeviceAccess::all);
        let mut wanted = start.clone();
        for ruled in rules {
            wanted
                .change(ruled.verb, &ruled.rule, parent.as_ref(), false)
                .map_err(|forbidden| Box::new(refused(ruled, forbidden)))?;
        }
        let detached = self.observed.group(place).is_some_and(|seen| seen.devices_detached);
        if own.is_some() && wanted == start && !detached {
            return Ok(Vec::new());
        }
        let everything = rules.iter().find(|ruled| ruled.rule.class == DeviceClass::All);
        let changes = match everything.filter(|_| seen && self.has_children(place)) {
            Some(all) if start.behavior() != wanted.behavior() => {
                return Err(Box::new(refused(all, Forbidden::HasChildren)));
            }
            // any rule puts the program back
            Some(_) if wanted == start => {
                let single = rules.iter().filter(|ruled| ruled.rule.class != DeviceClass::All);
                let single: Vec<Ruled<'_>> = single.copied().collect();
                if single.is_empty() { rules.to_vec() } else { single }
            }
            Some(all) => differing(all, &start, &wanted),
            None => rules.to_vec(),
        };
        for change in changes.iter().filter(|change| change.verb == Verb::Deny) {
            self.narrow(place, &change.rule, &wanted);
        }
        self.now.insert(key(place), wanted);
        let part = everything.is_some() && changes.len() != rules.len();
        Ok(changes.iter().map(|ruled| step(ruled, part)).collect())
    }

    fn has_children(&self, place: &Place) -> bool {
        let groups = &self.observed.hierarchies[place.hierarchy].groups;
        let below = if place.path.is_empty() { String::new() } else { format!("{}/", place.path) };
        let mut from = groups.range(below.clone()..).filter(|(path, _)| !path.is_empty());
        from.next().is_some_and(|(path, _)| path.starts_with(&below))
    }

    /// What the group above has; one that is yet to be made has what is above it. `None` where that is not known.
    fn of_parent(&self, place: &Place) -> Option<DeviceAccess> {
        let mut path = place.path.as_str();
        while !path.is_empty() {
            path = group_path::parent(path).unwrap_or_default();
            let above = Place { path: path.to_owned(), ..place.clone() };
            if let Some(access) = self.now.get(&key(&above)) {
                return Some(access.clone());
            }
            if place.version == Version::V1 && self.observed.group(&above).is_some() {
                return None;
            }
        }
        None
    }

    /// What is denied to a group is denied below it, parents before their children.
    fn narrow(&mut self, place: &Place, rule: &DeviceRule, access: &DeviceAccess) {
        let below: Vec<String> = self
            .now
            .range(key(place)..)
            .take_while(|((hierarchy, path), _)| {
                *hierarchy == place.hierarchy && path.starts_with(&place.path)
            })
            .map(|((_, path), _)| path.clone())
            .filter(|path| group_path::is_below(path, &place.path))
            .collect();
        for path in below {
            let below = Place { path, ..place.clone() };
            let parent = self.of_parent(&below).unwrap_or_else(|| access.clone());
            if let Some(own) = self.now.get_mut(&key(&below)) {
                own.narrow(rule, access, &parent);
            }
        }
    }
}

fn key(place: &Place) -> (usize, String) {
    (place.hierarchy, place.path.clone())
}

/// What the group may use now. v1 does not show what is denied to a group that may use everything else: there such
/// rules are written again.
fn current_access(place: &Place, observed: &Observed) -> Option<DeviceAccess> {
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

/// The rules that make the one of the other, both of which are "all but" or both "none but", without `a`. What both
/// have is not touched: groups below would lose it.
fn differing<'v>(requested: &Ruled<'v>, start: &DeviceAccess, wanted: &DeviceAccess) -> Vec<Ruled<'v>> {
    let less = |from: &DeviceAccess, by: &DeviceAccess| -> Vec<DeviceRule> {
        from.exceptions().iter().filter_map(|rule| without(rule, by.exceptions())).collect()
    };
    let (gone, new) = (less(start, wanted), less(wanted, start));
    let (denied, allowed) = match wanted.behavior() {
        Behavior::DefaultAllow => (new, gone),
        Behavior::DefaultDeny => (gone, new),
    };
    let ruled = |verb: Verb| move |rule: DeviceRule| Ruled { verb, rule, ..*requested };
    denied.into_iter().map(ruled(Verb::Deny)).chain(allowed.into_iter().map(ruled(Verb::Allow))).collect()
}

/// What of a rule's access the others with the same devices do not have.
fn without(rule: &DeviceRule, others: &[DeviceRule]) -> Option<DeviceRule> {
    let same =
        |other: &&DeviceRule| (other.class, other.major, other.minor) == (rule.class, rule.major, rule.minor);
    let Some(other) = others.iter().find(same) else { return Some(*rule) };
    let left = DeviceRule {
        read: rule.read && !other.read,
        write: rule.write && !other.write,
        mknod: rule.mknod && !other.mknod,
        ..*rule
    };
    (left.read || left.write || left.mknod).then_some(left)
}

fn name(verb: Verb) -> &'static str {
    match verb {
        Verb::Allow => "devices.allow",
        Verb::Deny => "devices.deny",
    }
}

fn text(rule: &DeviceRule) -> String {
    match rule.class {
        DeviceClass::All => "a".to_owned(),
        _ => rule.to_string(),
    }
}

fn refused(ruled: &Ruled<'_>, forbidden: Forbidden) -> Problem {
    let (group, requested) = (ruled.valued.group, format!("{} = {}", name(ruled.verb), text(&ruled.rule)));
    let (message, hint) = match forbidden {
        Forbidden::HasChildren => (
            format!(
                "{requested} of group '{group}' is not possible while groups are below it: between everything but some devices and nothing but some devices only a group without groups below can change"
            ),
            format!(
                "delete the groups below it first and let the layout make them again, or deny single devices to '{group}'"
            ),
        ),
        Forbidden::Parent => (
            format!(
                "{requested} of group '{group}' is not possible: the group above it may not use that device"
            ),
            "allow it to the group above as well".to_owned(),
        ),
    };
    Problem::Refused {
        message,
        origin: ruled.valued.origin.clone(),
        hint,
        version: ruled.valued.place.version,
    }
}

fn step(ruled: &Ruled<'_>, part: bool) -> Step {
    let (setting, text, place) = (name(ruled.verb).to_owned(), text(&ruled.rule), ruled.valued.place.clone());
    let reason = if part { "; groups are below it, so only what differs is changed" } else { "" };
    let why = format!("{setting} = {text}{reason}");
    let action = match place.version {
        Version::V1 => Action::Write { place, file: setting, text },
        Version::V2 => Action::SetDevices { place, setting, rule: text },
    };
    Step::new(ruled.valued.group.clone(), action, why)
}
