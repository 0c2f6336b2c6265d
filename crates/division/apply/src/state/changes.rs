//! What only the holder of the lock does with the state directory: journals, their ends, and what goes.

use super::*;
use crate::journal_file::allocate;

impl Lock {
    /// The state that it is about.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Makes the confirmation of a generation lasting.
    pub(crate) fn write_confirmation(&self, generation: u32) -> Result<(), Failure> {
        let path = self.state.file(generation, CONFIRMED);
        let open = || private().create(true).truncate(true).open(&path);
        let file = open().or_else(|error| match is_full(&error) {
            true => self.use_reserve(&path).map_err(|_| error).and_then(|()| open()),
            false => Err(error),
        });
        file.and_then(|file| file.sync_all()).map_err(|error| failed("write", &path, &error))?;
        self.release();
        self.sync_directory();
        Ok(())
    }

    /// Sets room aside for the journal of an undo.
    pub(crate) fn reserve(&self, bytes: u64) -> Result<(), Failure> {
        let path = self.state.generations().join(RESERVE);
        let file = private().create(true).truncate(true).open(&path);
        file.and_then(|file| allocate(&file, 0, bytes)).map_err(|error| {
            let _ = std::fs::remove_file(&path);
            failed("set room aside in", &path, &error)
        })
    }

    /// Gives that room back.
    pub(crate) fn release(&self) {
        let _ = std::fs::remove_file(self.state.generations().join(RESERVE));
    }

    /// Starts a journal with these bytes, which are on the disk before this returns, and room for what follows. It
    /// appears whole or not at all.
    pub(crate) fn start_journal(
        &self,
        generation: u32,
        bytes: &[u8],
        room: u64,
        may_use_reserve: bool,
    ) -> Result<File, Failure> {
        let (new, path) = (self.state.file(generation, NEW), self.state.file(generation, JOURNAL));
        let written = self.allocated(&new, room, may_use_reserve).and_then(|file| {
            file.write_all_at(bytes, 0)?;
            file.sync_data()?;
            if path.exists() {
                return Err(ErrorKind::AlreadyExists.into());
            }
            std::fs::rename(&new, &path)?;
            Ok(file)
        });
        let file = written.map_err(|error| {
            let _ = std::fs::remove_file(&new); // nothing was begun
            failed("write", &path, &error)
        })?;
        self.sync_directory();
        Ok(file)
    }

    /// A file with that much room; on a disk that is full, or has no inode left, that which was set aside, if it may be used.
    fn allocated(&self, path: &Path, room: u64, may_use_reserve: bool) -> std::io::Result<File> {
        let made = private().read(true).create(true).truncate(true).open(path);
        match made.and_then(|file| allocate(&file, 0, room).map(|()| file)) {
            Err(error) if may_use_reserve && is_full(&error) => {
                // what was made of the file is given back by the rename
                self.use_reserve(path).map_err(|_| error)?;
                let file = private().read(true).open(path)?;
                let there = file.metadata()?.len();
                if there < room {
                    allocate(&file, there, room)?;
                }
                Ok(file)
            }
            made => made,
        }
    }

    /// Makes a file of the room that was set aside.
    fn use_reserve(&self, path: &Path) -> std::io::Result<()> {
        std::fs::rename(self.state.generations().join(RESERVE), path)
    }

    /// Continues the journal of a generation that was interrupted, behind its last good line; with how large it is.
    pub(crate) fn continue_journal(
        &self,
        generation: u32,
        damage: Option<&Damage>,
    ) -> Result<(File, Good, u64), Failure> {
        let path = self.state.file(generation, JOURNAL);
        let opened = private().read(true).open(&path).and_then(|mut file| {
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes)?;
            let good = Good::of(&bytes, damage);
            let room = (bytes.len() as u64).max(good.bytes + 1).next_multiple_of(ROOM);
            // what is behind is not read any more
            file.set_len(good.bytes)?;
            file.set_len(room)?;
            Ok((file, good, room))
        });
        opened.map_err(|error| failed("open", &path, &error))
    }

    /// Makes a journal that has its end a finished generation of that length.
    pub(crate) fn finish(&self, generation: u32, journal: &File, length: u64) -> Result<(), Failure> {
        let from = self.state.file(generation, JOURNAL);
        let to = self.state.file(generation, FINISHED);
        let newest = self.state.file(generation, NEWEST);
        let before = self.state.numbers(&[NEWEST]).unwrap_or_default();
        // on a full disk the record alone has to do
        let _ = private().create(true).open(&newest);
        let renamed = journal
            .set_len(length)
            .and_then(|()| journal.sync_data())
            .and_then(|()| std::fs::rename(&from, &to));
        renamed.map_err(|error| failed("finish", &from, &error))?;
        for older in before.into_iter().filter(|older| *older != generation) {
            let _ = std::fs::remove_file(self.state.file(older, NEWEST));
        }
        self.sync_directory();
        Ok(())
    }

    /// Puts one generation in the place of several, of which it has the last one's number: wholly or not at all.
    pub(crate) fn join(&self, record: &Record) -> Result<(), Failure> {
        let generation = record.head.generation;
        let (new, path) = (self.state.file(generation, NEW), self.state.file(generation, JOINED));
        let write = || {
            let file = private().create(true).truncate(true).open(&new)?;
            file.write_all_at(&record.bytes()?, 0)?;
            file.sync_data()?;
            std::fs::rename(&new, &path)
        };
        write().map_err(|error| {
            let _ = std::fs::remove_file(&new);
            failed("write", &path, &error)
        })?;
        self.sync_directory();
        let alone = self.state.file(generation, FINISHED);
        std::fs::remove_file(&alone).map_err(|error| failed("remove", &alone, &error))
    }

    /// Takes away what a process left that was killed while it wrote a journal or joined generations.
    pub(crate) fn remove_unwritten(&self) -> Result<(), Failure> {
        for generation in self.state.numbers(&[NEW])? {
            let _ = std::fs::remove_file(self.state.file(generation, NEW));
        }
        Ok(())
    }

    /// Takes a finished generation away.
    pub(crate) fn remove(&self, generation: u32) -> Result<(), Failure> {
        for suffix in [CONFIRMED, FINISHED, JOINED] {
            let path = self.state.file(generation, suffix);
            match std::fs::remove_file(&path) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    return Err(failed("remove", &path, &error));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// A name that a crash of the machine loses is no loss: nothing of what it is about outlives that.
    fn sync_directory(&self) {
        let _ = File::open(self.state.generations()).and_then(|directory| directory.sync_all());
    }
}

fn is_full(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
}
