//! The CPUs reserved for the rest of the system: near to the first one, where the kernel does what it does once,
//! and none that a group names.

use layout::{CpuAmount, CpuDemand, CpuSpec, Desired, Near, Placement, Smt};
use units::CpuSet;

use super::{
    choose,
    claim::{cores, cpus, share, whole_cores},
    cores::choose_cores,
    cost::Wish,
    field::{Field, Load},
    landscape::Landscape,
};
use crate::{Observed, Problem};

/// Chooses them. Does not depend on what groups have now, so that it stays the same.
pub(crate) fn choose(
    desired: &Desired,
    (land, observed): (&Landscape, &Observed),
    top: &CpuSet,
    named: &CpuSet,
    problems: &mut Vec<Problem>,
) -> CpuSet {
    let Some(requested) = &desired.reserve.cpus else { return CpuSet::new() };
    let mut wrong = |message: String, missing: usize, hint: &str| {
        let (origin, hint) = (requested.origin.clone(), hint.to_owned());
        problems.push(Problem::Unsatisfied { message, origin, against: Vec::new(), missing, hint });
    };
    match &requested.value {
        CpuDemand::These(these) => {
            let lacking = these.difference(top);
            if !lacking.is_empty() {
                let hint = format!("its CPUs are {top}");
                wrong(
                    format!("cannot reserve the CPUs {lacking}: this machine does not have them"),
                    lacking.len(),
                    &hint,
                );
            }
            these.intersection(top)
        }
        CpuDemand::OfNodes(nodes) => {
            let all = land.cpus_of(nodes).intersection(top);
            if all.is_empty() {
                wrong(
                    format!("the CPUs of node {nodes} are to be reserved, and there are none"),
                    1,
                    "name another node",
                );
            }
            all
        }
        CpuDemand::Some(spec) => {
            let free = top.difference(named);
            let free =
                spec.nodes.as_ref().map_or(free.clone(), |nodes| land.cpus_of(nodes).intersection(&free));
            let count = match spec.amount {
                CpuAmount::Count(count) => count,
                CpuAmount::Cores(count) => land.core_sizes.of_some(count).0,
                CpuAmount::Percent(percent) => share(top.len(), percent),
                CpuAmount::Between { min, .. } => min,
            };
            let (count, _) = whole_cores(spec, (count, count), land);
            let near = spec.near.iter().filter_map(|near| distances(near, land, observed));
            let first: CpuSet = land.online.iter().take(1).collect();
            let wish = Wish {
                smt: spec.smt,
                placement: spec.placement.unwrap_or(Placement::Pack),
                near: near.collect(),
                pulled: land.distances_from_cpus(&first).into_iter().collect(),
                ..Wish::of(count)
            };
            let field = Field { free: &free, busy: &[], load: &Load::default() };
            let chosen = match spec.amount {
                // the rest of the system needs no large ones
                CpuAmount::Cores(cores) => choose_cores(land, &wish, &field, (cores, true)),
                _ => choose::choose(land, &wish, &field),
            };
            chosen.unwrap_or_else(|| {
                let all = spec.nodes.as_ref().map_or(top.clone(), |nodes| land.cpus_of(nodes));
                let are_named = !named.is_disjoint(&all);
                let (message, missing, hint) = short(land, spec, count, (&free, are_named));
                wrong(message, missing, &hint);
                CpuSet::new()
            })
        }
        CpuDemand::All | CpuDemand::General | CpuDemand::Like(_) => CpuSet::new(),
    }
}

/// Why so many can't be reserved of these CPUs: the message, how many are missing, and the hint. `are_named`: groups name
/// others of the same place by number.
fn short(
    land: &Landscape,
    spec: &CpuSpec,
    count: usize,
    (free, are_named): (&CpuSet, bool),
) -> (String, usize, String) {
    let (sizes, whole) = (land.sizes_of(free), land.whole_cores(free).len());
    let in_cores = spec.smt == Some(Smt::WholeCores);
    let (wanted, left, what) = match spec.amount {
        CpuAmount::Cores(number) => (number, sizes.each().count(), cores(number)),
        _ if in_cores => (count, whole, format!("{} in whole cores", cpus(count))),
        _ => (count, free.len(), cpus(count)),
    };
    let are = |count: usize| if count == 1 { "is" } else { "are" };
    let place = spec.nodes.as_ref().map_or(String::new(), |nodes| format!(" of node {nodes}"));
    let message = format!("{what}{place} {} to be reserved", are(wanted));
    if left >= wanted {
        // enough of them, but no cores have such a number together
        let (near, missing) = sizes.nearest(count);
        return (format!("{message}, and a core has {}", sizes.words()), missing, format!("reserve {near}"));
    }
    let missing = wanted - left;
    match are_named {
        true => {
            let message = format!("{message}, but only {left} {} named by no group", are(left));
            (message, missing, "reserve fewer, or name fewer CPUs by number".to_owned())
        }
        false => {
            let message = format!("{message}, but there {} only {left}", are(left));
            (message, missing, format!("reserve {missing} fewer"))
        }
    }
}

/// The distances of nodes from a node or device; `None` if its place is not known, and of a group, which gets its CPUs
/// later.
pub(crate) fn distances(near: &Near, land: &Landscape, observed: &Observed) -> Option<Vec<u32>> {
    match near {
        Near::Node(number) => land.distances_from_node(*number),
        Near::Device(device) => land.distances_from_node(*observed.device_nodes.get(device)?),
        Near::Group(_) => None,
    }
}
