//! What happens to processes, as the kernel reports it: forks, execs, changes of identity and ends ([`Connector`], after
//! the fact), and execs that wait for an answer ([`ExecGate`], served by a process of its own that a [`Watchdog`] in
//! another one ends when an answer is late). It decides nothing, reads no cgroup and moves nothing.

mod error;

mod connector;
mod filter;
mod message;

mod control;
mod deadman;
mod gate;
mod places;
mod watchdog;

pub use connector::{Connector, Filters, Received};
pub use control::Control;
pub use error::Error;
pub use gate::{ExecGate, Served};
pub use message::{Event, Kind, Kinds, Name};
pub use watchdog::{Limits, Notice, Watchdog};
