//! Pictures of samples for people and programs: which figures, of which groups, in which order, and how numbers are
//! written. Pure: what is shown was sampled before, and nothing is printed here.

mod cell;
mod choice;
mod complete;
mod derived;
mod order;
mod owners;
mod picture;
mod tasks;

mod machine;

mod csv;
mod text;

pub use cell::{Measure, Row, Value};
pub use choice::{Choice, Of, Part, UnknownField, choices, known, overview};
pub use complete::{add_events, complete};
pub use csv::Csv;
pub use derived::Derived;
pub use machine::MachineFigures;
pub use order::is_shown;
pub use owners::{Cell, Owner, Owners, allowed};
pub use picture::{Heading, Note, Numbers, Picture, window_for};
pub use tasks::{Ran, Trail, cpus_of, policy, ran_between, task_table};
pub use text::{lateness, table, written};
