//! Directories for what reads files only: in memory where the machine has such a file system, one a thread.

use std::{fs, path::Path};

use tempfile::TempDir;

/// Calls `check` with an empty directory.
pub fn with_directory(check: impl FnOnce(&Path)) {
    thread_local!(static SCRATCH: TempDir = made());
    SCRATCH.with(|scratch| {
        for entry in fs::read_dir(scratch).into_iter().flatten().flatten() {
            let path = entry.path();
            let removed = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
            removed.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        }
        check(scratch.path());
    });
}

fn made() -> TempDir {
    let here = ["/dev/shm"].into_iter().find_map(|memory| tempfile::tempdir_in(memory).ok());
    here.or_else(|| tempfile::tempdir().ok()).unwrap_or_else(|| panic!("no temporary directory can be made"))
}
