//! Leases (fcntl(2)), which a file's owner may take: whoever else opens the file waits for up to a minute.
#![allow(unsafe_code, reason = "no crate has F_SETLEASE; each call says what holds")]

use std::{fs::File, os::fd::AsRawFd, path::PathBuf, time::Duration};

/// The signal that says that somebody waits ends nobody.
pub fn no_signal() {
    // SAFETY: ignoring a signal runs no code of ours
    unsafe { libc::signal(libc::SIGIO, libc::SIG_IGN) };
}

/// Takes them on all files, and again where they were taken away.
pub fn take(files: &[PathBuf]) {
    loop {
        let mut taken = Vec::new();
        for file in files.iter().filter_map(|path| File::open(path).ok()) {
            // SAFETY: touches no memory of ours
            if unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, libc::F_WRLCK) } == 0 {
                taken.push(file);
            }
        }
        std::thread::sleep(Duration::from_millis(200));
    }
}
