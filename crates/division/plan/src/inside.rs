//! Groups in the group of a service, for some of its processes: what our drop-in file says of them, in a section that systemd
//! skips (systemd.unit(5): "X-"). Nothing else on the disk describes them: apply makes them when
//! it writes the file, and the daemon makes them again at each start of the service.

use std::collections::{BTreeMap, BTreeSet};

use settings::{Controller, GroupName, Version};
use topology::facts::UNIT_PATH;
use units::group_path;

use crate::{Action, Place, Step};

const SECTION: &str = "[X-Ringfence]";
const GROUP: &str = "Group=";
const SET: &str = "Set=";
const SUBGROUP: &str = "DelegateSubgroup=";

/// The group of all processes for which no other is: on v2 processes are only where there are no groups.
pub const MAIN: &str = "main";

/// The service's group that a group is in: that one's directory comes and goes with the service.
pub fn service_above(place: &Place) -> Option<Place> {
    if place.version != Version::V2 || group_path::is_at_or_below(&place.path, UNIT_PATH) {
        return None;
    }
    let above =
        group_path::ancestors(&place.path).find(|above| group_path::name(above).ends_with(".service"))?;
    Some(Place { path: above.to_owned(), ..place.clone() })
}

/// What a step that writes a service's drop-in file does to the groups in that service, as steps of their own: to be shown.
pub fn steps_inside(step: &Step) -> Vec<Step> {
    let Action::WriteDropIn { place, text, .. } = &step.action else { return Vec::new() };
    let of = |text: Option<&str>| text.and_then(Inside::of_text).unwrap_or_default().groups;
    let (was, now) = (of(step.before.as_deref()), of(text.as_deref()));
    let below = |name: &str| Place { path: group_path::join(&place.path, name), ..place.clone() };
    let step_of = |name: &str, action: Action| {
        let group = GroupName::new(&format!("{}/{name}", step.group)).unwrap_or_else(|_| step.group.clone());
        Step::new(group, action, step.why.clone())
    };
    let mut steps = Vec::new();
    for (name, writes) in &now {
        let known = was.get(name);
        if known.is_none() {
            steps.push(step_of(name, Action::CreateGroup { place: below(name) }));
        }
        // what a group that is there is to have besides is written by steps of its own
        let new = writes.iter().filter(|_| known.is_none());
        steps.extend(new.map(|(file, text)| {
            let (file, text) = (file.clone(), text.clone());
            step_of(name, Action::Write { place: below(name), file, text })
        }));
    }
    let gone = was.keys().filter(|name| !now.contains_key(*name));
    steps.extend(
        gone.map(|name| Step { restores: true, ..step_of(name, Action::RemoveGroup { place: below(name) }) }),
    );
    steps
}

/// The groups in a service's group.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Inside {
    /// By name, [`MAIN`] always among them: the writes that give it its settings, file and text.
    pub groups: BTreeMap<String, Vec<(String, String)>>,
    /// Does systemd start the service in [`MAIN`]? Before version 254 it starts it in its own group, which then may hand down no
    /// controllers yet.
    pub starts_in_main: bool,
}

impl Inside {
    /// Of these groups.
    pub fn new(groups: BTreeMap<String, Vec<(String, String)>>) -> Inside {
        let mut inside = Inside { groups, starts_in_main: false };
        inside.groups.entry(MAIN.to_owned()).or_default();
        inside
    }

    /// What a drop-in file says; `None` if it has no such groups.
    pub fn of_text(text: &str) -> Option<Inside> {
        let mut lines = text.lines().skip_while(|line| *line != SECTION).skip(1).peekable();
        lines.peek()?;
        let mut groups: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
        let mut last = None;
        for line in lines.take_while(|line| !line.starts_with('[')) {
            if let Some(name) = line.strip_prefix(GROUP) {
                groups.entry(name.to_owned()).or_default();
                last = Some(name);
            }
            let write = line.strip_prefix(SET).and_then(|write| write.split_once(' '));
            if let (Some((file, text)), Some(writes)) = (write, last.and_then(|name| groups.get_mut(name))) {
                writes.push((file.to_owned(), text.to_owned()));
            }
        }
        let starts_in_main = text.lines().any(|line| line.starts_with(SUBGROUP));
        Some(Inside { starts_in_main, ..Inside::new(groups) })
    }

    /// The section of the drop-in file, and the lines of the service's own that it needs. `is_known`: has this systemd that property?
    pub(crate) fn lines(&self, is_known: &dyn Fn(&str) -> bool) -> (Vec<String>, String) {
        let names: Vec<&str> = self.controllers().into_iter().collect();
        let delegate = if names.is_empty() { "yes".to_owned() } else { names.join(" ") };
        let mut service = vec![format!("Delegate={delegate}")];
        if is_known("DelegateSubgroup") {
            service.push(format!("{SUBGROUP}{MAIN}"));
        }
        let mut section = format!("\n{SECTION}\n");
        for (name, writes) in &self.groups {
            section.push_str(&format!("{GROUP}{name}\n"));
            for (file, text) in writes {
                text.lines().for_each(|line| section.push_str(&format!("{SET}{file} {line}\n")));
            }
        }
        (service, section)
    }

    /// v2's controllers that these groups need.
    pub fn controllers(&self) -> BTreeSet<&'static str> {
        let files = self.groups.values().flatten().map(|(file, _)| file.as_str());
        let of_file = |file: &str| {
            let controller = Controller::from_name(file.split('.').next()?)?;
            controller.name(Version::V2).filter(|_| controller != Controller::Core)
        };
        files.filter_map(of_file).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_file_says_is_read_back() {
        let write = |file: &str, text: &str| (file.to_owned(), text.to_owned());
        let groups = [
            ("main".to_owned(), vec![write("cpu.weight", "300")]),
            (
                "maintenance".to_owned(),
                vec![write("io.max", "8:0 wbps=1048576"), write("memory.high", "1073741824")],
            ),
            ("none".to_owned(), Vec::new()),
        ];
        let inside = Inside::new(groups.into_iter().collect());
        let (service, section) = inside.lines(&|_| true);
        assert_eq!(service, ["Delegate=cpu io memory", "DelegateSubgroup=main"]);
        let text = format!("# x\n[Service]\n{}\n{section}", service.join("\n"));
        assert_eq!(Inside::of_text(&text), Some(Inside { starts_in_main: true, ..inside }));
        assert_eq!(Inside::of_text("[Service]\nMemoryMax=1\n"), None);
    }

    #[test]
    fn there_is_always_a_group_for_the_rest() {
        let inside = Inside::new([("a".to_owned(), Vec::new())].into());
        assert_eq!(inside.groups.keys().collect::<Vec<_>>(), ["a", "main"]);
        assert_eq!(inside.lines(&|_| false).0, ["Delegate=yes"]);
    }
}
