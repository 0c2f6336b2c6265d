//! Decides what is written, where, and in which order the kernel accepts it: a pure function of what is asked
//! and what the kernel holds. Never touches the machine; what it must know of it is handed in.

// single settings: what is asked, in which order, and back
mod ask;
mod order;
mod restore;

// a whole layout: what is known, what comes of it
mod lint;
mod names;
mod needs;
mod observed;
mod people;
mod problem;
mod step;

mod planning;

pub mod doctor;

pub use ask::{Ask, Held, Place, PlanError, Write, writes};
pub use lint::{Lint, LintKind};
pub use needs::{Need, devices, needs};
pub use observed::{Observed, Owned, SeenGroup, SeenHierarchy};
pub use people::{Anybody, People};
pub use planning::plan;
pub use problem::{Against, Problem};
pub use restore::restoring;
pub use step::{Action, Assignment, Ownership, Plan, Step};
