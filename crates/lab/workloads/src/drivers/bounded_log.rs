//! What a tool prints, in a file that has a largest size. The tool writes into a pipe that a thread of ours empties, so
//! that it neither fills the disk nor waits for a reader; what goes beyond the limit is dropped.

use std::{
    fs::OpenOptions,
    io::{self, PipeReader, PipeWriter, Read, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
    sync::mpsc::{Receiver, channel},
    time::Duration,
};

use rustix::fs::OFlags;

use crate::{files::TOOL_OUTPUT, urgent};

/// How long the end of the output is waited for: a process that outlives the tool may have the pipe open.
const END: Duration = Duration::from_secs(2);

/// A log that is being written.
#[derive(Debug)]
pub(crate) struct BoundedLog {
    ended: Receiver<()>,
}

impl BoundedLog {
    /// Makes the file; the tool gets the pipe.
    pub fn begin(path: &Path) -> io::Result<(PipeWriter, BoundedLog)> {
        BoundedLog::limited(path, TOOL_OUTPUT)
    }

    fn limited(path: &Path, most: u64) -> io::Result<(PipeWriter, BoundedLog)> {
        let nofollow = i32::try_from((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits()).unwrap_or(0);
        let mut options = OpenOptions::new();
        let file = options.write(true).create(true).truncate(true).custom_flags(nofollow).open(path)?;
        let (reader, writer) = io::pipe()?;
        let (ending, ended) = channel();
        urgent::spawn("tool-output", move || {
            // a full disk ends the log, not the tool
            let _ = copy(reader, file, most);
            let _ = ending.send(());
        })?;
        Ok((writer, BoundedLog { ended }))
    }

    /// Waits until all that was printed is in the file.
    pub fn end(self) {
        let _ = self.ended.recv_timeout(END);
    }
}

/// Empties the pipe to its end, whatever becomes of the file.
fn copy(mut from: PipeReader, mut to: impl Write, most: u64) -> io::Result<()> {
    let copied = io::copy(&mut from.by_ref().take(most), &mut to).and_then(|_| to.flush());
    io::copy(&mut from, &mut io::sink())?;
    copied
}

#[cfg(test)]
mod tests {
    use std::{fs, thread};

    use super::*;

    /// attack finding 25: the log of a tool had no largest size.
    #[test]
    fn a_log_has_a_largest_size_and_its_writer_does_not_wait() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("log");
        let (mut writer, log) = BoundedLog::limited(&path, 1000).unwrap();
        // one that waited for a reader would never end
        let writing = thread::spawn(move || writer.write_all(&vec![b'x'; 8 << 20]).unwrap());
        writing.join().unwrap();
        log.end();
        assert_eq!(fs::metadata(&path).unwrap().len(), 1000);
    }

    #[test]
    fn a_pipe_that_somebody_has_open_does_not_hold_up_the_end() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("log");
        let (mut writer, log) = BoundedLog::begin(&path).unwrap();
        writer.write_all(b"some").unwrap();
        log.end();
        assert_eq!(fs::read(&path).unwrap(), b"some");
        drop(writer);
    }
}
