//! Was this program started with more rights than its caller has (set-user-ID, set-group-ID, file capabilities)? Then the
//! environment and the arguments are the caller's, and must not decide what root changes.

use rustix::process::{getegid, geteuid, getgid, getuid};

/// The entry of getauxval(3).
const AT_SECURE: usize = 23;

/// Asks the user numbers first, and the kernel's own word for the rest.
pub fn is_elevated() -> bool {
    getuid() != geteuid()
        || getgid() != getegid()
        || std::fs::read("/proc/self/auxv").is_ok_and(|auxv| at_secure(&auxv))
}

fn at_secure(auxv: &[u8]) -> bool {
    let (words, _) = auxv.as_chunks::<{ size_of::<usize>() }>();
    let words: Vec<usize> = words.iter().map(|word| usize::from_ne_bytes(*word)).collect();
    words.chunks(2).any(|entry| matches!(entry, [AT_SECURE, value] if *value != 0))
}
