//! A limit that may be absent, and the proportional weight of cgroup v2.

use std::fmt;

/// An upper bound, or none. Printed as cgroup v2 prints it: `max` or the amount.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Limit<T> {
    /// At most this much. Declared first so that every bound sorts below `Max`.
    At(T),
    /// No bound.
    Max,
}

impl<T> Limit<T> {
    /// The bound, if there is one.
    pub fn at(self) -> Option<T> {
        match self {
            Limit::At(bound) => Some(bound),
            Limit::Max => None,
        }
    }

    /// The same limit with its bound changed by `f`.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Limit<U> {
        match self {
            Limit::At(bound) => Limit::At(f(bound)),
            Limit::Max => Limit::Max,
        }
    }
}

impl<T: fmt::Display> fmt::Display for Limit<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Limit::At(bound) => bound.fmt(f),
            Limit::Max => f.write_str("max"),
        }
    }
}

/// A share relative to siblings, `1..=10000`, 100 by default (cgroup v2 `cpu.weight`, `io.weight`; kernel
/// document `admin-guide/cgroup-v2.rst`, "Weights").
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
pub struct Weight(u16);

impl Weight {
    /// The smallest weight.
    pub const MIN: Weight = Weight(1);
    /// The largest weight.
    pub const MAX: Weight = Weight(10_000);

    /// A weight, if `weight` is in `1..=10000`.
    pub fn new(weight: u64) -> Option<Weight> {
        u16::try_from(weight).ok().filter(|w| (1..=10_000).contains(w)).map(Weight)
    }

    /// The number.
    pub fn get(self) -> u64 {
        u64::from(self.0)
    }
}

impl fmt::Display for Weight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
