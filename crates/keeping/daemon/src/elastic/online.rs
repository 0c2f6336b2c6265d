//! Whether CPUs went or came, from a descriptor that stays open: v2's kernel leaves the lists of groups as they are then.

use std::os::fd::OwnedFd;

use monitor::{Buffer, Descriptors, Files};
use rustix::io::Errno;
use tracing::info;

const ONLINE: &str = "/sys/devices/system/cpu/online";

/// The CPUs that were online.
pub(super) struct Online {
    files: Descriptors,
    file: OwnedFd,
    text: Vec<u8>,
    buffer: Buffer,
}

impl Online {
    /// Notes those of now. What is made of them is read after this, so that no change in between is overlooked.
    ///
    /// # Errors
    /// In words: they can't be read.
    pub fn note() -> Result<Online, String> {
        let files = Descriptors::new();
        let mut buffer = Buffer::default();
        let file = files.open_outside(ONLINE).map_err(unreadable)?;
        files.read(&file, &mut buffer).map_err(unreadable)?;
        let text = buffer.text().to_vec();
        Ok(Online { files, file, text, buffer })
    }

    /// Are there others now?
    ///
    /// # Errors
    /// As [`Online::note`].
    pub fn is_changed(&mut self) -> Result<bool, String> {
        self.files.read(&self.file, &mut self.buffer).map_err(unreadable)?;
        let is_changed = self.buffer.text() != self.text;
        if is_changed {
            let [was, now] = [&self.text[..], self.buffer.text()].map(String::from_utf8_lossy);
            info!("CPUs {} are online, before these were {}", now.trim(), was.trim());
        }
        Ok(is_changed)
    }
}

fn unreadable(errno: Errno) -> String {
    format!("{ONLINE} can't be read: {}", kernel::describe(errno))
}
