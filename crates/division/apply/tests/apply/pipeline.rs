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

/// With the processes that have to follow their group into another hierarchy.
pub fn whole(layout: &Layout, target: Target<'_>) -> Plan {
    let (machine, accounts) = (Machine::live().unwrap(), system::Accounts::new());
    let planned =
        apply::planned(target, &apply::Earlier::none(), &desired(layout), &machine, &system::Live, &accounts);
    planned.unwrap_or_else(|problems| panic!("{problems:?}"))
}

pub fn try_plan(layout: &Layout, target: Target<'_>) -> Result<Plan, Vec<Problem>> {
    let desired = desired(layout);
    let needs = plan::needs(&desired, &apply::hierarchies(target));
    let observed = apply::observe(target, &needs, []);
    let machine = Machine::live().unwrap();
    plan::plan(&desired, &machine, &observed, &system::Live, &system::Accounts::new())
}
