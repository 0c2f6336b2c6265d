//! Real-time budgets of v1 on a kernel with RT_GROUP_SCHED: a group's part of the time is its parent's to give,
//! and a group without one takes no real-time task.

use rustix::io::Errno;
use settings::{Controller::Cpu, Version};

use crate::{
    numbers,
    state::{File, Place, State, Task, file},
};

const RUNTIME: &str = "cpu.rt_runtime_us";
const PERIOD: &str = "cpu.rt_period_us";
/// What all groups together may have (`/proc/sys/kernel/sched_rt_runtime_us` of its period).
const GLOBAL: Budget = Budget { runtime: 950_000, period: 1_000_000 };

pub(super) const FILES: &[File] = &[
    file(RUNTIME, Cpu, "0").everywhere().if_built(|state| state.realtime).reads(show_runtime).writes(
        |state, place, _, text| {
            let runtime = numbers::signed(text)?;
            // below 0 stands for all the time there is
            let runtime = u64::try_from(runtime).unwrap_or(u64::MAX);
            set(state, place, Budget { runtime, ..budget(state, place) })
        },
    ),
    file(PERIOD, Cpu, "1000000").everywhere().if_built(|state| state.realtime).writes(
        |state, place, _, text| {
            let period = numbers::unsigned(text)?;
            set(state, place, Budget { period, ..budget(state, place) })
        },
    ),
];

#[derive(Clone, Copy)]
struct Budget {
    runtime: u64,
    period: u64,
}

impl Budget {
    /// As a part of 2^20.
    fn share(self) -> u128 {
        (u128::from(self.runtime) << 20) / u128::from(self.period)
    }
}

fn budget(state: &State, place: &Place) -> Budget {
    if place.is_root() {
        return GLOBAL;
    }
    let number = |file| state.value(place, file).parse().unwrap_or(0);
    Budget { runtime: number(RUNTIME), period: number(PERIOD) }
}

fn show_runtime(state: &State, place: &Place, _: &'static File) -> Result<String, Errno> {
    Ok(format!("{}\n", budget(state, place).runtime))
}

fn set(state: &mut State, place: &Place, new: Budget) -> Result<(), Errno> {
    if place.is_root() {
        return Err(Errno::OPNOTSUPP);
    }
    if new.period == 0 || new.period > u64::MAX / 1000 || new.runtime > new.period {
        return Err(Errno::INVAL);
    }
    let now = budget(state, place);
    if new.runtime == 0 && now.runtime != 0 && holds_realtime(state, place) {
        return Err(Errno::BUSY);
    }
    let of = |other: &Place| if other == place { new } else { budget(state, other) };
    for group in place.upward() {
        let given: u128 = state.children(&group).iter().map(|child| of(child).share()).sum();
        if given > of(&group).share() {
            return Err(Errno::INVAL);
        }
    }
    state.set(place, RUNTIME, new.runtime.to_string());
    state.set(place, PERIOD, new.period.to_string());
    Ok(())
}

fn holds_realtime(state: &State, place: &Place) -> bool {
    state
        .threads_in(place)
        .iter()
        .any(|pid| state.tasks.get(pid).is_some_and(|task| task.process.is_realtime()))
}

/// Does a real-time task fit into the group?
pub(super) fn accepts(state: &State, place: &Place, pid: u32) -> Result<(), Errno> {
    let realtime = state.tasks.get(&pid).is_some_and(|task| task.process.is_realtime());
    let budgets = state.realtime && state.version(place) == Version::V1;
    if realtime && budgets && budget(state, place).runtime == 0 { Err(Errno::INVAL) } else { Ok(()) }
}

/// Is the task in a group without a budget?
pub(super) fn starves(state: &State, task: &Task) -> bool {
    state.realtime
        && state.trees.iter().enumerate().any(|(tree, here)| {
            here.at.version == Version::V1
                && here.at.controllers.contains(&Cpu)
                && budget(state, &Place::new(tree, task.groups[tree].clone())).runtime == 0
        })
}
