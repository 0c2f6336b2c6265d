//! The forms a machine is printed in: as `numactl --hardware` prints it, as the per-CPU listing, as a drawing, and
//! for people. Each returns text; nothing here writes to a terminal or a file.

mod cpus;
mod nest;
mod numactl;
mod svg;
mod table;
mod text;

pub use self::svg::{Mark, svg};
pub use cpus::cpus;
pub(crate) use cpus::{MODEL, ROWS as CPU_ROWS};
pub(crate) use numactl::header as numactl_header;
pub use numactl::numactl;
pub use text::text;
