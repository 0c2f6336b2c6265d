//! Carries out what was planned: finds where each setting lives, writes, reads back, and on any refusal puts back
//! what it had changed. It decides nothing: values and order come from `plan`.

mod error;
mod held;

mod change; // single settings
mod copy;
mod preview;

// a whole plan, in the order of its way
mod observe;
mod system;

mod failure;
mod record;
mod state;

mod before;
mod execute;
mod journal;
mod prune;

mod away;
mod ownership;
mod perform;

mod inverse;
mod recover;
mod rollback;
mod stayed;
mod undo;

mod confirm;
mod kept;
mod made;
mod status;

pub use change::{Change, set};
pub use confirm::{Verdict, confirm, execute_unless_reverted, revert_unless_confirmed};
pub use copy::copies;
pub use error::Error;
pub use execute::{Difference, Meta, Outcome, Unmoved, execute};
pub use failure::Failure;
pub use held::{Reading, all, get, place};
pub use kept::{Kept, Unfinished, kept, unfinished};
pub use made::made;
pub use observe::{hierarchies, observe, planned};
pub use perform::Target;
pub use preview::{Planned, inverse, preview};
pub use prune::KEPT;
pub use record::{
    Act, Affinity, Before, By, Ending, Entry, Head, Kind, Record, Result as End, Spot, Summary,
};
pub use recover::{Recovered, recover};
pub use state::{Lock, STATE, STATE_VARIABLE, State, state_directory};
pub use status::{Drift, GroupStatus, SettingStatus, Task, status};
pub use stayed::Stayed;
pub use system::{Running, System};
pub use undo::{history, undo};
