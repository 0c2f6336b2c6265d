//! The whole way from a layout's text to a plan for the machine as it is, as a command goes it.

use apply::Target;
use layout::{Desired, Source};
use plan::{Plan, Problem};
use topology::Machine;

/// A layout's file name, which tells its grammar, and its text.
pub type Layout = (&'static str, String);

pub fn desired((file, text): &Layout) -> Desired {
    let sources = [Source::new(file, text)];
    let reading = layout::read(&sources);
    let Some(desired) = reading.desired else { panic!("{}", layout::render(&reading.diagnostics, &sources)) };
    desired
}

pub fn plan(layout: &Layout, target: Target<'_>) -> Plan {
    try_plan(layout, target).unwrap_or_else(|problems| {
        let diagnostics: Vec<_> = problems.iter().map(Problem::diagnostic).collect();
        panic!("{}", layout::render(&diagnostics, &[Source::new(layout.0, &layout.1)]))
    })
}

pub fn try_plan(layout: &Layout, target: Target<'_>) -> Result<Plan, Vec<Problem>> {
    let desired = desired(layout);
    let needs = plan::needs(&desired, &apply::hierarchies(target));
    let observed = apply::observe(target, &needs, []);
    let machine = Machine::live().unwrap();
    plan::plan(&desired, &machine, &observed, &system::Live, &system::Accounts::new())
}
