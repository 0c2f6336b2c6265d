//! v1 cpusets: a group has the CPUs and memory nodes that are written, a subset of its parent's, and takes no
//! task before it has both.

use rustix::io::Errno;
use settings::Controller::Cpuset;
use units::CpuSet;

use crate::{
    core_v1::any_number_as_flag,
    numbers,
    state::{File, Place, State, file},
};

/// Node numbers end here on any machine (`MAX_NUMNODES`).
pub(super) const END_OF_NODES: usize = 1024;

pub(super) const FILES: &[File] = &[
    file("cpuset.cpus", Cpuset, "").everywhere().reads(show).writes(set_list),
    file("cpuset.mems", Cpuset, "").everywhere().reads(show).writes(set_list),
    file("cpuset.effective_cpus", Cpuset, "")
        .everywhere()
        .reads(|state, place, _| Ok(format!("{}\n", set_of(state, place, "cpuset.cpus")))),
    file("cpuset.effective_mems", Cpuset, "")
        .everywhere()
        .reads(|state, place, _| Ok(format!("{}\n", set_of(state, place, "cpuset.mems")))),
    file("cpuset.cpu_exclusive", Cpuset, "0").everywhere().writes(set_exclusive),
    file("cpuset.mem_exclusive", Cpuset, "0").everywhere().writes(set_exclusive),
    file("cpuset.mem_hardwall", Cpuset, "0").everywhere().writes(any_number_as_flag),
    file("cpuset.memory_migrate", Cpuset, "0").everywhere().writes(any_number_as_flag),
    file("cpuset.memory_spread_page", Cpuset, "0").everywhere().writes(any_number_as_flag),
    file("cpuset.memory_spread_slab", Cpuset, "0").everywhere().writes(any_number_as_flag),
    file("cpuset.sched_load_balance", Cpuset, "1").everywhere().writes(any_number_as_flag),
    file("cpuset.sched_relax_domain_level", Cpuset, "-1").everywhere().writes(set_relax_level),
    file("cpuset.memory_pressure", Cpuset, "0").everywhere(),
    file("cpuset.memory_pressure_enabled", Cpuset, "0").root_only().unmodelled(),
];

/// A group's CPUs (or nodes); the root has all that are online.
fn set_of(state: &State, place: &Place, file: &str) -> CpuSet {
    match (place.is_root(), file) {
        (true, "cpuset.cpus") => state.online.clone(),
        (true, _) => state.nodes.clone(),
        (false, _) => state.value(place, file).parse().unwrap_or_default(),
    }
}

fn show(state: &State, place: &Place, file: &'static File) -> Result<String, Errno> {
    Ok(format!("{}\n", set_of(state, place, file.name)))
}

/// Would a task here have no CPU or no memory?
pub(super) fn is_empty(state: &State, place: &Place) -> bool {
    set_of(state, place, "cpuset.cpus").is_empty() || set_of(state, place, "cpuset.mems").is_empty()
}

/// What a group is to become, to be compared with its relatives.
struct Trial {
    sets: [CpuSet; 2],
    exclusive: [bool; 2],
}

const LISTS: [&str; 2] = ["cpuset.cpus", "cpuset.mems"];
const FLAGS: [&str; 2] = ["cpuset.cpu_exclusive", "cpuset.mem_exclusive"];

impl Trial {
    fn now(state: &State, place: &Place) -> Trial {
        Trial {
            sets: LISTS.map(|file| set_of(state, place, file)),
            exclusive: FLAGS.map(|file| state.flag(place, file)),
        }
    }

    /// Is everything that `child` has part of this?
    fn holds(&self, child: &Trial) -> bool {
        (0..2).all(|i| child.sets[i].is_subset(&self.sets[i]) && self.exclusive[i] >= child.exclusive[i])
    }

    /// The kernel's rules in its order: children, parent, siblings, tasks.
    fn check(&self, state: &State, place: &Place) -> Result<(), Errno> {
        if state.children(place).iter().any(|child| !self.holds(&Trial::now(state, child))) {
            return Err(Errno::BUSY);
        }
        let Some(parent) = place.parent() else { return Ok(()) };
        if !(parent.is_root() || Trial::now(state, &parent).holds(self)) {
            return Err(Errno::ACCESS);
        }
        let collides = |sibling: &Place| {
            let other = Trial::now(state, sibling);
            (0..2).any(|i| {
                (self.exclusive[i] || other.exclusive[i]) && !self.sets[i].is_disjoint(&other.sets[i])
            })
        };
        if state.siblings(place).iter().any(collides) {
            return Err(Errno::INVAL);
        }
        let now = Trial::now(state, place);
        let emptied = (0..2).any(|i| self.sets[i].is_empty() && !now.sets[i].is_empty());
        if emptied && state.is_populated(place) { Err(Errno::NOSPC) } else { Ok(()) }
    }
}

fn set_list(state: &mut State, place: &Place, file: &'static File, text: &str) -> Result<(), Errno> {
    if place.is_root() {
        return Err(Errno::ACCESS);
    }
    let (kind, end, possible) = match file.name {
        "cpuset.cpus" => (0, state.cpus, &state.online),
        _ => (1, END_OF_NODES, &state.nodes),
    };
    let set = numbers::list(text, end)?;
    if !set.is_subset(possible) {
        return Err(Errno::INVAL);
    }
    let mut trial = Trial::now(state, place);
    trial.sets[kind] = set.clone();
    trial.check(state, place)?;
    state.set(place, file.name, set.to_string());
    Ok(())
}

fn set_exclusive(state: &mut State, place: &Place, file: &'static File, text: &str) -> Result<(), Errno> {
    let kind = usize::from(file.name != FLAGS[0]);
    let mut trial = Trial::now(state, place);
    trial.exclusive[kind] = numbers::unsigned(text)? != 0;
    trial.check(state, place)?;
    any_number_as_flag(state, place, file, text)
}

/// The largest level depends on the machine's scheduling domains; up to 2 was taken everywhere.
fn set_relax_level(state: &mut State, place: &Place, file: &'static File, text: &str) -> Result<(), Errno> {
    match numbers::signed(text)? {
        level @ -1..=2 => {
            state.set(place, file.name, level.to_string());
            Ok(())
        }
        level if level < -1 => Err(Errno::INVAL),
        _ => Err(Errno::OPNOTSUPP),
    }
}

/// `cgroup.clone_children`: a new group starts with its parent's CPUs and nodes, unless a sibling has some for
/// itself.
pub(super) fn clone_from_parent(state: &mut State, place: &Place, parent: &Place) {
    let alone = |sibling: &Place| FLAGS.iter().all(|flag| !state.flag(sibling, flag));
    if state.flag(parent, "cgroup.clone_children") && state.siblings(place).iter().all(alone) {
        for file in LISTS {
            let set = set_of(state, parent, file).to_string();
            state.set(place, file, set);
        }
    }
}

/// A CPU went off: it is taken out of all groups for good, and tasks that have none left go up to the first
/// ancestor that has.
pub(super) fn drop_cpu(state: &mut State, root: &Place, cpu: usize) {
    for place in state.descendants(root) {
        let mut set = set_of(state, &place, "cpuset.cpus");
        if !set.remove(cpu) {
            continue;
        }
        state.set(&place, "cpuset.cpus", set.to_string());
        if set.is_empty() {
            let refuge =
                place.ancestors().find(|above| !is_empty(state, above)).unwrap_or_else(|| root.clone());
            for pid in state.threads_in(&place) {
                if let Some(task) = state.tasks.get_mut(&pid) {
                    task.groups[place.tree].clone_from(&refuge.group);
                }
            }
        }
    }
}
