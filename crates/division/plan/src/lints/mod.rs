//! Looks at a plan's parts for what works, but perhaps not as meant.

mod cpus;
mod memory;
mod rules;
mod single_settings;
mod tasks;

pub use memory::starving;
pub(crate) use tasks::from_outside;

use layout::Desired;
use topology::Machine;
use units::Bytes;

use crate::{
    Lint, Observed, Problem, power,
    resolve::{Landscape, Resolved},
    tree::Tree,
    values::Valued,
};

/// What lints look at.
pub(crate) struct Looked<'l> {
    pub desired: &'l Desired,
    pub machine: &'l Machine,
    /// What percentages are taken of; the nodes' sum need not be as much.
    pub memory: Option<Bytes>,
    pub land: &'l Landscape,
    pub observed: &'l Observed,
    pub tree: &'l Tree<'l>,
    pub resolved: &'l Resolved,
    pub values: &'l [Valued<'l>],
}

/// All of them; and a problem where what is reserved is given away.
pub(crate) fn find(looked: &Looked<'_>, problems: &mut Vec<Problem>, lints: &mut Vec<Lint>) {
    cpus::siblings(looked, lints);
    cpus::still_used(looked, lints);
    memory::below_usage(looked, lints);
    memory::over_capacity(looked, problems, lints);
    memory::too_small(looked, lints);
    memory::high_above_max(looked, lints);
    cpus::overlapping(looked, lints);
    cpus::shared_beside_free(looked, lints);
    cpus::elastic(looked, lints);
    power::lints(looked.desired, looked.tree, lints);
    cpus::ranges(looked, lints);
    rules::without_group(looked, lints);
    rules::of_services(looked, lints);
    single_settings::real_time(looked, lints);
    single_settings::weights(looked, lints);
    single_settings::approximate(looked, lints);
}
