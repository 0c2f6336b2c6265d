//! The journal of a generation that is under way: everything that will be changed with what was there before, on the
//! disk before the first change; then a mark before each step. Room for the marks and for the end is allocated
//! beforehand, so that a full disk stops a change before it begins and not in the middle. Marks are not forced to the
//! disk: they must outlive this process, and the control groups that they are about do not outlive a crash of the
//! machine either. A change of one write needs no journal: it can't be half done, and its marks are discarded.

use plan::Outsider;

use crate::{
    Failure,
    entry::Entry,
    journal_file::JournalFile,
    lines::{self, ROOM},
    record::{Affinity, Head, Kind, Mark, Record, Result as End},
    state::{Lock, failed},
};

/// What a mark takes at most, but for those that hold a file's content.
const MARK: u64 = 80;

/// An open journal, or none.
pub(crate) struct Journal<'l> {
    open: Option<Open<'l>>,
}

struct Open<'l> {
    lock: &'l Lock,
    generation: u32,
    file: JournalFile,
}

impl<'l> Journal<'l> {
    /// Of a change that is not recorded: this process alone can roll it back.
    pub fn none() -> Journal<'static> {
        Journal { open: None }
    }

    /// Writes head, steps and what the layout decides beside them. With `for_undo`, room for the journal of the undo
    /// is set aside as well.
    pub fn start(
        lock: &'l Lock,
        head: &Head,
        entries: &[Entry],
        decided: &[Entry],
        for_undo: bool,
    ) -> Result<Journal<'l>, Failure> {
        let mut bytes = Vec::with_capacity(300 * (entries.len() + decided.len() + 2));
        let mut lines = 0;
        let mut written = lines::append(&mut bytes, lines, head);
        for entry in entries.iter().chain(decided) {
            lines += 1;
            written = written.and_then(|()| lines::append(&mut bytes, lines, entry));
        }
        written.map_err(|error| failed("write a journal in", lock.state().directory(), &error))?;
        let end = bytes.len() as u64;
        let room = (end + MARK * (entries.len() as u64 + 1) + ROOM / 2).next_multiple_of(ROOM);
        if for_undo {
            // the undo of a step has up to a few steps, each with the contents of its files
            lock.reserve((3 * end + ROOM).next_multiple_of(ROOM))?;
        }
        // the room that was set aside is an undo's, also from the change that it is set aside for
        let may_use_reserve = matches!(head.kind, Kind::Undo { .. });
        let file = lock.start_journal(head.generation, &bytes, room, may_use_reserve);
        let file = file.inspect_err(|_| {
            if for_undo {
                lock.release();
            }
        })?;
        let file = JournalFile { file, end, lines: lines + 1, room };
        let open = Open { lock, generation: head.generation, file };
        Ok(Journal { open: Some(open) })
    }

    /// Continues the journal of a generation that was interrupted, behind its last good line.
    pub fn resume(lock: &'l Lock, record: &Record) -> Result<Journal<'l>, Failure> {
        let generation = record.head.generation;
        let (file, good, room) = lock.continue_journal(generation, record.damage.as_ref())?;
        let file = JournalFile { file, end: good.bytes, lines: good.lines, room };
        let open = Open { lock, generation, file };
        Ok(Journal { open: Some(open) })
    }

    /// A step begins.
    pub fn begin(&mut self, step: usize) -> std::io::Result<()> {
        self.mark(&Mark::Step(i64::try_from(step).unwrap_or(i64::MAX)))
    }

    /// A step is being taken back; all after it are.
    pub fn back(&mut self, step: usize) -> std::io::Result<()> {
        self.mark(&Mark::Step(-i64::try_from(step).unwrap_or(i64::MAX - 1) - 1))
    }

    /// A thread's CPUs are about to be changed.
    pub fn thread(&mut self, step: usize, affinity: &Affinity) -> std::io::Result<()> {
        self.mark(&Mark::Thread { step, affinity: affinity.clone() })
    }

    /// A group's directory was made, with this inode number.
    pub fn made(&mut self, step: usize, inode: u64) -> std::io::Result<()> {
        self.mark(&Mark::Made { step, made: inode })
    }

    /// A thread is about to be moved.
    pub fn moved(&mut self, step: usize, moved: &Outsider) -> std::io::Result<()> {
        self.mark(&Mark::Moved { step, moved: moved.clone() })
    }

    /// A file contains something else than was written.
    pub fn actual(&mut self, step: usize, actual: &str) -> std::io::Result<()> {
        self.mark(&Mark::ReadBack { step, actual: actual.to_owned() })
    }

    /// What a file contained that was not there at first.
    pub fn was(&mut self, step: usize, was: &str) -> std::io::Result<()> {
        self.mark(&Mark::Was { step, was: was.to_owned() })
    }

    /// What a file of a new group contains before anybody writes it.
    pub fn fresh(&mut self, hierarchy: usize, file: &str, fresh: &str) -> std::io::Result<()> {
        self.mark(&Mark::Fresh { hierarchy, file: file.to_owned(), fresh: fresh.to_owned() })
    }

    /// Writes the end, and makes the journal a finished generation. After an error it can be tried again.
    pub fn finish(&mut self, result: End) -> Result<(), Failure> {
        self.open.as_mut().map_or(Ok(()), |open| open.finish(result))
    }

    /// Makes a journal that has its end already a finished generation.
    pub fn rename(&self) -> Result<(), Failure> {
        self.open.as_ref().map_or(Ok(()), Open::rename)
    }

    fn mark(&mut self, mark: &Mark) -> std::io::Result<()> {
        self.open.as_mut().map_or(Ok(()), |open| open.file.append(mark))
    }
}

impl Open<'_> {
    fn finish(&mut self, mut result: End) -> Result<(), Failure> {
        result.lines = self.file.lines;
        let before = (self.file.end, self.file.lines);
        let marked = self.file.append(&Mark::End { result });
        let finished = marked
            .map_err(|error| failed("write a journal in", self.lock.state().directory(), &error))
            .and_then(|()| self.rename());
        if finished.is_err() {
            let JournalFile { file, end, lines, room } = &mut self.file;
            // another end may be written over this one; until then nobody may read it as the end
            (*end, *lines) = before;
            let _ = file.set_len(*end).and_then(|()| file.set_len(*room));
        }
        finished
    }

    fn rename(&self) -> Result<(), Failure> {
        self.lock.finish(self.generation, &self.file.file, self.file.end)
    }
}
