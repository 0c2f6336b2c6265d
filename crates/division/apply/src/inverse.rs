//! From a step and what was there before it to the actions that put that back, in the order in which they are done.
//! Data only: whether it is still needed is seen on the machine.

use plan::{Action, Place};
use settings::{DeviceClass, DeviceRule, Value, Version, devices, knobs};

use crate::{
    entry::{Before, Entry},
    performer::DEVICES_V1,
    record::Affinity,
};

/// What undoes a step.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Inverse {
    /// In this order.
    pub actions: Vec<Action>,
    /// Why not, or not wholly.
    pub cannot: Option<String>,
}

/// The actions that undo a step, but for [`Before::New`] and [`Before::Group`]: those are the whole group's.
/// `affinities`: what threads had before this step, as it came.
pub(crate) fn inverse(entry: &Entry, affinities: &[&Affinity]) -> Inverse {
    let actions = |actions: Vec<Action>| Inverse { actions, cannot: None };
    match (&entry.action, &entry.before) {
        (Action::Mount { controllers, name, path }, _) => {
            let (controllers, name, path) = (controllers.clone(), name.clone(), path.clone());
            actions(vec![Action::Unmount { controllers, name, path }])
        }
        (Action::Unmount { controllers, name, path }, _) => {
            let (controllers, name, path) = (controllers.clone(), name.clone(), path.clone());
            actions(vec![Action::Mount { controllers, name, path }])
        }
        (Action::WriteDropIn { place, unit, path, .. }, Before::DropIn(text)) => {
            let (place, unit, path) = (place.clone(), unit.clone(), path.clone());
            actions(vec![Action::WriteDropIn { place, unit, path, text: text.clone() }])
        }
        (Action::SetKnob { knob, instance, text }, Before::Knob(before)) => {
            let back = knobs::find(knob).map_or(before.as_str(), |row| row.plain(before));
            let back = (back != text).then(|| Action::SetKnob {
                knob: knob.clone(),
                instance: instance.clone(),
                text: back.to_owned(),
            });
            actions(back.into_iter().collect())
        }
        (Action::CreateGroup { place }, _) => actions(vec![Action::RemoveGroup { place: place.clone() }]),
        (Action::EnableControllers { place, .. }, Before::Controllers { off, .. }) if !off.is_empty() => {
            actions(vec![Action::DisableControllers { place: place.clone(), names: off.clone() }])
        }
        (Action::DisableControllers { place, names }, before @ Before::Controllers { .. }) => {
            actions(handed_again(place, names, before))
        }
        (Action::Write { place, file, text }, Before::Files(files)) => {
            written(entry, place, (file, text), files)
        }
        (Action::Write { place, file, text }, Before::ListsBelow { own, below }) => {
            let mut inverse = written(entry, place, (file, text), own);
            below.iter().for_each(|(path, list)| inverse.add_given_back(place, text, path, list));
            inverse
        }
        (Action::InheritSet { place, file }, Before::Files(files)) => {
            let now = Entry {
                action: Action::Write { place: place.clone(), file: file.clone(), text: String::new() },
                ..entry.clone()
            };
            written(&now, place, (file, ""), files)
        }
        (Action::SetDevices { place, .. } | Action::RestoreDevices { place, .. }, Before::Devices(rules)) => {
            actions(vec![Action::RestoreDevices { place: place.clone(), rules: rules.clone() }])
        }
        (
            Action::SetDevices { place, .. } | Action::RestoreDevices { place, .. },
            Before::DevicesBelow { own, below },
        ) => {
            let own = Action::RestoreDevices { place: place.clone(), rules: own.clone() };
            let below = below.iter().map(|(path, rules)| Action::RestoreDevices {
                place: at(place, path),
                rules: Some(rules.clone()),
            });
            actions(std::iter::once(own).chain(below).collect())
        }
        (
            Action::SetOwnership { place, .. } | Action::RestoreOwners { place, .. },
            Before::Owners(owners),
        ) => actions(vec![Action::RestoreOwners { place: place.clone(), owners: owners.clone() }]),
        (Action::MoveTasksAway { place, .. } | Action::RestoreAffinities { place, .. }, _) => {
            actions(vec![Action::RestoreAffinities {
                place: place.clone(),
                threads: first_of_each(affinities),
            }])
        }
        _ => Inverse::default(),
    }
}

/// What hands controllers down again that were taken back, with what the groups below had of them.
fn handed_again(place: &Place, names: &[String], before: &Before) -> Vec<Action> {
    let Before::Controllers { off, owners, lists, .. } = before else { return Vec::new() };
    let names: Vec<String> = names.iter().filter(|name| !off.contains(name)).cloned().collect();
    let all = (!names.is_empty()).then(|| Action::EnableControllers { place: place.clone(), names });
    let owners = owners
        .iter()
        .map(|(path, owners)| Action::RestoreOwners { place: at(place, path), owners: owners.clone() });
    let lists =
        lists.iter().map(|(path, files)| Action::Refill { place: at(place, path), files: files.clone() });
    all.into_iter().chain(lists).chain(owners).collect()
}

/// Another group of the same hierarchy.
fn at(place: &Place, path: &str) -> Place {
    Place { path: path.to_owned(), ..place.clone() }
}

/// What a thread had first is what it had before.
fn first_of_each(affinities: &[&Affinity]) -> Vec<Affinity> {
    let mut threads: Vec<Affinity> = Vec::new();
    for affinity in affinities {
        let known = |other: &Affinity| other.thread == affinity.thread && other.started == affinity.started;
        if !threads.iter().any(known) {
            threads.push((*affinity).clone());
        }
    }
    threads
}

impl Inverse {
    /// Adds the rules that the group at `path` lost from its list by a deny to a group above.
    fn add_given_back(&mut self, above: &Place, deny: &str, path: &str, list: &str) {
        let Some(rules) = given_back(deny, list) else {
            let cannot = self.cannot.take().map_or_else(String::new, |cannot| format!("{cannot}; "));
            self.cannot = Some(format!(
                "{cannot}the group at {path} stays without {deny}: v1 does not show whether it was denied there before"
            ));
            return;
        };
        self.actions.extend(rules.into_iter().map(|text| Action::Write {
            place: at(above, path),
            file: "devices.allow".to_owned(),
            text,
        }));
    }
}

fn written(entry: &Entry, place: &Place, (file, text): (&str, &str), files: &[(String, String)]) -> Inverse {
    let write =
        |file: &str, text: String| Action::Write { place: place.clone(), file: file.to_owned(), text };
    let Some(((shown, before), with)) = files.split_first() else {
        let cannot = format!("{file} of group '{}' was written '{text}', which can't be undone", entry.group);
        return Inverse { actions: Vec::new(), cannot: Some(cannot) };
    };
    let texts = if shown == DEVICES_V1 {
        device_rules(file, text, before)
    } else {
        match restoring(place.version, file, text, before) {
            Some(texts) => texts,
            None if settings::is_by_key(file) => {
                let cannot =
                    format!("{file} of group '{}' was '{before}', which cannot be read", entry.group);
                return Inverse { actions: Vec::new(), cannot: Some(cannot) };
            }
            None => vec![(file.to_owned(), plain(file, before))],
        }
    };
    if matches!(shown.as_str(), plan::CPUS | "cpuset.mems") && before.trim().is_empty() {
        // the kernel takes no empty list where tasks are in the group or below it
        let action = Action::InheritSet { place: place.clone(), file: shown.clone() };
        return Inverse { actions: vec![action], cannot: None };
    }
    let mut actions: Vec<Action> = texts.into_iter().map(|(file, text)| write(&file, text)).collect();
    actions.extend(with.iter().map(|(file, text)| write(file, plain(file, text))));
    let cannot = (file == "cgroup.type" && before != text)
        .then(|| format!("group '{}' stays threaded: the kernel knows no way back", entry.group));
    if cannot.is_some() { Inverse { actions: Vec::new(), cannot } } else { Inverse { actions, cannot } }
}

/// The text that restores a file's content.
fn plain(file: &str, before: &str) -> String {
    match (file, before) {
        ("cpuset.cpus.partition", _) => match settings::partition(before).0 {
            "" => "member".to_owned(),
            kind => kind.to_owned(),
        },
        ("freezer.state", "FREEZING") => "FROZEN".to_owned(),
        // an empty write does not reach the kernel's handler
        (_, "") => "\n".to_owned(),
        _ => before.to_owned(),
    }
}

/// For a file of which a write names only a part: that part as it was. `None` for all others.
pub(crate) fn restoring(
    version: Version,
    file: &str,
    text: &str,
    before: &str,
) -> Option<Vec<(String, String)>> {
    let found = settings::lookup(file)?;
    let with = |content: &str| {
        // a setting of several files: the others name nothing
        let read = |name: &str| Some(if name == file { content.to_owned() } else { String::new() });
        found.decode(version, &read).ok()
    };
    let (requested, was) = (with(text)?, with(before)?);
    let partial = matches!(requested, Value::PerDevice(_) | Value::Weights { .. } | Value::Keyed(_));
    if !partial && !before.contains('\n') {
        return None;
    }
    let mut texts = Vec::new();
    for (found, value) in plan::restoring(&found, &requested, &was) {
        let writes = found.encode(version, &value, &|name| (name == file).then(|| before.to_owned())).ok()?;
        texts.extend(writes.into_iter().map(|write| (write.file, write.text)));
    }
    (!texts.is_empty()).then_some(texts)
}

/// v1's device files add to or take from a list, so what undoes a rule depends on that list's content. A list of
/// `a *:* rwm` may have exceptions, which the kernel does not show.
fn device_rules(file: &str, rule: &str, list: &str) -> Vec<(String, String)> {
    let allow = |text: &str| ("devices.allow".to_owned(), text.to_owned());
    let deny = |text: &str| ("devices.deny".to_owned(), text.to_owned());
    let everything = list.lines().any(|line| line.starts_with('a'));
    let target = |line: &str| {
        let mut words = line.split_whitespace();
        (words.next().map(str::to_owned), words.next().map(str::to_owned))
    };
    let entry = list.lines().find(|line| target(line) == target(rule));
    let is_all = rule.trim_start().starts_with('a');
    match (file, everything) {
        ("devices.deny", true) => vec![allow(rule)],
        ("devices.allow", true) => Vec::new(),
        (_, false) if is_all => std::iter::once(deny("a")).chain(list.lines().map(allow)).collect(),
        ("devices.deny", false) => entry.map(allow).into_iter().collect(),
        (_, false) => std::iter::once(deny(rule)).chain(entry.map(allow)).collect(),
        (_, true) => Vec::new(),
    }
}

/// The rules of a list that a group below loses by a deny; `None` if the list does not show them.
fn given_back(deny: &str, list: &str) -> Option<Vec<String>> {
    let Some(deny) = devices::rule(deny) else { return Some(Vec::new()) };
    let lines = list.lines().filter_map(devices::rule);
    let mut rules = Vec::new();
    for line in lines {
        if line.class == DeviceClass::All {
            return None;
        }
        rules.extend(denied(&deny, &line).map(|rule| rule.to_string()));
    }
    Some(rules)
}

/// What of a list's line a deny to a group above takes: of a line for the same devices the access that is denied, of
/// any other all, as the group above does not cover it any more.
pub(crate) fn denied(deny: &DeviceRule, line: &DeviceRule) -> Option<DeviceRule> {
    let meet = |one: Option<u32>, other: Option<u32>| one.is_none() || other.is_none() || one == other;
    // a rule for all devices is refused where groups are below
    let same_class = deny.class == line.class || line.class == DeviceClass::All;
    if deny.class == DeviceClass::All
        || !same_class
        || !meet(deny.major, line.major)
        || !meet(deny.minor, line.minor)
    {
        return None;
    }
    let (read, write, mknod) = (deny.read && line.read, deny.write && line.write, deny.mknod && line.mknod);
    let same = (deny.major, deny.minor) == (line.major, line.minor);
    let taken = if same { DeviceRule { read, write, mknod, ..*line } } else { *line };
    (read || write || mknod).then_some(taken)
}
