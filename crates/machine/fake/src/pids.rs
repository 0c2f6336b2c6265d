//! The number of tasks: only a fork is refused, never a move.

use rustix::io::Errno;
use settings::Controller::Pids;

use crate::{
    files, numbers,
    state::{File, Place, State, file},
};

/// `PIDS_MAX` less one.
const MOST: i64 = 4_194_304;

pub(super) const FILES: &[File] = &[
    file("pids.max", Pids, "max").writes(|state, place, file, text| {
        let limit = numbers::count(text, MOST, Errno::INVAL, Errno::INVAL)?;
        state.set(place, file.name, limit.map_or("max".to_owned(), |limit| limit.to_string()));
        Ok(())
    }),
    file("pids.current", Pids, "0")
        .reads(|state, place, _| Ok(format!("{}\n", state.threads_below(place).len()))),
    file("pids.peak", Pids, "0"),
    file("pids.events", Pids, "max 0"),
];

fn limited(state: &State, groups: &[String]) -> Vec<Place> {
    let places = groups.iter().enumerate().flat_map(|(tree, group)| Place::new(tree, group.clone()).upward());
    places.filter(|place| files::find(state, place, "pids.max").is_some()).collect()
}

/// May one more task start in these groups (one per tree)?
pub(super) fn admit(state: &mut State, groups: &[String]) -> Result<(), Errno> {
    let full = limited(state, groups).into_iter().find(|place| {
        let limit = state.value(place, "pids.max").parse::<usize>();
        limit.is_ok_and(|limit| state.threads_below(place).len() >= limit)
    });
    let Some(place) = full else { return Ok(()) };
    let refused =
        state.value(&place, "pids.events").trim_start_matches("max ").parse::<u64>().unwrap_or(0) + 1;
    state.set(&place, "pids.events", format!("max {refused}"));
    Err(Errno::AGAIN)
}

/// Raises the peaks above a task that came.
pub(super) fn note_peaks(state: &mut State, pid: u32) {
    let Some(task) = state.tasks.get(&pid) else { return };
    for place in limited(state, &task.groups.clone()) {
        let now = state.threads_below(&place).len();
        if state.number(&place, "pids.peak") < now as i64 {
            state.set(&place, "pids.peak", now.to_string());
        }
    }
}
