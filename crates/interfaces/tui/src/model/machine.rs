//! The machine's page: which group has which CPU. A CPU is the group's that is deepest among those that have it and
//! not all others too.

use std::collections::BTreeMap;

use units::{CpuSet, group_path};

/// The machine's page.
#[derive(Debug, Clone, Copy, Default)]
pub struct MachinePage {
    /// Which CPU is selected, counted through the map.
    pub(crate) selected: usize,
}

/// A group that has CPUs of its own, or shares fewer than all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Owner {
    pub group: String,
    pub cpus: CpuSet,
    /// Has nobody else these CPUs?
    pub is_exclusive: bool,
}

/// Who has which CPU.
#[derive(Debug, Clone, Default)]
pub(crate) struct Owners {
    pub list: Vec<Owner>,
    /// The owners of each CPU that are deepest, as places in the list.
    of: BTreeMap<usize, Vec<usize>>,
}

/// What a CPU is marked by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cell {
    /// Every group may use it.
    Nobodys,
    /// This one of the list has it.
    One(usize),
    /// Several have it that are not below each other.
    Several,
}

impl Owners {
    /// `groups`: the CPUs that each may use now, and whether they are a partition; `all`: the machine's.
    pub(crate) fn new(groups: Vec<(String, CpuSet, bool)>, all: &CpuSet) -> Owners {
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

    pub(crate) fn cell(&self, cpu: usize) -> Cell {
        match self.of.get(&cpu).map(Vec::as_slice) {
            None | Some([]) => Cell::Nobodys,
            Some([one]) => Cell::One(*one),
            Some(_) => Cell::Several,
        }
    }

    /// The CPUs of a group that has fewer than all, or of the nearest above it that has.
    pub(crate) fn cpus_of(&self, group: &str) -> Option<&CpuSet> {
        let owner = |name: &str| self.list.iter().find(|owner| owner.group == name);
        group_path::branch(group).find_map(owner).map(|owner| &owner.cpus)
    }

    /// All that have a CPU, those above included.
    pub(crate) fn all_of(&self, cpu: usize) -> impl Iterator<Item = &Owner> {
        self.list.iter().filter(move |owner| owner.cpus.contains(cpu))
    }

    /// A letter for each owner: large for a partition, small for CPUs that others may have too.
    pub(crate) fn letter(&self, place: usize) -> char {
        let letter =
            u8::try_from(place).ok().filter(|place| *place < 26).map(|place| char::from(b'a' + place));
        match (letter, self.list.get(place)) {
            (Some(letter), Some(owner)) if owner.is_exclusive => letter.to_ascii_uppercase(),
            (Some(letter), _) => letter,
            (None, _) => '#',
        }
    }
}

/// Where each CPU is on the map: lines of a node's cores below the node's own line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Map {
    /// Node by node, core by core.
    pub spots: Vec<Spot>,
    /// The nodes' own lines; `None` where the CPU's node is not known.
    pub nodes: Vec<(usize, Option<usize>)>,
    /// How many lines there are.
    pub lines: usize,
    /// Digits of the largest number.
    pub digits: usize,
    /// Every CPU has a line of its own.
    pub is_list: bool,
}

/// So few CPUs have a line each, in words.
const LISTED: usize = 8;

/// A CPU's place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Spot {
    pub cpu: usize,
    pub line: usize,
    pub x: usize,
}

impl Map {
    /// A map of this many columns: a line for each of a few CPUs. Of more, a CPU has its number, a letter, its load and a blank; those of a core stand together.
    pub(crate) fn new(machine: &topology::Machine, width: usize) -> Map {
        let digits = machine.cpus.last().map_or(1, |cpu| cpu.id.to_string().len());
        let is_list = machine.cpus.len() <= LISTED;
        let cell = if is_list { width } else { digits + 3 };
        let mut map = Map { digits, is_list, ..Map::default() };
        for (node, cores) in cores(machine) {
            map.nodes.push((map.lines, node));
            let mut x = 1;
            map.lines += 1;
            let in_a_row = in_a_row(&cores, cell, width);
            for (place, core) in cores.iter().enumerate() {
                if x > 1 && (place.is_multiple_of(in_a_row) || x + core.len() * cell > width) {
                    x = 1;
                    map.lines += 1;
                }
                for cpu in core {
                    // more siblings than fit into a line
                    if x > 1 && x + cell > width {
                        x = 1;
                        map.lines += 1;
                    }
                    map.spots.push(Spot { cpu: *cpu, line: map.lines, x });
                    x += cell;
                }
                x += usize::from(core.len() > 1);
            }
            map.lines += usize::from(!cores.is_empty());
        }
        map
    }

    /// The place of the spot some lines below one, or above it: the one that is nearest to straight.
    pub(crate) fn below(&self, from: usize, lines: isize) -> usize {
        let Some(spot) = self.spots.get(from) else { return 0 };
        let used: Vec<usize> = {
            let mut used: Vec<usize> = self.spots.iter().map(|spot| spot.line).collect();
            used.dedup();
            used
        };
        let row = used.iter().position(|line| *line == spot.line).unwrap_or(0);
        let row = row.saturating_add_signed(lines).min(used.len().saturating_sub(1));
        let candidates = self.spots.iter().enumerate().filter(|(_, other)| other.line == used[row]);
        candidates.min_by_key(|(_, other)| other.x.abs_diff(spot.x)).map_or(from, |(place, _)| place)
    }
}

/// Cores in each row so that all rows of a node are about as long.
fn in_a_row(cores: &[Vec<usize>], cell: usize, width: usize) -> usize {
    let widest = cores.iter().map(|core| core.len() * cell + 1).max().unwrap_or(1);
    let most = (width.saturating_sub(1) / widest).max(1);
    cores.len().div_ceil(cores.len().div_ceil(most).max(1)).max(1)
}

/// The cores of each node, by first CPU; what is offline stands alone.
fn cores(machine: &topology::Machine) -> BTreeMap<Option<usize>, Vec<Vec<usize>>> {
    let mut seen = CpuSet::new();
    let mut nodes: BTreeMap<Option<usize>, Vec<Vec<usize>>> =
        machine.nodes.iter().map(|node| (Some(node.id), Vec::new())).collect();
    for cpu in &machine.cpus {
        if seen.contains(cpu.id) {
            continue;
        }
        let core: Vec<usize> = match &cpu.siblings {
            Some(siblings) if siblings.contains(cpu.id) => siblings.iter().collect(),
            _ => vec![cpu.id],
        };
        for cpu in &core {
            seen.insert(*cpu);
        }
        nodes.entry(cpu.node).or_default().push(core);
    }
    nodes
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
        assert_eq!([0, 1, 2, 3].map(|place| owners.letter(place)), ['a', 'b', 'C', 'd']);
        let of_5: Vec<&str> = owners.all_of(5).map(|owner| owner.group.as_str()).collect();
        assert_eq!(of_5, ["db", "web"]);
    }

    #[test]
    fn the_map_has_every_cpu_once_and_its_keys_lead_to_each() {
        for listing in ["e7-4850.cpu_topology.txt", "qemu-n4c8.sysfs.txt", "synthetic-2x8.json"] {
            let path =
                format!("{}/../../machine/topology/tests/machines/{listing}", env!("CARGO_MANIFEST_DIR"));
            let Ok(machine) =
                topology::Machine::from_listing(listing, &std::fs::read_to_string(path).unwrap())
            else {
                continue; // a recorded tree, which only the topology crate's tests unpack
            };
            let map = Map::new(&machine, 80);
            let mut cpus: Vec<usize> = map.spots.iter().map(|spot| spot.cpu).collect();
            assert!(map.spots.iter().all(|spot| spot.x + map.digits + 2 <= 80 && spot.line < map.lines));
            cpus.sort_unstable();
            assert_eq!(cpus, machine.cpus.iter().map(|cpu| cpu.id).collect::<Vec<_>>(), "{listing}");
            let mut place = 0;
            for _ in 0..map.lines {
                place = map.below(place, 1);
            }
            assert_eq!(map.spots[place].line, map.spots.last().unwrap().line, "{listing}");
            assert_eq!(map.spots[map.below(place, isize::MIN)].line, map.spots[0].line, "{listing}");
        }
    }
}
