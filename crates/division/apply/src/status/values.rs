//! Is what files hold what was requested of them: the same text, what the kernel makes of it, or what means the same.

use std::{collections::BTreeMap, path::PathBuf};

use plan::{Action, Owned, Ownership, Place};
use serde::{Deserialize, Serialize};
use settings::{
    CpuMax, Value, Version,
    devices::{self, Behavior, DeviceAccess, Verb},
};

use crate::{
    entry::Entry,
    ownership,
    performer::{DEVICES_V1, Performer, name},
};

/// One file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettingStatus {
    /// Its path.
    pub file: PathBuf,
    /// What was written; of a file of lines by device, the line.
    pub requested: String,
    /// What it holds; `None` if it can't be read.
    pub actual: Option<String>,
    /// Is that what was requested, but for the kernel's rounding?
    pub as_requested: bool,
}

/// The text itself, what the kernel made of it then, or what means the same.
pub(super) fn is_as_requested(
    performer: &Performer<'_>,
    group: &str,
    (place, file, text): (&Place, &str, &str),
    actual: Option<&str>,
    actual_then: Option<&str>,
) -> bool {
    let Some(found) = settings::lookup(file) else { return actual == Some(text) || actual == actual_then };
    let Some(actual) = actual else { return found.setting.access == settings::Access::Write };
    if found.setting.access == settings::Access::Write || actual == text {
        return true;
    }
    if let (true, Ok(requested), Ok(now)) =
        (settings::has_period(file), text.parse::<CpuMax>(), actual.parse::<CpuMax>())
    {
        // of a quota alone the period is not decided
        return Value::CpuMax(requested).satisfied_by(&Value::CpuMax(now));
    }
    if let (Some(then), false) = (actual_then, settings::is_by_key(file)) {
        // what the kernel made of it counts as applied, what somebody else wrote in that moment does not
        let clamps = found
            .side(place.version)
            .binding()
            .is_some_and(|binding| !matches!(binding.out_of_range, settings::OutOfRange::Refused));
        return actual == then && (clamps || performer.differs(place, file, text, actual) != Some(true));
    }
    let action = Action::Write { place: place.clone(), file: file.to_owned(), text: text.to_owned() };
    let (why, restores, before) = Default::default();
    let entry = Entry { group: name(group), action, why, restores, before };
    performer.compare(&entry, place, file, text, actual).is_none()
        && performer.means(place, file, text, actual)
}

/// Of a file of lines by device, that device's line; else all of it.
pub(super) fn line_of(actual: String, key: &str) -> String {
    let line = actual.lines().find(|line| !key.is_empty() && line.split_whitespace().next() == Some(key));
    line.map(str::to_owned).unwrap_or(actual)
}

/// What a group's list would be if its rules were written again, and what it is, both in the same order. What is
/// denied to a group that may use all other devices v1's list does not show.
pub(super) fn device_rules(
    performer: &Performer<'_>,
    place: &Place,
    rules: &[(String, String)],
) -> Option<(String, String)> {
    if place.version == Version::V2 {
        return device_program(performer, place, rules);
    }
    let list = performer.content(place, DEVICES_V1)?;
    let mut actual = DeviceAccess::all();
    if !list.lines().any(|line| line.starts_with('a')) {
        actual.change(Verb::Deny, &devices::rule("a")?, None, false).ok()?;
        for line in list.lines() {
            actual.change(Verb::Allow, &devices::rule(line)?, None, false).ok()?;
        }
    }
    let requested = with_rules(&actual, rules)?;
    let lines = |access: &DeviceAccess| {
        let text = access.list_text();
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        // in the kernel's order, those that it lacks behind
        lines.sort_by_key(|line| list.lines().position(|other| other == line).unwrap_or(usize::MAX));
        lines.join("\n")
    };
    Some((lines(&requested), lines(&actual)))
}

/// The same of a v2 group's program, on one line and in words, as it may have been taken off.
fn device_program(
    performer: &Performer<'_>,
    place: &Place,
    rules: &[(String, String)],
) -> Option<(String, String)> {
    let filter = performer.host().device_filter(performer.at(place)?, &place.path).ok()?;
    let lines = |access: &DeviceAccess| {
        let (all, verb) = match access.behavior() {
            Behavior::DefaultAllow => ("allow a", "deny"),
            Behavior::DefaultDeny => ("deny a", "allow"),
        };
        let exceptions = access.exceptions().iter().map(|rule| format!("{verb} {rule}"));
        let mut lines: Vec<String> = exceptions.collect();
        lines.sort_unstable();
        lines.insert(0, all.to_owned());
        lines.join("; ")
    };
    let requested = lines(&with_rules(&filter.access, rules)?);
    let actual = match filter.attached {
        true => lines(&filter.access),
        false => "not in force, as its BPF program is not attached any more".to_owned(),
    };
    Some((requested, actual))
}

fn with_rules(access: &DeviceAccess, rules: &[(String, String)]) -> Option<DeviceAccess> {
    let mut access = access.clone();
    for (file, text) in rules {
        let verb = if file == "devices.deny" { Verb::Deny } else { Verb::Allow };
        access.change(verb, &devices::rule(text)?, None, false).ok()?;
    }
    Some(access)
}

/// Those of the directory and of the files that take tasks, and of others that are not as decided.
pub(super) fn owners_of(performer: &Performer<'_>, place: &Place, access: &Ownership) -> Vec<SettingStatus> {
    let Some(at) = performer.at(place) else { return Vec::new() };
    let names = performer.host().kernel().files(at, &place.path).unwrap_or_default();
    let all: Vec<Option<&str>> =
        [None].into_iter().chain(names.iter().map(|name| Some(name.as_str()))).collect();
    let owned = performer.system().owned_each(at, &place.path, &all).unwrap_or_default();
    let actual: BTreeMap<Option<&str>, Owned> = owned.into_iter().collect();
    let files: Vec<(String, Owned)> =
        names.iter().filter_map(|name| Some((name.clone(), *actual.get(&Some(name.as_str()))?))).collect();
    let directory = PathBuf::from(performer.directory(place));
    let keeper = performer.system().maker();
    let each = ownership::each(access, place.version, &files, None, keeper);
    let statuses = each.into_iter().filter_map(|(file, to)| {
        let actual = actual.get(&file)?;
        let as_requested = to.uid.is_none_or(|uid| uid == actual.uid)
            && to.gid.is_none_or(|gid| gid == actual.gid)
            && to.mode.is_none_or(|mode| mode == actual.mode & 0o7777);
        let is_shown = !as_requested || file.is_none_or(|file| ownership::TASK_FILES.contains(&file));
        is_shown.then(|| SettingStatus {
            file: file.map_or_else(|| directory.clone(), |file| directory.join(file)),
            requested: owner(to.uid, to.gid, to.mode),
            actual: Some(owner(
                to.uid.map(|_| actual.uid),
                to.gid.map(|_| actual.gid),
                to.mode.map(|_| actual.mode & 0o7777),
            )),
            as_requested,
        })
    });
    statuses.collect()
}

/// `user 1000, group 100, mode 660`, what is not requested left out.
fn owner(uid: Option<u32>, gid: Option<u32>, mode: Option<u32>) -> String {
    let parts = [
        uid.map(|uid| format!("user {uid}")),
        gid.map(|gid| format!("group {gid}")),
        mode.map(|mode| format!("mode {mode:o}")),
    ];
    parts.into_iter().flatten().collect::<Vec<String>>().join(", ")
}
