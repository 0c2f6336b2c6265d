//! Opens configuration files so that nobody but their owner decides what is read. What root reads must be a regular
//! file, not a link, writable by its owner alone, and in a directory where nobody else can put another one in its
//! place.

mod trusted;
mod unit_files;

pub use trusted::{Untrusted, trusted, trusted_program};
pub use unit_files::unit_sources;

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use layout::{Diagnostic, Reading, Source};
use rustix::fs::{FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use units::hint::Command;

use crate::files::trusted::{OTHERS_WRITE, is_trusted};

/// The largest file that is read, in bytes. A layout of thousands of groups has one.
pub const LARGEST: u64 = 16 << 20;

/// How far files are trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// As root must: what others could have changed or exchanged is refused.
    Strict,
    /// As anyone may who can do no harm with it.
    Lenient,
}

/// Texts that were read, and what could not be.
#[derive(Debug, Default)]
pub struct Loaded {
    /// In the order requested. One that is not UTF-8 is included, with its wrong bytes replaced, so that its place can
    /// be shown; there is an error for it.
    pub sources: Vec<Source>,
    /// Why files could not be read.
    pub diagnostics: Vec<Diagnostic>,
}

impl Trust {
    /// What suits the user that this process acts as.
    pub fn of_this_process() -> Trust {
        if rustix::process::geteuid().is_root() { Trust::Strict } else { Trust::Lenient }
    }
}

/// The files that make up the layout at `path`: the file itself; of a directory its `layout.toml`, then its
/// `layout.d/*.toml` by name.
///
/// # Errors
/// A path where nothing is; a directory that can't be read, or has neither.
pub fn layout_files(path: &Path) -> Result<Vec<PathBuf>, Diagnostic> {
    if path.symlink_metadata().is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound) {
        let error = Diagnostic::error(format!("there is no {}", path.display()));
        return Err(error.hint("write /etc/ringfence/layout.toml, which is read by itself, or name a file"));
    }
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let main = path.join("layout.toml");
    let more = path.join("layout.d");
    let mut files = if main.symlink_metadata().is_ok() { vec![main] } else { Vec::new() };
    if more.symlink_metadata().is_ok() {
        files.extend(files_in(&more, "toml")?);
    }
    if files.is_empty() {
        let error = Diagnostic::error(format!("there is no layout in {}", path.display()));
        return Err(error.hint("write layout.toml or layout.d/*.toml there, or name a file"));
    }
    Ok(files)
}

/// The files in a directory with that extension, by name; hidden ones left out.
///
/// # Errors
/// The directory can't be read.
pub fn files_in(directory: &Path, extension: &str) -> Result<Vec<PathBuf>, Diagnostic> {
    let wrong =
        |error: std::io::Error| Diagnostic::error(format!("{}: {}", directory.display(), in_words(&error)));
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(wrong)? {
        let name = entry.map_err(wrong)?.file_name();
        let hidden = name.as_encoded_bytes().starts_with(b".");
        if !hidden && Path::new(&name).extension() == Some(OsStr::new(extension)) {
            files.push(directory.join(name));
        }
    }
    files.sort();
    Ok(files)
}

/// Reads files, each whole or not at all.
pub fn load(paths: &[PathBuf], trust: Trust) -> Loaded {
    let mut loaded = Loaded::default();
    for path in paths {
        let name = path.to_string_lossy();
        let bytes = match open(path, trust).and_then(|file| bytes(file, &name)) {
            Ok(bytes) => bytes,
            Err(error) => {
                loaded.diagnostics.push(error);
                continue;
            }
        };
        let (source, error) = text(&name, bytes);
        loaded.sources.push(source);
        loaded.diagnostics.extend(error);
    }
    loaded
}

/// Reads the layout at a path, as [`layout_files`] finds it; also the texts, to show places in. Files that can't be
/// read are among the diagnostics.
pub fn read_layout(path: &Path, trust: Trust) -> (Reading, Vec<Source>) {
    let loaded = match layout_files(path) {
        Ok(files) => load(&files, trust),
        Err(error) => Loaded { sources: Vec::new(), diagnostics: vec![error] },
    };
    // an incomplete layout must not pass for the one requested
    let unread = !loaded.diagnostics.is_empty();
    let mut reading = layout::read(&loaded.sources);
    if unread {
        reading.desired = None;
        reading.diagnostics.splice(0..0, loaded.diagnostics);
    }
    (reading, loaded.sources)
}

/// Opens a file from its directory, both checked after they are open, so that nothing can change in between; root also
/// checks every directory above.
fn open(path: &Path, trust: Trust) -> Result<File, Diagnostic> {
    let shown = path.display();
    let wrong = |errno: Errno| Diagnostic::error(format!("{shown}: {}", in_words(&errno.into())));
    let Some(name) = path.file_name() else {
        return Err(Diagnostic::error(format!("{shown} is no file")));
    };
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // a FIFO must not make us wait
    let how = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let how = if trust == Trust::Strict { how | OFlags::NOFOLLOW } else { how };
    let link = |errno, path: &Path| match errno {
        Errno::LOOP | Errno::NOTDIR if path.is_symlink() => {
            let error = Diagnostic::error(format!(
                "{} is a symbolic link, which root does not follow here",
                path.display()
            ));
            error.hint("name the file it leads to")
        }
        errno => wrong(errno),
    };
    let mut directory = rustix::fs::open(parent, how | OFlags::DIRECTORY, Mode::empty())
        .map_err(|errno| link(errno, parent))?;
    if trust == Trust::Strict {
        directory = kept(parent, path)?;
    }
    let file = rustix::fs::openat(&directory, name, how, Mode::empty()).map_err(|errno| link(errno, path))?;
    let stat = rustix::fs::fstat(&file).map_err(wrong)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(Diagnostic::error(format!("{shown} is no regular file")));
    }
    if trust == Trust::Strict {
        alone(&stat, path)?;
    }
    Ok(file.into())
}

/// Refuses what others than root and the caller could have written.
fn alone(file: &Stat, path: &Path) -> Result<(), Diagnostic> {
    if !is_trusted(file.st_uid) {
        let what = format!("{} belongs to user {}, who may change it", path.display(), file.st_uid);
        return Err(Diagnostic::error(what).hint(Command::new("chown root").arg(path.to_string_lossy())));
    }
    if file.st_mode & OTHERS_WRITE != 0 {
        let error = Diagnostic::error(format!("{} can be written by others than its owner", path.display()));
        return Err(error.hint(Command::new("chmod go-w").arg(path.to_string_lossy())));
    }
    Ok(())
}

/// The directory, where nobody can put another file in the place of that one, nor another directory in its own place.
fn kept(directory: &Path, path: &Path) -> Result<OwnedFd, Diagnostic> {
    trusted(directory).map_err(|why| match &why {
        Untrusted::Failed { .. } => Diagnostic::error(why.to_string()),
        Untrusted::Owner { .. } | Untrusted::Writable { .. } => {
            let what = format!("others can put another file in the place of {}: {why}", path.display());
            let error = Diagnostic::error(what);
            match why.hint() {
                Some(hint) => error.hint(hint),
                None => error,
            }
        }
    })
}

fn bytes(file: File, name: &str) -> Result<Vec<u8>, Diagnostic> {
    let mut bytes = Vec::new();
    // it may grow while it is read
    match file.take(LARGEST + 1).read_to_end(&mut bytes) {
        Ok(_) if bytes.len() as u64 > LARGEST => {
            Err(Diagnostic::error(format!("{name} is larger than 16 MB"))
                .hint("is it a configuration at all?"))
        }
        Ok(_) => Ok(bytes),
        Err(error) => Err(Diagnostic::error(format!("{name}: {}", in_words(&error)))),
    }
}

fn text(name: &str, bytes: Vec<u8>) -> (Source, Option<Diagnostic>) {
    let error = match String::from_utf8(bytes) {
        Ok(text) => return (Source::new(name, &text), None),
        Err(error) => error,
    };
    let at = error.utf8_error().valid_up_to();
    let byte = error.as_bytes()[at]; // there is one, or it were valid
    let source = Source::new(name, &String::from_utf8_lossy(error.as_bytes()));
    let origin = source.origin(at..at + 1);
    let message = format!("the text is not UTF-8: byte {byte:#04x} at position {}", at + 1);
    (source, Some(Diagnostic::error(message).at(origin).hint("save the file as UTF-8")))
}

/// The kernel's reason, as it is written everywhere, in lower case and without its number.
fn in_words(error: &std::io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or(&text);
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_lowercase().chain(chars).collect())
}
