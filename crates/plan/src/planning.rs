//! From what is desired and what the kernel holds to a plan: the parts of this crate in the order of the data's way.

use layout::Desired;
use settings::Facts;
use topology::Machine;

use crate::{Observed, People, Plan, Problem};

/// What has to be done so that the machine is as desired.
///
/// # Errors
/// Every [`Problem`] at once; then nothing should be done.
pub fn plan(
    _desired: &Desired,
    _machine: &Machine,
    _observed: &Observed,
    _facts: &dyn Facts,
    _people: &dyn People,
) -> Result<Plan, Vec<Problem>> {
    Err(Vec::new())
}
