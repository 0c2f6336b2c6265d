//! Partitions as Linux 6.12 has them: `cpuset.cpus.exclusive` names the CPUs of one, and keeps siblings from
//! naming the same; a sibling's ordinary list that overlaps still invalidates it. Where that kernel was seen to
//! judge overlaps now one way, now the other, the write is refused. Linux 7.2 leaves a valid partition its CPUs (`firm`);
//! which of two partitions that claim the same CPUs has them depends there on what was written before: refused, too.

use rustix::io::Errno;
use units::CpuSet;

use crate::{
    numbers,
    partitions::{
        EXCLUSIVE, NEITHER, NO_CPUS, NOT_EXCLUSIVE, REASON, UNSAID, cpus, granted, is_partition,
        is_valid_partition, lacks_cpus, lacks_parent, own, review_children,
    },
    state::{File, Place, State},
};

const NONE_LEFT: &str = "Invalid cpu list in cpuset.cpus.exclusive";

fn exclusive(state: &State, place: &Place) -> CpuSet {
    state.value(place, EXCLUSIVE).parse().unwrap_or_default()
}

/// What is exclusive here because it is all the way up.
fn effective(state: &State, place: &Place) -> CpuSet {
    let Some(parent) = place.parent() else { return state.online.clone() };
    let partition = is_valid_partition(state, place) || state.value(place, REASON) == UNSAID;
    let named = if partition { own(state, place) } else { exclusive(state, place) };
    named.intersection(&effective(state, &parent))
}

pub(super) fn show_effective(state: &State, place: &Place, _: &'static File) -> Result<String, Errno> {
    Ok(format!("{}\n", effective(state, place)))
}

/// The CPUs of all isolated partitions.
pub(super) fn show_isolated(state: &State, root: &Place, _: &'static File) -> Result<String, Errno> {
    let isolated = |place: &Place| {
        state.value(place, "cpuset.cpus.partition") == "isolated" && is_valid_partition(state, place)
    };
    let all = state.descendants(root).into_iter().filter(isolated);
    let all = all.fold(CpuSet::new(), |all, place| all.union(&granted(state, &place)));
    Ok(format!("{all}\n"))
}

/// `cpuset.cpus.exclusive`: not what a sibling named, holds as a partition, or has as its whole list.
pub(super) fn set(state: &mut State, place: &Place, file: &'static File, text: &str) -> Result<(), Errno> {
    let set = numbers::list(text, state.cpus)?;
    let collides = |sibling: &Place| {
        let list = cpus(state, sibling);
        !exclusive(state, sibling).is_disjoint(&set)
            || (!list.is_empty() && list.is_subset(&set))
            || (is_valid_partition(state, sibling) && !granted(state, sibling).is_disjoint(&set))
    };
    if state.siblings(place).iter().any(collides) {
        return Err(Errno::INVAL);
    }
    if set == exclusive(state, place) {
        return Ok(());
    }
    if is_partition(state, place) && !set.is_empty() && overlaps(state, place, &set) {
        return Err(Errno::OPNOTSUPP);
    }
    let by_list = state.firm && is_partition(state, place) && set.is_empty();
    if by_list && cpus(state, place).is_empty() {
        return Err(Errno::BUSY);
    }
    if by_list && overlaps(state, place, &cpus(state, place)) {
        return Err(Errno::OPNOTSUPP);
    }
    state.set(place, file.name, set.to_string());
    if is_partition(state, place) {
        if set.is_empty() && !state.firm {
            state.set(place, REASON, NONE_LEFT);
        } else {
            judge_again(state, place);
        }
    }
    review_children(state, place);
    Ok(())
}

/// `cpuset.cpus`: overlapped partitions beside it become invalid, without a reason.
pub(super) fn set_cpus(
    state: &mut State,
    place: &Place,
    file: &'static str,
    set: &CpuSet,
) -> Result<(), Errno> {
    let by_list = is_partition(state, place) && exclusive(state, place).is_empty();
    if by_list && (overlaps(state, place, set) || (state.firm && set.is_empty())) {
        return Err(Errno::OPNOTSUPP);
    }
    state.set(place, file, set.to_string());
    if !is_partition(state, place) && !state.firm {
        for sibling in state.siblings(place) {
            if is_valid_partition(state, &sibling) && !granted(state, &sibling).is_disjoint(set) {
                state.set(&sibling, REASON, UNSAID);
            }
        }
    } else if by_list {
        judge_again(state, place);
    }
    review_children(state, place);
    Ok(())
}

/// Does a sibling list or name some of these CPUs? An ordinary list does no harm to a firm partition.
fn overlaps(state: &State, place: &Place, set: &CpuSet) -> bool {
    state.siblings(place).iter().any(|sibling| {
        let listed = !state.firm || is_partition(state, sibling);
        (listed && !cpus(state, sibling).is_disjoint(set)) || !exclusive(state, sibling).is_disjoint(set)
    })
}

/// After a change of its CPUs. One whose parent had none to give stays invalid until its type is written again.
fn judge_again(state: &mut State, place: &Place) {
    if state.value(place, REASON) != NO_CPUS {
        let reason = lacks_cpus(state, place);
        state.set(place, REASON, reason.unwrap_or_default());
    }
}

pub(super) fn set_partition(
    state: &mut State,
    place: &Place,
    file: &'static str,
    kind: &str,
) -> Result<(), Errno> {
    let valid = is_partition(state, place) && is_valid_partition(state, place);
    let reason = match kind {
        "member" => None,
        _ if valid => None,
        _ if own(state, place).is_empty() => Some(NEITHER),
        _ if overlaps(state, place, &own(state, place)) => {
            if state.firm {
                return Err(Errno::OPNOTSUPP);
            }
            Some(NOT_EXCLUSIVE)
        }
        _ => match lacks_parent(state, place) {
            None => lacks_cpus(state, place),
            Some(_) if place.parent().is_some_and(|parent| effective(state, &parent).is_empty()) => {
                Some(NONE_LEFT)
            }
            // a remote partition, which takes its CPUs from the root past its parent
            Some(_) => return Err(Errno::OPNOTSUPP),
        },
    };
    state.set(place, file, kind);
    state.set(place, REASON, reason.unwrap_or_default());
    review_children(state, place);
    Ok(())
}
