//! What `cpuset.cpus.partition` reads as.

/// The kind that was requested (`root`, `isolated`, `member`), and why the kernel keeps the partition invalid if it does:
/// it writes `root invalid (Cpu list in cpuset.cpus not exclusive)` then.
pub fn partition(text: &str) -> (&str, Option<&str>) {
    let (kind, rest) = text.trim().split_once(' ').unwrap_or((text.trim(), ""));
    let reason = rest.strip_prefix("invalid").map(|reason| {
        let reason = reason.trim();
        reason.strip_prefix('(').and_then(|reason| reason.strip_suffix(')')).unwrap_or(reason)
    });
    (kind, reason)
}
