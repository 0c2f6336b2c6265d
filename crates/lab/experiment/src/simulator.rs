//! What a rule that deals out CPUs would do with a load: demands over time in, lost work and changes out. The policy is the
//! one that a controller calls. Pure: the same result each time.
//!
//! The model: in each step of [`STEP`] a group requests CPU time. What its CPUs can't serve at once is queued, the oldest
//! first; what is not served within [`PATIENCE`] of its request is lost. A group waits as much of a step as the share of its
//! work that stays in the queue: the kernel's pressure would be more, so that the policy sees less than on a machine. A
//! decision takes effect with the next step. Tasks have no number and no cost of moving.

mod baselines; // others' rules
mod load; // demands over time
mod outcome; // what came out
mod queue; // work that waits
mod run; // the model
mod saving; // power saving
mod synthetic; // loads by formula
mod walk; // which CPUs groups have had

pub use baselines::Rule;
pub use load::Load;
pub use outcome::{Outcome, Point};
pub use run::run;
pub use saving::{Saved, save};
pub use synthetic::Kind;

use policy::{Elastic, Error, Units};

/// Between two samples, in seconds.
pub const STEP: f64 = 0.1;

/// Work that waits longer than this is lost, in seconds.
pub const PATIENCE: f64 = 1.0;

/// Each load with each rule, in this order.
///
/// # Errors
/// The groups do not fit the machine.
pub fn simulate(
    groups: &[Elastic],
    units: &Units,
    loads: &[Load],
    rules: &[Rule],
) -> Result<Vec<Outcome>, Error> {
    let mut outcomes = Vec::new();
    for load in loads {
        for rule in rules {
            let mut division = rule.start(groups, units, load)?;
            outcomes.push(run(division.as_mut(), rule.name(), groups, load));
        }
    }
    Ok(outcomes)
}

fn percent(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole * 100.0 } else { 0.0 }
}
