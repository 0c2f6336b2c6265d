//! The machine's page: where each CPU is on the map, and the letter of who has it.

use std::collections::BTreeMap;

use exporters::view::Owners;
use units::CpuSet;

/// The machine's page.
#[derive(Debug, Clone, Copy, Default)]
pub struct MachinePage {
    /// Which CPU is selected, counted through the map.
    pub(crate) selected: usize,
}

/// A letter for each owner: large for a partition, small for CPUs that others may have too.
pub(crate) fn letter(owners: &Owners, place: usize) -> char {
    let letter = u8::try_from(place).ok().filter(|place| *place < 26).map(|place| char::from(b'a' + place));
    match (letter, owners.list.get(place)) {
        (Some(letter), Some(owner)) if owner.is_exclusive => letter.to_ascii_uppercase(),
        (Some(letter), _) => letter,
        (None, _) => '#',
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
