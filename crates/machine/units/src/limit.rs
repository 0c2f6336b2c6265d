//! A limit that may be absent.

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
