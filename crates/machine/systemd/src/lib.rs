//! systemd over D-Bus: the delegated unit that our groups live below, and what systemd knows of other units. Changes
//! no unit but its own, and writes no file.

mod bus;
mod delegated;
mod unit;

pub use bus::{ANSWER, RELOAD};
pub use delegated::ensure_unit;
pub use unit::{FLAG, Unit, active, fitting, near, needs_reload, pinned, reload, units};
