//! The files that every v1 group has: tasks and what happens to a group's children and at its end.

use settings::Controller::Core;

use crate::{
    numbers,
    state::{File, Place, Scope, State, file},
};

pub(super) const FILES: &[File] = &[
    file("tasks", Core, "")
        .everywhere()
        .reads(tasks)
        .writes(|state, place, _, text| state.attach(place, text, Scope::Thread)),
    file("cgroup.procs", Core, "")
        .everywhere()
        .reads(procs)
        .writes(|state, place, _, text| state.attach(place, text, Scope::Process)),
    file("cgroup.clone_children", Core, "0").everywhere().writes(any_number_as_flag),
    file("notify_on_release", Core, "0").everywhere().writes(any_number_as_flag),
    file("cgroup.sane_behavior", Core, "0").root_only(),
    file("release_agent", Core, "").root_only().unmodelled(),
];

fn tasks(state: &State, place: &Place, _: &'static File) -> Result<String, rustix::io::Errno> {
    Ok(lines(&state.threads_in(place)))
}

/// The processes that have a thread here.
fn procs(state: &State, place: &Place, _: &'static File) -> Result<String, rustix::io::Errno> {
    let threads = state.threads_in(place);
    let mut processes: Vec<u32> =
        threads.iter().filter_map(|pid| Some(state.tasks.get(pid)?.process.tgid)).collect();
    processes.sort_unstable();
    processes.dedup();
    Ok(lines(&processes))
}

/// One number per line.
pub(super) fn lines(pids: &[u32]) -> String {
    pids.iter().map(|pid| format!("{pid}\n")).collect()
}

/// Any number but 0 is 1.
pub(super) fn any_number_as_flag(
    state: &mut State,
    place: &Place,
    file: &'static File,
    text: &str,
) -> Result<(), rustix::io::Errno> {
    let on = numbers::unsigned(text)? != 0;
    state.set(place, file.name, if on { "1" } else { "0" });
    Ok(())
}
