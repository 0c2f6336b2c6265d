//! Which program a process runs. What the kernel says of it and what the process says of itself are kept apart: a process
//! can set its name and its arguments to anything.

use std::{
    ffi::OsStr,
    fs::File,
    io::Read,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use rustix::fs::{Mode, OFlags};

/// The kernel reads this much of a file to find its interpreter (`BINPRM_BUF_SIZE`).
const FIRST_LINE: u64 = 256;
/// An interpreter may be a script itself, so often (`exec_binprm` in fs/exec.c).
const DEEPEST: usize = 5;

/// The program of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Program<'p> {
    /// The file that it executes, as the kernel has it, links resolved; empty where there is none, or the caller may
    /// not see it. Of a script, the interpreter.
    pub executable: &'p [u8],
    /// What the process says, where its name is not the executable's: the script's path, or the name that it was called by
    /// or gave itself. Nothing is decided by this alone where a path is compared.
    pub claimed: Option<&'p [u8]>,
}

impl<'p> Program<'p> {
    /// The script's path as the process says it, if it says that it runs one.
    pub fn script(&self) -> Option<&'p [u8]> {
        self.claimed.filter(|claimed| claimed.starts_with(b"/"))
    }

    /// What is shown of it: the script, else the executable, else the name.
    pub fn path(&self) -> &'p [u8] {
        let executable = Some(self.executable).filter(|path| !path.is_empty());
        self.script().or(executable).or(self.claimed).unwrap_or_default()
    }

    /// The name that it goes by.
    pub fn name(&self) -> &'p [u8] {
        last(self.claimed.unwrap_or(self.executable))
    }
}

/// Is the file at this path a script whose first line leads to this executable? Waits for nobody: neither a pipe nor a lease
/// of the file's owner.
pub fn runs_script(executable: &[u8], script: &[u8]) -> bool {
    let mut path = PathBuf::from(OsStr::from_bytes(script));
    for _ in 0..DEEPEST {
        let Some(interpreter) = interpreter(&path) else { return false };
        let Ok(real) = interpreter.canonicalize() else { return false };
        if real.as_os_str().as_bytes() == executable {
            return true;
        }
        path = interpreter;
    }
    false
}

/// What stands behind the `#!` of a file, without its argument.
fn interpreter(script: &Path) -> Option<PathBuf> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(script, flags, Mode::empty()).ok()?);
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut text = Vec::new();
    file.take(FIRST_LINE).read_to_end(&mut text).ok()?;
    let line = text.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let line = line.trim_ascii_start();
    let path = line.split(|byte| matches!(byte, b' ' | b'\t')).next()?;
    path.starts_with(b"/").then(|| PathBuf::from(OsStr::from_bytes(path)))
}

/// The part of a path behind its last slash.
pub(crate) fn last(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_known_by_its_first_line() {
        let directory = std::env::temp_dir().join(format!("rf-test-first-line-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let shell = Path::new("/bin/sh").canonicalize().unwrap();
        let outer = directory.join("outer");
        for (text, is) in [
            ("#!/bin/sh\n", true),
            ("#! /bin/sh -e\n", true),
            ("#!/bin/sh", true),
            ("#!/bin/cat\n", false),
            ("#!sh\n", false),
            ("#!/bin/env sh\n", false),
            ("#!/no/such\n", false),
            ("/bin/sh\n", false),
            ("", false),
        ] {
            std::fs::write(&outer, text).unwrap();
            let runs = runs_script(shell.as_os_str().as_bytes(), outer.as_os_str().as_bytes());
            assert_eq!(runs, is, "{text}");
        }
        let inner = directory.join("inner");
        std::fs::write(&inner, "#!/bin/sh\n").unwrap();
        std::fs::write(&outer, format!("#!{}\n", inner.display())).unwrap();
        assert!(
            runs_script(shell.as_os_str().as_bytes(), outer.as_os_str().as_bytes()),
            "through another script"
        );
        // a script that names itself ends
        std::fs::write(&outer, format!("#!{}\n", outer.display())).unwrap();
        assert!(!runs_script(shell.as_os_str().as_bytes(), outer.as_os_str().as_bytes()));
        assert!(!runs_script(shell.as_os_str().as_bytes(), directory.as_os_str().as_bytes()), "no file");
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
