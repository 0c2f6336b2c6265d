//! Opens and reads files that other programs or users may have made: regular files alone, without following a link or
//! waiting for a FIFO, and never more than a limit. It never writes.

use std::{
    ffi::OsStr,
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    os::fd::AsFd,
    path::Path,
};

use rustix::fs::{CWD, FileType, Mode, OFlags};

/// The most that is read of a file that a tool wrote, in bytes.
pub const TOOL_OUTPUT: u64 = 64 << 20;

/// How much of the end of a failed tool's output is searched for its last lines, in bytes.
const TAIL: u64 = 16 << 10;

/// Opens a regular file below an open directory.
pub fn open_at(directory: impl AsFd, name: impl AsRef<OsStr>) -> io::Result<File> {
    // opening a FIFO without NONBLOCK waits for its writer
    let how = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::NOFOLLOW;
    let file = rustix::fs::openat(directory, name.as_ref(), how, Mode::empty())?;
    let stat = rustix::fs::fstat(&file)?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Ok(file.into()),
        _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")),
    }
}

/// Opens a regular file.
pub fn open(path: &Path) -> io::Result<File> {
    open_at(CWD, path)
}

/// Everything in an open file; an error if that is more than `most` bytes.
pub fn read_all(file: File, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // it may grow while it is read
    let read = file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if read as u64 > most {
        let why = format!("it is larger than {} MiB", most >> 20);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
    }
    Ok(bytes)
}

/// Everything in a file of a tool, as text; what is not UTF-8 is replaced.
pub fn tool_text(path: &Path) -> io::Result<String> {
    let bytes = read_all(open(path)?, TOOL_OUTPUT)?;
    Ok(String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
}

/// The last lines of a file that aren't empty, joined by `; `. Control characters are left out: the text goes to a
/// terminal.
pub fn last_lines(path: &Path, count: usize) -> String {
    let end = || -> io::Result<Vec<u8>> {
        let mut file = open(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(TAIL)))?;
        let mut end = Vec::new();
        file.take(TAIL).read_to_end(&mut end)?;
        Ok(end)
    };
    let end = end().unwrap_or_default();
    let text = String::from_utf8_lossy(&end);
    let lines: Vec<String> = text.lines().map(plain).filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(count)..].join("; ")
}

/// A line without what a terminal would act on, and not longer than a screen is wide a few times.
fn plain(line: &str) -> String {
    line.chars().filter(|c| !c.is_control()).take(500).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// attack finding 21: reads were unbounded, and a FIFO made them wait.
    #[test]
    fn only_regular_files_of_a_limited_size_are_read() {
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name);
        fs::write(path("file"), "12345").unwrap();
        assert_eq!(read_all(open(&path("file")).unwrap(), 5).unwrap(), b"12345");
        let error = read_all(open(&path("file")).unwrap(), 4).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
        rustix::fs::mkfifoat(CWD, path("fifo"), Mode::RUSR | Mode::WUSR).unwrap();
        std::os::unix::fs::symlink(path("file"), path("link")).unwrap();
        // an open that waited for the writer of a FIFO would never end
        for other in [path("fifo"), path("link"), place.path().to_owned(), "/dev/zero".into()] {
            assert!(open(&other).is_err(), "{}", other.display());
        }
    }

    /// attack finding 25: the whole output of a failed tool was read into memory.
    #[test]
    fn of_a_long_output_only_the_end_is_read() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("out");
        let file = File::create(&path).unwrap();
        file.set_len(4 << 30).unwrap(); // sparse: reading it whole would take 4 GiB of memory
        drop(file);
        let mut file = fs::OpenOptions::new().append(true).open(&path).unwrap();
        io::Write::write_all(&mut file, b"\nfirst\n\n\x1b[31mlast\x07\n").unwrap();
        assert_eq!(last_lines(&path, 2), "first; [31mlast");
        assert!(tool_text(&path).is_err(), "the whole of it is refused");
    }
}
