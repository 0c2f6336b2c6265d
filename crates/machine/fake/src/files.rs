//! The way every read and write of a group's file goes: is it there, may the caller, what does it do. A file that is in
//! no table does not exist.

use rustix::io::Errno;
use settings::{Controller, Version};

use crate::state::{File, Group, Owner, Place, State, Where};

/// Permission bits.
const READ: u32 = 0o4;
const WRITE: u32 = 0o2;

/// Is it there, and does it show what somebody set rather than what the kernel counted?
pub(super) fn is_set(state: &State, place: &Place, name: &str) -> bool {
    find(state, place, name).is_some_and(|file| !file.counter)
}

/// Does a controller divide the group's resources (on v2: did the parent enable it)?
pub(super) fn has_controller(state: &State, place: &Place, controller: Controller) -> bool {
    let tree = &state.trees[place.tree].at;
    match (tree.version, place.parent()) {
        _ if controller == Controller::Core => true,
        (Version::V2, Some(parent)) => enables(state, &parent, controller),
        _ => tree.controllers.contains(&controller),
    }
}

fn is_there(state: &State, place: &Place, file: &File) -> bool {
    let here = match file.place {
        Where::Everywhere => true,
        Where::BelowRoot => !place.is_root(),
        Where::RootOnly => place.is_root(),
    };
    here && (file.built)(state) && has_controller(state, place, file.controller)
}

/// The file of that name in a group.
pub(super) fn find(state: &State, place: &Place, name: &str) -> Option<&'static File> {
    state.table(place).find(|file| file.name == name && is_there(state, place, file))
}

/// The names of a group's files, sorted.
pub(super) fn names(state: &State, place: &Place) -> Vec<String> {
    let here = state.table(place).filter(|file| is_there(state, place, file));
    let mut names: Vec<String> = here.map(|file| file.name.to_owned()).collect();
    names.sort();
    names
}

/// Owner and mode of a file.
pub(super) fn owner(state: &State, place: &Place, file: &File) -> Option<Owner> {
    let group = state.group(place)?;
    Some(group.files.get(file.name).copied().unwrap_or_else(|| owner_at_first(group, file)))
}

/// The files of a group belong to the user who made it, also after its directory was given away.
pub(super) fn owner_at_first(group: &Group, file: &File) -> Owner {
    let (uid, gid) = group.maker;
    Owner { uid, gid, mode: file.mode }
}

pub(super) fn read(state: &State, place: &Place, name: &str) -> Result<String, Errno> {
    let file = open(state, place, name, READ)?;
    match file.read {
        Some(read) => read(state, place, file),
        None => Err(Errno::INVAL),
    }
}

pub(super) fn write(state: &mut State, place: &Place, name: &str, text: &str) -> Result<(), Errno> {
    let file = open(state, place, name, WRITE)?;
    match file.write {
        _ if text.is_empty() => Ok(()), // a write of no bytes reaches no file
        Some(write) => write(state, place, file, text),
        None => Err(Errno::INVAL),
    }
}

fn open(state: &State, place: &Place, name: &str, bit: u32) -> Result<&'static File, Errno> {
    state.may_enter(place)?;
    let file = find(state, place, name).ok_or(Errno::NOENT)?;
    let owner = owner(state, place, file).ok_or(Errno::NOENT)?;
    if !owner.allows(state.caller.1, bit) {
        return Err(Errno::ACCESS);
    }
    if bit == WRITE {
        state.is_writable(place)?;
    }
    Ok(file)
}

/// Does the group hand the controller to its children?
pub(super) fn enables(state: &State, place: &Place, controller: Controller) -> bool {
    // requested every file of every group: without a list of all
    let value = state.group(place).and_then(|group| group.values.get("cgroup.subtree_control"));
    let is_on = |name| value.is_some_and(|value| value.split(' ').any(|word| word == name));
    controller.name(Version::V2).is_some_and(is_on)
}
