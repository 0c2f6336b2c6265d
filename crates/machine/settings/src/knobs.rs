//! What disturbs a CPU beside the tasks of groups: interrupts, queues of work, threads of the kernel, timers, clocks and
//! power states. A row for each knob that moves or stops one of them, and what a row wants of its files and threads.
//! Reads and writes none of these, decides nothing about groups.

// the rows, and what one wants
mod row;
mod table;

mod instance;
mod text;

mod isolation;

// what only the boot can do
mod boot;

mod docs;

pub use boot::{BOOT, BootParameter, Missing, line_of_missing, missing as missing_at_boot};
pub use docs::markdown;
pub use instance::{Instance, ReadOnly, Seen};
pub use isolation::{Budget, Isolation, Request, Want, shown_cpus};
pub use row::{Accepts, Aim, Encoding, Errno, Knob, Per, Refusal, Scope};
pub use table::{KNOBS, find, of_level};
