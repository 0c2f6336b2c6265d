//! Reads the small files of `/sys` and `/proc` below a root, into one buffer that is used again. A file that is
//! not there, or that the kernel will not read for us, is `None`; anything else that fails is an error.

use std::{
    fs::{self, File},
    io::{self, Read as _},
    path::{Path, PathBuf},
    str::FromStr,
};

use units::CpuSet;

use super::line::quoted;
use crate::{MAX_CPUS, TopologyError};

/// The most that is read of a file: `/proc/cpuinfo` of 8192 CPUs is shorter, all else by far.
const LONGEST: usize = 32 << 20;

pub(super) struct Tree<'a> {
    root: &'a Path,
    buffer: Vec<u8>,
}

impl<'a> Tree<'a> {
    pub fn new(root: &'a Path) -> Self {
        Tree { root, buffer: Vec::with_capacity(4096) }
    }

    /// The file's text without the white space around it, and without the NUL that some kernels put behind a list.
    pub fn text(&mut self, path: &str) -> Result<Option<&str>, TopologyError> {
        if !self.load(path, Until::ShortRead)? {
            return Ok(None);
        }
        Ok(Some(self.loaded(path)?.trim_matches(|c: char| c.is_whitespace() || c == '\0')))
    }

    /// The file's beginning, at least `enough` bytes of it if it has them; empty if there is no such file. For files
    /// of `/proc` that the kernel hands out piece by piece.
    pub fn head(&mut self, path: &str, enough: usize) -> Result<&str, TopologyError> {
        if self.load(path, Until::Length(enough.min(LONGEST)))? { self.loaded(path) } else { Ok("") }
    }

    /// A number; `None` also for -1, by which the kernel says that it does not know.
    pub fn number<T: FromStr>(&mut self, path: &str) -> Result<Option<T>, TopologyError> {
        match self.text(path)? {
            None | Some("-1") => Ok(None),
            Some(text) => match text.parse() {
                Ok(number) => Ok(Some(number)),
                Err(_) => Err(value(self.root.join(path), "a number", &self.buffer)),
            },
        }
    }

    /// A list of CPUs. `(null)` is how some kernels print an empty one.
    pub fn cpus(&mut self, path: &str) -> Result<Option<CpuSet>, TopologyError> {
        let Some(text) = self.text(path)? else { return Ok(None) };
        let list = if text == "(null)" { "" } else { text };
        let cpus: Option<CpuSet> = list.parse().ok();
        match cpus.filter(|cpus| cpus.last().is_none_or(|last| last < MAX_CPUS)) {
            Some(cpus) => Ok(Some(cpus)),
            None => Err(value(self.root.join(path), "a list of CPUs", &self.buffer)),
        }
    }

    /// The names in a directory, in no order; empty if there is none.
    pub fn names(&self, path: &str) -> Result<Vec<String>, TopologyError> {
        let path = self.root.join(path);
        let entries = match fs::read_dir(&path) {
            Ok(entries) => entries,
            Err(error) if is_absence(&error) => return Ok(Vec::new()),
            Err(reason) => return Err(TopologyError::Read { path, reason }),
        };
        // a name that is not UTF-8 is none that the kernel gave
        Ok(entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect())
    }

    /// The error that a file does not hold what it should.
    pub fn wrong(&self, path: &str, expected: &str) -> TopologyError {
        value(self.root.join(path), expected, &self.buffer)
    }

    /// Reads the file into the buffer; false if it is not there.
    fn load(&mut self, path: &str, until: Until) -> Result<bool, TopologyError> {
        let path = self.root.join(path);
        self.buffer.clear();
        let read = File::open(&path).and_then(|mut file| fill(&mut file, &mut self.buffer, until));
        match read {
            Ok(()) => Ok(true),
            Err(error) if is_absence(&error) => Ok(false),
            Err(reason) => Err(TopologyError::Read { path, reason }),
        }
    }

    fn loaded(&self, path: &str) -> Result<&str, TopologyError> {
        std::str::from_utf8(&self.buffer)
            .map_err(|_| value(self.root.join(path), "text in UTF-8", &self.buffer))
    }
}

/// When a file has been read far enough.
#[derive(Clone, Copy)]
enum Until {
    /// At the first read that does not fill its page. That is a whole sysfs file: no second read, and no `fstat`
    /// before it, as `read_to_string` would make.
    ShortRead,
    /// At this many bytes, or at the end.
    Length(usize),
}

fn fill(file: &mut File, buffer: &mut Vec<u8>, until: Until) -> io::Result<()> {
    const PAGE: usize = 4096;
    loop {
        let start = buffer.len();
        buffer.resize(start + PAGE, 0);
        let read = file.read(&mut buffer[start..]);
        buffer.truncate(start + *read.as_ref().unwrap_or(&0));
        let count = match read {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => read?,
        };
        let enough = match until {
            Until::ShortRead => count < PAGE || buffer.len() >= LONGEST,
            Until::Length(enough) => count == 0 || buffer.len() >= enough,
        };
        if enough {
            return Ok(());
        }
    }
}

/// Errors by which the kernel says that there is nothing to be had: the file or its device is gone, or closed to us.
fn is_absence(error: &io::Error) -> bool {
    const ENXIO: i32 = 6;
    const ENODEV: i32 = 19;
    matches!(
        error.kind(),
        io::ErrorKind::NotFound
            | io::ErrorKind::NotADirectory
            | io::ErrorKind::PermissionDenied
            | io::ErrorKind::InvalidInput
    ) || matches!(error.raw_os_error(), Some(ENXIO | ENODEV))
}

fn value(path: PathBuf, expected: &str, found: &[u8]) -> TopologyError {
    let found = quoted(&String::from_utf8_lossy(found));
    TopologyError::Value { path, expected: expected.to_owned(), found }
}
