//! v2 cpusets and their partitions, as Linux 6.1 has them: what is written is a wish, what a group has is
//! computed, and a partition that can't be is marked invalid with the reason. Where `exclusive` differs, the newer
//! kernel's rules are there.

use rustix::io::Errno;
use settings::Controller::Cpuset;
use units::CpuSet;

use crate::{
    core_v2::nearest_with_cpuset,
    cpuset_v1::END_OF_NODES,
    exclusive::{self, EXCLUSIVE, UNSAID},
    files::{File, file},
    numbers,
    state::{Place, State},
};

pub(super) const FILES: &[File] = &[
    file("cpuset.cpus", Cpuset, "").writes(set_cpus),
    file("cpuset.mems", Cpuset, "").writes(set_mems),
    file("cpuset.cpus.effective", Cpuset, "")
        .everywhere()
        .reads(|state, place, _| Ok(format!("{}\n", effective_cpus(state, place)))),
    file("cpuset.mems.effective", Cpuset, "")
        .everywhere()
        .reads(|state, place, _| Ok(format!("{}\n", effective_mems(state, place)))),
    file("cpuset.cpus.partition", Cpuset, "member").reads(show_partition).writes(set_partition),
    file(EXCLUSIVE, Cpuset, "").if_built(|state| state.exclusive).writes(exclusive::set),
    file("cpuset.cpus.exclusive.effective", Cpuset, "")
        .if_built(|state| state.exclusive)
        .reads(exclusive::show_effective),
    file("cpuset.cpus.isolated", Cpuset, "")
        .root_only()
        .if_built(|state| state.exclusive)
        .reads(exclusive::show_isolated),
];

/// Why a partition is invalid; kept beside the file of the group.
pub(super) const REASON: &str = "cpuset.reason";

const EMPTY: &str = "cpuset.cpus is empty";
pub(super) const NOT_EXCLUSIVE: &str = "Cpu list in cpuset.cpus not exclusive";
const PARENT_MEMBER: &str = "Parent is not a partition root";
const PARENT_INVALID: &str = "Parent is an invalid partition root";
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

fn effective_mems(state: &State, place: &Place) -> CpuSet {
    let place = nearest_with_cpuset(state, place);
    let Some(parent) = place.parent() else { return state.nodes.clone() };
    let above = effective_mems(state, &parent);
    let own = state.value(&place, "cpuset.mems").parse::<CpuSet>().unwrap_or_default().intersection(&above);
    if own.is_empty() { above } else { own }
}

/// A group with tasks (below it, too) can't go back to an empty list.
pub(super) fn may_empty(state: &State, place: &Place, file: &str, set: &CpuSet) -> Result<(), Errno> {
    let emptied = set.is_empty() && !state.value(place, file).is_empty();
    if emptied && state.is_populated(place) { Err(Errno::NOSPC) } else { Ok(()) }
}

fn set_mems(state: &mut State, place: &Place, file: &'static File, text: &str) -> Result<(), Errno> {
    let set = numbers::list(text, END_OF_NODES)?;
    if !set.is_subset(&state.nodes) {
        return Err(Errno::INVAL);
    }
    may_empty(state, place, file.name, &set)?;
    state.set(place, file.name, set.to_string());
    Ok(())
}

fn set_cpus(state: &mut State, place: &Place, file: &'static File, text: &str) -> Result<(), Errno> {
    let set = numbers::list(text, state.cpus)?;
    may_empty(state, place, file.name, &set)?;
    if state.exclusive {
        return exclusive::set_cpus(state, place, file.name, &set);
    }
    if set == cpus(state, place) {
        return Ok(());
    }
    let rivalled = !rivals(state, place).is_empty();
    state.set(place, file.name, set.to_string());
    let rivals = rivals(state, place);
    let collision: Vec<Place> =
        rivals.iter().filter(|rival| is_valid_partition(state, rival)).cloned().collect();
    if !collision.is_empty() || (is_valid_partition(state, place) && !rivals.is_empty()) {
        collision.iter().for_each(|rival| invalidate(state, rival));
        if is_partition(state, place) {
            invalidate(state, place);
        }
    } else {
        let parent_grants = place.parent().is_some_and(|parent| is_valid_partition(state, &parent));
        if parent_grants && is_partition(state, place) {
            let reason = lacks_cpus(state, place);
            // 6.1 judges an invalid partition by the list it had: the write that repairs it comes one too early
            let stays = !is_valid_partition(state, place) && rivalled && reason.is_none();
            if !stays {
                state.set(place, REASON, reason.unwrap_or_default());
            }
        }
    }
    review_children(state, place);
    Ok(())
}

/// Siblings whose lists overlap with the group's.
fn rivals(state: &State, place: &Place) -> Vec<Place> {
    let own = cpus(state, place);
    let mut rivals = state.siblings(place);
    rivals.retain(|sibling| !cpus(state, sibling).is_disjoint(&own));
    rivals
}

fn invalidate(state: &mut State, place: &Place) {
    state.set(place, REASON, NOT_EXCLUSIVE);
}

pub(super) fn lacks_cpus(state: &State, place: &Place) -> Option<&'static str> {
    let own = own(state, place);
    if own.is_empty() {
        return Some(if state.exclusive { exclusive::EMPTY } else { EMPTY });
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

fn show_partition(state: &State, place: &Place, file: &'static File) -> Result<String, Errno> {
    let (kind, reason) = (state.value(place, file.name), state.value(place, REASON));
    Ok(match reason {
        "" => format!("{kind}\n"),
        UNSAID => format!("{kind} invalid\n"),
        reason => format!("{kind} invalid ({reason})\n"),
    })
}

fn set_partition(state: &mut State, place: &Place, file: &'static File, text: &str) -> Result<(), Errno> {
    let kind = match text.trim() {
        "member" => "member",
        "root" => "root",
        "isolated" => "isolated",
        _ => return Err(Errno::INVAL),
    };
    if state.exclusive {
        return exclusive::set_partition(state, place, file.name, kind);
    }
    let was = state.value(place, file.name).to_owned();
    if was == kind {
        return Ok(());
    }
    state.set(place, file.name, kind);
    let reason = match (was.as_str(), kind) {
        (_, "member") => None,
        ("member", _) if cpus(state, place).is_empty() => Some(EMPTY),
        ("member", _) if !rivals(state, place).is_empty() => Some(NOT_EXCLUSIVE),
        ("member", _) => lacks_parent(state, place).or_else(|| lacks_cpus(state, place)),
        _ => return Ok(()), // from root to isolated or back: as valid as it was
    };
    state.set(place, REASON, reason.unwrap_or_default());
    review_children(state, place);
    Ok(())
}
