//! What interrupts CPUs in a span of time, counted by cause: interrupts (`/proc/interrupts`), softirqs (`/proc/softirqs`) and
//! context switches (perf_event_open(2)); and how long a thread that wants to run all the time was kept from it. Reads only:
//! nothing that interrupts is changed here.
//!
//! The noise probe takes the CPUs that it watches, so it is a process of its own ([`watch`]), which the caller starts
//! where these CPUs may be used: in the group that has them for itself. [`measure`] reads what it reports.

mod error;
mod noise; // what one thread sees
mod report;
mod switches;
mod table; // the kernel's counts

mod counts;

mod probe; // the process of the threads
mod text;

mod measure;

pub use counts::{Counts, Interrupted};
pub use error::Error;
pub use measure::{Request, measure};
pub use noise::{Noise, Policy};
pub use probe::{READY, watch};
pub use report::{Cause, Kind, OfCpu, Report, Row, RowState};
pub use text::in_short;
