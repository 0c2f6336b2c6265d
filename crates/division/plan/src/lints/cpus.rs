//! Lints of exclusive CPUs: their SMT siblings, and who may still run on them.

use layout::{CpuAmount, CpuDemand, CpuSpec, Smt};
use policy::Elastic;
use settings::Version;
use units::CpuSet;

use super::Looked;
use crate::{
    Lint, LintKind, resolve,
    tree::{Branch, Exclusive},
};

/// Exclusive CPUs whose SMT siblings are left to others.
pub(super) fn siblings(looked: &Looked<'_>, lints: &mut Vec<Lint>) {
    if !looked.land.cores_known {
        return;
    }
    for (branch, cpus) in exclusive(looked) {
        let left = looked.land.with_siblings(cpus).difference(cpus);
        if left.is_empty() {
            continue;
        }
        let message = format!(
            "group '{}' has {cpus} for itself, but {left} on the same cores {} left to others",
            branch.name,
            if left.len() == 1 { "is" } else { "are" }
        );
        let lint = Lint::new(LintKind::SiblingLeft, Some(&branch.name), message).at(&branch.origin());
        lints.push(
            lint.hint("ask for whole cores: smt = \"whole-cores\", with a count that is a multiple of them"),
        );
    }
}

/// Tasks outside the group that may run on its CPUs all the same.
pub(super) fn still_used(looked: &Looked<'_>, lints: &mut Vec<Lint>) {
    for (branch, cpus) in exclusive(looked) {
        if branch.place.version != Version::V1 {
            continue;
        }
        let message = format!(
            "cgroup v1 keeps other groups off the CPUs {cpus} of '{}', but not tasks of the groups above it: those there now are \
             moved away, but tasks that set their own affinity and threads of the kernel may run there",
            branch.name
        );
        let lint = Lint::new(LintKind::StillUsed, Some(&branch.name), message).at(&branch.origin());
        lints.push(lint.hint("use cgroup v2, whose partitions keep everybody off, or boot with isolcpus="));
    }
    for (index, branch) in looked.tree.branches.iter().enumerate() {
        let sets = &looked.resolved.sets[index];
        let kernel_knows = branch.keeps_siblings_off();
        let planned_only = sets.apart && !kernel_knows && resolve::elastic(branch).is_none();
        let Some(cpus) = sets.cpus.as_ref().filter(|_| planned_only) else { continue };
        let message = format!(
            "the CPUs {cpus} of group '{}' are given to no other group of the layout, but the kernel does not keep others off",
            branch.name
        );
        let lint = Lint::new(LintKind::StillUsed, Some(&branch.name), message).at(&branch.origin());
        lints.push(lint.hint("add exclusive = true, and the kernel does"));
    }
}

/// What ends an overlap.
const OWN_CPUS: &str =
    "add pool = \"exclusive\" to get CPUs of its own, or pool = \"shared\" if that is meant";

/// Groups that are to have as many CPUs as there are: `the rest` to their author, but other groups' CPUs are in it
/// unless somebody says otherwise.
pub(super) fn overlapping(looked: &Looked<'_>, lints: &mut Vec<Lint>) {
    let branches = &looked.tree.branches;
    let sets = &looked.resolved.sets;
    for (index, branch) in branches.iter().enumerate() {
        let demand = branch.demands().and_then(|demands| demands.cpus.as_ref()).map(|cpus| &cpus.value);
        let is_rest = matches!(
            demand,
            Some(CpuDemand::Some(CpuSpec { amount: CpuAmount::Between { .. }, pool: None, .. }))
        );
        let Some(own) = sets[index].cpus.as_ref().filter(|_| is_rest && !sets[index].apart) else { continue };
        let beside = |other: usize| {
            let is_named = branches[other].demands().is_some_and(|demands| demands.cpus.is_some());
            other != index
                && is_named
                && !is_above(branches, other, index)
                && !is_above(branches, index, other)
        };
        let shared = (0..branches.len()).filter(|other| beside(*other)).find_map(|other| {
            let common = sets[other].cpus.as_ref()?.intersection(own);
            (!common.is_empty()).then(|| (&branches[other].name, common))
        });
        let Some((other, common)) = shared else { continue };
        let message = format!(
            "group '{}' gets the CPUs {own}, which are not the rest: it shares {common} with group '{other}'",
            branch.name
        );
        let lint = Lint::new(LintKind::Overlap, Some(&branch.name), message).at(&branch.origin());
        lints.push(lint.hint(OWN_CPUS));
    }
}

/// Groups with CPUs of another group while others are free: that a group's own CPUs are near to each other counts more than
/// what others have of them, unless somebody asks for CPUs of its own.
pub(super) fn shared_beside_free(looked: &Looked<'_>, lints: &mut Vec<Lint>) {
    let branches = &looked.tree.branches;
    let sets = &looked.resolved.sets;
    for index in 0..branches.len() {
        let Some((spec, own)) = chosen(&branches[index]).zip(sets[index].cpus.as_ref()) else { continue };
        let beside = |other: &usize| {
            *other != index
                // `like` says that they are shared
                && resolve::demand(&branches[*other]).is_some_and(|demand| !matches!(demand, CpuDemand::Like(_)))
                && !is_above(branches, *other, index)
                && !is_above(branches, index, *other)
        };
        let beside: Vec<usize> = (0..branches.len()).filter(beside).collect();
        let free = looked.free_for(index, spec);
        // the daemon gives what is free to elastic groups
        if free.is_empty() || beside.iter().any(|other| resolve::elastic(&branches[*other]).is_some()) {
            continue;
        }
        // a pair is named once
        let common = beside.iter().filter(|other| **other < index || chosen(&branches[**other]).is_none());
        let common = common.filter_map(|other| {
            let common = sets[*other].cpus.as_ref()?.intersection(own);
            (!common.is_empty()).then(|| (&branches[*other].name, common))
        });
        let Some((other, common)) = common.max_by_key(|(_, common)| common.len()) else { continue };
        let message = format!(
            "group '{}' shares the CPUs {common} with group '{other}', though {free} {} free",
            branches[index].name,
            if free.len() == 1 { "is" } else { "are" }
        );
        let lint = Lint::new(LintKind::Overlap, Some(&branches[index].name), message);
        lints.push(lint.at(&branches[index].origin()).hint(OWN_CPUS));
    }
}

/// A number of CPUs that the planner chose, where nothing is said of whether others may have them.
fn chosen<'b>(branch: &'b Branch<'_>) -> Option<&'b CpuSpec> {
    match resolve::demand(branch) {
        Some(CpuDemand::Some(spec)) => Some(spec).filter(|spec| {
            spec.pool.is_none()
                && !branch.keeps_siblings_off()
                && !matches!(spec.amount, CpuAmount::Between { .. })
        }),
        _ => None,
    }
}

impl Looked<'_> {
    /// The CPUs that a group could have had and that no group has: on its nodes, and in whole cores where it asks for these.
    fn free_for(&self, index: usize, spec: &CpuSpec) -> CpuSet {
        let branches = &self.tree.branches;
        let mut free = self.resolved.sets[index].offered.clone();
        if let Some(nodes) = &spec.nodes {
            free = free.intersection(&self.land.cpus_of(nodes));
        }
        let others = (0..branches.len()).filter(|other| !is_above(branches, *other, index));
        let requested = others.filter(|other| resolve::demand(&branches[*other]).is_some());
        free = requested
            .filter_map(|other| self.resolved.sets[other].cpus.as_ref())
            .fold(free, |free, taken| free.difference(taken));
        let in_cores = spec.smt == Some(Smt::WholeCores) || matches!(spec.amount, CpuAmount::Cores(_));
        if in_cores { self.land.whole_cores(&free) } else { free }
    }
}

/// Groups that only the daemon resizes.
pub(super) fn elastic(looked: &Looked<'_>, lints: &mut Vec<Lint>) {
    for (branch, sets) in looked.tree.branches.iter().zip(&looked.resolved.sets) {
        let Some(Elastic { name, min, .. }) = resolve::elastic(branch).filter(|_| !branch.was_elastic) else {
            continue;
        };
        let has = resolve::cpus(sets.cpus.as_ref().map_or(min, CpuSet::len));
        let message = format!("group '{name}' is elastic: it has {has} until ringfenced gives it more");
        let lint = Lint::new(LintKind::Elastic, Some(&branch.name), message).at(&branch.origin());
        lints.push(
            lint.hint("start ringfenced, if it does not run; see what it would do: ringfence simulate"),
        );
    }
}

/// Settings that only the daemon moves.
pub(super) fn ranges(looked: &Looked<'_>, lints: &mut Vec<Lint>) {
    for valued in looked.values.iter().filter(|valued| !valued.was_range) {
        let Some(range) = valued.own_range() else { continue };
        let (name, value) = (&valued.found.name, range.show(range.min));
        let message = format!("{name} of group '{}' is {value} until ringfenced moves it", valued.group);
        let lint = Lint::new(LintKind::Elastic, Some(valued.group), message).at(valued.origin);
        lints.push(lint.hint("start ringfenced, if it does not run"));
    }
}

fn is_above(branches: &[Branch<'_>], above: usize, below: usize) -> bool {
    std::iter::successors(branches[below].parent, |at| branches[*at].parent).any(|at| at == above)
}

fn exclusive<'l>(looked: &'l Looked<'_>) -> impl Iterator<Item = (&'l Branch<'l>, &'l CpuSet)> {
    let all = looked.tree.branches.iter().zip(&looked.resolved.sets);
    let own = all.filter(|(branch, _)| branch.exclusive > Exclusive::No);
    own.filter_map(|(branch, sets)| Some((branch, sets.cpus.as_ref()?)))
}
