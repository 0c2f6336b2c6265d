//! When a layout changes by itself: at times of a calendar, after a delay, on events. What was decided last and the moment
//! come in, changes and the next moment go out. Reads no clock, no time zone and no unit; those are arguments.

mod calendar;
mod parse;

mod memory;
mod span;
mod when;

mod never;

mod meets;

pub use calendar::Calendar;
pub use meets::Compared;
pub use memory::{InForce, Last, Memory};
pub use never::Never;
pub use parse::CalendarError;
pub use span::{parse_span, span_text};
pub use when::{Event, LATE, Look, Missed, Moment, Turn, When, Zones};

/// What a calendar can name.
pub mod limits {
    /// The first and the last year.
    pub const YEARS: std::ops::RangeInclusive<i16> = 1970..=2199;
}
