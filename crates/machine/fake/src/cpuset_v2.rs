//! v2 cpusets and their partitions, as Linux 6.1 has them: what is written is a wish, what a group has is
//! computed, and a partition that can't be is marked invalid with the reason. Where `exclusive` differs, the newer
//! kernel's rules are there.

use rustix::io::Errno;
use settings::Controller::Cpuset;
use units::CpuSet;

use crate::{
    core_v2::nearest_with_cpuset,
    cpuset_v1::END_OF_NODES,
    exclusive, numbers,
    partitions::{
        EMPTY, EXCLUSIVE, NOT_EXCLUSIVE, REASON, UNSAID, cpus, effective_cpus, is_partition,
        is_valid_partition, lacks_cpus, lacks_parent, review_children, rivals,
    },
    state::{File, Place, State, file},
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

fn effective_mems(state: &State, place: &Place) -> CpuSet {
    let place = nearest_with_cpuset(state, place);
    let Some(parent) = place.parent() else { return state.nodes.clone() };
    let above = effective_mems(state, &parent);
    let own = state.value(&place, "cpuset.mems").parse::<CpuSet>().unwrap_or_default().intersection(&above);
    if own.is_empty() { above } else { own }
}

/// A group with tasks (below it, too) can't go back to an empty list before Linux 7.0.
pub(super) fn may_empty(state: &State, place: &Place, file: &str, set: &CpuSet) -> Result<(), Errno> {
    let emptied = set.is_empty() && !state.value(place, file).is_empty();
    if emptied && !state.firm && state.is_populated(place) { Err(Errno::NOSPC) } else { Ok(()) }
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

fn invalidate(state: &mut State, place: &Place) {
    state.set(place, REASON, NOT_EXCLUSIVE);
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
