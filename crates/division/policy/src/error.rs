//! What no machine can give.

use units::CpuSet;

/// Why there is no policy for these groups.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Error {
    /// A CPU is in two units, or a unit has none.
    #[error("CPU {0} is in two cores")]
    TwiceInUnits(usize),
    /// There is nothing to deal out.
    #[error("there are no CPUs for elastic groups")]
    NoUnits,
    /// `min` is 0.
    #[error("group {0} has min 0: a group without CPUs can't run; set min to 1 or more")]
    NoMinimum(String),
    /// `min` is above `max`.
    #[error("group {name} has min {min} above max {max}")]
    MinOverMax {
        /// The group.
        name: String,
        /// Its `min`.
        min: usize,
        /// Its `max`.
        max: usize,
    },
    /// The weight is 0.
    #[error("group {0} has weight 0; set it to 1 or more")]
    NoWeight(String),
    /// Two groups have one name.
    #[error("group {0} is there twice")]
    Twice(String),
    /// More is guaranteed than there is.
    #[error("the groups' min are {wanted} {unit} together, and there are {there}; lower some")]
    TooMuch {
        /// The sum in units.
        wanted: usize,
        /// What units are.
        unit: &'static str,
        /// Units of the machine.
        there: usize,
    },
    /// A set that a group starts with does not fit.
    #[error("group {name} can't start with the CPUs {cpus}: {reason}")]
    Start {
        /// The group.
        name: String,
        /// Its set.
        cpus: CpuSet,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// What is to be between bounds has none that can be.
    #[error("{what} can't be between {min} and {max}; set min above 0, and max not below it")]
    Bounds {
        /// What is to be between them.
        what: &'static str,
        /// From.
        min: f64,
        /// To.
        max: f64,
    },
    /// The floor of power saving is 0 or above what general groups have.
    #[error(
        "the floor of power saving is {floor}, and general groups have {there} CPUs; set it from 1 to {there}"
    )]
    Floor {
        /// In CPUs.
        floor: usize,
        /// CPUs that general groups can have.
        there: usize,
    },
    /// A number is out of its range.
    #[error("{name} is {value}, and takes {} to {} ({unit})", range.0, range.1)]
    Parameter {
        /// Its name.
        name: &'static str,
        /// Its unit.
        unit: &'static str,
        /// From and to.
        range: (f64, f64),
        /// What was given.
        value: f64,
    },
}
