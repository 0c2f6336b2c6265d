//! What is changed of a cpuset: by the code that `ringfence create`, `set` and `delete` use.

use apply::SettingValue;
use kernel::{Access, Contents, Wanted};
use settings::Controller;
use units::CpuSet;

use crate::cset::{
    failure::Failure,
    sets::{Set, Sets},
};

/// What a set is to have; `None` leaves it as it is.
#[derive(Default)]
pub(crate) struct Change<'c> {
    pub cpus: Option<&'c str>,
    pub mems: Option<&'c str>,
    pub cpu_exclusive: Option<bool>,
    pub mem_exclusive: bool,
}

/// Makes one; one without memory nodes of its own gets its parent's, and no task could be in it with none. (cset gives it node 0
/// alone, which on a machine with several costs memory.)
pub(crate) fn create(sets: &Sets, set: &Set, change: &Change<'_>) -> Result<(), Failure> {
    let (at, group) = (sets.hierarchy()?, set.group()?);
    if sets.host.needs_unit() {
        systemd::ensure_unit(&sets.host)?;
    }
    let wanted = Wanted { at, controllers: vec![Controller::Cpuset], group, optional: false };
    let above = std::iter::successors(Some(set.parent()), |above| Some(above.parent()));
    let new = above.take_while(|above| !above.is_root() && !sets.is_there(above)).collect::<Vec<Set>>();
    sets.host.create_at(&[wanted], &Access::default())?;
    let mems = sets.mems(&set.parent()).to_string();
    let mems = change.mems.or(sets.is_v1().then_some(&mems));
    let made = modify(sets, set, &Change { mems, ..*change });
    if made.is_err() {
        // the refusal is what the user reads
        for made in std::iter::once(set).chain(&new) {
            let _ = delete(sets, made);
        }
    }
    made
}

/// All of the change, or nothing.
pub(crate) fn modify(sets: &Sets, set: &Set, change: &Change<'_>) -> Result<(), Failure> {
    if set.is_root() {
        return Err(Failure::new("the root cpuset has all CPUs and memory nodes, and cannot be modified"));
    }
    let group = set.group()?;
    let partition = change.cpu_exclusive.map(|own| if own { "root" } else { "member" });
    let wanted = [
        ("cpuset.cpus", change.cpus),
        ("cpuset.mems", change.mems),
        ("cpuset.cpus.partition", partition),
        ("cpuset.mem_exclusive", change.mem_exclusive.then_some("1")),
    ];
    let mut requests = Vec::new();
    for (name, text) in wanted {
        let Some(text) = text else { continue };
        let (value, _) = SettingValue::parse(name, text, &system::Live)?;
        requests.push(value.request(&sets.host, &group)?);
    }
    apply::set(&sets.host, &requests)?;
    Ok(())
}

/// Removes one without tasks and without sets below it.
pub(crate) fn delete(sets: &Sets, set: &Set) -> Result<(), Failure> {
    let doomed = [(sets.seat(set)?, set.group()?)];
    let contents = Contents { groups: false, tasks_move_up: false };
    sets.host.delete_at(&doomed, contents)?;
    Ok(())
}

/// A task may be put into it.
pub(crate) fn is_active(sets: &Sets, set: &Set) -> Result<(), Failure> {
    let lacks = |what: &str| Failure::new(format!("\"{}\" cpuset not active, no {what} defined", set.path()));
    let cpus: CpuSet = sets.cpus(set);
    match (cpus.is_empty(), sets.mems(set).is_empty()) {
        (true, _) => Err(lacks("cpus")),
        (_, true) => Err(lacks("mems")),
        _ => Ok(()),
    }
}
