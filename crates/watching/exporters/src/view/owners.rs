//! Who has which CPU. A CPU is the group's that is deepest among those that have it and not all others too.

use std::collections::BTreeMap;

use kernel::{GroupName, Host};
use monitor::Sample;
use units::{CpuSet, group_path};

/// The CPUs that each group of a sample may use now, and whether it is a partition.
pub fn allowed(host: &Host, sample: &Sample) -> Vec<(String, CpuSet, bool)> {
    let effective = settings::lookup("cpuset.cpus.effective");
    let one = |group: &String| {
        let name = GroupName::new(group).ok()?;
        let reading = apply::get(host, &name, effective.as_ref()?).ok()?;
        let cpus = match reading.value {
            settings::Value::Cpus(cpus) => cpus,
            _ => return None,
        };
        let is_partition = sample.groups.get(group, "cpuset.partition").at() == Some(1);
        Some((group.clone(), cpus, is_partition))
    };
    sample.groups.rows().iter().filter_map(one).collect()
}

/// A group that has CPUs of its own, or shares fewer than all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// Its name.
    pub group: String,
    /// Its CPUs.
    pub cpus: CpuSet,
    /// Has nobody else these CPUs?
    pub is_exclusive: bool,
}

/// Who has which CPU.
#[derive(Debug, Clone, Default)]
pub struct Owners {
    /// The groups.
    pub list: Vec<Owner>,
    /// The owners of each CPU that are deepest, as places in the list.
    of: BTreeMap<usize, Vec<usize>>,
}

/// What a CPU is marked by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cell {
    /// Every group may use it.
    Nobodys,
    /// This one of the list has it.
    One(usize),
    /// Several have it that are not below each other.
    Several,
}

impl Owners {
    /// `groups`: the CPUs that each may use now, and whether they are a partition; `all`: the machine's.
    pub fn new(groups: Vec<(String, CpuSet, bool)>, all: &CpuSet) -> Owners {
        let sets: BTreeMap<&str, &CpuSet> =
            groups.iter().map(|(group, cpus, _)| (group.as_str(), cpus)).collect();
        let above =
            |group: &str| group_path::branch(group).skip(1).find_map(|above| sets.get(above).copied());
        let narrower = |(group, cpus, is_exclusive): &(String, CpuSet, bool)| {
            let of_above = above(group).unwrap_or(all);
            let is_own = !cpus.is_empty() && (*is_exclusive || cpus != of_above) && cpus != all;
            is_own.then(|| Owner { group: group.clone(), cpus: cpus.clone(), is_exclusive: *is_exclusive })
        };
        let list: Vec<Owner> = groups.iter().filter_map(narrower).collect();
        let mut of: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (place, owner) in list.iter().enumerate() {
            for cpu in owner.cpus.iter() {
                let owners = of.entry(cpu).or_default();
                // groups come after those that hold them
                owners.retain(|other| !group_path::is_below(&owner.group, &list[*other].group));
                owners.push(place);
            }
        }
        Owners { list, of }
    }

    /// Whose a CPU is.
    pub fn cell(&self, cpu: usize) -> Cell {
        match self.owners_of(cpu) {
            [] => Cell::Nobodys,
            [one] => Cell::One(*one),
            _ => Cell::Several,
        }
    }

    /// The owners of a CPU that are deepest, as places in the list.
    pub fn owners_of(&self, cpu: usize) -> &[usize] {
        self.of.get(&cpu).map_or(&[], Vec::as_slice)
    }

    /// The CPUs of a group that has fewer than all, or of the nearest above it that has.
    pub fn cpus_of(&self, group: &str) -> Option<&CpuSet> {
        let owner = |name: &str| self.list.iter().find(|owner| owner.group == name);
        group_path::branch(group).find_map(owner).map(|owner| &owner.cpus)
    }

    /// All that have a CPU, those above included.
    pub fn all_of(&self, cpu: usize) -> impl Iterator<Item = &Owner> {
        self.list.iter().filter(move |owner| owner.cpus.contains(cpu))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owners(groups: &[(&str, &str, bool)]) -> Owners {
        let one =
            |(group, cpus, alone): &(&str, &str, bool)| ((*group).to_owned(), cpus.parse().unwrap(), *alone);
        Owners::new(groups.iter().map(one).collect(), &"0-7".parse().unwrap())
    }

    #[test]
    fn a_cpu_is_the_deepest_groups_that_has_fewer_than_all() {
        let owners = owners(&[
            ("/", "0-7", false),
            ("db", "0-5", false),
            ("db/a", "0-1", false),
            ("db/b", "2-3", true),
            ("db/inherits", "0-5", false),
            ("web", "5-6", false),
        ]);
        let cells: Vec<Cell> = (0..8).map(|cpu| owners.cell(cpu)).collect();
        let (db, a, b, web) = (Cell::One(0), Cell::One(1), Cell::One(2), Cell::One(3));
        assert_eq!(cells, [a, a, b, b, db, Cell::Several, web, Cell::Nobodys]);
        assert_eq!(
            owners.list.iter().map(|owner| owner.is_exclusive).collect::<Vec<_>>(),
            [false, false, true, false]
        );
        let of_5: Vec<&str> = owners.all_of(5).map(|owner| owner.group.as_str()).collect();
        assert_eq!(of_5, ["db", "web"]);
    }
}
