//! Steps and marks as the lines of a record are read. By their tags alone serde would copy each line, or try one kind
//! after the other, and a record has thousands; so the fields of all kinds are read into one struct.

use std::path::PathBuf;

use plan::{Affinity, Outsider, Owned, Ownership, Place};
use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, Visitor, value::MapAccessDeserializer},
};
use units::CpuSet;

use crate::{
    act::{Act, Before, Entry},
    record::{Mark, Result as End},
};

/// The fields of every kind of step; one name has one type in all of them.
#[derive(Deserialize)]
struct Line {
    group: String,
    #[serde(rename = "do")]
    kind: Kind,
    why: String,
    #[serde(default)]
    restores: bool,
    #[serde(default)]
    before: Before,
    place: Option<Place>,
    file: Option<String>,
    text: Option<String>,
    access: Option<Ownership>,
    controllers: Option<Vec<String>>,
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

/// The names of [`Act`]'s variants.
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

impl<'de> Deserialize<'de> for Entry {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Entry, D::Error> {
        let line = Line::deserialize(from)?;
        macro_rules! field {
            ($name:ident) => {
                line.$name.ok_or_else(|| D::Error::missing_field(stringify!($name)))?
            };
        }
        let act = match line.kind {
            Kind::Mount => {
                Act::Mount { controllers: field!(controllers), name: line.name, path: field!(path) }
            }
            Kind::Unmount => {
                Act::Unmount { controllers: field!(controllers), name: line.name, path: field!(path) }
            }
            Kind::CreateGroup => Act::CreateGroup { place: field!(place) },
            Kind::RemoveGroup => Act::RemoveGroup { place: field!(place) },
            Kind::EnableControllers => Act::EnableControllers { place: field!(place), names: field!(names) },
            Kind::DisableControllers => {
                Act::DisableControllers { place: field!(place), names: field!(names) }
            }
            Kind::Write => Act::Write { place: field!(place), file: field!(file), text: field!(text) },
            Kind::WriteDropIn => Act::WriteDropIn {
                place: field!(place),
                unit: field!(unit),
                path: field!(path),
                text: line.text,
            },
            Kind::SetKnob => {
                Act::SetKnob { knob: field!(knob), instance: field!(instance), text: field!(text) }
            }
            Kind::SetDevices => {
                Act::SetDevices { place: field!(place), setting: field!(setting), rule: field!(rule) }
            }
            Kind::RestoreDevices => Act::RestoreDevices { place: field!(place), rules: line.rules },
            Kind::SetOwnership => Act::SetOwnership { place: field!(place), access: field!(access) },
            Kind::RestoreOwners => Act::RestoreOwners { place: field!(place), owners: field!(owners) },
            Kind::MoveTasksAway => {
                Act::MoveTasksAway { place: field!(place), cpus: field!(cpus), to: field!(to) }
            }
            Kind::RestoreAffinities => {
                Act::RestoreAffinities { place: field!(place), threads: field!(threads) }
            }
            Kind::MoveTasks => Act::MoveTasks { place: field!(place), tasks: field!(tasks) },
            Kind::ReturnTasks => Act::ReturnTasks { place: field!(place), tasks: field!(tasks) },
            Kind::Refill => Act::Refill { place: field!(place), files: field!(files) },
            Kind::InheritSet => Act::InheritSet { place: field!(place), file: field!(file) },
        };
        let Line { group, why, restores, before, .. } = line;
        Ok(Entry { group, act, why, restores, before })
    }
}

/// The fields of every kind of mark that is no number alone.
#[derive(Deserialize)]
struct Fields {
    step: Option<usize>,
    affinity: Option<Affinity>,
    /// `held` in formats before 3.
    #[serde(alias = "held")]
    actual: Option<String>,
    was: Option<String>,
    hierarchy: Option<usize>,
    file: Option<String>,
    fresh: Option<String>,
    made: Option<u64>,
    moved: Option<Outsider>,
    result: Option<End>,
}

impl Fields {
    fn mark(self) -> Option<Mark> {
        let Some(step) = self.step else {
            return match self {
                Fields { hierarchy: Some(hierarchy), file: Some(file), fresh: Some(fresh), .. } => {
                    Some(Mark::Fresh { hierarchy, file, fresh })
                }
                Fields { result: Some(result), .. } => Some(Mark::End { result }),
                _ => None,
            };
        };
        match self {
            Fields { affinity: Some(affinity), .. } => Some(Mark::Thread { step, affinity }),
            Fields { actual: Some(actual), .. } => Some(Mark::ReadBack { step, actual }),
            Fields { was: Some(was), .. } => Some(Mark::Was { step, was }),
            Fields { made: Some(made), .. } => Some(Mark::Made { step, made }),
            Fields { moved: Some(moved), .. } => Some(Mark::Moved { step, moved }),
            _ => None,
        }
    }
}

impl<'de> Deserialize<'de> for Mark {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Mark, D::Error> {
        struct Marks;

        impl<'de> Visitor<'de> for Marks {
            type Value = Mark;

            fn expecting(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                to.write_str("a mark")
            }

            fn visit_i64<E: Error>(self, step: i64) -> Result<Mark, E> {
                Ok(Mark::Step(step))
            }

            fn visit_u64<E: Error>(self, step: u64) -> Result<Mark, E> {
                i64::try_from(step).map(Mark::Step).map_err(E::custom)
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Mark, A::Error> {
                let fields = Fields::deserialize(MapAccessDeserializer::new(map))?;
                fields.mark().ok_or_else(|| A::Error::custom("it is no mark"))
            }
        }

        from.deserialize_any(Marks)
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
        let (controllers, names) = (vec![word()], vec![word(), word()]);
        let owners = vec![(None, owned), (Some(word()), owned)];
        let access = Ownership { tasks_uid: Some(4), ..Ownership::default() };
        let acts = [
            Act::Mount { controllers: controllers.clone(), name: Some(word()), path: "/mnt".into() },
            Act::Mount { controllers: controllers.clone(), name: None, path: "/mnt".into() },
            Act::Unmount { controllers, name: None, path: "/mnt".into() },
            Act::CreateGroup { place: place() },
            Act::RemoveGroup { place: place() },
            Act::EnableControllers { place: place(), names: names.clone() },
            Act::DisableControllers { place: place(), names },
            Act::Write { place: place(), file: word(), text: word() },
            Act::WriteDropIn { place: place(), unit: word(), path: "/etc/x".into(), text: Some(word()) },
            Act::WriteDropIn { place: place(), unit: word(), path: "/etc/x".into(), text: None },
            Act::SetKnob { knob: word(), instance: knobs::Instance::File(word()), text: word() },
            Act::SetKnob {
                knob: word(),
                instance: knobs::Instance::Thread { thread: 7, started: 8, comm: word() },
                text: word(),
            },
            Act::SetDevices { place: place(), setting: word(), rule: word() },
            Act::RestoreDevices { place: place(), rules: None },
            Act::RestoreDevices { place: place(), rules: Some(word()) },
            Act::SetOwnership { place: place(), access },
            Act::RestoreOwners { place: place(), owners },
            Act::MoveTasksAway { place: place(), cpus: cpus(), to: cpus() },
            Act::RestoreAffinities { place: place(), threads: vec![thread()] },
            Act::MoveTasks { place: place(), tasks: vec![task()] },
            Act::ReturnTasks { place: place(), tasks: vec![task()] },
            Act::Refill { place: place(), files: vec![(word(), word())] },
            Act::InheritSet { place: place(), file: word() },
        ];
        for act in acts {
            let entry = Entry { group: word(), act, why: word(), restores: true, before: Before::New };
            let text = serde_json::to_string(&entry).unwrap();
            assert_eq!(serde_json::from_str::<Entry>(&text).unwrap(), entry, "{text}");
        }
    }

    #[test]
    fn every_mark_is_read_as_it_was_written() {
        let word = || "a \"word\"\n".to_owned();
        let affinity = Affinity { thread: 7, started: 8, cpus: CpuSet::new(), instead: None };
        let marks = [
            Mark::Step(0),
            Mark::Step(i64::MAX),
            Mark::Step(i64::MIN),
            Mark::Thread { step: 1, affinity },
            Mark::ReadBack { step: 1, actual: word() },
            Mark::Was { step: 1, was: word() },
            Mark::Fresh { hierarchy: 1, file: word(), fresh: word() },
            Mark::Made { step: 1, made: u64::MAX },
            Mark::Moved { step: 1, moved: Outsider { thread: 7, started: 8, from: word() } },
        ];
        for mark in marks {
            let text = serde_json::to_string(&mark).unwrap();
            assert_eq!(serde_json::from_str::<Mark>(&text).unwrap(), mark, "{text}");
        }
        let before_3 = serde_json::from_str::<Mark>(r#"{"step":1,"held":"x"}"#).unwrap();
        assert_eq!(before_3, Mark::ReadBack { step: 1, actual: "x".to_owned() });
        for wrong in [r#"{"step":1}"#, r#"{"hierarchy":1,"file":"x"}"#, "{}", "18446744073709551615", "\"x\""]
        {
            assert!(serde_json::from_str::<Mark>(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_step_without_its_field_is_none() {
        let text = r#"{"group":"a","do":"write","why":"x","file":"f","text":"t"}"#;
        let error = serde_json::from_str::<Entry>(text).unwrap_err().to_string();
        assert!(error.contains("missing field `place`"), "{error}");
    }
}
