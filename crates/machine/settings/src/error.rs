//! Why a text is no value of a setting: what was given, what is expected, and the nearest right answer.

use units::ListError;

/// Why a text is no value of a setting. `name` is the setting's name as it was given, `given` the text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ValueError {
    /// The setting can only be read.
    #[error("{name} can't be set")]
    ReadOnly {
        /// The setting.
        name: String,
        /// What changes it.
        by: Option<&'static str>,
    },
    /// The text is not of the setting's kind.
    #[error("{name}: {reason}{}", position(*.at, .given))]
    Wrong {
        /// The setting.
        name: String,
        /// What was given, cut after 200 characters.
        given: String,
        /// What is wrong with it.
        reason: String,
        /// Where, counted in bytes from 0, if at one place.
        at: Option<usize>,
        /// What would be right, with an example.
        expected: String,
    },
    /// A list of CPUs or nodes is wrong.
    #[error("{name}: {source}")]
    List {
        /// The setting.
        name: String,
        /// Where and why.
        source: ListError,
        /// A right value.
        example: &'static str,
    },
    /// A number is out of the range that the kernel documents.
    #[error("{name}: {given} is out of range: {min} to {max}")]
    OutOfRange {
        /// The setting.
        name: String,
        /// What was given.
        given: String,
        /// The smallest.
        min: String,
        /// The largest.
        max: String,
        /// Is it below the smallest? Else above the largest.
        below: bool,
        /// What the kernel would have done with the number, where it would not have refused it.
        otherwise: Option<&'static str>,
    },
    /// A number of CPUs or a percentage without its unit.
    #[error("{name}: '{given}' has no unit, and as microseconds it is below the smallest quota, 1ms")]
    NoUnit {
        /// The setting.
        name: String,
        /// The number.
        given: String,
    },
    /// A word or key that the setting does not know.
    #[error("{name}: '{given}' is not known")]
    UnknownWord {
        /// The setting.
        name: String,
        /// What was given.
        given: String,
        /// All that are known.
        known: Vec<&'static str>,
        /// The known ones that are near.
        nearest: Vec<&'static str>,
    },
    /// The text needs a fact of the machine that is not known.
    #[error("{name}: '{given}' needs {fact}, which is not known here")]
    NeedsMachine {
        /// The setting.
        name: String,
        /// What was given.
        given: String,
        /// The fact.
        fact: &'static str,
    },
    /// A device that is not there.
    #[error("{name}: {reason}")]
    Device {
        /// The setting.
        name: String,
        /// What was given as the device.
        given: String,
        /// Why it is none.
        reason: String,
    },
}

fn position(at: Option<usize>, given: &str) -> String {
    match at {
        Some(at) => format!(" at position {} of '{given}'", at + 1),
        None => String::new(),
    }
}

impl ValueError {
    /// What would have been right.
    pub fn hint(&self) -> Option<String> {
        match self {
            ValueError::ReadOnly { by, .. } => by.map(|by| format!("it is changed by {by}")),
            ValueError::Wrong { expected, .. } => Some(format!("expected {expected}")),
            ValueError::List { example, .. } => Some(format!("a list such as {example}")),
            ValueError::OutOfRange { min, max, below, otherwise, .. } => {
                let nearest = if *below { min } else { max };
                let otherwise = otherwise.map(|otherwise| format!("; {otherwise}")).unwrap_or_default();
                Some(format!("the nearest value is {nearest}{otherwise}"))
            }
            ValueError::NoUnit { given, .. } => {
                // nobody has 50 CPUs to give one group more often than half of one
                let share = if given.parse::<f64>().is_ok_and(|number| number <= 16.0) { "cpu" } else { "%" };
                Some(format!(
                    "did you mean {given}{share}? (2cpu are 2 CPUs, 50% is half of one, 50ms of each 100ms too)"
                ))
            }
            ValueError::UnknownWord { known, nearest, .. } if nearest.is_empty() => {
                Some(format!("known are {}", known.join(", ")))
            }
            ValueError::UnknownWord { nearest, .. } => {
                Some(format!("did you mean {}?", nearest.join(" or ")))
            }
            ValueError::NeedsMachine { .. } => Some("give the amount itself".to_owned()),
            ValueError::Device { given, .. } if given.starts_with('/') => {
                Some("`lsblk` lists the devices with their MAJOR:MINOR, which can be given too".to_owned())
            }
            ValueError::Device { .. } => {
                Some("give a path such as /dev/sdb, or MAJOR:MINOR as `lsblk` prints it".to_owned())
            }
        }
    }
}
