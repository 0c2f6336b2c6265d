//! What a v2 cpuset comes to: the CPUs that it may use, whether its partition is valid, and if not, why. Of all kernels;
//! what is written is the business of `cpuset_v2`, and of `exclusive` where the kernel has that file.

use units::CpuSet;

use crate::{
    core_v2::nearest_with_cpuset,
    state::{Place, State},
};

pub(super) const EXCLUSIVE: &str = "cpuset.cpus.exclusive";
/// An invalid partition's reason where the kernel gives none.
pub(super) const UNSAID: &str = "-";
pub(super) const NEITHER: &str = "cpuset.cpus and cpuset.cpus.exclusive are empty";
/// Why a partition is invalid; stored beside the file of the group.
pub(super) const REASON: &str = "cpuset.reason";

pub(super) const EMPTY: &str = "cpuset.cpus is empty";
pub(super) const NOT_EXCLUSIVE: &str = "Cpu list in cpuset.cpus not exclusive";
pub(super) const PARENT_MEMBER: &str = "Parent is not a partition root";
pub(super) const PARENT_INVALID: &str = "Parent is an invalid partition root";
pub(super) const NO_CPUS: &str = "Parent unable to distribute cpu downstream";

pub(super) fn cpus(state: &State, place: &Place) -> CpuSet {
    state.value(place, "cpuset.cpus").parse().unwrap_or_default()
}

/// The CPUs that the group would have as a partition: those named for that, else its list.
pub(super) fn own(state: &State, place: &Place) -> CpuSet {
    match state.value(place, EXCLUSIVE) {
        "" => cpus(state, place),
        exclusive => exclusive.parse().unwrap_or_default(),
    }
}

pub(super) fn is_partition(state: &State, place: &Place) -> bool {
    state.value(place, "cpuset.cpus.partition") != "member"
}

/// The root is one, always.
pub(super) fn is_valid_partition(state: &State, place: &Place) -> bool {
    place.is_root() || (is_partition(state, place) && state.value(place, REASON).is_empty())
}

/// What a partition was given, its own partitions below it included.
pub(super) fn granted(state: &State, place: &Place) -> CpuSet {
    let Some(parent) = place.parent() else { return state.online.clone() };
    let pool = if is_valid_partition(state, &parent) {
        granted(state, &parent)
    } else {
        effective_cpus(state, &parent)
    };
    own(state, place).intersection(&pool)
}

/// The CPUs that the group's tasks run on.
pub(super) fn effective_cpus(state: &State, place: &Place) -> CpuSet {
    let place = nearest_with_cpuset(state, place);
    if is_valid_partition(state, &place) {
        let mut own = granted(state, &place);
        for child in state.children(&place).iter().filter(|child| is_valid_partition(state, child)) {
            own = own.difference(&granted(state, child));
        }
        return own;
    }
    let above = place.parent().map(|parent| effective_cpus(state, &parent)).unwrap_or_default();
    // a partition that was overlapped keeps what it had until it is looked at again
    let wish = if state.value(&place, REASON) == UNSAID { own(state, &place) } else { cpus(state, &place) };
    let own = wish.intersection(&above);
    if own.is_empty() { above } else { own }
}

/// Siblings whose lists overlap with the group's.
pub(super) fn rivals(state: &State, place: &Place) -> Vec<Place> {
    let own = cpus(state, place);
    let mut rivals = state.siblings(place);
    rivals.retain(|sibling| !cpus(state, sibling).is_disjoint(&own));
    rivals
}

pub(super) fn lacks_cpus(state: &State, place: &Place) -> Option<&'static str> {
    let own = own(state, place);
    if own.is_empty() {
        return Some(if state.exclusive { NEITHER } else { EMPTY });
    }
    let parent = place.parent()?;
    let pool = granted(state, &parent);
    if own.is_disjoint(&pool) {
        return Some(NO_CPUS);
    }
    // what the parent would keep, for its own tasks and those of groups that are no partitions
    let others = |child: &Place| child != place && is_valid_partition(state, child);
    let mut rest = pool.difference(&own);
    for child in state.children(&parent).iter().filter(|child| others(child)) {
        rest = rest.difference(&granted(state, child));
    }
    let left_alone = state.children(&parent).into_iter().filter(|child| child != place && !others(child));
    let needy = !state.threads_in(&parent).is_empty()
        || left_alone.into_iter().any(|child| state.is_populated(&child));
    (rest.is_empty() && needy).then_some(NO_CPUS)
}

pub(super) fn lacks_parent(state: &State, place: &Place) -> Option<&'static str> {
    let parent = place.parent()?;
    match (is_valid_partition(state, &parent), is_partition(state, &parent)) {
        (true, _) => None,
        (false, true) => Some(PARENT_INVALID),
        (false, false) => Some(PARENT_MEMBER),
    }
}

/// The partitions below a group that changed are looked at again.
pub(super) fn review_children(state: &mut State, place: &Place) {
    for child in state.children(place) {
        let contested = state.value(&child, REASON) == NOT_EXCLUSIVE && !rivals(state, &child).is_empty();
        if is_partition(state, &child) && !contested {
            let reason = lacks_parent(state, &child).or_else(|| lacks_cpus(state, &child));
            state.set(&child, REASON, reason.unwrap_or_default());
            review_children(state, &child);
        }
    }
}
