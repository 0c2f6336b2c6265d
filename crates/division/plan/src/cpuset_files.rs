//! The names of cpuset's files that both versions' sets and partitions are made of.

/// A group's own list of CPUs.
pub const CPUS: &str = "cpuset.cpus";
/// A group's own list of memory nodes.
pub(crate) const MEMS: &str = "cpuset.mems";
/// v2's flag: `member`, `root` or `isolated`.
pub const PARTITION: &str = "cpuset.cpus.partition";
/// v2's list of CPUs for partitions (Linux 6.7).
pub const EXCLUSIVE: &str = "cpuset.cpus.exclusive";
/// The root's list, of the same age.
pub const ISOLATED: &str = "cpuset.cpus.isolated";
