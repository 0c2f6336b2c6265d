//! What is only added to, beside the generations: a line of JSON each, in two files whose sizes are bounded. The older one goes when
//! the newer one is full.

use std::{
    fs::{DirBuilder, File, OpenOptions},
    io::{BufRead, BufReader, ErrorKind, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::PathBuf,
};

use serde::{Serialize, de::DeserializeOwned};

use crate::{
    Failure,
    state::{REGULAR, failed, open, private},
};

/// The newer file is renamed to the older at this size.
const LARGEST: u64 = 1 << 20;

/// The two files. Nothing is made before the first line.
#[derive(Debug, Clone)]
pub struct LineLog {
    directory: PathBuf,
    new: String,
    old: String,
    is_private: bool,
}

impl LineLog {
    /// `NAME.jsonl` and `NAME.1.jsonl` of this directory, which everybody may read.
    pub fn new(directory: PathBuf, name: &str) -> LineLog {
        let (new, old) = (format!("{name}.jsonl"), format!("{name}.1.jsonl"));
        LineLog { directory, new, old, is_private: false }
    }

    /// The same, which only their owner may read.
    pub fn private(directory: PathBuf, name: &str) -> LineLog {
        LineLog { is_private: true, ..LineLog::new(directory, name) }
    }

    /// Adds a line. A full disk loses it.
    ///
    /// # Errors
    /// The file can't be written.
    pub fn add(&self, line: &impl Serialize) -> Result<(), Failure> {
        let failed = |what, error| failed(what, &self.directory, &error);
        let path = self.directory.join(&self.new);
        if path.symlink_metadata().is_ok_and(|about| about.len() >= LARGEST) {
            let renamed = std::fs::rename(&path, self.directory.join(&self.old));
            renamed.map_err(|error| failed("rename in", error))?;
        }
        let mut line = serde_json::to_vec(line).unwrap_or_default();
        line.push(b'\n');
        let options = || if self.is_private { private() } else { readable() };
        let open = || options().append(true).create(true).open(&path);
        let file = open().or_else(|error| match error.kind() {
            ErrorKind::NotFound => make(&self.directory).and_then(|()| open()),
            _ => Err(error),
        });
        file.and_then(|mut file| file.write_all(&line)).map_err(|error| failed("write to", error))
    }

    /// All that are left, oldest first. Lines that are damaged are left out.
    ///
    /// # Errors
    /// A file can't be read.
    pub fn all<T: DeserializeOwned>(&self) -> Result<Vec<T>, Failure> {
        let mut all = Vec::new();
        for name in [&self.old, &self.new] {
            let file = match self.open(name) {
                Ok(file) => file,
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) => return Err(failed("read", &self.directory, &error)),
            };
            let lines = BufReader::new(file).split(b'\n').map_while(Result::ok);
            all.extend(lines.filter_map(|line| serde_json::from_slice::<T>(&line).ok()));
        }
        Ok(all)
    }

    /// A file of the directory's owner.
    pub(crate) fn open(&self, name: &str) -> std::io::Result<File> {
        let file = open(&self.directory.join(name))?;
        let owner = |about: std::fs::Metadata| about.uid();
        let is_own = owner(file.metadata()?) == owner(self.directory.metadata()?);
        let other = || std::io::Error::new(ErrorKind::InvalidInput, "it is another user's");
        is_own.then_some(file).ok_or_else(other)
    }
}

/// Makes a directory that everybody may read.
pub(crate) fn make(directory: &std::path::Path) -> std::io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o755).create(directory)
}

/// A file that everybody may read.
pub(crate) fn readable() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(0o644).custom_flags(REGULAR.bits().cast_signed());
    options
}
