//! Files that stay open as long as there is room for them, and the buffer that they are read into.

use rustix::io::Errno;

use crate::files::{Buffer, Files};

/// A file that is read again and again.
#[derive(Debug, Default)]
pub(crate) enum Slot<O> {
    /// It was not opened yet, or what was open belongs to no group any more.
    #[default]
    New,
    /// It could not be opened.
    Missing,
    /// It is opened for each read: there is no room for one more.
    Closed,
    /// It stays open.
    Open(O),
}

/// Reads files.
#[derive(Debug)]
pub(crate) struct OpenFiles<F: Files> {
    files: F,
    buffer: Buffer,
    /// This many more may stay open.
    room: usize,
    open: usize,
}

impl<F: Files> OpenFiles<F> {
    pub fn new(files: F) -> OpenFiles<F> {
        OpenFiles { room: files.at_most(), open: 0, files, buffer: Buffer::default() }
    }

    /// How many stay open.
    pub fn open(&self) -> usize {
        self.open
    }

    /// What a file contains. `again`: try it also if it was missing.
    pub fn read(
        &mut self,
        slot: &mut Slot<F::Open>,
        again: bool,
        open: impl FnOnce(&F) -> Result<F::Open, Errno>,
    ) -> Option<&[u8]> {
        if let Slot::Open(file) = slot {
            if self.files.read(file, &mut self.buffer).is_err() {
                self.close(slot);
                return None;
            }
            return Some(self.buffer.text());
        }
        if matches!(slot, Slot::Missing) && !again {
            return None;
        }
        let read = open(&self.files).and_then(|file| {
            self.files.read(&file, &mut self.buffer)?;
            Ok(file)
        });
        *slot = match read {
            Err(_) => Slot::Missing,
            Ok(_) if self.room == 0 => Slot::Closed,
            Ok(file) => {
                (self.room, self.open) = (self.room - 1, self.open + 1);
                Slot::Open(file)
            }
        };
        (!matches!(slot, Slot::Missing)).then(|| self.buffer.text())
    }

    /// What a file contains that is opened for this read alone.
    pub fn read_once(&mut self, open: impl FnOnce(&F) -> Result<F::Open, Errno>) -> Option<&[u8]> {
        let file = open(&self.files).ok()?;
        self.files.read(&file, &mut self.buffer).ok()?;
        Some(self.buffer.text())
    }

    /// What is not read any more makes room.
    pub fn close(&mut self, slot: &mut Slot<F::Open>) {
        if matches!(std::mem::take(slot), Slot::Open(_)) {
            (self.room, self.open) = (self.room + 1, self.open - 1);
        }
    }
}
