//! What the fake kernel remembers: hierarchies with their groups, and tasks. The questions that several
//! controllers ask of it are answered here; what a file does is the controllers' part.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use rustix::io::Errno;
use settings::{Controller, Version};
use units::{CpuSet, group_path};

use kernel::{Hierarchy, Process};

/// Everything behind one fake's lock.
#[derive(Debug, Clone)]
pub(super) struct State {
    /// The files of groups, by version.
    pub tables: fn(Version) -> &'static [&'static [File]],
    pub trees: Vec<Tree>,
    /// Processes and threads by number, zombies not among them.
    pub tasks: BTreeMap<u32, Task>,
    /// The highest number in use.
    pub last_pid: u32,
    /// The last inode number that a group got.
    pub last_inode: u64,
    /// The caller's process and effective user.
    pub caller: (u32, u32),
    /// CPUs that the machine has; those that are off are not in `online`.
    pub cpus: usize,
    pub online: CpuSet,
    pub nodes: CpuSet,
    /// Files outside cgroupfs.
    pub outside: BTreeMap<PathBuf, String>,
    /// Was it built with CONFIG_RT_GROUP_SCHED?
    pub realtime: bool,
    /// Does it have `cpuset.cpus.exclusive` (Linux 6.7)?
    pub exclusive: bool,
    /// Does a partition stay one whatever its siblings list, and may a cpuset with tasks be emptied (Linux 7.0)?
    pub firm: bool,
    /// Processes that still fork when they are looked at, and how often.
    pub storms: Vec<(u32, usize)>,
}

/// A hierarchy with its groups by path, "" for the root: parents come before their children.
#[derive(Debug, Clone)]
pub(super) struct Tree {
    pub at: Hierarchy,
    pub groups: BTreeMap<String, Group>,
}

/// Owner and permission bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Owner {
    pub uid: u32,
    pub gid: u32,
    pub mode: u32,
}

#[derive(Debug, Clone)]
pub(super) struct Group {
    /// Of the directory.
    pub owner: Owner,
    pub inode: u64,
    /// User and group that made it.
    pub maker: (u32, u32),
    /// Owner and mode of the files where they were changed.
    pub files: BTreeMap<&'static str, Owner>,
    /// What was written; a file that is not here has its initial text.
    pub values: BTreeMap<&'static str, String>,
}

#[derive(Debug, Clone)]
pub(super) struct Task {
    pub process: Process,
    /// The group in each tree.
    pub groups: Vec<String>,
    /// Memory in use: where it was charged (which a later move does not change), in bytes.
    pub charges: Vec<(Place, u64)>,
    /// In an uninterruptible wait: it can't be frozen.
    pub stuck: bool,
    /// Killed while a v1 freezer had stopped it: it ends when it is thawed.
    pub doomed: bool,
}

/// A group: the tree's number and the path in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub tree: usize,
    pub group: String,
}

impl Place {
    pub fn new(tree: usize, group: impl Into<String>) -> Place {
        Place { tree, group: group.into() }
    }

    pub fn is_root(&self) -> bool {
        self.group.is_empty()
    }

    pub fn parent(&self) -> Option<Place> {
        let parent = group_path::parent(&self.group)?;
        Some(Place::new(self.tree, parent))
    }

    /// The parent, its parent and so on up to the root.
    pub fn ancestors(&self) -> impl Iterator<Item = Place> + use<> {
        std::iter::successors(self.parent(), Place::parent)
    }

    /// The group itself and its ancestors.
    pub fn upward(&self) -> impl Iterator<Item = Place> + use<> {
        std::iter::once(self.clone()).chain(self.ancestors())
    }

    /// Is `other` this group or below it?
    pub fn holds(&self, other: &Place) -> bool {
        self.tree == other.tree && group_path::is_at_or_below(&other.group, &self.group)
    }
}

/// What one write to a task file moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// The process with all its threads.
    Process,
    /// The one thread.
    Thread,
}

pub(super) type Read = fn(&State, &Place, &'static File) -> Result<String, Errno>;
pub(super) type Write = fn(&mut State, &Place, &'static File, &str) -> Result<(), Errno>;

/// Which groups have the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Where {
    Everywhere,
    BelowRoot,
    RootOnly,
}

/// A row of a table.
#[derive(Debug)]
pub(super) struct File {
    pub name: &'static str,
    pub controller: Controller,
    pub place: Where,
    /// What it holds in a new group, without the newline at its end.
    pub initial: &'static str,
    pub mode: u32,
    pub read: Option<Read>,
    pub write: Option<Write>,
    /// Whether this kernel has it.
    pub built: fn(&State) -> bool,
    /// It only shows what the kernel counted.
    pub counter: bool,
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

/// The line that a file holds.
fn line(state: &State, place: &Place, file: &'static File) -> Result<String, Errno> {
    Ok(format!("{}\n", state.value(place, file.name)))
}

impl State {
    pub fn version(&self, place: &Place) -> Version {
        self.trees[place.tree].at.version
    }

    pub fn group(&self, place: &Place) -> Option<&Group> {
        self.trees[place.tree].groups.get(&place.group)
    }

    pub fn group_mut(&mut self, place: &Place) -> Option<&mut Group> {
        self.trees[place.tree].groups.get_mut(&place.group)
    }

    /// All groups below `place`, parents before children.
    pub fn descendants(&self, place: &Place) -> Vec<Place> {
        let groups = self.trees[place.tree].groups.keys();
        groups
            .filter(|path| group_path::is_below(path, &place.group))
            .map(|path| Place::new(place.tree, path.clone()))
            .collect()
    }

    pub fn children(&self, place: &Place) -> Vec<Place> {
        let mut children = self.descendants(place);
        children.retain(|child| child.parent().as_ref() == Some(place));
        children
    }

    pub fn siblings(&self, place: &Place) -> Vec<Place> {
        let mut siblings = place.parent().map(|parent| self.children(&parent)).unwrap_or_default();
        siblings.retain(|sibling| sibling != place);
        siblings
    }

    /// The files that a group may have.
    pub fn table(&self, place: &Place) -> impl Iterator<Item = &'static File> + use<> {
        (self.tables)(self.version(place)).iter().copied().flatten()
    }

    /// What a file of that name holds in a new group.
    pub fn initial(&self, place: &Place, name: &str) -> Option<&'static str> {
        self.table(place).find(|file| file.name == name).map(|file| file.initial)
    }

    /// What a file holds, without the newline at its end.
    pub fn value(&self, place: &Place, file: &str) -> &str {
        let written = self.group(place).and_then(|group| group.values.get(file));
        written.map(String::as_str).or_else(|| self.initial(place, file)).unwrap_or_default()
    }

    /// A file's number; 0 if it holds none.
    pub fn number(&self, place: &Place, file: &str) -> i64 {
        self.value(place, file).parse().unwrap_or(0)
    }

    pub fn flag(&self, place: &Place, file: &str) -> bool {
        self.value(place, file) == "1"
    }

    pub fn set(&mut self, place: &Place, file: &'static str, text: impl Into<String>) {
        if let Some(group) = self.group_mut(place) {
            group.values.insert(file, text.into());
        }
    }

    /// The threads in a group itself, ascending.
    pub fn threads_in(&self, place: &Place) -> Vec<u32> {
        let here = |task: &Task| task.groups[place.tree] == place.group;
        self.tasks.iter().filter(|(_, task)| here(task)).map(|(pid, _)| *pid).collect()
    }

    /// The threads of a group and of all below it.
    pub fn threads_below(&self, place: &Place) -> Vec<u32> {
        let here = |task: &Task| group_path::is_at_or_below(&task.groups[place.tree], &place.group);
        self.tasks.iter().filter(|(_, task)| here(task)).map(|(pid, _)| *pid).collect()
    }

    pub fn is_populated(&self, place: &Place) -> bool {
        self.tasks.values().any(|task| group_path::is_at_or_below(&task.groups[place.tree], &place.group))
    }

    pub fn place_of(&self, pid: u32, tree: usize) -> Option<Place> {
        self.tasks.get(&pid).map(|task| Place::new(tree, task.groups[tree].clone()))
    }

    pub fn set_outside(&mut self, path: impl AsRef<Path>, text: impl Into<String>) {
        self.outside.insert(path.as_ref().to_owned(), text.into());
    }
}
