//! What a running process is, read from `/proc/PID` fact by fact, each only when it is requested and only once
//! (proc_pid_status(5) and its neighbours). Every process is read through a descriptor of its directory, so that no
//! fact is another's who got the same number. Buffers are used again from process to process: a rule by user costs no
//! read and no allocation. Never panics on a process that ends meanwhile, and never writes.

use std::os::fd::OwnedFd;

use rustix::{
    buffer::spare_capacity,
    fs::{CWD, Dir, Mode, OFlags},
    io::Errno,
};

use crate::{
    program::{Program, last},
    status::{Stat, Status, stat, status},
};

/// Command lines and environments are read up to this; the kernel's own limit is a quarter of the stack, 2 MiB mostly.
const LARGEST: usize = 2 << 20;
/// The kernel keeps 15 bytes of a process's name (`TASK_COMM_LEN`).
const LONGEST_COMM: usize = 15;

/// The process ended, or there never was one of this number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("there is no process {pid}")]
pub struct NoProcess {
    /// Its number.
    pub pid: u32,
}

/// Reads processes, one after the other.
#[derive(Debug, Default)]
pub struct ProcessReader {
    path: String,
    facts: Facts,
}

/// A process that is read.
#[derive(Debug)]
pub struct Process<'r> {
    pid: u32,
    directory: Directory<'r>,
    facts: &'r mut Facts,
    status: Option<Status>,
    stat: Option<Stat>,
}

/// A process's directory, opened once.
#[derive(Debug)]
struct Directory<'r> {
    path: &'r mut String,
    open: Option<OwnedFd>,
}

/// The texts that were read of a process, and which of them are there.
#[derive(Debug, Default)]
struct Facts {
    status: Vec<u8>,
    comm: Text,
    groups: Vec<u32>,
    executable: Text,
    claimed: Text,
    command: Text,
    environment: Text,
    control_groups: Text,
    stat: Vec<u8>,
}

/// A text that is read once.
#[derive(Debug, Default)]
struct Text {
    bytes: Vec<u8>,
    is: Is,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Is {
    #[default]
    Unread,
    Read,
    /// Not ours to see, or the process has none.
    Hidden,
}

impl ProcessReader {
    /// Nothing is read yet.
    pub fn new() -> ProcessReader {
        ProcessReader::default()
    }

    /// Takes hold of a process; no fact is read yet.
    ///
    /// # Errors
    /// [`NoProcess`].
    pub fn process(&mut self, pid: u32) -> Result<Process<'_>, NoProcess> {
        let mut process = self.process_at_gate(pid);
        process.directory.get(pid)?;
        Ok(process)
    }

    /// The same of a process that the exec gate blocks (fanotify(7)), which can't end meanwhile: opened with the
    /// first fact.
    pub fn process_at_gate(&mut self, pid: u32) -> Process<'_> {
        self.facts.forget();
        let directory = Directory { path: &mut self.path, open: None };
        Process { pid, directory, facts: &mut self.facts, status: None, stat: None }
    }

    /// The numbers of all processes, ascending.
    ///
    /// # Errors
    /// The kernel's, if `/proc` can't be listed.
    pub fn all() -> std::io::Result<Vec<u32>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::open("/proc", flags, Mode::empty())?;
        let mut numbers = Vec::new();
        for entry in Dir::new(directory)? {
            numbers.extend(entry?.file_name().to_str().ok().and_then(|name| name.parse::<u32>().ok()));
        }
        numbers.sort_unstable();
        Ok(numbers)
    }
}

impl Facts {
    fn forget(&mut self) {
        for text in [
            &mut self.comm,
            &mut self.executable,
            &mut self.claimed,
            &mut self.command,
            &mut self.environment,
            &mut self.control_groups,
        ] {
            text.is = Is::Unread;
        }
    }
}

impl Directory<'_> {
    fn get(&mut self, pid: u32) -> Result<&OwnedFd, NoProcess> {
        use std::fmt::Write as _;
        let open = match self.open.take() {
            Some(open) => open,
            None => {
                self.path.clear();
                let _ = write!(self.path, "/proc/{pid}"); // a String takes everything
                let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
                rustix::fs::openat(CWD, self.path.as_str(), flags, Mode::empty())
                    .map_err(|_| NoProcess { pid })?
            }
        };
        Ok(self.open.insert(open))
    }
}

impl Text {
    fn get(&self) -> Option<&[u8]> {
        (self.is == Is::Read).then_some(self.bytes.as_slice())
    }
}

impl Process<'_> {
    /// Its number.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Whose it is, and what of.
    ///
    /// # Errors
    /// [`NoProcess`], also of a process that is about to end, or has and only waits for its parent.
    pub fn status(&mut self) -> Result<Status, NoProcess> {
        if let Some(status) = self.status {
            return Ok(status);
        }
        let gone = NoProcess { pid: self.pid };
        let facts = &mut *self.facts;
        read(&mut self.directory, "status", &mut facts.status, self.pid, At::Once)?.ok_or(gone)?;
        facts.groups.clear();
        let status = status(&facts.status, &mut facts.comm.bytes, &mut facts.groups).ok_or(gone)?;
        facts.comm.is = Is::Read;
        self.status = Some(status);
        Ok(status)
    }

    /// Its effective user and group: the owner of its directory, which the kernel updates for readers without the
    /// time to read `status` (`task_dump_owner` in fs/proc/base.c).
    ///
    /// # Errors
    /// [`NoProcess`].
    pub fn owner(&mut self) -> Result<(u32, u32), NoProcess> {
        if let Some(Status { uid, gid, .. }) = self.status {
            return Ok((uid, gid));
        }
        let pid = self.pid;
        let stat = rustix::fs::fstat(self.directory.get(pid)?).map_err(|_| NoProcess { pid })?;
        Ok((stat.st_uid, stat.st_gid))
    }

    /// Is it a thread of the kernel's own? Those have no executable, which is sooner seen than `status` is read.
    ///
    /// # Errors
    /// [`NoProcess`].
    pub fn kernel_thread(&mut self) -> Result<bool, NoProcess> {
        if self.status.is_none() && self.executable()?.is_some() {
            return Ok(false);
        }
        Ok(self.status()?.kernel_thread)
    }

    /// Its supplementary groups.
    ///
    /// # Errors
    /// [`NoProcess`].
    pub fn groups(&mut self) -> Result<&[u32], NoProcess> {
        self.status()?;
        Ok(&self.facts.groups)
    }

    /// Its name, up to 15 bytes, as it or its program set it.
    ///
    /// # Errors
    /// [`NoProcess`].
    pub fn comm(&mut self) -> Result<&[u8], NoProcess> {
        let comm = &mut self.facts.comm;
        if comm.is == Is::Unread {
            // a third of the time of `status`
            read(&mut self.directory, "comm", &mut comm.bytes, self.pid, At::Once)?
                .ok_or(NoProcess { pid: self.pid })?;
            comm.bytes.pop_if(|last| *last == b'\n');
            comm.is = Is::Read;
        }
        Ok(&comm.bytes)
    }

    /// When it started, its session, how it is scheduled.
    ///
    /// # Errors
    /// [`NoProcess`].
    pub fn stat(&mut self) -> Result<Stat, NoProcess> {
        if let Some(stat) = self.stat {
            return Ok(stat);
        }
        let gone = NoProcess { pid: self.pid };
        read(&mut self.directory, "stat", &mut self.facts.stat, self.pid, At::Once)?.ok_or(gone)?;
        let read = stat(&self.facts.stat).ok_or(gone)?;
        self.stat = Some(read);
        Ok(read)
    }

    /// The file that it executes, as it was named before it may have been deleted; `None` of a kernel thread, and where
    /// the caller may not see it.
    ///
    /// # Errors
    /// [`NoProcess`].
    pub fn executable(&mut self) -> Result<Option<&[u8]>, NoProcess> {
        if self.facts.executable.is == Is::Unread {
            let text = &mut self.facts.executable;
            text.is = link(&mut self.directory, "exe", &mut text.bytes, self.pid)?;
            // a package's upgrade takes the file away under the running program
            if let Some(path) = text.bytes.strip_suffix(b" (deleted)") {
                text.bytes.truncate(path.len());
            }
        }
        Ok(self.facts.executable.get())
    }

    /// Which program it runs: the kernel's word, and where that has another name than the process, the process's own.
    ///
    /// # Errors
    /// [`NoProcess`].
    pub fn program(&mut self) -> Result<Program<'_>, NoProcess> {
        if self.facts.claimed.is == Is::Unread {
            if self.executable()?.is_none() {
                // also of a process that has ended and only waits for its parent
                self.status()?;
            }
            self.comm()?;
            let comm = &self.facts.comm.bytes;
            let claimed = match self.facts.executable.get() {
                Some(path) if is_named(path, comm) => None,
                Some(_) => Some(self.claim()?),
                None => Some(comm.clone()),
            };
            self.facts.claimed.is = if claimed.is_some() { Is::Read } else { Is::Hidden };
            self.facts.claimed.bytes =
                claimed.unwrap_or_else(|| std::mem::take(&mut self.facts.claimed.bytes));
        }
        Ok(Program {
            executable: self.facts.executable.get().unwrap_or_default(),
            claimed: self.facts.claimed.get(),
        })
    }

    /// The argument that has the process's name: `/usr/bin/perl ./report.pl` is named `report.pl`, after its script. The
    /// first argument is the name that the program was called by (`python3` of `/usr/bin/python3.11`), and no path.
    fn claim(&mut self) -> Result<Vec<u8>, NoProcess> {
        self.command()?;
        let comm = &self.facts.comm.bytes;
        let mut words = self.facts.command.get().unwrap_or_default().split(|byte| *byte == 0);
        let first = words.next().unwrap_or_default();
        if !first.is_empty() && is_named(first, comm) {
            return Ok(last(first).to_vec());
        }
        let Some(script) = words.find(|word| !word.is_empty() && is_named(word, comm)) else {
            return Ok(comm.clone());
        };
        if script.starts_with(b"/") {
            return Ok(script.to_vec());
        }
        let mut path = Vec::new();
        Ok(match link(&mut self.directory, "cwd", &mut path, self.pid)? {
            Is::Read => joined(&path, script),
            _ => script.to_vec(),
        })
    }

    /// Its arguments, each ended by a NUL byte; empty of a kernel thread.
    ///
    /// # Errors
    /// [`NoProcess`].
    pub fn command(&mut self) -> Result<&[u8], NoProcess> {
        let text = file(&mut self.directory, "cmdline", &mut self.facts.command, self.pid, At::Several)?;
        Ok(text.unwrap_or_default())
    }

    /// What its environment was when it began, each `NAME=VALUE` ended by a NUL byte; `None` where the caller may not
    /// see it.
    ///
    /// # Errors
    /// [`NoProcess`].
    pub fn environment(&mut self) -> Result<Option<&[u8]>, NoProcess> {
        file(&mut self.directory, "environ", &mut self.facts.environment, self.pid, At::Several)
    }

    /// The groups that it is in, one hierarchy a line (`/proc/PID/cgroup`).
    ///
    /// # Errors
    /// [`NoProcess`].
    pub fn control_groups(&mut self) -> Result<&[u8], NoProcess> {
        let text = file(&mut self.directory, "cgroup", &mut self.facts.control_groups, self.pid, At::Once)?;
        Ok(text.unwrap_or_default())
    }
}

/// How a file of `/proc/PID` is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    /// Made whole by the kernel (`seq_file`, single_open): a read that leaves room has returned everything.
    Once,
    /// Copied from the process's memory, part by part.
    Several,
}

fn file<'t>(
    directory: &mut Directory<'_>,
    name: &str,
    text: &'t mut Text,
    pid: u32,
    at: At,
) -> Result<Option<&'t [u8]>, NoProcess> {
    if text.is == Is::Unread {
        text.is = read(directory, name, &mut text.bytes, pid, at)?.map_or(Is::Hidden, |()| Is::Read);
    }
    Ok(text.get())
}

/// A whole file; `None` if it is not for the caller to see.
fn read(
    directory: &mut Directory<'_>,
    name: &str,
    text: &mut Vec<u8>,
    pid: u32,
    at: At,
) -> Result<Option<()>, NoProcess> {
    text.clear();
    let failed = |errno: Errno| match errno {
        Errno::ACCESS | Errno::PERM => Ok(None),
        // also where the kernel could not answer: what can't be read can't be judged
        _ => Err(NoProcess { pid }),
    };
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let file = match rustix::fs::openat(directory.get(pid)?, name, flags, Mode::empty()) {
        Ok(file) => file,
        Err(errno) => return failed(errno),
    };
    while text.len() < LARGEST {
        text.reserve(4096);
        match rustix::io::read(&file, spare_capacity(text)) {
            Ok(0) => break,
            Ok(_) if at == At::Once && text.len() < text.capacity() => break,
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return failed(errno),
        }
    }
    Ok(Some(()))
}

fn link(directory: &mut Directory<'_>, name: &str, text: &mut Vec<u8>, pid: u32) -> Result<Is, NoProcess> {
    let reused = std::mem::take(text);
    match rustix::fs::readlinkat(directory.get(pid)?, name, reused) {
        Ok(target) => {
            *text = target.into_bytes();
            Ok(Is::Read)
        }
        // kernel threads have none, and so has a leader that ended before its threads
        Err(Errno::ACCESS | Errno::PERM | Errno::NOENT) => Ok(Is::Hidden),
        Err(_) => Err(NoProcess { pid }),
    }
}

/// Does a path's last part begin with the name that the kernel keeps of it?
fn is_named(path: &[u8], comm: &[u8]) -> bool {
    let name = last(path);
    name[..name.len().min(LONGEST_COMM)] == comm[..comm.len().min(LONGEST_COMM)]
}

/// A relative path from a directory, by its text alone, not by looking at what the process could put in the way.
fn joined(directory: &[u8], path: &[u8]) -> Vec<u8> {
    let mut whole = directory.to_vec();
    for part in path.split(|byte| *byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." => whole.truncate(whole.iter().rposition(|byte| *byte == b'/').unwrap_or(0)),
            part => {
                if whole.last() != Some(&b'/') {
                    whole.push(b'/');
                }
                whole.extend_from_slice(part);
            }
        }
    }
    whole
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;
    use crate::runs_script;

    #[test]
    fn relative_paths_are_joined_by_their_text() {
        for (directory, path, whole) in [
            ("/home/o", "./backup.sh", "/home/o/backup.sh"),
            ("/home/o", "../x//y", "/home/x/y"),
            ("/", "../../x", "/x"),
            ("/a", "b", "/a/b"),
        ] {
            assert_eq!(joined(directory.as_bytes(), path.as_bytes()), whole.as_bytes(), "{directory} {path}");
        }
    }

    #[test]
    fn a_running_process_is_read_as_it_is() {
        let mut child = Command::new("/bin/sleep")
            .arg("60")
            .env_clear()
            .env("RF_TEST", "a=b")
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let mut reader = ProcessReader::new();
        let mut process = reader.process(child.id()).unwrap();
        // the child may be a copy of this program for a moment, and exec sets the environment last
        while process.comm().unwrap() != b"sleep"
            || process.environment().unwrap().is_none_or(<[u8]>::is_empty)
        {
            process = reader.process(child.id()).unwrap();
        }
        let status = process.status().unwrap();
        assert_eq!((status.uid, status.parent), (rustix::process::geteuid().as_raw(), std::process::id()));
        assert!(!status.kernel_thread);
        assert!(process.executable().unwrap().unwrap().starts_with(b"/"));
        assert_eq!(process.command().unwrap(), b"/bin/sleep\x0060\0");
        assert_eq!(process.environment().unwrap(), Some(&b"RF_TEST=a=b\0"[..]));
        assert!(process.control_groups().unwrap().contains(&b'/'));
        assert!(process.stat().unwrap().started > 0 && !process.stat().unwrap().realtime);
        child.kill().unwrap();
        // not waited for yet: it is a zombie, and none of its facts is anybody's
        while reader.process(child.id()).and_then(|mut process| process.status()).is_ok() {
            std::thread::yield_now();
        }
        child.wait().unwrap();
        assert_eq!(
            reader.process(child.id()).map(|process| process.pid()),
            Err(NoProcess { pid: child.id() })
        );
    }

    #[test]
    fn a_script_is_what_its_process_says_it_runs() {
        let directory = std::env::temp_dir().join(format!("rf-test-script-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let (text, script) = (directory.join("text"), directory.join("rf-test-very-long-name.sh"));
        std::fs::write(&text, "#!/bin/sh\nread x\n").unwrap();
        // in a process of its own: what another test starts meanwhile would have a file of this one open for writing until it
        // execs, and nobody can run such a file (ETXTBSY)
        let installed = Command::new("install").args([&text, &script]).status().unwrap();
        assert!(installed.success());
        let run = |program: &str| {
            Command::new(program).current_dir(&directory).stdin(Stdio::piped()).spawn().unwrap()
        };
        for program in [script.to_str().unwrap(), "./rf-test-very-long-name.sh"] {
            let mut child = run(program);
            let mut reader = ProcessReader::new();
            let mut seen = Vec::new();
            while seen != script.to_str().unwrap().as_bytes() {
                let mut process = reader.process(child.id()).unwrap();
                let program = process.program().unwrap();
                seen = program.path().to_vec();
                if seen == script.to_str().unwrap().as_bytes() {
                    assert!(runs_script(program.executable, &seen) && !runs_script(b"/bin/cat", &seen));
                }
                std::thread::yield_now();
            }
            drop(child.stdin.take());
            child.wait().unwrap();
        }
        std::fs::remove_dir_all(&directory).unwrap();
    }

    /// `python3 x.py` in /tmp was taken for /tmp/python3, where /usr/bin/python3 is a link to python3.11.
    #[test]
    fn a_program_started_by_a_link_s_name_is_its_executable() {
        let directory = std::env::temp_dir().join(format!("rf-test-link-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let (program, link) = (directory.join("rf-test-sleep-1.2"), directory.join("rf-test-sleep"));
        assert!(Command::new("cp").arg("/bin/sleep").arg(&program).status().unwrap().success());
        std::os::unix::fs::symlink(&program, &link).unwrap();
        let mut child = Command::new("rf-test-sleep");
        let mut child = child.arg("300").env("PATH", &directory).current_dir("/tmp").spawn().unwrap();
        let mut reader = ProcessReader::new();
        let mut process = reader.process(child.id()).unwrap();
        while process.comm().unwrap() != b"rf-test-sleep" {
            process = reader.process(child.id()).unwrap();
        }
        let seen = process.program().unwrap();
        assert_eq!(seen.executable, program.canonicalize().unwrap().as_os_str().as_encoded_bytes());
        assert_eq!((seen.claimed, seen.name()), (Some(&b"rf-test-sleep"[..]), &b"rf-test-sleep"[..]));
        assert_eq!(seen.path(), seen.executable);
        child.kill().unwrap();
        child.wait().unwrap();
        std::fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn processes_that_end_meanwhile_are_gone_and_nothing_worse() {
        let mut reader = ProcessReader::new();
        for _ in 0..50 {
            let mut child = Command::new("/bin/true").spawn().unwrap();
            let process = reader.process(child.id());
            child.wait().unwrap();
            if let Ok(mut process) = process {
                let gone = NoProcess { pid: process.pid() };
                assert_eq!(process.status(), Err(gone));
                assert_eq!(process.program(), Err(gone));
                assert_eq!(process.stat(), Err(gone));
                assert_eq!(process.control_groups(), Err(gone));
            }
        }
    }
}
