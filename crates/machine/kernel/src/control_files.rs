//! Files of every v2 group that hand controllers down.

/// The controllers that the group has.
pub(crate) const CONTROLLERS: &str = "cgroup.controllers";
/// Those of them that the groups below it have.
pub(crate) const SUBTREE_CONTROL: &str = "cgroup.subtree_control";
