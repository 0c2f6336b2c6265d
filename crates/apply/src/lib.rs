//! Carries out what was planned: finds where each setting lives, writes, reads back, and on any refusal puts back
//! what it had changed. It decides nothing: values and order come from `plan`.

mod change;
mod error;
mod held;

pub use change::{Change, set};
pub use error::Error;
pub use held::{Reading, get, place};
