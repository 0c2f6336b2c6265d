//! Whole kernel files by their descriptor.

use std::os::fd::AsFd;

use rustix::{
    fs::{Mode, OFlags},
    io::Errno,
};

/// One write(2) of `text` to a file of a group.
///
/// # Errors
/// The kernel's errno; `ENODEV` if the group was removed since the file was opened.
pub fn write_to(file: impl AsFd, text: &[u8]) -> Result<(), Errno> {
    loop {
        match rustix::io::write(&file, text) {
            Ok(count) if count == text.len() => return Ok(()),
            Ok(_) => return Err(Errno::IO), // a kernel file takes the whole text or refuses it
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
}

/// What one read asks for.
pub(crate) const PAGE: usize = 4096;

/// Reads a descriptor to its end. Kernel files report no size, and most fit one page.
pub(crate) fn read_to_end(file: impl AsFd) -> Result<String, Errno> {
    read_until(file, |count| count == 0)
}

/// Reads until a read's length says that nothing follows.
pub(crate) fn read_until(file: impl AsFd, is_last: impl Fn(usize) -> bool) -> Result<String, Errno> {
    // read into a page first: the texts of thousands of files then take no more memory than their length
    let mut page = [0; PAGE];
    let mut content = Vec::new();
    loop {
        match rustix::io::read(&file, &mut page) {
            Ok(count) => {
                content.extend_from_slice(&page[..count]);
                if is_last(count) {
                    break;
                }
            }
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(String::from_utf8(content)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
}

/// The whole of a file of procfs or sysfs, whatever its bytes.
///
/// # Errors
/// The kernel's errno.
pub fn read_path(path: impl rustix::path::Arg) -> Result<String, Errno> {
    read_to_end(rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?)
}
