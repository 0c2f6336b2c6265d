//! The locks of the state directory: who may change, and who undoes what nobody confirms.

use std::{
    fs::File,
    io::{ErrorKind, Read, Seek, Write},
    os::unix::fs::MetadataExt,
    path::PathBuf,
    time::{Duration, Instant},
};

use rustix::fs::FlockOperation;

use super::{Lock, State, Watch, failed, open, private};
use crate::Failure;

/// The interval between attempts to take a busy lock. flock(2) can wait by itself, but not for a limited time.
const RETRY: Duration = Duration::from_millis(20);

/// The file that processes have locked which undo what nobody confirms.
const WATCH: &str = "watch";

impl State {
    /// Takes the lock; waits for another holder no longer than `wait`.
    ///
    /// # Errors
    /// [`Failure::Locked`] with the holder, [`Failure::State`].
    pub fn lock(&self, wait: Duration) -> Result<Lock, Failure> {
        let path = self.directory.join("lock");
        // anybody who can open it can lock it, and would hold up an undo
        let file = private().read(true).create(true).truncate(false).open(&path);
        let mut file = file.map_err(|error| failed("open", &path, &error))?;
        let about = file.metadata().map_err(|error| failed("look at", &path, &error))?;
        // a restored or copied directory may have a second name of somebody's file here: it serves as it is
        let is_ours = about.nlink() == 1 && [0, rustix::process::geteuid().as_raw()].contains(&about.uid());
        if is_ours && about.mode() & 0o077 != 0 {
            let closed = rustix::fs::fchmod(&file, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR);
            closed.map_err(|errno| failed("close to others", &path, &errno.into()))?;
        }
        let deadline = Instant::now() + wait;
        loop {
            match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => break,
                Err(rustix::io::Errno::WOULDBLOCK) if Instant::now() < deadline => std::thread::sleep(RETRY),
                Err(rustix::io::Errno::WOULDBLOCK) => return Err(holder(&mut file, path)),
                Err(errno) => return Err(failed("lock", &path, &errno.into())),
            }
        }
        // for the messages of waiting processes; a failure to name this one is no reason to stop
        let mut known = String::new();
        let is_read = (&mut file).take(32).read_to_string(&mut known).is_ok();
        if is_ours && is_read && known.trim().bytes().all(|byte| byte.is_ascii_digit()) {
            let named = file.rewind().and_then(|()| file.set_len(0));
            let _ = named.and_then(|()| file.write_all(format!("{}\n", std::process::id()).as_bytes()));
        }
        Ok(Lock { state: self.clone(), _file: file })
    }

    /// Shows, for as long as the answer lives, that this process undoes what nobody confirms.
    ///
    /// # Errors
    /// [`Failure::State`].
    pub fn watch(&self) -> Result<Watch, Failure> {
        let path = self.directory.join(WATCH);
        let file = private().create(true).truncate(false).open(&path);
        let file = file.map_err(|error| failed("open", &path, &error))?;
        let locked = rustix::fs::flock(&file, FlockOperation::LockShared);
        locked.map_err(|errno| failed("lock", &path, &errno.into()))?;
        Ok(Watch { _file: file })
    }

    /// Does a process [watch](State::watch)? `None` if the caller may not know.
    pub(crate) fn is_watched(&self) -> Option<bool> {
        match open(&self.directory.join(WATCH)) {
            Ok(file) => {
                let tried = rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive);
                Some(tried == Err(rustix::io::Errno::WOULDBLOCK))
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Some(false),
            Err(_) => None,
        }
    }
}

/// Who holds the lock: what he wrote into it.
fn holder(file: &mut File, path: PathBuf) -> Failure {
    let mut text = String::new();
    let _ = file.read_to_string(&mut text); // not known then
    let pid = text.trim().parse().ok();
    // a number without a command is that of an earlier owner, which ended
    match pid.and_then(command_line) {
        Some(command) => {
            let command = command.escape_debug().to_string();
            Failure::Locked { pid, command, path }
        }
        None => Failure::Locked { pid: None, command: String::new(), path },
    }
}

/// A process's arguments joined by blanks, as they are recorded; `None` if there is no such process.
pub(crate) fn command_line(pid: u32) -> Option<String> {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let words = line.strip_suffix(&[0])?.split(|byte| *byte == 0);
    Some(words.map(String::from_utf8_lossy).collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_that_is_somebodys_file_is_left_as_it_is() {
        let directory = tempfile::tempdir().unwrap();
        let (state, path) = (State::peek(directory.path()), directory.path().join("lock"));
        std::fs::write(&path, "a list of locks\n").unwrap();
        drop(state.lock(Duration::ZERO).unwrap());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "a list of locks\n");
        std::fs::write(&path, "17\n").unwrap();
        drop(state.lock(Duration::ZERO).unwrap());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), format!("{}\n", std::process::id()));
        let other = directory.path().join("other");
        std::fs::write(&other, "7").unwrap();
        std::fs::remove_file(&path).unwrap();
        std::fs::hard_link(&other, &path).unwrap();
        let before = std::fs::metadata(&other).unwrap().mode();
        drop(state.lock(Duration::ZERO).unwrap());
        assert_eq!(std::fs::read_to_string(&other).unwrap(), "7");
        assert_eq!(std::fs::metadata(&other).unwrap().mode(), before);
    }

    #[test]
    fn a_lock_without_a_living_holders_number_is_held_by_another_process() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        for (text, known) in
            [(String::new(), false), (i32::MAX.to_string(), false), (std::process::id().to_string(), true)]
        {
            std::fs::write(&path, text).unwrap();
            let actual = holder(&mut File::open(&path).unwrap(), path.clone());
            assert_eq!(actual.holder().is_some_and(|holder| holder != "another process"), known, "{actual}");
        }
    }
}
