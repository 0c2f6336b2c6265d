//! A file for a collector of text files. A reader meanwhile has the old or the new one, whole.

use std::{
    ffi::OsString,
    fs,
    io::{self, Write},
    path::Path,
};

/// Puts `text` in place of what is at `path`, which others may read. A file that begins with a dot is beside it
/// meanwhile: collectors take none such.
///
/// # Errors
/// The system's; nothing is changed then.
pub fn replace(path: &Path, text: &str) -> io::Result<()> {
    let name = path.file_name().ok_or(io::ErrorKind::IsADirectory)?;
    let mut beside = OsString::from(".");
    beside.push(name);
    beside.push(format!(".{}", std::process::id()));
    let beside = path.with_file_name(beside);
    // left by a process of this number that was killed
    let _ = fs::remove_file(&beside);
    let written = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&beside)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .and_then(|()| fs::rename(&beside, path));
    if written.is_err() {
        let _ = fs::remove_file(&beside);
    }
    written
}
