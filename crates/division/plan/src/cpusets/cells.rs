//! The cpuset hierarchy as the cells that a sequence is found for: the root, the groups above ours, our own, and those
//! beside and below them that no layout names, which stay as they are but may be in the way.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use settings::Version;
use units::{CpuSet, group_path};

use crate::{
    Observed, Place, SeenGroup, SeenHierarchy,
    cpuset_files::{CPUS, EXCLUSIVE, ISOLATED, MEMS, PARTITION},
    resolve::{Landscape, Resolved},
    sequence::{Cell, Flag},
    tree::{Branch, Exclusive, Tree, list},
};

/// Which of the two kinds of sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lane {
    Cpus,
    Mems,
}

impl Lane {
    pub(super) fn file(self) -> &'static str {
        match self {
            Lane::Cpus => CPUS,
            Lane::Mems => MEMS,
        }
    }

    /// The file that makes them exclusive; v2 has none for memory nodes.
    pub(super) fn flag_file(self, version: Version) -> Option<&'static str> {
        match (self, version) {
            (Lane::Cpus, Version::V1) => Some("cpuset.cpu_exclusive"),
            (Lane::Mems, Version::V1) => Some("cpuset.mem_exclusive"),
            (Lane::Cpus, Version::V2) => Some(PARTITION),
            (Lane::Mems, Version::V2) => None,
        }
    }
}

const CLONE: &str = "cgroup.clone_children";

/// A directory that a cell stands for.
#[derive(Debug)]
pub(super) struct Seat {
    pub place: Place,
    pub parent: Option<usize>,
    /// Which branch of the tree it is; `None` for what the layout does not name.
    pub branch: Option<usize>,
    /// Its files that were seen.
    pub files: BTreeMap<String, String>,
    /// [`EXCLUSIVE`] now.
    pub named: CpuSet,
}

/// All directories of the hierarchy that matter; parents before their children.
#[derive(Debug)]
pub(super) struct Field {
    pub version: Version,
    /// Does the kernel have [`EXCLUSIVE`]?
    pub names_exclusive: bool,
    pub seats: Vec<Seat>,
    all_cpus: CpuSet,
    all_nodes: CpuSet,
}

impl Field {
    /// `None` if no group needs a cpuset.
    pub(super) fn new(land: &Landscape, tree: &Tree<'_>, observed: &Observed) -> Option<Field> {
        let first = tree.branches.first()?;
        let at = observed.hierarchies.get(first.place.hierarchy)?;
        let ours: HashMap<&str, usize> = tree
            .branches
            .iter()
            .enumerate()
            .map(|(index, branch)| (branch.place.path.as_str(), index))
            .collect();
        let mut paths: BTreeSet<Vec<&str>> = BTreeSet::from([Vec::new()]);
        for path in ours.keys().copied().chain(beside(at, &ours)) {
            let parts: Vec<&str> = group_path::names(path).collect();
            (1..=parts.len()).for_each(|count| {
                paths.insert(parts[..count].to_vec());
            });
        }
        let mut seats: Vec<Seat> = Vec::with_capacity(paths.len());
        let mut by_path: HashMap<String, usize> = HashMap::new();
        for parts in paths {
            let path = parts.join("/");
            let parent = match parts.split_last() {
                None => None,
                Some((_, [])) => Some(0),
                Some((_, above)) => by_path.get(&above.join("/")).copied(),
            };
            let branch = ours.get(path.as_str()).copied();
            by_path.insert(path.clone(), seats.len());
            let seen = at.groups.get(&path);
            let (files, named) =
                (seen.map(|seen| seen.files.clone()).unwrap_or_default(), list(seen, EXCLUSIVE));
            seats.push(Seat { place: Place { path, ..first.place.clone() }, parent, branch, files, named });
        }
        let has = |file: &str| at.groups.values().any(|group| group.files.contains_key(file));
        Some(Field {
            version: at.version,
            names_exclusive: at.version == Version::V2 && (has(EXCLUSIVE) || has(ISOLATED)),
            seats,
            all_cpus: land.online.clone(),
            all_nodes: land.with_memory.iter().collect(),
        })
    }

    /// The cells of one lane, as they are and as they are to be.
    pub(super) fn cells(
        &self,
        lane: Lane,
        tree: &Tree<'_>,
        resolved: &Resolved,
        observed: &Observed,
    ) -> Vec<Cell> {
        let mut cells: Vec<Cell> = Vec::with_capacity(self.seats.len());
        for (index, seat) in self.seats.iter().enumerate() {
            let seen = observed.group(&seat.place);
            let branch = seat.branch.map(|branch| &tree.branches[branch]);
            let goal = seat.branch.and_then(|branch| match lane {
                Lane::Cpus => resolved.sets[branch].cpus.clone(),
                Lane::Mems => resolved.sets[branch].mems.as_ref().map(|mems| mems.iter().collect()),
            });
            let cell = match seat.parent {
                None => self.root(lane, &seat.place, seen, observed),
                Some(parent) => Cell {
                    parent: Some(parent),
                    now: match seen {
                        Some(_) => list(seen, lane.file()),
                        None => self.cloned(index, parent, &cells, observed),
                    },
                    goal,
                    flag: self.flag(lane, seen),
                    goal_flag: branch.and_then(|branch| self.goal_flag(lane, index, branch, seen)),
                    tasks: seen.is_some_and(|seen| seen.tasks > 0),
                    populated: seen.is_some_and(|seen| seen.tasks > 0 || seen.populated_below),
                },
            };
            cells.push(cell);
        }
        cells
    }

    /// The hierarchy's root has everything; what a mount shows as its root may be less.
    fn root(&self, lane: Lane, place: &Place, seen: Option<&SeenGroup>, observed: &Observed) -> Cell {
        let shown = match self.version {
            Version::V1 => lane.file().to_owned(),
            Version::V2 => format!("{}.effective", lane.file()),
        };
        let shown: CpuSet = list(seen, &shown);
        let all = match lane {
            Lane::Cpus => &self.all_cpus,
            Lane::Mems => &self.all_nodes,
        };
        // the kernel's root takes what partitions have from its own effective list
        let whole = observed.file(place, "cpuset.cpus.partition").is_none();
        let now = if shown.is_empty() || whole { all.union(&shown) } else { shown };
        Cell { parent: None, now, goal: None, flag: Flag::On, goal_flag: None, tasks: true, populated: true }
    }

    /// What a group that is yet to be made starts with (`cgroup.clone_children` of v1).
    fn cloned(&self, index: usize, parent: usize, cells: &[Cell], observed: &Observed) -> CpuSet {
        let clones = std::iter::successors(Some(parent), |seat| self.seats[*seat].parent)
            .find_map(|seat| observed.file(&self.seats[seat].place, CLONE))
            .is_some_and(|text| text.trim() == "1");
        let alone = self
            .seats
            .iter()
            .take(index)
            .zip(cells)
            .all(|(seat, cell)| seat.parent != Some(parent) || !cell.flag.holds());
        if self.version == Version::V1 && clones && alone { cells[parent].now.clone() } else { CpuSet::new() }
    }

    fn flag(&self, lane: Lane, seen: Option<&SeenGroup>) -> Flag {
        let text =
            lane.flag_file(self.version).and_then(|file| seen?.files.get(file)).map(|text| text.trim());
        match text {
            Some("1" | "root") => Flag::On,
            Some("isolated") => Flag::Isolated,
            Some(text) if settings::partition(text).1.is_some() => Flag::Invalid,
            _ => Flag::Off,
        }
    }

    fn goal_flag(
        &self,
        lane: Lane,
        index: usize,
        branch: &Branch<'_>,
        seen: Option<&SeenGroup>,
    ) -> Option<Flag> {
        if lane == Lane::Mems {
            return mem_exclusive(branch).filter(|_| self.version == Version::V1);
        }
        let foreign = |seat: &Seat| seat.parent == Some(index) && seat.branch.is_none();
        match branch.exclusive {
            Exclusive::Isolated if self.version == Version::V2 => Some(Flag::Isolated),
            Exclusive::Root | Exclusive::Isolated => Some(Flag::On),
            // a partition of another one needs no more than every kernel with partitions has
            Exclusive::No if branch.holds_exclusive => Some(Flag::On),
            Exclusive::No if let Some(on) = branch.flag => Some(if on { Flag::On } else { Flag::Off }),
            Exclusive::No => {
                let ours = seen.is_some_and(|seen| seen.exclusive_by_layouts);
                let is_shared = match branch.demands() {
                    Some(demands) => demands.cpus.is_some(),
                    // a part of a name: only if the groups below it are all ours
                    None => !self.seats.iter().any(foreign),
                };
                (ours || is_shared).then_some(Flag::Off)
            }
        }
    }
}

/// Groups that were seen directly beside or below ours.
fn beside<'o>(at: &'o SeenHierarchy, ours: &HashMap<&str, usize>) -> impl Iterator<Item = &'o str> {
    let above = |path: &str| group_path::parent(path).unwrap_or_default().to_owned();
    let parents: BTreeSet<String> =
        ours.keys().map(|path| above(path)).chain(ours.keys().map(|path| (*path).to_owned())).collect();
    let groups = at.groups.keys().filter(|path| !path.is_empty());
    groups.filter(move |path| parents.contains(&above(path))).map(String::as_str)
}

/// What the layout says of v1's `cpuset.mem_exclusive`.
fn mem_exclusive(branch: &Branch<'_>) -> Option<Flag> {
    branch.mem_flag().map(|on| if on { Flag::On } else { Flag::Off })
}
