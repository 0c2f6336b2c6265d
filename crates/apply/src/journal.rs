//! The journal of a generation that is under way: everything that will be changed with what was there before, on the
//! disk before the first change; then a mark before each step. Marks are not forced to the disk: they must outlive
//! this process, and the control groups that they are about do not outlive the machine's going down either.

use std::{fs::File, io::Write};

use serde::Serialize;

use crate::{
    Failure,
    record::{Affinity, Entry, Head, Mark, Record, Result as End},
    state::{Lock, failed},
};

/// An open journal.
pub(crate) struct Journal<'l> {
    lock: &'l Lock,
    generation: u32,
    file: File,
}

impl<'l> Journal<'l> {
    /// Writes head and steps.
    pub fn start(lock: &'l Lock, head: &Head, entries: &[Entry]) -> Result<Journal<'l>, Failure> {
        let mut bytes = Vec::with_capacity(300 * (entries.len() + 2));
        let written = line(&mut bytes, head);
        let written =
            entries.iter().fold(written, |so_far, entry| so_far.and_then(|()| line(&mut bytes, entry)));
        written.map_err(|error| failed("write a journal in", lock.state().directory(), &error))?;
        let file = lock.start_journal(head.generation, &bytes)?;
        Ok(Journal { lock, generation: head.generation, file })
    }

    /// Goes on with one that was broken off.
    pub fn resume(lock: &'l Lock, record: &Record) -> Result<Journal<'l>, Failure> {
        let generation = record.head.generation;
        Ok(Journal { lock, generation, file: lock.continue_journal(generation)? })
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

    /// A file holds something else than was written.
    pub fn held(&mut self, step: usize, held: &str) -> std::io::Result<()> {
        self.mark(&Mark::Held { step, held: held.to_owned() })
    }

    /// What a file held that was not there at first.
    pub fn was(&mut self, step: usize, was: &str) -> std::io::Result<()> {
        self.mark(&Mark::Was { step, was: was.to_owned() })
    }

    /// Writes the end, and makes the journal a finished generation.
    pub fn finish(mut self, result: End) -> Result<(), Failure> {
        let marked = self.mark(&Mark::End { result });
        marked.map_err(|error| failed("write a journal in", self.lock.state().directory(), &error))?;
        self.lock.finish(self.generation, &self.file)
    }

    /// One write(2): a line is there wholly or, if the disk is full, cut short and then not read.
    fn mark(&mut self, mark: &Mark) -> std::io::Result<()> {
        let mut bytes = Vec::with_capacity(32);
        line(&mut bytes, mark)?;
        self.file.write_all(&bytes)
    }
}

fn line(bytes: &mut Vec<u8>, value: &impl Serialize) -> std::io::Result<()> {
    serde_json::to_writer(&mut *bytes, value)?;
    bytes.push(b'\n');
    Ok(())
}
