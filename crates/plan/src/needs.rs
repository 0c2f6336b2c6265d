//! What must be known of the kernel before a plan can be made. Whoever has the kernel looks there and nowhere else.

use std::collections::BTreeSet;

use layout::Desired;

use crate::{Observed, Place};

/// One directory to look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Need {
    /// The directory; it may not exist.
    pub place: Place,
    /// The files to read; those that don't exist are left out.
    pub files: BTreeSet<String>,
    /// Are owners and modes of the directory and its files needed?
    pub owners: bool,
    /// Files to read of every group directly in it, also of those that no layout names, with their tasks; nothing is
    /// needed of those groups if this is empty.
    pub children: BTreeSet<String>,
}

/// The directories to look at, parents before children, for an [`Observed`] that has nothing but the hierarchies. In
/// each that exists, tasks are counted too.
pub fn needs(_desired: &Desired, _hierarchies: &Observed) -> Vec<Need> {
    Vec::new()
}

/// What the layout calls block devices near which CPUs are wanted: [`Observed::device_nodes`] answers.
pub fn devices(_desired: &Desired) -> BTreeSet<String> {
    BTreeSet::new()
}
