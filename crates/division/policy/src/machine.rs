//! What CPUs are dealt out in: whole cores where all have the same number of CPUs, else single CPUs.

use topology::Machine;
use units::CpuSet;

use crate::Error;

/// What is given and taken as one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unit {
    /// Its CPUs, as many in each unit of a machine.
    pub cpus: CpuSet,
    /// Its NUMA node.
    pub node: usize,
}

/// The units of a machine that elastic groups share, in a fixed order: by node, then by first CPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Units {
    all: Vec<Unit>,
    width: usize,
}

impl Units {
    /// Of these units.
    ///
    /// # Errors
    /// There are none, one is empty, or a CPU is in two of them.
    pub fn new(mut all: Vec<Unit>) -> Result<Units, Error> {
        let mut seen = CpuSet::new();
        for cpu in all.iter().flat_map(|unit| unit.cpus.iter()) {
            if !seen.insert(cpu) {
                return Err(Error::TwiceInUnits(cpu));
            }
        }
        all.sort_by_key(|unit| (unit.node, unit.cpus.first()));
        let width = all.iter().map(|unit| unit.cpus.len()).min().unwrap_or(0);
        if width == 0 {
            return Err(Error::NoUnits);
        }
        if all.iter().any(|unit| unit.cpus.len() != width) {
            return Ok(Units { all: singles(&all), width: 1 });
        }
        Ok(Units { all, width })
    }

    /// Of a machine that is alike everywhere: `nodes` with `cores` each, `width` CPUs a core, numbered in this order.
    ///
    /// # Errors
    /// One of the numbers is 0.
    pub fn regular(nodes: usize, cores: usize, width: usize) -> Result<Units, Error> {
        let cpus = |number: usize| (number * width..(number + 1) * width).collect();
        let unit = |number: usize| Unit { cpus: cpus(number), node: number / cores };
        Units::new((0..nodes * cores).map(unit).collect())
    }

    /// Of these CPUs of a machine. A core of which only a part is among them makes single CPUs of all.
    ///
    /// # Errors
    /// None of the CPUs is there and online.
    pub fn of(machine: &Machine, cpus: &CpuSet) -> Result<Units, Error> {
        let online = machine.online().intersection(cpus);
        let cores = machine.cores().map_or_else(
            || online.iter().map(|cpu| (CpuSet::range(cpu, cpu), machine.node_of_cpu(cpu))).collect(),
            |cores| cores.into_iter().map(|core| (core.cpus, core.node)).collect::<Vec<_>>(),
        );
        let units = cores
            .into_iter()
            .map(|(all, node)| Unit { cpus: all.intersection(&online), node: node.unwrap_or(0) });
        Units::new(units.filter(|unit| !unit.cpus.is_empty()).collect())
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Is there none? Never: [`Units::new`] refuses that.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// CPUs of each.
    pub fn width(&self) -> usize {
        self.width
    }

    /// All of them.
    pub fn all(&self) -> &[Unit] {
        &self.all
    }

    /// `cores` or `CPUs`.
    pub fn word(&self) -> &'static str {
        if self.width > 1 { "cores" } else { "CPUs" }
    }

    /// The CPUs of some of them.
    pub fn cpus(&self, units: &[usize]) -> CpuSet {
        units.iter().flat_map(|unit| self.all[*unit].cpus.iter()).collect()
    }

    /// The units that are these CPUs; `None` where a unit is only a part of them or a CPU belongs to none.
    pub fn find(&self, cpus: &CpuSet) -> Option<Vec<usize>> {
        let inside = |unit: &usize| self.all[*unit].cpus.is_subset(cpus);
        let units: Vec<usize> = (0..self.len()).filter(inside).collect();
        (self.cpus(&units) == *cpus).then_some(units)
    }
}

fn singles(units: &[Unit]) -> Vec<Unit> {
    let single = |unit: &Unit| {
        let node = unit.node;
        unit.cpus.iter().map(move |cpu| Unit { cpus: CpuSet::range(cpu, cpu), node }).collect::<Vec<_>>()
    };
    units.iter().flat_map(single).collect()
}
