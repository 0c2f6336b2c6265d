//! Writes lines with checksums one by one into room that is on the disk beforehand: a full disk stops what the next line
//! is about before it begins, and a file whose end was cut off shows it. Knows nothing of what the lines mean.

use std::{fs::File, io, os::unix::fs::FileExt};

use serde::Serialize;

use crate::lines::{self, ROOM};

/// A file of lines that ends in unused room.
#[derive(Debug)]
pub struct JournalFile {
    pub(crate) file: File,
    /// Where the next line goes.
    pub(crate) end: u64,
    /// How many lines there are.
    pub(crate) lines: u64,
    /// How large the file is.
    pub(crate) room: u64,
}

impl JournalFile {
    /// One that has been [begun](begun), opened for writing.
    ///
    /// # Errors
    /// Its size can't be read.
    pub fn continued(file: File, begun: &[u8]) -> io::Result<JournalFile> {
        let used = lines::used(begun);
        let lines = used.iter().filter(|byte| **byte == b'\n').count() as u64;
        let room = file.metadata()?.len();
        Ok(JournalFile { file, end: used.len() as u64, lines, room })
    }

    /// Adds a line, in one write(2): it is complete or, if it is cut short, not read.
    ///
    /// # Errors
    /// There is no room for it, and then nothing was written.
    pub fn append(&mut self, value: &impl Serialize) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(48);
        lines::append(&mut bytes, self.lines, value)?;
        let end = self.end + bytes.len() as u64;
        if end >= self.room {
            let room = (end + ROOM / 2).next_multiple_of(ROOM);
            allocate(&self.file, self.room, room)?;
            self.room = room;
        }
        self.file.write_all_at(&bytes, self.end)?;
        (self.end, self.lines) = (end, self.lines + 1);
        Ok(())
    }

    /// What was added is on the disk after this.
    ///
    /// # Errors
    /// It can't be written there.
    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}

/// The bytes of a file with one line, and room.
///
/// # Errors
/// The value can't be JSON.
pub fn begun(first: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    lines::append(&mut bytes, 0, first)?;
    let room = (bytes.len() as u64 + 1).next_multiple_of(ROOM);
    bytes.resize(usize::try_from(room).unwrap_or(bytes.len()), 0);
    Ok(bytes)
}

/// Makes a file larger, with room on the disk for all of it.
pub(crate) fn allocate(file: &File, from: u64, to: u64) -> io::Result<()> {
    match rustix::fs::fallocate(file, rustix::fs::FallocateFlags::empty(), from, to - from) {
        Ok(()) => Ok(()),
        // NFS before 4.2 and others write the zeros
        Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => {
            let zeros = [0; 4096];
            let mut at = from;
            while at < to {
                let length = usize::try_from(to - at).unwrap_or(zeros.len()).min(zeros.len());
                file.write_all_at(&zeros[..length], at)?;
                at += length as u64;
            }
            Ok(())
        }
        Err(errno) => Err(errno.into()),
    }
}
