//! How many CPUs each elastic group is to have next: what the groups used and waited for comes in, changes of CPU sets go
//! out, each with its reason. Pure: no clock, no I/O, the same decisions for the same states. A controller and the
//! simulator call the same code.

mod decision; // a change with its reason
mod division; // what a controller calls
mod elastic; // what a group may have
mod error; // what no machine can give
mod general; // power saving of several groups
mod loans; // what is lent
mod machine; // what CPUs are dealt out in
mod memory; // what is remembered of a group
mod parameters; // the numbers
mod policy; // the rules
mod pool; // who has which units
pub mod quota; // CPU quotas
pub mod reclaim; // memory
mod refusals; // writes that were refused
pub mod saving; // fewer CPUs at low use
mod share; // weighted shares

pub use decision::{Decision, Reason};
pub use division::{Dealer, Division, GroupState, Live};
pub use elastic::{Elastic, Scope, Sizes, static_sizes};
pub use error::Error;
pub use general::General;
pub use machine::{Unit, Units};
pub use parameters::{PARAMETERS, Parameter, Parameters};
pub use policy::Policy;
pub use pool::Pool;
pub use refusals::Refusals;
pub use share::{Claim, divide};
