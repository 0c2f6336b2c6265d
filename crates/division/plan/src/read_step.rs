//! Steps as the lines of a record and of `plan --json` are read. By their tags alone serde would copy each line, or try one kind
//! after the other, and a record has thousands; so the fields of all kinds are read into one struct.

use std::path::PathBuf;

use serde::{Deserialize, Deserializer, de::Error};
use settings::{Controller, GroupName, knobs};
use units::CpuSet;

use crate::{Action, Affinity, Outsider, Owned, Ownership, Place, Step};

/// The fields of every kind of step; one name has one type in all of them.
#[derive(Deserialize)]
struct Line<B: Default> {
    #[serde(with = "crate::names::group")]
    group: GroupName,
    /// `do` in records of formats before 4.
    #[serde(rename = "action", alias = "do")]
    kind: Kind,
    why: String,
    #[serde(default)]
    restores: bool,
    #[serde(default)]
    before: B,
    place: Option<Place>,
    file: Option<String>,
    text: Option<String>,
    access: Option<Ownership>,
    controllers: Option<Controllers>,
    name: Option<String>,
    path: Option<PathBuf>,
    unit: Option<String>,
    names: Option<Vec<String>>,
    setting: Option<String>,
    rule: Option<String>,
    rules: Option<String>,
    owners: Option<Vec<(Option<String>, Owned)>>,
    cpus: Option<CpuSet>,
    to: Option<CpuSet>,
    threads: Option<Vec<Affinity>>,
    tasks: Option<Vec<Outsider>>,
    files: Option<Vec<(String, String)>>,
    knob: Option<String>,
    instance: Option<knobs::Instance>,
}

#[derive(Deserialize)]
struct Controllers(#[serde(with = "crate::names::controllers")] Vec<Controller>);

/// The names of [`Action`]'s variants.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    Mount,
    Unmount,
    CreateGroup,
    RemoveGroup,
    EnableControllers,
    DisableControllers,
    Write,
    WriteDropIn,
    SetKnob,
    SetDevices,
    RestoreDevices,
    SetOwnership,
    RestoreOwners,
    MoveTasksAway,
    RestoreAffinities,
    MoveTasks,
    ReturnTasks,
    Refill,
    InheritSet,
}

impl<'de, B: Default + PartialEq + Deserialize<'de>> Deserialize<'de> for Step<B> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Step<B>, D::Error> {
        let line = Line::<B>::deserialize(from)?;
        macro_rules! field {
            ($name:ident) => {
                line.$name.ok_or_else(|| D::Error::missing_field(stringify!($name)))?
            };
        }
        let action = match line.kind {
            Kind::Mount => {
                Action::Mount { controllers: field!(controllers).0, name: line.name, path: field!(path) }
            }
            Kind::Unmount => {
                Action::Unmount { controllers: field!(controllers).0, name: line.name, path: field!(path) }
            }
            Kind::CreateGroup => Action::CreateGroup { place: field!(place) },
            Kind::RemoveGroup => Action::RemoveGroup { place: field!(place) },
            Kind::EnableControllers => {
                Action::EnableControllers { place: field!(place), names: field!(names) }
            }
            Kind::DisableControllers => {
                Action::DisableControllers { place: field!(place), names: field!(names) }
            }
            Kind::Write => Action::Write { place: field!(place), file: field!(file), text: field!(text) },
            Kind::WriteDropIn => Action::WriteDropIn {
                place: field!(place),
                unit: field!(unit),
                path: field!(path),
                text: line.text,
            },
            Kind::SetKnob => {
                Action::SetKnob { knob: field!(knob), instance: field!(instance), text: field!(text) }
            }
            Kind::SetDevices => {
                Action::SetDevices { place: field!(place), setting: field!(setting), rule: field!(rule) }
            }
            Kind::RestoreDevices => Action::RestoreDevices { place: field!(place), rules: line.rules },
            Kind::SetOwnership => Action::SetOwnership { place: field!(place), access: field!(access) },
            Kind::RestoreOwners => Action::RestoreOwners { place: field!(place), owners: field!(owners) },
            Kind::MoveTasksAway => {
                Action::MoveTasksAway { place: field!(place), cpus: field!(cpus), to: field!(to) }
            }
            Kind::RestoreAffinities => {
                Action::RestoreAffinities { place: field!(place), threads: field!(threads) }
            }
            Kind::MoveTasks => Action::MoveTasks { place: field!(place), tasks: field!(tasks) },
            Kind::ReturnTasks => Action::ReturnTasks { place: field!(place), tasks: field!(tasks) },
            Kind::Refill => Action::Refill { place: field!(place), files: field!(files) },
            Kind::InheritSet => Action::InheritSet { place: field!(place), file: field!(file) },
        };
        let Line { group, why, restores, before, .. } = line;
        Ok(Step { group, action, why, restores, before })
    }
}

#[cfg(test)]
mod tests {
    use settings::Version;

    use super::*;

    #[test]
    fn every_step_is_read_as_it_was_written() {
        let place = || Place { hierarchy: 3, path: "a/b".to_owned(), version: Version::V2 };
        let word = || "a \"word\"\n".to_owned();
        let owned = Owned { uid: 1, gid: 2, mode: 0o640 };
        let cpus = || [1, 3].into_iter().collect::<CpuSet>();
        let thread = || Affinity { thread: 7, started: 8, cpus: cpus(), instead: None };
        let task = || Outsider { thread: 7, started: 8, from: word() };
        let (controllers, names) = (vec![Controller::Io, Controller::Cpuset], vec![word(), word()]);
        let owners = vec![(None, owned), (Some(word()), owned)];
        let access = Ownership { tasks_uid: Some(4), ..Ownership::default() };
        let actions = [
            Action::Mount { controllers: controllers.clone(), name: Some(word()), path: "/mnt".into() },
            Action::Mount { controllers: controllers.clone(), name: None, path: "/mnt".into() },
            Action::Unmount { controllers, name: None, path: "/mnt".into() },
            Action::CreateGroup { place: place() },
            Action::RemoveGroup { place: place() },
            Action::EnableControllers { place: place(), names: names.clone() },
            Action::DisableControllers { place: place(), names },
            Action::Write { place: place(), file: word(), text: word() },
            Action::WriteDropIn { place: place(), unit: word(), path: "/etc/x".into(), text: Some(word()) },
            Action::WriteDropIn { place: place(), unit: word(), path: "/etc/x".into(), text: None },
            Action::SetKnob { knob: word(), instance: knobs::Instance::File(word()), text: word() },
            Action::SetKnob {
                knob: word(),
                instance: knobs::Instance::Thread { thread: 7, started: 8, comm: word() },
                text: word(),
            },
            Action::SetDevices { place: place(), setting: word(), rule: word() },
            Action::RestoreDevices { place: place(), rules: None },
            Action::RestoreDevices { place: place(), rules: Some(word()) },
            Action::SetOwnership { place: place(), access },
            Action::RestoreOwners { place: place(), owners },
            Action::MoveTasksAway { place: place(), cpus: cpus(), to: cpus() },
            Action::RestoreAffinities { place: place(), threads: vec![thread()] },
            Action::MoveTasks { place: place(), tasks: vec![task()] },
            Action::ReturnTasks { place: place(), tasks: vec![task()] },
            Action::Refill { place: place(), files: vec![(word(), word())] },
            Action::InheritSet { place: place(), file: word() },
        ];
        for action in actions {
            let before = Some(word());
            let step = Step { group: GroupName::root(), action, why: word(), restores: true, before };
            let text = serde_json::to_string(&step).unwrap();
            assert_eq!(serde_json::from_str::<Step>(&text).unwrap(), step, "{text}");
            assert!(text.contains(&format!("\"action\":\"{}\"", step.action.word())), "{text}");
        }
    }

    #[test]
    fn a_step_without_its_field_is_none() {
        let text = r#"{"group":"a","action":"write","why":"x","file":"f","text":"t"}"#;
        let error = serde_json::from_str::<Step>(text).unwrap_err().to_string();
        assert!(error.contains("missing field `place`"), "{error}");
    }

    #[test]
    fn a_step_of_a_record_before_format_4_is_read() {
        let text = r#"{"group":"a","do":"create-group","place":{"hierarchy":0,"path":"a","version":"v2"},"why":"x"}"#;
        assert!(matches!(serde_json::from_str::<Step>(text).unwrap().action, Action::CreateGroup { .. }));
    }
}
