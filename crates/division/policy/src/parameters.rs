//! The numbers of the rules, in tables.

use crate::Error;

/// A number of a rule.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Parameter {
    /// As the field of its struct.
    pub name: &'static str,
    /// What it decides.
    pub about: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// Where nothing is said.
    pub default: f64,
    /// From and to.
    pub range: (f64, f64),
}

impl Parameter {
    /// Is a value in the range?
    ///
    /// # Errors
    /// [`Error::Parameter`].
    pub fn check(&self, value: f64) -> Result<(), Error> {
        let Parameter { name, unit, range, .. } = *self;
        if (range.0..=range.1).contains(&value) {
            Ok(())
        } else {
            Err(Error::Parameter { name, unit, range, value })
        }
    }
}

/// A struct of numbers and the table that describes them.
macro_rules! parameters {
    (
        $(#[$about_all:meta])* $numbers:ident, $table:ident;
        $($name:ident: $default:literal $unit:literal, $from:literal to $to:literal, $about:literal;)*
    ) => {
        $(#[$about_all])*
        #[derive(Debug, Clone, PartialEq)]
        pub struct $numbers {
            $(#[doc = $about] pub $name: f64,)*
        }

        impl Default for $numbers {
            fn default() -> $numbers {
                $numbers { $($name: $default,)* }
            }
        }

        #[doc = concat!("The table of all of [`", stringify!($numbers), "`].")]
        pub const $table: &[$crate::Parameter] = &[
            $($crate::Parameter {
                name: stringify!($name), about: $about, unit: $unit, default: $default, range: ($from, $to),
            },)*
        ];

        impl $numbers {
            /// Is every number in its range?
            ///
            /// # Errors
            /// [`Error::Parameter`](crate::Error::Parameter) names the first that is not.
            pub fn check(&self) -> Result<(), $crate::Error> {
                $table.iter().zip([$(self.$name,)*]).try_for_each(|(row, value)| row.check(value))
            }
        }
    };
}
pub(crate) use parameters;

parameters! {
    /// The numbers of the policy; [`PARAMETERS`] has their units, defaults and ranges.
    Parameters, PARAMETERS;
    period: 0.1 "s", 0.01 to 60.0, "The time between two samples.";
    late: 3.0 "periods", 1.5 to 100.0, "A sample that comes later than this after the one before is late: groups only grow then.";
    full: 0.85 "of the group's CPUs", 0.1 to 1.0, "A group that uses more than this share of its CPUs grows to use / full.";
    waiting: 0.02 "of the time", 0.001 to 1.0, "A group that waits more than this grows by a step.";
    growth: 0.5 "of the group's CPUs", 0.05 to 4.0, "How large such a step is, at least one unit.";
    spare: 0.8 "of the group's CPUs", 0.1 to 1.0, "A quiet group shrinks to its peak / spare; below full, so that it does not grow back at once.";
    least_gap: 0.1 "of the group's CPUs", 0.0 to 1.0, "A quiet group with a smaller gap to that size stays as it is.";
    shrinking: 1.0 "of the gap", 0.1 to 1.0, "How much of the gap to that size a group gives up at once.";
    dwell: 5.0 "s", 0.1 to 300.0, "How long a group has to be quiet before it shrinks; its peak of this time decides.";
    longest_dwell: 300.0 "s", 1.0 to 3600.0, "The dwell doubles with each shrink that did harm, up to this.";
    quiet: 0.005 "of the time", 0.0 to 1.0, "A group that waits less than this is quiet.";
    least_slack: 0.05 "of the target", -1.0 to 1.0, "A group whose latency is measured grows by a step below this slack (1 - p99 / target) instead, and a change that leads there did harm.";
    quiet_slack: 0.2 "of the target", 0.0 to 1.0, "It is quiet from this slack on.";
    recent: 0.3 "s", 0.01 to 60.0, "While others wait and nothing is free, what a group did not use for this time is lent. Doubles with the dwell.";
    harm_within: 2.0 "s", 0.1 to 60.0, "A shrink that is followed by waiting within this time is undone.";
    harm: 0.01 "of the time", 0.001 to 1.0, "From how much waiting on a shrink did harm, at least.";
    harm_times: 2.0 "times the quiet baseline", 1.0 to 100.0, "From how many times its usual waiting on a shrink did harm to a group.";
    reversals: 6.0 "times", 1.0 to 1000.0, "This many undone shrinks of one group end the resizing: the static division returns.";
    refusals: 3.0 "times", 1.0 to 1000.0, "This many refused writes do the same.";
    given_up_within: 60.0 "s", 1.0 to 3600.0, "The time in which these are counted.";
}
