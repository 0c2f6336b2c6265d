//! What an experiment asks for and what came out of it, as data: the file ([`Experiment`]), and the results
//! ([`Results`]) that are stored and from which every report is drawn; and what would come out by a model ([`simulator`]). Pure: nothing
//! is run, read or written here.

pub mod file; // what is requested
pub mod results; // what was measured, and what it says

mod check;
mod docs;
mod layouts; // conditions that are layouts
mod read;
mod schema;
mod times;

pub mod note; // what a reader must know beside the figures
pub mod number; // numbers as people read them

pub mod drivers; // what is known of each

pub mod options; // a workload's driver in a condition
pub mod rescale; // the study's CPUs on this machine

mod reproducible; // the conditions that this machine can distinguish

mod unit; // of a measure

pub mod statistics; // what the figures of a few runs say

mod decidable; // whether there are enough of them
pub mod design; // in which order its runs are made
mod gating; // what gates look at, and over which time figures are taken
mod ideal; // what would be if a figure grew as the CPUs do
pub mod measure; // a run's figures
mod verdict_text; // a verdict in words

pub mod summary; // what all runs say

pub mod simulator; // what a rule for CPUs would do

#[cfg(test)]
mod fixture;

pub use check::{CheckContext, check};
pub use decidable::{Plan, planned_seconds};
pub use docs::markdown;
pub use file::Experiment;
pub use gating::{gate_notes, runs_to_its_end, spans};
pub use ideal::ideal;
pub use layouts::{add_layout, layouts};
pub use note::{Note, Warning};
pub use plan::CPUS;
pub use read::{LARGEST, Places, Read, read};
pub use reproducible::leave_out;
pub use results::Results;
pub use schema::{results_schema, schema};
pub use times::{Lengths, seconds, within};
pub use unit::{FigureUnits, figures};
