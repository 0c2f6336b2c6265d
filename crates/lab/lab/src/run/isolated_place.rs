//! A place of the machine that a run sets, as the journal has it.

use serde::{Deserialize, Serialize};
use settings::knobs::Instance;

/// One place of the machine, and what it is to be after the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Place {
    /// The row of the table.
    pub knob: String,
    #[serde(flatten)]
    pub at: At,
    /// What is there to be put back.
    pub before: String,
    pub text: String,
}

/// An instance by a name of its own, as its lines have no names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct At {
    pub at: Instance,
}
