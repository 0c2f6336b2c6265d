//! The groups that a peer had when it connected (SO_PEERGROUPS, Linux 4.13): read from the connection, as the
//! process number may belong to another process by now.
#![allow(unsafe_code, reason = "SO_PEERGROUPS has no safe wrapper; the one call says what holds")]

use std::{
    io,
    os::fd::{AsFd, AsRawFd},
};

/// Most have fewer.
const USUAL: usize = 64;
/// `NGROUPS_MAX` (`linux/limits.h`).
const MOST: usize = 65_536;

/// The peer's supplementary groups.
///
/// # Errors
/// The kernel's.
pub(super) fn of(stream: impl AsFd) -> io::Result<Vec<u32>> {
    let mut groups = vec![0; USUAL];
    match requested(&stream, &mut groups) {
        // too few places
        Err(error) if error.raw_os_error() == Some(libc::ERANGE) => {
            groups.resize(MOST, 0);
            requested(&stream, &mut groups)?;
        }
        other => other?,
    }
    groups.shrink_to_fit();
    Ok(groups)
}

fn requested(stream: &impl AsFd, groups: &mut Vec<u32>) -> io::Result<()> {
    let mut bytes = libc::socklen_t::try_from(groups.len() * size_of::<libc::gid_t>()).unwrap_or(0);
    // SAFETY: the descriptor is open while it is borrowed; the kernel writes at most `bytes` bytes to `groups`, which has
    // them, and then how many it wrote to `bytes`; every value is a valid gid_t, which is u32
    let failed = unsafe {
        libc::getsockopt(
            stream.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERGROUPS,
            groups.as_mut_ptr().cast(),
            &raw mut bytes,
        )
    };
    if failed != 0 {
        return Err(io::Error::last_os_error());
    }
    groups.truncate(bytes as usize / size_of::<libc::gid_t>());
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn ones_own_connection_has_ones_own_groups() {
        let (one, _other) = UnixStream::pair().unwrap();
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("Groups:")).unwrap();
        let own: Vec<u32> = line.split_whitespace().map(|group| group.parse().unwrap()).collect();
        assert_eq!(of(&one).unwrap(), own);
    }
}
