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

use units::Bytes;

/// An amount for reading: `4.6G`, `300M`, the largest unit with at most one decimal.
fn rounded(bytes: Bytes) -> String {
    let mut amount = bytes.0 as f64; // one decimal is printed: precise enough
    let mut unit = "";
    for larger in ["K", "M", "G", "T", "P", "E"] {
        if amount < 1023.95 {
            break;
        }
        amount /= 1024.0;
        unit = larger;
    }
    let text = format!("{amount:.1}");
    format!("{}{unit}", text.strip_suffix(".0").unwrap_or(&text))
}
