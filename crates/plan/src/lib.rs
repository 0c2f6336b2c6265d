//! Decides what is written, where, and in which order the kernel accepts it: a pure function of what is asked
//! and what the kernel holds. Never touches the machine; what it must know of it is handed in.

mod ask;
mod order;
mod restore;

pub mod doctor;

pub use ask::{Ask, Held, Place, PlanError, Write, writes};
pub use restore::restoring;
