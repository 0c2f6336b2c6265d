//! The files of groups: one table per controller and version, and the way every read and write of one goes:
//! is it there, may the caller, what does it do. A file that is in no table does not exist.

use rustix::io::Errno;
use settings::{Controller, Version};

use crate::{
    core_v1, core_v2, cpu, cpuset_v1, cpuset_v2, devices, freezer, io, memory, pids, realtime,
    state::{Group, Owner, Place, State},
};

/// Permission bits.
const READ: u32 = 0o4;
const WRITE: u32 = 0o2;

pub(super) type Read = fn(&State, &Place, &'static File) -> Result<String, Errno>;
pub(super) type Write = fn(&mut State, &Place, &'static File, &str) -> Result<(), Errno>;

/// Which groups have the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Where {
    Everywhere,
    BelowRoot,
    RootOnly,
}

/// A row of a table.
#[derive(Debug)]
pub(super) struct File {
    pub name: &'static str,
    controller: Controller,
    place: Where,
    /// What it holds in a new group, without the newline at its end.
    pub initial: &'static str,
    mode: u32,
    read: Option<Read>,
    write: Option<Write>,
    /// Whether this kernel has it.
    built: fn(&State) -> bool,
    /// It only tells what the kernel counted.
    counter: bool,
}

/// A file below the root that can be read and shows what it holds.
pub(super) const fn file(name: &'static str, controller: Controller, initial: &'static str) -> File {
    File {
        name,
        controller,
        place: Where::BelowRoot,
        initial,
        mode: 0o444,
        read: Some(line),
        write: None,
        built: |_| true,
        counter: true,
    }
}

impl File {
    /// What reading it gives, where that is not just what was written.
    pub const fn reads(mut self, read: Read) -> File {
        self.read = Some(read);
        self.counter = false;
        self
    }

    /// What it reads like comes from what the kernel counted.
    pub const fn counted(mut self) -> File {
        self.counter = true;
        self
    }

    /// What writing it does.
    pub const fn writes(mut self, write: Write) -> File {
        self.write = Some(write);
        self.mode = 0o644;
        self.counter = false;
        self
    }

    /// It exists in real groups and can be read, but what a write does is not modelled: refused loudly.
    pub const fn unmodelled(self) -> File {
        self.writes(|_, _, _, _| Err(Errno::OPNOTSUPP))
    }

    /// Reading is refused.
    pub const fn write_only(mut self) -> File {
        self.read = None;
        self.mode = 0o200;
        self
    }

    /// The root group has it, too.
    pub const fn everywhere(mut self) -> File {
        self.place = Where::Everywhere;
        self
    }

    /// Only some kernels have it.
    pub const fn if_built(mut self, built: fn(&State) -> bool) -> File {
        self.built = built;
        self
    }

    pub fn is_counter(&self) -> bool {
        self.counter
    }

    /// Does every group have it, whatever controllers it has?
    pub fn is_core(&self) -> bool {
        self.controller == Controller::Core
    }

    /// Only the root group has it.
    pub const fn root_only(mut self) -> File {
        self.place = Where::RootOnly;
        self
    }
}

static V1: &[&[File]] = &[
    core_v1::FILES,
    freezer::FILES,
    cpuset_v1::FILES,
    cpu::V1_FILES,
    realtime::FILES,
    memory::V1_FILES,
    pids::FILES,
    io::V1_FILES,
    devices::FILES,
];
static V2: &[&[File]] =
    &[core_v2::FILES, cpuset_v2::FILES, cpu::V2_FILES, memory::V2_FILES, pids::FILES, io::V2_FILES];

fn table(version: Version) -> impl Iterator<Item = &'static File> {
    let tables = match version {
        Version::V1 => V1,
        Version::V2 => V2,
    };
    tables.iter().copied().flatten()
}

/// The line that a file holds.
fn line(state: &State, place: &Place, file: &'static File) -> Result<String, Errno> {
    Ok(format!("{}\n", state.value(place, file.name)))
}

/// What a file of that name holds in a new group.
pub(super) fn initial(state: &State, place: &Place, name: &str) -> Option<&'static str> {
    table(state.version(place)).find(|file| file.name == name).map(|file| file.initial)
}

/// Is it there, and does it show what somebody set rather than what the kernel counted?
pub(super) fn is_set(state: &State, place: &Place, name: &str) -> bool {
    find(state, place, name).is_some_and(|file| !file.counter)
}

/// Does a controller divide the group's resources (on v2: did the parent enable it)?
pub(super) fn has_controller(state: &State, place: &Place, controller: Controller) -> bool {
    let tree = &state.trees[place.tree].at;
    match (tree.version, place.parent()) {
        _ if controller == Controller::Core => true,
        (Version::V2, Some(parent)) => core_v2::enables(state, &parent, controller),
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
    table(state.version(place)).find(|file| file.name == name && is_there(state, place, file))
}

/// The names of a group's files, sorted.
pub(super) fn names(state: &State, place: &Place) -> Vec<String> {
    let here = table(state.version(place)).filter(|file| is_there(state, place, file));
    let mut names: Vec<String> = here.map(|file| file.name.to_owned()).collect();
    names.sort();
    names
}

/// Owner and mode of a file.
pub(super) fn owner(state: &State, place: &Place, file: &File) -> Option<Owner> {
    let group = state.group(place)?;
    Some(group.files.get(file.name).copied().unwrap_or_else(|| owner_at_first(group, file)))
}

/// The files of a group belong to whoever made it, also after its directory was given away.
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
