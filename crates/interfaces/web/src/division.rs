//! What the history says of groups and CPUs now: bounds of elastic groups, what borrows, what is isolated; and who owns which
//! CPU by all of that.

use std::collections::BTreeMap;

use apply::{Head, Running, State, System};
use exporters::view::Owners;
use topology::Machine;
use units::CpuSet;

use crate::api::machine::{self as api, Bounds, CpuOwners, Owner, OwnersSource};

/// Of the layouts in effect.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Division {
    elastic: BTreeMap<String, (Bounds, Option<CpuSet>)>,
    /// By what is kept off them.
    isolated: Vec<(String, CpuSet)>,
}

impl Division {
    /// By the records; empty for who may not read them.
    pub fn in_effect(state: &State) -> Division {
        let all = apply::generations(state).unwrap_or_default();
        let numbers = apply::in_effect(&all, &Running::new().boot());
        Division::of(
            all.iter().filter(|one| numbers.contains(&one.generation())).filter_map(apply::Generation::head),
        )
    }

    /// By these, oldest first: a layout takes the place of all before it.
    fn of<'h>(heads: impl Iterator<Item = &'h Head>) -> Division {
        let mut division = Division::default();
        for head in heads {
            if head.layout {
                division = Division::default();
            }
            division.add(&head.upkeep.elastic);
            let requests = head.upkeep.isolation.iter().flat_map(|isolation| &isolation.requests);
            division.isolated.extend(requests.map(|request| (request.knob.clone(), request.cpus.clone())));
        }
        division
    }

    fn add(&mut self, scopes: &[policy::Scope]) {
        for scope in scopes {
            for group in &scope.groups {
                let bounds = Bounds { min: group.min, max: group.max.min(scope.pool.len()) };
                let pool = group.borrows.then(|| scope.pool.clone());
                self.elastic.insert(scope.directory(group).to_owned(), (bounds, pool));
            }
        }
    }

    /// An elastic group's bounds.
    pub fn bounds(&self, group: &str) -> Option<&Bounds> {
        self.elastic.get(group).map(|(bounds, _)| bounds)
    }

    /// Who owns which CPU. `allowed`: the CPUs that each group may use, and whether it is a partition.
    pub fn owners(
        &self,
        allowed: Vec<(String, CpuSet, bool)>,
        machine: &Machine,
        (source, at_ms, version): (OwnersSource, u64, u64),
    ) -> api::Owners {
        let owners = Owners::new(allowed, &machine.online());
        let list = owners.list.iter().map(|owner| {
            let elastic = self.elastic.get(&owner.group);
            let isolate = self.isolated.iter().filter(|(_, cpus)| owner.cpus.is_subset(cpus));
            Owner {
                group: owner.group.clone(),
                cpus: owner.cpus.to_string(),
                exclusive: owner.is_exclusive,
                elastic: elastic.map(|(bounds, _)| bounds.clone()),
                borrows: elastic.is_some_and(|(_, pool)| pool.is_some()),
                isolate: isolate.map(|(knob, _)| knob.clone()).collect(),
            }
        });
        let at_boot = machine.isolated.clone().unwrap_or_default();
        let cpus = machine.cpus.iter().map(|cpu| {
            let (borrowers, own) = self.parted(&owners, cpu.id);
            CpuOwners {
                id: cpu.id,
                owners: own,
                borrowers,
                isolated: at_boot.contains(cpu.id)
                    || self.isolated.iter().any(|(_, cpus)| cpus.contains(cpu.id)),
            }
        });
        let cpus = cpus.collect();
        api::Owners { at_ms, source, version, owners: list.collect(), cpus }
    }

    /// Those who have a CPU on loan, and its owners: a borrower of a CPU that somebody else has runs where that one leaves room.
    fn parted(&self, owners: &Owners, cpu: usize) -> (Vec<usize>, Vec<usize>) {
        let all = owners.owners_of(cpu);
        let borrows = |place: &usize| {
            self.elastic.get(&owners.list[*place].group).is_some_and(|(_, pool)| pool.is_some())
        };
        let (borrowers, own): (Vec<usize>, Vec<usize>) = all.iter().copied().partition(borrows);
        if own.is_empty() { (Vec::new(), borrowers) } else { (borrowers, own) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(generation: u32, layout: bool, elastic: &str) -> Head {
        let text = format!(
            r#"{{"format":1,"generation":{generation},"kind":"apply","by":{{"uid":0,"login":null,"pid":1,"command":"t"}},"at":1,"what":"t",
                "boot":"b","hierarchies":[],"layout":{layout},"elastic":{elastic},"in_effect_before":[],
                "in_effect":[{generation}],"steps":0}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn a_group_that_a_later_layout_made_static_is_elastic_no_more() {
        let elastic =
            r#"[{"pool":"0-3","groups":[{"name":"db","min":1,"max":2,"weight":100,"borrows":true}]}]"#;
        let before = [head(1, true, elastic), head(2, false, "[]")];
        let division = Division::of(before.iter());
        assert_eq!(division.bounds("db"), Some(&Bounds { min: 1, max: 2 }), "set leaves it");
        let after = [head(1, true, elastic), head(2, false, "[]"), head(3, true, "[]")];
        assert_eq!(Division::of(after.iter()), Division::default());
    }
}
