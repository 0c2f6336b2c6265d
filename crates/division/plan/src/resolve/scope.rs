//! One scope of a division: its CPUs, the claims to them and what each claim starts with. How it is settled is said in
//! `settle`.

use std::collections::HashMap;

use layout::Near;
use units::{CpuSet, NodeSet};

use super::{
    claim::{Amount, Claim, Requested},
    landscape::Landscape,
};
use crate::Problem;

/// The CPUs of a branch that is resolved elsewhere, by its position in the tree.
pub(crate) type Elsewhere<'e> = &'e dyn Fn(usize) -> Option<CpuSet>;

/// The distances of nodes from what a claim is to be near to, so far as that is known. The CPUs of a branch come from
/// the function.
pub(crate) type Nearness<'n> = &'n dyn Fn(&Claim, &Amount, Elsewhere<'_>) -> Vec<Vec<u32>>;

/// The owner of the scope that is no group's.
pub(crate) const MACHINE: &str = "the machine";

/// One scope on its way to be settled.
pub(crate) struct Scope<'s> {
    pub land: &'s Landscape,
    /// Whose scope it is, in words: [`MACHINE`], `group 'db'`.
    pub owner: &'s str,
    /// All its CPUs.
    pub whole: &'s CpuSet,
    /// Those of them that are reserved for the rest of the system.
    pub reserve: &'s CpuSet,
    /// How many CPUs must be left that no group has for itself, for tasks outside the groups.
    pub keep: usize,
    pub claims: &'s [Claim],
    pub ties: &'s Ties,
    pub nearness: Nearness<'s>,
    pub elsewhere: Elsewhere<'s>,
}

/// Which claims of a scope are to be near to which other ones of it, by claim.
#[derive(Debug)]
pub(crate) struct Ties {
    /// Those that it is to be near to.
    pub leans_on: Vec<Vec<usize>>,
    /// Those that are to be near to it.
    pub pulled_by: Vec<Vec<usize>>,
}

impl Ties {
    pub(crate) fn of(claims: &[Claim]) -> Ties {
        let names = claims.iter().enumerate().map(|(index, claim)| (claim.name.as_str(), index));
        let by_name: HashMap<&str, usize> = names.collect();
        let leans_on = claims.iter().map(|claim| match &claim.request {
            Requested::Some(amount) => amount
                .near
                .iter()
                .filter_map(|near| match near {
                    Near::Group(name) => by_name.get(name.to_string().as_str()).copied(),
                    Near::Node(_) | Near::Device(_) => None,
                })
                .collect(),
            _ => Vec::new(),
        });
        let leans_on: Vec<Vec<usize>> = leans_on.collect();
        let mut pulled_by = vec![Vec::new(); claims.len()];
        for (index, others) in leans_on.iter().enumerate() {
            others.iter().for_each(|other| pulled_by[*other].push(index));
        }
        Ties { leans_on, pulled_by }
    }
}

/// What came of it.
#[derive(Debug, Default)]
pub(crate) struct Settled {
    /// By claim; `None` for those that are like another and those that went wrong.
    pub sets: Vec<Option<CpuSet>>,
    pub problems: Vec<Problem>,
}

/// What each claim starts an attempt with.
#[derive(Debug, Clone)]
pub(super) struct Start {
    /// What it has.
    pub current: Vec<CpuSet>,
    /// Must it let go of that if another one needs it?
    pub released: Vec<bool>,
}

impl Scope<'_> {
    /// The CPUs of these nodes, or all.
    pub(super) fn cpus_of(&self, nodes: &Option<NodeSet>) -> CpuSet {
        match nodes {
            Some(nodes) => self.land.cpus_of(nodes).intersection(self.whole),
            None => self.whole.clone(),
        }
    }

    pub(super) fn amount(&self, index: usize) -> Option<&Amount> {
        match &self.claims[index].request {
            Requested::Some(amount) => Some(amount),
            _ => None,
        }
    }

    pub(super) fn select(&self, is: impl Fn(&Claim) -> bool) -> Vec<usize> {
        (0..self.claims.len()).filter(|index| is(&self.claims[*index])).collect()
    }
}
