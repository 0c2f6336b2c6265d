//! Whether a machine that can satisfy a layout could satisfy it with the change of each schedule.

use layout::{Desired, Diagnostic, Schedule};
use settings::Facts;
use topology::Machine;

use crate::{Observed, People, Problem, plan};

/// The problems of each schedule alone, as `problems` finds them.
pub fn with_each_schedule(desired: &Desired, problems: impl Fn(&Desired) -> Vec<Problem>) -> Vec<Diagnostic> {
    let of_one = |schedule: &Schedule| {
        let said = |problem: &Problem| {
            let diagnostic = problem.diagnostic();
            let message = format!("schedule '{}' can't be followed: {}", schedule.name, diagnostic.message);
            Diagnostic { message, ..diagnostic }.also(schedule.origin.clone(), "the schedule is here")
        };
        problems(&desired.with(&[&schedule.name])).iter().map(said).collect::<Vec<Diagnostic>>()
    };
    desired.schedules.iter().flat_map(of_one).collect()
}

/// The same where all that is known of the machine is given.
pub fn unschedulable(
    desired: &Desired,
    machine: &Machine,
    observed: &Observed,
    facts: &dyn Facts,
    people: &dyn People,
) -> Vec<Diagnostic> {
    with_each_schedule(desired, |changed| {
        plan(changed, machine, observed, facts, people).err().unwrap_or_default()
    })
}
