//! Which group a process belongs to: the rules of a layout or of cgrules.conf, compiled once, against facts of a process
//! that are read only as far as a rule asks for them; why each rule did or did not take it; and the way into the group,
//! which is made from its template if it is not there. Writes no setting itself: templates' settings are `apply`'s.

// in the order of the data's way: facts from outside, rules made ready, a process judged, put into its group
mod configuration;
mod facts;
mod led;
mod names;
mod requested;

mod compile;
mod control_groups;
mod fits;

mod decide;
mod error;
mod explain;
mod goal;
mod placed;

mod goals;
mod make;
mod strays;

mod place;

mod matching;
mod outcome;
mod shells;
mod sweep;

pub use compile::{Rules, Unknown};
pub use configuration::{Configuration, Files, Unreadable};
pub use control_groups::{Membership, Memberships, Present};
pub use decide::Decision;
pub use error::Error;
pub use explain::{Explained, Miss, Passed};
pub use facts::{Facts, KnownProcess, Relative};
pub use goal::{Goal, GoalError};
pub use goals::seats;
pub use matching::{Match, matching};
pub use names::Names;
pub use outcome::{ClassifyOptions, Done, Outcome};
pub use place::{Placed, Placer};
pub use placed::{Memory, settle};
pub use requested::RequestedProgram;
pub use shells::{STRICT_SHELL, strict_shells};
pub use strays::Other;
pub use sweep::{NewDirectory, sweep};
