//! Who requested which change, as lines of JSON in the state directory: what the socket changed beside the journal of
//! layouts. A request refused before any write is counted, not recorded: no client fills the disk by requests.

use std::{
    fs::{self, File},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::SystemTime,
};

use apply::By;
use serde::Serialize;

/// The file of root's changes in the state directory; another user's is `changes-UID.jsonl`: no user pushes out another
/// one's lines.
const FILE: &str = "changes.jsonl";
/// From this size on a new file is begun; one old file stays.
const LARGEST: u64 = 8 << 20;
/// The same of a user's file.
const LARGEST_OF_USER: u64 = 1 << 20;

/// The place of the lines.
#[derive(Debug)]
pub(super) struct Audit {
    state: PathBuf,
    /// One file is begun at a time.
    opening: Mutex<()>,
}

/// One line.
#[derive(Debug, serde::Serialize)]
pub(super) struct Line<'l, R, D> {
    pub by: &'l By,
    /// `set` or `move`.
    pub what: &'static str,
    pub group: String,
    pub requested: &'l R,
    /// What was done.
    pub done: Option<&'l D>,
    /// Why nothing was.
    pub refused: Option<&'l str>,
}

/// A line with its time.
#[derive(serde::Serialize)]
struct Dated<L> {
    at: String,
    #[serde(flatten)]
    line: L,
}

/// The file, open before the change is made: what can't be recorded is not done.
pub(super) struct Open(File);

impl Audit {
    pub(super) fn within(state: &Path) -> Audit {
        Audit { state: state.to_owned(), opening: Mutex::default() }
    }

    /// Opens the file of a user, and begins a new one when it has become large.
    pub(super) fn open(&self, uid: u32) -> io::Result<Open> {
        let (name, largest) = match uid {
            0 => (FILE.to_owned(), LARGEST),
            uid => (format!("changes-{uid}.jsonl"), LARGEST_OF_USER),
        };
        let path = self.state.join(name);
        let _one = self.opening.lock().unwrap_or_else(PoisonError::into_inner);
        if fs::metadata(&path).is_ok_and(|file| file.len() >= largest) {
            fs::rename(&path, path.with_extension("jsonl.1"))?;
        }
        fs::create_dir_all(&self.state)?;
        let mut options = File::options();
        options.create(true).append(true).mode(0o600);
        Ok(Open(options.open(&path)?))
    }
}

impl Open {
    /// Writes one line, in one write.
    pub(super) fn write(&mut self, line: &Line<'_, impl Serialize, impl Serialize>) -> io::Result<()> {
        let at = humantime::format_rfc3339_millis(SystemTime::now()).to_string();
        let mut text = serde_json::to_vec(&Dated { at, line })?;
        text.push(b'\n');
        self.0.write_all(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Attack finding 13: a user's allowed changes, as many as may be.
    #[test]
    fn a_flood_of_one_user_keeps_roots_lines_and_is_bounded() {
        let directory = tempfile::tempdir().unwrap();
        let audit = Audit::within(directory.path());
        let write = |uid: u32| {
            let by = By { uid, ..By::caller() };
            let requested = "x".repeat(4000);
            let group = "db".to_owned();
            let line: Line<'_, _, ()> =
                Line { by: &by, what: "set", group, requested: &requested, done: None, refused: None };
            audit.open(uid).unwrap().write(&line).unwrap();
        };
        write(0);
        (0..6000).for_each(|_| write(1000));
        write(1001);
        let text = |name: &str| fs::read_to_string(directory.path().join(name)).unwrap();
        assert_eq!(text(FILE).lines().count(), 1);
        assert_eq!(text("changes-1001.jsonl").lines().count(), 1);
        let size = text("changes-1000.jsonl").len() + text("changes-1000.jsonl.1").len();
        assert!(size < 3 << 20, "{size}");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 4);
    }
}
