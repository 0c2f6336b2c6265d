//! The v1 freezer: a group is frozen if it or one above it has `FROZEN` written. A task in an
//! uninterruptible wait leaves it FREEZING.

use rustix::io::Errno;
use settings::{Controller::Freezer, Version};

use crate::state::{File, Place, State, file};

pub(super) const FILES: &[File] = &[
    file("freezer.state", Freezer, "THAWED").reads(state_word).writes(write),
    file("freezer.self_freezing", Freezer, "").reads(|state, place, _| Ok(flag(requested(state, place)))),
    file("freezer.parent_freezing", Freezer, "")
        .reads(|state, place, _| Ok(flag(place.ancestors().any(|above| requested(state, &above))))),
];

fn flag(on: bool) -> String {
    format!("{}\n", u8::from(on))
}

fn requested(state: &State, place: &Place) -> bool {
    state.value(place, "freezer.state") == "FROZEN"
}

fn is_freezing(state: &State, place: &Place) -> bool {
    place.upward().any(|place| requested(state, &place))
}

/// Does a v1 freezer stop the task?
pub(super) fn holds(state: &State, pid: u32) -> bool {
    (0..state.trees.len()).any(|tree| {
        let at = &state.trees[tree].at;
        let here = at.version == Version::V1 && at.controllers.contains(&Freezer);
        here && state.place_of(pid, tree).is_some_and(|place| is_freezing(state, &place))
    })
}

fn state_word(state: &State, place: &Place, _: &'static File) -> Result<String, Errno> {
    let stuck =
        || state.threads_below(place).iter().any(|pid| state.tasks.get(pid).is_some_and(|task| task.stuck));
    let word = match is_freezing(state, place) {
        false => "THAWED",
        true if stuck() => "FREEZING",
        true => "FROZEN",
    };
    Ok(format!("{word}\n"))
}

fn write(state: &mut State, place: &Place, file: &'static File, text: &str) -> Result<(), Errno> {
    let word = match text.trim() {
        "FROZEN" => "FROZEN",
        "THAWED" => "THAWED",
        _ => return Err(Errno::INVAL),
    };
    state.set(place, file.name, word);
    let doomed: Vec<u32> =
        state.tasks.values().filter(|task| task.doomed).map(|task| task.process.tgid).collect();
    for pid in doomed {
        state.kill(pid); // ends now, if nothing else holds it
    }
    Ok(())
}
