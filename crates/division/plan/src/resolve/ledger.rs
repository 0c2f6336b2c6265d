//! Who has which CPUs of a scope so far, in a form that makes every question about it cheap.

use units::CpuSet;

use super::{
    field::{Field, Load},
    landscape::Landscape,
};

/// The book of a scope.
#[derive(Debug)]
pub(crate) struct Ledger {
    /// CPUs that one group has for itself.
    pub apart: CpuSet,
    /// How many groups share each CPU, by its number.
    busy: Vec<u32>,
    /// CPUs that at least one group shares.
    pub shared: CpuSet,
    load: Load,
}

impl Ledger {
    pub(crate) fn new(land: &Landscape) -> Ledger {
        let nodes = land.nodes.len();
        Ledger {
            apart: CpuSet::new(),
            busy: vec![0; land.online.last().map_or(0, |last| last + 1)],
            shared: CpuSet::new(),
            load: Load { cpus: vec![0; nodes], memory: vec![0; nodes] },
        }
    }

    pub(crate) fn give(&mut self, land: &Landscape, apart: bool, set: &CpuSet, memory: u64) {
        if apart {
            self.apart = self.apart.union(set);
        } else {
            self.shared = self.shared.union(set);
            set.iter().for_each(|cpu| self.busy[cpu] += 1);
        }
        self.weigh(land, set, memory, |load, part| load.saturating_add(part));
    }

    pub(crate) fn take_back(&mut self, land: &Landscape, apart: bool, set: &CpuSet, memory: u64) {
        if apart {
            self.apart = self.apart.difference(set);
        } else {
            for cpu in set.iter() {
                self.busy[cpu] -= 1;
                if self.busy[cpu] == 0 {
                    self.shared.remove(cpu);
                }
            }
        }
        self.weigh(land, set, memory, |load, part| load.saturating_sub(part));
    }

    fn weigh(&mut self, land: &Landscape, set: &CpuSet, memory: u64, change: fn(u64, u64) -> u64) {
        let nodes = land.positions(set);
        for node in &nodes {
            let cpus = land.nodes[*node].cpus.intersection(set).len() as u64;
            let load = &mut self.load.cpus[*node];
            *load = change(*load as u64, cpus) as usize;
            self.load.memory[*node] = change(self.load.memory[*node], memory / nodes.len() as u64);
        }
    }

    pub(crate) fn field<'f>(&'f self, free: &'f CpuSet) -> Field<'f> {
        Field { free, busy: &self.busy, load: &self.load }
    }
}
