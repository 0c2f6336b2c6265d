//! Why a machine can't satisfy demands of CPUs, in words: which, by how much, against whom, and what would make it fit.

use units::{CpuSet, NodeSet};

use super::{
    MORE_OF_CORES,
    claim::{Amount, Claim, Requested, cores, cpus},
    core_sizes::CoreSizes,
    scope::{MACHINE, Scope},
};
use crate::{Against, Problem};

fn unsatisfied(
    claim: &Claim,
    message: String,
    against: Vec<Against>,
    missing: usize,
    hint: String,
) -> Problem {
    Problem::Unsatisfied { message, origin: claim.origin.clone(), against, missing, hint }
}

/// CPUs named that the scope can't give.
pub(crate) fn not_there(scope: &Scope<'_>, claim: &Claim, named: &CpuSet) -> Problem {
    let offline = named.difference(&scope.land.online);
    let beyond = named.difference(&offline).difference(scope.whole);
    let reserved = named.intersection(scope.whole).intersection(scope.reserve);
    let name = &claim.name;
    let (message, missing, hint) = if !offline.is_empty() {
        let message =
            format!("group '{name}' asks for the CPUs {offline}, which this machine does not have online");
        let meant = match (named.len(), named.first()) {
            (1, Some(number @ 2..=100)) => format!("; for {number} % of them write \"{number}%\""),
            _ => String::new(),
        };
        (message, offline.len(), format!("its CPUs are {}{meant}", scope.land.online))
    } else if !beyond.is_empty() && scope.owner == MACHINE {
        let message = format!(
            "group '{name}' asks for the CPUs {beyond}, which are online, but not among those of the group that holds \
             the layout's groups"
        );
        let hint = format!(
            "it has {}. What a partition has is nobody else's: if a service has it that this layout takes it from, apply \
             the layout without them in '{name}' first",
            scope.whole
        );
        (message, beyond.len(), hint)
    } else if !beyond.is_empty() {
        let message =
            format!("group '{name}' asks for the CPUs {beyond}, which {} does not have", scope.owner);
        (message, beyond.len(), format!("{} has the CPUs {}", scope.owner, scope.whole))
    } else {
        let message = format!("group '{name}' asks for the CPUs {reserved}, which are reserved");
        let hint = format!(
            "take them out of one of the two; not reserved are {}",
            scope.whole.difference(scope.reserve)
        );
        (message, reserved.len(), hint)
    };
    unsatisfied(claim, message, Vec::new(), missing, hint)
}

/// CPUs that a group wants for itself and others request, too.
pub(crate) fn overlap(claim: &Claim, rivals: &[(&Claim, CpuSet)]) -> Problem {
    let all = rivals.iter().fold(CpuSet::new(), |all, (_, common)| all.union(common));
    let names: Vec<String> = rivals.iter().take(5).map(|(rival, _)| format!("'{}'", rival.name)).collect();
    let more = if rivals.len() > 5 { format!(" and {} more", rivals.len() - 5) } else { String::new() };
    let message = format!(
        "group '{}' asks for {}, but {}{more} {} {all}, too",
        claim.name,
        claim.words(),
        names.join(", "),
        if rivals.len() == 1 { "asks for" } else { "ask for" },
    );
    let against = rivals.iter().map(|(rival, common)| Against {
        origin: Some(rival.origin.clone()),
        what: format!("'{}' asks for {common}", rival.name),
    });
    let hint = format!("take {all} out of one of them, or do without exclusive");
    unsatisfied(claim, message, against.collect(), all.len(), hint)
}

/// A group that takes what others leave, and they leave nothing.
pub(crate) fn nothing_left(scope: &Scope<'_>, claim: &Claim, sets: &[Option<CpuSet>]) -> Problem {
    let region = match &claim.request {
        Requested::Rest(Some(nodes)) => scope.land.cpus_of(nodes),
        _ => scope.whole.clone(),
    };
    let message = match region.is_empty() {
        true => format!("group '{}' asks for {}, and this machine has none there", claim.name, claim.words()),
        false => format!("group '{}' asks for {}, and others leave none of them", claim.name, claim.words()),
    };
    let hint = match region.is_empty() {
        true => nodes_there(scope),
        false => "let one of the others have fewer CPUs for itself".to_owned(),
    };
    unsatisfied(claim, message, holders(scope, claim, &region, sets), 1, hint)
}

/// Where CPUs can be requested.
fn nodes_there(scope: &Scope<'_>) -> String {
    let in_scope = |node: &&super::landscape::Ground| !node.cpus.is_disjoint(scope.whole);
    let nodes = scope.land.nodes.iter().filter(in_scope).filter_map(|node| node.id);
    let nodes: NodeSet = nodes.collect();
    match nodes.is_empty() {
        true => "leave out node: the nodes of its CPUs are not known".to_owned(),
        false if nodes.len() == 1 => format!("{} has CPUs on node {nodes}", scope.owner),
        false => format!("{} has CPUs on the nodes {nodes}", scope.owner),
    }
}

/// Whole cores, but none have so many CPUs together.
pub(crate) fn odd(claim: &Claim, count: usize, sizes: &CoreSizes) -> Problem {
    let each = sizes.words();
    let message =
        format!("group '{}' asks for {} in whole cores, which have {each} each", claim.name, cpus(count));
    let (near, missing) = sizes.nearest(count);
    unsatisfied(claim, message, Vec::new(), missing, format!("ask for {near}"))
}

/// Cores by number, of a machine whose cores nobody described.
pub(crate) fn unknown_cores(claim: &Claim) -> Problem {
    let message = format!(
        "group '{}' asks for {}, but which CPUs share a core is not known",
        claim.name,
        claim.words()
    );
    unsatisfied(claim, message, Vec::new(), 0, MORE_OF_CORES.to_owned())
}

/// Groups below need more CPUs than a group may have.
pub(crate) fn too_narrow(claim: &Claim, amount: &Amount) -> Problem {
    let message = format!(
        "group '{}' asks for {}, but the groups in it name {} ({})",
        claim.name,
        claim.words(),
        amount.must.len(),
        amount.must
    );
    let missing = amount.must.len().saturating_sub(amount.max);
    unsatisfied(claim, message, Vec::new(), missing, format!("ask for at least {}", cpus(amount.must.len())))
}

/// All numbers together are too many.
pub(crate) fn too_many(scope: &Scope<'_>, missing: usize, sets: &[Option<CpuSet>]) -> Problem {
    let there = scope.whole.difference(scope.reserve).len();
    let apart: Vec<(&Claim, usize)> = scope
        .claims
        .iter()
        .zip(sets)
        .filter(|(claim, _)| claim.apart)
        .filter_map(|(claim, set)| match (&claim.request, set) {
            (Requested::Some(amount), _) => Some((claim, amount.min)),
            (_, Some(set)) => Some((claim, set.len())),
            _ => None,
        })
        .collect();
    let shared = scope.claims.iter().filter(|claim| !claim.apart).filter_map(|claim| match &claim.request {
        Requested::Some(amount) => Some((claim, amount.min)),
        _ => None,
    });
    // who takes what is left needs one
    let rest = |claim: &&Claim| !claim.apart && matches!(claim.request, Requested::Rest(_));
    let rests = scope.claims.iter().find(rest).map(|claim| (claim, 1));
    let most_shared = shared.max_by_key(|(_, count)| *count).or(rests);
    let own: usize = apart.iter().map(|(_, count)| count).sum();
    let needs_own = match &apart[..] {
        [] => None,
        [(claim, count)] => Some(format!("'{}' needs {} of its own", claim.name, cpus(*count))),
        _ => Some(format!("groups with CPUs of their own need {}", cpus(own))),
    };
    let mut parts: Vec<String> = needs_own.into_iter().collect();
    parts.extend(most_shared.map(|(claim, count)| format!("'{}' needs {}", claim.name, cpus(count))));
    if most_shared.is_none() && scope.keep > 0 {
        parts.push(format!("all other tasks need {}", cpus(scope.keep)));
    }
    let reserved = if scope.reserve.is_empty() {
        String::new()
    } else {
        format!(" besides {} reserved", scope.reserve.len())
    };
    let message = format!(
        "{} has {}{reserved}, but {}: {missing} too many",
        scope.owner,
        cpus(there),
        parts.join(" and "),
    );
    let largest = apart.iter().chain(most_shared.as_ref()).max_by_key(|(_, count)| *count);
    let origin =
        largest.map_or_else(|| layout::Origin::outside_files("<layout>"), |(claim, _)| claim.origin.clone());
    let others = apart.iter().chain(most_shared.as_ref()).filter(|(claim, _)| claim.origin != origin);
    // a count that is no multiple of a core was rounded up
    let in_cores = |claim: &Claim| match &claim.request {
        Requested::Some(amount) if amount.smt == Some(layout::Smt::WholeCores) => " in whole cores",
        _ => "",
    };
    let against = others.map(|(claim, count)| Against {
        origin: Some(claim.origin.clone()),
        what: format!("'{}' asks for {}{}", claim.name, cpus(*count), in_cores(claim)),
    });
    let against: Vec<Against> = against.collect();
    let hint = match largest {
        Some((claim, count)) if *count > missing => {
            let (count, cores) = (cpus(count - missing), in_cores(claim));
            format!("use {missing} fewer in all, for example {count}{cores} in '{}'", claim.name)
        }
        _ if !scope.reserve.is_empty() => format!("reserve {missing} fewer"),
        _ => format!("use {missing} fewer in all"),
    };
    Problem::Unsatisfied { message, origin, against, missing, hint }
}

/// One number that can't be satisfied where it is wanted.
pub(crate) fn short(
    scope: &Scope<'_>,
    claim: &Claim,
    amount: &Amount,
    count: usize,
    free: &CpuSet,
    sets: &[Option<CpuSet>],
) -> Problem {
    let region = match &amount.nodes {
        Some(nodes) => scope.land.cpus_of(nodes).intersection(scope.whole),
        None => scope.whole.clone(),
    };
    let region_is_empty = region.is_empty();
    let lacking = amount.must.difference(free);
    let whole: usize =
        scope.land.cores.iter().filter(|core| core.iter().all(|cpu| free.contains(*cpu))).map(Vec::len).sum();
    let in_cores = amount.smt == Some(layout::Smt::WholeCores) && free.len() >= count;
    if in_cores && amount.cores.is_none() && lacking.is_empty() && whole >= count {
        // enough of them, but the cores that are left have no such number together
        return odd(claim, count, &scope.land.sizes_of(free));
    }
    if let Some(number) = amount.cores.filter(|_| lacking.is_empty()) {
        return few_cores(scope, claim, number, (&region, free), sets);
    }
    let left = if in_cores { whole } else { free.len() };
    let what = if in_cores { " in whole cores" } else { "" };
    let message = if lacking.is_empty() {
        let (requested, region) = (claim.words(), region.len());
        format!("group '{}' asks for {requested}{what}; {left} of {region} are left", claim.name)
    } else {
        format!("group '{}' must have the CPUs {lacking} for the groups in it, but can't", claim.name)
    };
    let missing = count.saturating_sub(left).max(lacking.len()).max(1);
    let hint = match left {
        _ if region_is_empty => nodes_there(scope),
        0 => "let one of the others have fewer CPUs for itself".to_owned(),
        left => format!("ask for at most {left}, or take {missing} from the others"),
    };
    unsatisfied(claim, message, holders(scope, claim, &region, sets), missing, hint)
}

/// More cores than there are in a region, or than are free there.
pub(crate) fn few_cores(
    scope: &Scope<'_>,
    claim: &Claim,
    number: usize,
    (region, free): (&CpuSet, &CpuSet),
    sets: &[Option<CpuSet>],
) -> Problem {
    let [left, all] = [free, region].map(|cpus| scope.land.sizes_of(cpus).each().count());
    let message = format!("group '{}' asks for {}; {left} of {all} are left", claim.name, claim.words());
    let hint = match left {
        _ if region.is_empty() => nodes_there(scope),
        0 => "let one of the others have fewer CPUs for itself".to_owned(),
        left => format!("ask for at most {}", cores(left)),
    };
    let missing = number.saturating_sub(left).max(1);
    unsatisfied(claim, message, holders(scope, claim, region, sets), missing, hint)
}

/// Who has CPUs of a region for himself, and what is reserved there.
fn holders(scope: &Scope<'_>, claim: &Claim, region: &CpuSet, sets: &[Option<CpuSet>]) -> Vec<Against> {
    let with_sets = scope.claims.iter().zip(sets).filter(|(other, _)| other.branch != claim.branch);
    let in_the_way = with_sets.filter(|(other, _)| other.apart || claim.apart);
    let owners = in_the_way.filter_map(|(other, set)| {
        let common = set.as_ref()?.intersection(region);
        let what = format!("'{}' has {} of them ({common})", other.name, common.len());
        (!common.is_empty()).then(|| Against { origin: Some(other.origin.clone()), what })
    });
    let reserved = scope.reserve.intersection(region);
    let reserve =
        (!reserved.is_empty()).then(|| Against { origin: None, what: format!("{reserved} are reserved") });
    owners.chain(reserve).collect()
}
