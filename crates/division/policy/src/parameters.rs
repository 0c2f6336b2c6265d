//! The numbers of the policy, in one table.

use crate::Error;

/// A number of the policy.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Parameter {
    /// As the field of [`Parameters`].
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

macro_rules! parameters {
    ($($name:ident: $default:literal $unit:literal, $from:literal to $to:literal, $about:literal;)*) => {
        /// The numbers of the policy; [`PARAMETERS`] has their units, defaults and ranges.
        #[derive(Debug, Clone, PartialEq)]
        pub struct Parameters {
            $(#[doc = $about] pub $name: f64,)*
        }

        impl Default for Parameters {
            fn default() -> Parameters {
                Parameters { $($name: $default,)* }
            }
        }

        /// The table of all numbers.
        pub const PARAMETERS: &[Parameter] = &[
            $(Parameter {
                name: stringify!($name), about: $about, unit: $unit, default: $default, range: ($from, $to),
            },)*
        ];

        impl Parameters {
            /// In the table's order.
            fn values(&self) -> impl Iterator<Item = f64> {
                [$(self.$name,)*].into_iter()
            }
        }
    };
}

parameters! {
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
    recent: 0.3 "s", 0.01 to 60.0, "While others wait and nothing is free, what a group did not use for this time is lent. Doubles with the dwell.";
    harm_within: 2.0 "s", 0.1 to 60.0, "A shrink that is followed by waiting within this time is undone.";
    harm: 0.01 "of the time", 0.001 to 1.0, "From how much waiting on a shrink did harm, at least.";
    harm_times: 2.0 "times the quiet baseline", 1.0 to 100.0, "From how many times its usual waiting on a shrink did harm to a group.";
    reversals: 6.0 "times", 1.0 to 1000.0, "This many undone shrinks of one group end the resizing: the static division returns.";
    refusals: 3.0 "times", 1.0 to 1000.0, "This many refused writes do the same.";
    given_up_within: 60.0 "s", 1.0 to 3600.0, "The time in which these are counted.";
}

impl Parameters {
    /// Is every number in its range?
    ///
    /// # Errors
    /// [`Error::Parameter`] names the first that is not.
    pub fn check(&self) -> Result<(), Error> {
        let within = |row: &Parameter, value: f64| value >= row.range.0 && value <= row.range.1;
        let wrong = PARAMETERS.iter().zip(self.values()).find(|(row, value)| !within(row, *value));
        wrong.map_or(Ok(()), |(row, value)| {
            let Parameter { name, unit, range, .. } = *row;
            Err(Error::Parameter { name, unit, range, value })
        })
    }
}
