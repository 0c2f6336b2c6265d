//! Which directories the groups that follow their load had at the end of the last generation: one that somebody removed and made
//! again is not what the layout made, and nothing is written to it before the next apply.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{ErrorKind, Read},
    path::PathBuf,
};

use kernel::{GroupName, Host};
use serde::{Deserialize, Serialize};
use settings::NamedSetting;

use crate::{
    Error, Failure, Head, Kind, Lock, State,
    reading::{content, place},
    resizes::{resizing, write_whole},
    state::{failed, open},
};

const FILE: &str = "directories.json";

/// What is where a group of the layout was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// The directory of then, or a unit's, which comes and goes with its processes.
    There,
    /// No directory, or none that has the setting.
    Gone,
    /// A directory that somebody made since.
    Remade,
}

/// The directories of a layout's groups.
#[derive(Debug, Default)]
pub(crate) struct Directories {
    noted: Noted,
    /// Groups of units.
    units: BTreeSet<String>,
}

#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
struct Noted {
    /// Behind it nothing but single settings changed.
    generation: u32,
    /// Inode numbers by setting and group: on v1 a group has several directories.
    inodes: BTreeMap<String, BTreeMap<String, u64>>,
}

impl Directories {
    /// As they were noted at the end of the last generation; as they are where a version that did not note them ended it.
    ///
    /// # Errors
    /// [`Failure::State`].
    pub fn open(lock: &Lock, host: &Host, head: &Head) -> Result<Directories, Failure> {
        let (path, generation) = (path(lock.state()), last_change(lock.state())?);
        let units =
            followed(head).filter(|(.., is_unit)| *is_unit).map(|(group, ..)| group.to_owned()).collect();
        let mut text = String::new();
        match open(&path).and_then(|mut file| file.read_to_string(&mut text)) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(failed("read", &path, &error)),
            _ => {}
        }
        if let Ok(noted) = serde_json::from_str::<Noted>(&text)
            && noted.generation == generation
        {
            return Ok(Directories { noted, units });
        }
        let noted = Noted::look(host, generation, head);
        noted.write(lock)?;
        Ok(Directories { noted, units })
    }

    /// What is where a group was.
    ///
    /// # Errors
    /// The machine has no such setting.
    pub fn presence(&self, host: &Host, group: &GroupName, setting: &str) -> Result<Presence, Error> {
        let Some(inode) = inode(host, group, setting)? else { return Ok(Presence::Gone) };
        let name = group.to_string();
        let noted = self.noted.inodes.get(setting).and_then(|groups| groups.get(&name));
        let is_there = noted == Some(&inode) || self.units.contains(&name);
        Ok(if is_there { Presence::There } else { Presence::Remade })
    }
}

impl Noted {
    fn look(host: &Host, generation: u32, head: &Head) -> Noted {
        let mut inodes: BTreeMap<String, BTreeMap<String, u64>> = BTreeMap::new();
        for (group, setting, _) in followed(head) {
            let Ok(name) = GroupName::new(group) else { continue };
            if let Ok(Some(inode)) = inode(host, &name, setting) {
                inodes.entry(setting.to_owned()).or_default().insert(group.to_owned(), inode);
            }
        }
        Noted { generation, inodes }
    }

    fn write(&self, lock: &Lock) -> Result<(), Failure> {
        write_whole(lock, &path(lock.state()), &serde_json::to_vec(self).unwrap_or_default())
    }
}

/// Notes them for a generation that is about to end: what somebody makes again from then on is not the layout's, however
/// late a process looks that resizes. `is_done`: is the generation in effect from then on?
///
/// # Errors
/// [`Failure::State`].
pub(crate) fn note(lock: &Lock, host: &Host, head: &Head, is_done: bool) -> Result<(), Failure> {
    // single settings make no directory
    if head.kind == Kind::Set {
        return Ok(());
    }
    let in_effect = if is_done { &head.in_effect } else { &head.in_effect_before };
    for &generation in in_effect.iter().rev() {
        let earlier;
        let layout = if generation == head.generation {
            head
        } else if lock.state().is_there(generation) {
            earlier = lock.state().summary(generation)?.head;
            &earlier
        } else {
            continue;
        };
        if layout.layout {
            return match followed(layout).next() {
                Some(_) => Noted::look(host, head.generation, layout).write(lock),
                None => Ok(()),
            };
        }
    }
    Ok(())
}

/// Takes the directories of the layout in effect as they are: an apply found all of them as it wants them. False: nothing of it
/// follows its load.
///
/// # Errors
/// [`Failure::State`].
pub(crate) fn accept(lock: &Lock, host: &Host, layout: &Head) -> Result<bool, Failure> {
    if followed(layout).next().is_none() {
        return Ok(false);
    }
    Noted::look(host, last_change(lock.state())?, layout).write(lock)?;
    Ok(true)
}

fn path(state: &State) -> PathBuf {
    resizing(state).join(FILE)
}

/// The last generation that is more than single settings.
fn last_change(state: &State) -> Result<u32, Failure> {
    for generation in state.finished()?.into_iter().rev() {
        if state.summary(generation)?.head.kind != Kind::Set {
            return Ok(generation);
        }
    }
    Ok(0)
}

/// The groups that follow their load, by the names of their directories, with the setting that does; is it a unit?
fn followed(head: &Head) -> impl Iterator<Item = (&str, &str, bool)> {
    let elastic = head.upkeep.elastic.iter().flat_map(|scope| {
        let is_unit = |one: &policy::Elastic| scope.units.contains_key(&one.name);
        scope.groups.iter().map(move |one| (scope.directory(one), plan::CPUS, is_unit(one)))
    });
    let ranges = head.upkeep.ranges.iter();
    let ranges = ranges.map(|range| (range.directory(), range.setting.as_str(), range.unit.is_some()));
    elastic.chain(ranges)
}

/// The number of the directory that has a group's setting; `None`: there is none.
fn inode(host: &Host, group: &GroupName, setting: &str) -> Result<Option<u64>, Error> {
    let Some(found) = settings::lookup(setting) else { return Ok(None) };
    let place = match place(host, group, &found) {
        Ok(place) => place,
        Err(Error::Kernel(kernel::Error::NoGroup { .. } | kernel::Error::NotControlled { .. })) => {
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    let has = |found: &NamedSetting| {
        found.files(place.version).first().is_some_and(|file| content(host, &place, file).is_some())
    };
    let at = &host.hierarchies()[place.hierarchy];
    Ok(host.kernel().inode(at, &place.path).ok().filter(|_| has(&found)))
}
