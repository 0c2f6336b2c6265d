//! From intents to CPUs and memory nodes: every group of the tree gets its sets, parents before their children, so
//! that each child's are among its parent's.

mod attempt;
mod choose;
mod claim;
mod core_sizes;
mod cores;
mod cost;
mod describe;
mod explain;
mod field;
mod foreign;
mod landscape;
mod ledger;
mod memory;
mod nodes;
mod numbers;
mod offer;
mod pools;
mod reserve;
mod scope;
mod settle;

use std::collections::HashMap;

use layout::{CpuDemand, Desired, Near};
use settings::Version;
use topology::Machine;
use units::{CpuSet, NodeSet, group_path};

pub(crate) use claim::{cpus, demand, elastic};
pub(crate) use landscape::Landscape;
pub(crate) use pools::units as units_of;

use crate::{
    Lint, LintKind, Observed, Problem, SeenGroup, SeenHierarchy,
    tree::{self, Branch, Tree},
};
use claim::{Amount, Claim, Numbers, Requested, is_apart, is_scope};
use foreign::Foreign;
use scope::{Elsewhere, Scope, Ties};

/// What every branch of the tree gets, in the tree's order.
#[derive(Debug)]
pub(crate) struct Resolved {
    pub sets: Vec<Sets>,
    /// CPUs reserved for the rest of the system.
    pub reserved: CpuSet,
}

/// What a branch gets.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sets {
    /// `None`: nothing is written.
    pub cpus: Option<CpuSet>,
    /// `None`: nothing is written.
    pub mems: Option<NodeSet>,
    /// Are the CPUs nobody else's, so far as the planner gives them?
    pub apart: bool,
    /// What a group that requests CPUs was given them from: the CPUs of the group above, or the machine's, without the
    /// reserved ones.
    pub offered: CpuSet,
    /// How it comes to these.
    pub why: String,
}

/// Resolves the whole tree.
pub(crate) fn resolve(
    desired: &Desired,
    (machine, land): (&Machine, &Landscape),
    observed: &Observed,
    tree: &Tree<'_>,
    problems: &mut Vec<Problem>,
    lints: &mut Vec<Lint>,
) -> Resolved {
    let top = ceiling(land, observed, tree);
    let named = named_outright(tree);
    let reserved = reserve::choose(desired, (land, observed), &top, &named, problems);
    let fresh = |widths: Vec<usize>| Resolution {
        desired,
        land,
        tree,
        observed,
        numbers: Numbers::of(tree, land, top.difference(&reserved).len(), widths),
        top: top.clone(),
        reserved: reserved.clone(),
        foreign: Foreign::new(tree, observed),
        cpus: vec![None; tree.branches.len()],
        offered: vec![CpuSet::new(); tree.branches.len()],
        like: Vec::new(),
        like_of: vec![None; tree.branches.len()],
        requested: vec![None; tree.branches.len()],
    };
    let mut resolution = fresh(vec![1; tree.branches.len()]);
    resolution.scopes(problems);
    // which CPUs elastic groups share, and so whether these are whole cores, is known only now
    let widths = pools::widths(tree, &resolution.cpus, &resolution.reserved, (land, machine));
    let in_parts = |(width, set): (&usize, &Option<CpuSet>)| {
        *width > 1 && set.as_ref().is_some_and(|set| land.with_siblings(set) != *set)
    };
    if problems.is_empty() && widths.iter().zip(&resolution.cpus).any(in_parts) {
        let mut in_cores = fresh(widths.clone());
        let mut short = Vec::new();
        in_cores.scopes(&mut short);
        let now = pools::widths(tree, &in_cores.cpus, &in_cores.reserved, (land, machine));
        // where there are too few cores for all, that is said where they are counted
        if short.is_empty() && now == widths {
            resolution = in_cores;
        }
    }
    if problems.is_empty() {
        let scopes = pools::scopes(tree, &resolution.cpus, &resolution.reserved, land);
        pools::stays(tree, &mut resolution.cpus, scopes, machine);
        resolution.likes(problems);
        resolution.rest_of_v1();
        resolution.ignored_wishes(lints);
    }
    let mems = memory::nodes(land, tree, observed, &resolution.cpus, problems);
    let sets = tree.branches.iter().enumerate().map(|(index, branch)| Sets {
        cpus: resolution.cpus[index].clone(),
        mems: mems[index].clone(),
        apart: is_apart(branch),
        offered: resolution.offered[index].clone(),
        why: describe::why(
            land,
            tree,
            index,
            resolution.cpus[index].as_ref(),
            resolution.requested[index].as_ref(),
        ),
    });
    let sets = sets.collect();
    Resolved { sets, reserved: resolution.reserved }
}

/// The CPUs that our groups can have at all.
fn ceiling(land: &Landscape, observed: &Observed, tree: &Tree<'_>) -> CpuSet {
    let at = tree.branches.first().and_then(|branch| observed.hierarchies.get(branch.place.hierarchy));
    let bound = at.and_then(|at| bound::<units::Cpu>(at, tree, "cpuset.cpus"));
    bound.map_or_else(|| land.online.clone(), |bound| land.online.intersection(&bound))
}

/// What the group our groups live in has; `None` if that is all the machine has, or not known.
fn bound<K>(at: &SeenHierarchy, tree: &Tree<'_>, file: &str) -> Option<units::IdSet<K>> {
    let seen = at.groups.get(&at.base)?;
    let own: units::IdSet<K> = match at.version {
        Version::V1 => tree::list(Some(seen), file),
        // the hierarchy's root has no such file, and everything
        Version::V2 if !seen.files.contains_key(file) => return None,
        Version::V2 => {
            // what partitions in it have is not in the list of what it has, nor what the layout's units have
            let ours = |path: &str| tree.branches.iter().any(|branch| branch.place.path == path);
            let inside = |path: &str| {
                path != at.base && (group_path::parent(path).unwrap_or_default() == at.base || ours(path))
            };
            let partition = |seen: &SeenGroup| {
                let kind = seen.files.get("cpuset.cpus.partition").map_or("member", String::as_str);
                file == "cpuset.cpus" && matches!(kind, "root" | "isolated")
            };
            let partitions = at.groups.iter().filter(|(path, seen)| inside(path) && partition(seen));
            let effective = tree::list(Some(seen), &format!("{file}.effective"));
            partitions
                .fold(effective, |all: units::IdSet<K>, (_, seen)| all.union(&tree::list(Some(seen), file)))
        }
    };
    (!own.is_empty()).then_some(own)
}

/// All CPUs that groups name by number.
fn named_outright(tree: &Tree<'_>) -> CpuSet {
    tree.branches.iter().filter_map(demand).fold(CpuSet::new(), |all, demand| match demand {
        CpuDemand::These(cpus) => all.union(cpus),
        _ => all,
    })
}

/// Where a listing lacks the cores.
const MORE_OF_CORES: &str =
    "add a listing that has the cores: --machine FILE with what `lscpu -e` prints there";

struct Resolution<'r, 'd> {
    desired: &'r Desired,
    land: &'r Landscape,
    tree: &'r Tree<'d>,
    observed: &'r Observed,
    numbers: Numbers,
    top: CpuSet,
    reserved: CpuSet,
    foreign: Foreign<'r>,
    cpus: Vec<Option<CpuSet>>,
    /// By branch, what it was given them from.
    offered: Vec<CpuSet>,
    /// Branches that are like others, served last.
    like: Vec<(usize, usize)>,
    /// By branch, the one it is like, so far as that was requested.
    like_of: Vec<Option<usize>>,
    requested: Vec<Option<Requested>>,
}

impl Resolved {
    /// The elastic groups with the CPUs that they share.
    pub(crate) fn pools(&self, tree: &Tree<'_>, land: &Landscape) -> Vec<policy::Scope> {
        let cpus: Vec<Option<CpuSet>> = self.sets.iter().map(|sets| sets.cpus.clone()).collect();
        pools::scopes(tree, &cpus, &self.reserved, land).into_iter().map(|(_, scope)| scope).collect()
    }
}

impl Resolution<'_, '_> {
    /// Scopes from the top down.
    fn scopes(&mut self, problems: &mut Vec<Problem>) {
        let branches = &self.tree.branches;
        let scope_of = |index: usize| self.tree.ancestors(index).find(|above| is_scope(&branches[*above]));
        let mut members: std::collections::BTreeMap<Option<usize>, Vec<usize>> =
            std::collections::BTreeMap::new();
        for index in (0..branches.len()).filter(|index| is_scope(&branches[*index])) {
            members.entry(scope_of(index)).or_default().push(index);
        }
        // parents come before their children in the tree, and the machine before all
        for (owner, members) in members {
            let whole = match owner {
                None => Some(self.top.clone()),
                Some(owner) => self.cpus[owner].clone(),
            };
            // a parent's error is reported already; one that is like another has its groups served at the end
            let Some(whole) = whole.or_else(|| self.like_set(owner)) else { continue };
            self.settle(owner, &whole, &members, problems);
        }
    }

    /// What a branch that is like others gets, as far as it is known by now.
    fn like_set(&self, owner: Option<usize>) -> Option<CpuSet> {
        let next = |branch: &usize| self.like_of[*branch];
        let end = std::iter::successors(next(&owner?), next).take(self.like.len()).last()?;
        self.cpus[end].clone()
    }

    fn settle(
        &mut self,
        owner: Option<usize>,
        whole: &CpuSet,
        members: &[usize],
        problems: &mut Vec<Problem>,
    ) {
        let claims: Vec<Claim> =
            members.iter().map(|index| Claim::new(self.tree, *index, &self.numbers, self.land)).collect();
        // a group that names these gets an error of its own
        let named = claims.iter().filter_map(|claim| match &claim.request {
            Requested::These(cpus) => Some(cpus),
            _ => None,
        });
        let named = named.fold(CpuSet::new(), |all, cpus| all.union(cpus));
        let paths: Vec<&str> =
            members.iter().map(|member| self.tree.branches[*member].place.path.as_str()).collect();
        let foreign = self.foreign.beside(&paths);
        let whole = &whole.difference(&foreign.difference(&named));
        let owner_name = match owner {
            Some(owner) => format!("group '{}'", self.tree.branches[owner].name),
            None => scope::MACHINE.to_owned(),
        };
        let nearness = |_: &Claim, amount: &Amount, cpus: Elsewhere<'_>| self.near(amount, cpus);
        let scope = Scope {
            land: self.land,
            owner: &owner_name,
            whole,
            reserve: &self.reserved,
            keep: self.keep(owner, &claims),
            claims: &claims,
            ties: &Ties::of(&claims),
            nearness: &nearness,
            elsewhere: &|branch| self.cpus[branch].clone(),
        };
        let settled = scope.settle();
        problems.extend(settled.problems);
        for (claim, set) in claims.into_iter().zip(settled.sets) {
            if let Requested::Like(other) = claim.request {
                self.like.push((claim.branch, other));
                self.like_of[claim.branch] = Some(other);
            }
            self.cpus[claim.branch] = set;
            self.offered[claim.branch] = whole.difference(&self.reserved);
            self.requested[claim.branch] = Some(claim.request);
        }
    }

    /// How many CPUs must be left that no group has for itself: for tasks in the scope's own group (the machine's are
    /// the rest of the system), and for groups that request none and use what their parent has.
    fn keep(&self, owner: Option<usize>, claims: &[Claim]) -> usize {
        let branches = &self.tree.branches;
        if !claims.iter().any(|claim| branches[claim.branch].is_exclusive()) {
            return 0;
        }
        let has_tasks = match owner {
            None => self.reserved.is_empty(),
            Some(owner) => self.observed.group(&branches[owner].place).is_some_and(|seen| seen.tasks > 0),
        };
        let below = |path: &str| match owner {
            None => self.tree.version() == Version::V1,
            Some(owner) => group_path::is_below(path, branches[owner].name.path()),
        };
        let unclaimed = branches.iter().enumerate().any(|(index, branch)| {
            let scope = self.tree.ancestors(index).find(|above| is_scope(&branches[*above]));
            !is_scope(branch) && scope == owner && below(branch.name.path())
        });
        let outside = self.tree.version() == Version::V2
            && owner.is_some()
            && self
                .desired
                .groups
                .iter()
                .any(|group| self.tree.find(&group.name).is_none() && below(group.name.path()));
        usize::from(has_tasks || unclaimed || outside)
    }

    fn near(&self, amount: &Amount, cpus: Elsewhere<'_>) -> Vec<Vec<u32>> {
        amount.near.iter().filter_map(|near| self.distances(near, cpus)).collect()
    }

    fn distances(&self, near: &Near, cpus: Elsewhere<'_>) -> Option<Vec<u32>> {
        match near {
            Near::Node(_) | Near::Device(_) => reserve::distances(near, self.land, self.observed),
            Near::Group(name) => {
                let other = self.tree.find(name)?;
                let known = std::iter::once(other).chain(self.tree.ancestors(other)).find_map(cpus)?;
                self.land.distances_from_cpus(&known)
            }
        }
    }

    /// Groups that are like others.
    fn likes(&mut self, problems: &mut Vec<Problem>) {
        let ends = ends(&self.like);
        // beside a group that keeps nothing for itself, only these can be in the way
        let with_own = |index: &usize| is_apart(&self.tree.branches[*index]);
        let with_own: Vec<usize> = (0..self.tree.branches.len()).filter(with_own).collect();
        for (index, other) in self.like.clone() {
            let Some(set) = ends.get(&index).and_then(|end| self.cpus[*end].clone()) else { continue };
            let branch = &self.tree.branches[index];
            let name = self.tree.branches[other].name.to_string();
            let scope = self.tree.ancestors(index).find(|above| is_scope(&self.tree.branches[*above]));
            let whole =
                scope.map_or_else(|| self.top.clone(), |scope| self.cpus[scope].clone().unwrap_or_default());
            if !set.is_subset(&whole) {
                let missing = set.difference(&whole);
                problems.push(like_problem(
                    branch,
                    format!(
                        "group '{}' asks for the CPUs of '{name}', of which its parent does not have {missing}",
                        branch.name
                    ),
                    missing.len(),
                ));
            } else if let Some(rival) = self.rival(index, other, &set, &with_own) {
                let rival = self.tree.branches[rival].name.to_string();
                problems.push(like_problem(
                    branch,
                    format!(
                        "group '{}' asks for the CPUs of '{name}', which '{rival}' has for itself",
                        branch.name
                    ),
                    set.len(),
                ));
            }
            self.cpus[index] = Some(set);
        }
    }

    /// A branch beside `index` that has some of these CPUs for itself: by the kernel's keeping, or by the planner's if
    /// it is not the one that `index` is like.
    fn rival(&self, index: usize, like: usize, set: &CpuSet, with_own: &[usize]) -> Option<usize> {
        let branches = &self.tree.branches;
        let related = |other: usize| {
            other == index
                || self.tree.ancestors(index).any(|above| above == other)
                || self.tree.ancestors(other).any(|above| above == index)
        };
        let all: Vec<usize>;
        let others = match branches[index].keeps_siblings_off() {
            true => {
                all = (0..branches.len()).collect();
                &all
            }
            false => with_own,
        };
        others.iter().copied().filter(|other| !related(*other)).find(|other| {
            let theirs = self.cpus[*other].as_ref();
            let apart = branches[*other].keeps_siblings_off()
                || branches[index].keeps_siblings_off()
                || (is_apart(&branches[*other]) && *other != like);
            apart && theirs.is_some_and(|theirs| !theirs.is_disjoint(set))
        })
    }

    /// v1 takes no task without CPUs, and none in a child that the parent lacks: groups that request nothing get what
    /// is left.
    fn rest_of_v1(&mut self) {
        let branches = &self.tree.branches;
        if self.tree.version() != Version::V1 || self.cpus.iter().all(Option::is_some) {
            return;
        }
        let mut needed = vec![CpuSet::new(); branches.len()];
        for index in (0..branches.len()).rev() {
            let own = self.cpus[index]
                .as_ref()
                .map_or_else(|| needed[index].clone(), |own| own.union(&needed[index]));
            if let Some(parent) = branches[index].parent {
                needed[parent] = needed[parent].union(&own);
            }
        }
        let keeps_off = |other: &usize| branches[*other].keeps_siblings_off();
        let exclusive: Vec<usize> = (0..branches.len()).filter(keeps_off).collect();
        for index in 0..branches.len() {
            if self.cpus[index].is_some() {
                continue;
            }
            let above = match branches[index].parent {
                Some(parent) => self.cpus[parent].clone().unwrap_or_default(),
                None => self.top.difference(&self.reserved),
            };
            let above = above.difference(&self.foreign.beside(&[&branches[index].place.path]));
            // an exclusive group above it holds it, one below it makes it exclusive itself: these are others
            let others =
                exclusive.iter().filter(|other| !self.tree.ancestors(index).any(|above| above == **other));
            let taken = others.filter_map(|other| self.cpus[*other].as_ref());
            let all = taken.fold(above, |left, taken| left.difference(taken));
            let current = &branches[index].cpus;
            let stays = !current.is_empty() && needed[index].is_subset(current) && current.is_subset(&all);
            self.cpus[index] = Some(if stays { current.clone() } else { all });
        }
    }

    /// Warns of wishes that this machine, as it is known, gives no way to fulfil.
    fn ignored_wishes(&self, lints: &mut Vec<Lint>) {
        let resolved = |branch: usize| self.cpus[branch].clone();
        for (index, requested) in self.requested.iter().enumerate() {
            let Some(Requested::Some(amount)) = requested else { continue };
            let branch = &self.tree.branches[index];
            let near = amount.near.iter().filter(|near| self.distances(near, &resolved).is_none());
            let near = near.map(|near| (format!("{}; `near` is ignored", self.nowhere(near)), None));
            let cores =
                self.land.unknown_cores(amount.smt).map(|wish| (wish.to_owned(), Some(MORE_OF_CORES)));
            lints.extend(near.chain(cores).map(|(why, hint)| {
                let message = format!("group '{}': {why}", branch.name);
                let lint = Lint::new(LintKind::WishIgnored, Some(&branch.name), message).at(&branch.origin());
                Lint { hint: hint.map(str::to_owned), ..lint }
            }));
        }
        let Some(requested) = &self.desired.reserve.cpus else { return };
        let CpuDemand::Some(spec) = &requested.value else { return };
        let placed = |near: &&Near| reserve::distances(near, self.land, self.observed).is_some();
        let near = spec.near.iter().filter(|near| !placed(near)).map(|near| match near {
            Near::Group(name) => format!("'{name}' gets its CPUs after the reserve; `near` is ignored"),
            near => format!("{}; `near` is ignored", self.nowhere(near)),
        });
        let near = near.map(|why| (why, None));
        let cores = self.land.unknown_cores(spec.smt).map(|wish| (wish.to_owned(), Some(MORE_OF_CORES)));
        lints.extend(near.chain(cores).map(|(why, hint)| {
            let message = format!("reserved CPUs: {why}");
            let lint = Lint::new(LintKind::WishIgnored, None, message).at(&requested.origin);
            Lint { hint: hint.map(str::to_owned), ..lint }
        }));
    }

    /// Why nothing can be near to it.
    fn nowhere(&self, near: &Near) -> String {
        match near {
            Near::Node(_) if self.land.nodes.iter().all(|node| node.id.is_none()) => {
                "the nodes of the CPUs are unknown".to_owned()
            }
            Near::Node(number) => format!("this machine has no node {number}"),
            Near::Device(device) => format!("{device}'s node is unknown"),
            Near::Group(name) => format!("'{name}' has no CPUs of its own"),
        }
    }
}

/// What each chain of likes ends in; the layout has no circles.
fn ends(like: &[(usize, usize)]) -> HashMap<usize, usize> {
    let next: HashMap<usize, usize> = like.iter().copied().collect();
    let mut ends = HashMap::with_capacity(next.len());
    for (start, _) in like {
        let (mut way, mut at) = (Vec::new(), *start);
        let end = loop {
            match (ends.get(&at), next.get(&at)) {
                (Some(end), _) => break *end,
                (None, Some(further)) if way.len() < next.len() => {
                    way.push(at);
                    at = *further;
                }
                _ => break at,
            }
        };
        ends.extend(way.into_iter().map(|passed| (passed, end)));
    }
    ends
}

fn like_problem(branch: &Branch<'_>, message: String, missing: usize) -> Problem {
    let hint = "give it a demand of its own".to_owned();
    Problem::Unsatisfied { message, origin: branch.origin(), against: Vec::new(), missing, hint }
}
