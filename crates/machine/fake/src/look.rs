//! What a test reads from the fake kernel at once, which no kernel gives at once: a copy of the whole, everything that
//! was set, who owns what, and what `/proc` shows of a task. Never changes anything.

use std::{
    collections::BTreeMap,
    path::Path,
    sync::{Arc, Mutex},
};

use kernel::Hierarchy;
use rustix::io::Errno;

use crate::{
    Fake, files,
    state::{Group, Owner, Place, State, Task},
};

/// Everything of a group that somebody set: its files that differ from those of a new group, by name, without the
/// newline at their end.
pub type Values = BTreeMap<String, String>;

/// Everything that was set and where every task is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Snapshot {
    /// For each hierarchy its groups by path, "" for the root.
    pub groups: Vec<BTreeMap<String, Values>>,
    /// For each task its group in every hierarchy.
    pub tasks: BTreeMap<u32, Vec<String>>,
}

impl Fake {
    /// A kernel of its own in the same state.
    pub fn copy(&self) -> Fake {
        Fake { state: Arc::new(Mutex::new(self.state().clone())) }
    }

    /// What was set, and where every task is. What the kernel counts is not part of it.
    pub fn snapshot(&self) -> Snapshot {
        let state = self.state();
        let groups = |tree: usize| {
            let paths = state.trees[tree].groups.keys();
            paths.map(|path| (path.clone(), values(&state, &Place::new(tree, path.clone())))).collect()
        };
        Snapshot {
            groups: (0..state.trees.len()).map(groups).collect(),
            tasks: state.tasks.iter().map(|(pid, task)| (*pid, task.groups.clone())).collect(),
        }
    }

    /// User, group and permission bits of a group's directory (`None`) or of one of its files.
    ///
    /// # Errors
    /// `ENOENT` without it.
    pub fn owner(&self, at: &Hierarchy, group: &str, file: Option<&str>) -> Result<(u32, u32, u32), Errno> {
        let (state, place) = (self.state(), Place::new(at.id, group));
        let owner = match file {
            None => state.group(&place).map(|group| group.owner),
            Some(name) => {
                files::find(&state, &place, name).and_then(|file| files::owner(&state, &place, file))
            }
        };
        owner.map(|owner| (owner.uid, owner.gid, owner.mode)).ok_or(Errno::NOENT)
    }
}

fn values(state: &State, place: &Place) -> Values {
    let written = state.group(place).into_iter().flat_map(|group| &group.values);
    let set = written.filter(|(name, text)| {
        files::is_set(state, place, name) && state.initial(place, name) != Some(text.as_str())
    });
    let mut all: Values = set.map(|(name, text)| ((*name).to_owned(), text.clone())).collect();
    // no line is shown for a device without a limit
    all.retain(|name, text| name != "io.max" || text.split(' ').any(|limit| limit != "max"));
    // read, the kernel's order is not that of the writes
    if let Some(text) = all.get_mut("cgroup.subtree_control") {
        let mut names: Vec<&str> = text.split(' ').filter(|name| !name.is_empty()).collect();
        names.sort_unstable();
        *text = names.join(" ");
    }
    all.retain(|name, text| name != "cgroup.subtree_control" || !text.is_empty());
    for (name, owner) in state.group(place).into_iter().flat_map(|group| given(state, place, group)) {
        all.insert(format!("owner of {name}"), format!("{}:{} {:o}", owner.uid, owner.gid, owner.mode));
    }
    all
}

/// Directory (".") and files that do not belong to who made the group, or whose mode was changed.
fn given<'s>(state: &'s State, place: &'s Place, group: &'s Group) -> impl Iterator<Item = (&'s str, Owner)> {
    let (uid, gid) = group.maker;
    let directory = Owner { uid, gid, mode: if place.is_root() { 0o555 } else { 0o755 } };
    let directory = (group.owner != directory).then_some((".", group.owner));
    let file = move |(name, owner): (&&'static str, &Owner)| {
        let file = files::find(state, place, name)?;
        (*owner != files::owner_at_first(group, file)).then_some((*name, *owner))
    };
    directory.into_iter().chain(group.files.iter().filter_map(file))
}

/// `/proc/PID/comm` and `/proc/PID/cgroup`, for tasks as well as processes.
pub(super) fn of_task(state: &State, path: &Path) -> Option<String> {
    let mut parts = path.strip_prefix("/proc").ok()?.iter();
    let task = state.tasks.get(&parts.next()?.to_str()?.parse().ok()?)?;
    match parts.next()?.to_str()? {
        "comm" => Some(format!("{}\n", task.process.comm)),
        "cgroup" => Some(cgroup(state, task)),
        _ => None,
    }
}

/// One line for each hierarchy, the latest mounted first, v2 last, as `0::`.
fn cgroup(state: &State, task: &Task) -> String {
    let line = |tree: usize| {
        let (at, group) = (&state.trees[tree].at, &task.groups[tree]);
        match (at.version, &at.name) {
            (settings::Version::V2, _) => format!("0::/{group}\n"),
            (_, Some(name)) => format!("{}:name={name}:/{group}\n", tree + 1),
            _ => format!("{}:{}:/{group}\n", tree + 1, at.label()),
        }
    };
    let (v2, v1): (Vec<usize>, Vec<usize>) =
        (0..state.trees.len()).partition(|tree| state.trees[*tree].at.version == settings::Version::V2);
    v1.into_iter().rev().chain(v2).map(line).collect()
}
