//! Who asked for which change, as lines of JSON in the state directory: what the socket changed beside the journal of
//! layouts. What is refused before the kernel is asked is counted, not written: nobody fills the disk by asking.

use std::{
    fs::{self, File},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    time::SystemTime,
};

use apply::By;
use serde_json::Value;

/// The file in the state directory.
const FILE: &str = "changes.jsonl";
/// From this size on a new file is begun; one old one is kept.
const LARGEST: u64 = 8 << 20;

/// The place of the lines.
#[derive(Debug, Clone)]
pub(super) struct Audit {
    path: PathBuf,
}

/// One line.
#[derive(Debug, serde::Serialize)]
pub(super) struct Line<'l> {
    pub by: &'l By,
    /// `set` or `move`.
    pub what: &'static str,
    pub group: String,
    pub asked: Value,
    /// What was done.
    pub done: Option<Value>,
    /// Why nothing was.
    pub refused: Option<&'l str>,
}

/// The file, open before the change is made: what can't be told is not done.
pub(super) struct Open(File);

impl Audit {
    pub(super) fn within(state: &Path) -> Audit {
        Audit { path: state.join(FILE) }
    }

    /// Opens the file, and begins a new one when it has become large.
    pub(super) fn open(&self) -> io::Result<Open> {
        if fs::metadata(&self.path).is_ok_and(|file| file.len() >= LARGEST) {
            fs::rename(&self.path, self.path.with_extension("jsonl.1"))?;
        }
        fs::create_dir_all(self.path.parent().unwrap_or(Path::new("/")))?;
        let mut options = File::options();
        options.create(true).append(true).mode(0o600);
        Ok(Open(options.open(&self.path)?))
    }
}

impl Open {
    /// Writes one line, in one write.
    pub(super) fn write(&mut self, line: &Line<'_>) -> io::Result<()> {
        let mut value = serde_json::to_value(line)?;
        value["at"] = humantime::format_rfc3339_millis(SystemTime::now()).to_string().into();
        self.0.write_all(format!("{value}\n").as_bytes())
    }
}
