//! The facts of a process that rules need, as a trait: read from the running system, or known already.

use system::{NoProcess, Process, ProcessReader, Program, Status};

/// Facts of one process, the cheap ones first. Each is read only if a rule needs it.
pub trait Facts {
    /// Its number.
    fn pid(&self) -> u32;
    /// Its effective user and group, its parent, and whether it is the kernel's own.
    ///
    /// # Errors
    /// [`NoProcess`], as of all that follow.
    fn status(&mut self) -> Result<Status, NoProcess>;
    /// Its effective user and group.
    ///
    /// # Errors
    /// [`NoProcess`].
    fn owner(&mut self) -> Result<(u32, u32), NoProcess> {
        let Status { uid, gid, .. } = self.status()?;
        Ok((uid, gid))
    }
    /// Is it a thread of the kernel's own?
    ///
    /// # Errors
    /// [`NoProcess`].
    fn kernel_thread(&mut self) -> Result<bool, NoProcess> {
        Ok(self.status()?.kernel_thread)
    }
    /// Its supplementary groups.
    ///
    /// # Errors
    /// [`NoProcess`].
    fn groups(&mut self) -> Result<&[u32], NoProcess>;
    /// The program that it runs.
    ///
    /// # Errors
    /// [`NoProcess`].
    fn program(&mut self) -> Result<Program<'_>, NoProcess>;
    /// Is it scheduled as SCHED_FIFO or SCHED_RR?
    ///
    /// # Errors
    /// [`NoProcess`].
    fn realtime(&mut self) -> Result<bool, NoProcess>;
    /// Its arguments, each ended by a NUL byte.
    ///
    /// # Errors
    /// [`NoProcess`].
    fn command(&mut self) -> Result<&[u8], NoProcess>;
    /// What its environment was when its program began, `NAME=VALUE` each ended by a NUL byte; `None` if it can't be
    /// seen.
    ///
    /// # Errors
    /// [`NoProcess`].
    fn environment(&mut self) -> Result<Option<&[u8]>, NoProcess>;
    /// Where it is, one hierarchy a line, as `/proc/PID/cgroup` has it.
    ///
    /// # Errors
    /// [`NoProcess`].
    fn control_groups(&mut self) -> Result<&[u8], NoProcess>;
    /// The number of its session's leader; 0 if that is in another PID namespace.
    ///
    /// # Errors
    /// [`NoProcess`].
    fn session(&mut self) -> Result<u32, NoProcess>;
    /// Another process, which this one descends from or is led by.
    ///
    /// # Errors
    /// [`NoProcess`], which says nothing of this one.
    fn relative(&mut self, pid: u32) -> Result<Relative, NoProcess>;
}

/// What rules ask of a relative.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Relative {
    /// The executable that it runs ([`Program::executable`]).
    pub program: Vec<u8>,
    /// What it says that it runs, if something else ([`Program::claimed`]).
    pub claimed: Option<Vec<u8>>,
    /// Its parent.
    pub parent: u32,
}

impl Relative {
    /// The program that it runs.
    pub fn program(&self) -> Program<'_> {
        Program { executable: &self.program, claimed: self.claimed.as_deref() }
    }
}

/// A process whose facts are known already, such as one that is still to be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownProcess {
    /// Its number.
    pub pid: u32,
    /// Whose it is.
    pub status: Status,
    /// Supplementary groups.
    pub groups: Vec<u32>,
    /// The executable ([`Program::executable`]).
    pub program: Vec<u8>,
    /// What it is called by, if that is another name ([`Program::claimed`]).
    pub claimed: Option<Vec<u8>>,
    /// Scheduled in real time?
    pub realtime: bool,
    /// Arguments, each ended by a NUL byte.
    pub command: Vec<u8>,
    /// Environment, each ended by a NUL byte.
    pub environment: Option<Vec<u8>>,
    /// As `/proc/PID/cgroup`.
    pub control_groups: Vec<u8>,
    /// Its session's leader.
    pub session: u32,
    /// Those that it descends from or is led by, by number.
    pub relatives: Vec<(u32, Relative)>,
}

impl KnownProcess {
    /// This process, as it will be once it runs `program`, a path without links, with these arguments (cgexec without a
    /// group): with its real user and group, as libcgroup has it. `called`: the name that it is started by.
    ///
    /// # Errors
    /// [`NoProcess`] without `/proc`.
    pub fn to_run(program: &[u8], called: &[u8], command: Vec<u8>) -> Result<KnownProcess, NoProcess> {
        let mut reader = ProcessReader::new();
        let mut own = reader.process(std::process::id())?;
        let (uid, gid) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
        let status = Status { uid, gid, ..own.status()? };
        let mut relatives = Vec::new();
        let mut open = vec![status.parent, own.stat()?.session];
        while let Some(pid) = open.pop().filter(|pid| *pid > 0) {
            if let Ok(relative) = own.relative(pid)
                && !relatives.iter().any(|(known, _)| *known == pid)
            {
                open.push(relative.parent);
                relatives.push((pid, relative));
            }
        }
        Ok(KnownProcess {
            pid: own.pid(),
            status,
            groups: own.groups()?.to_vec(),
            program: program.to_vec(),
            claimed: (last(program) != last(called)).then(|| last(called).to_vec()),
            realtime: own.realtime()?,
            command,
            environment: own.environment()?.map(<[u8]>::to_vec),
            control_groups: own.control_groups()?.to_vec(),
            session: own.session()?,
            relatives,
        })
    }
}

impl Facts for Process<'_> {
    fn pid(&self) -> u32 {
        self.pid()
    }

    fn status(&mut self) -> Result<Status, NoProcess> {
        self.status()
    }

    fn owner(&mut self) -> Result<(u32, u32), NoProcess> {
        self.owner()
    }

    fn kernel_thread(&mut self) -> Result<bool, NoProcess> {
        self.kernel_thread()
    }

    fn groups(&mut self) -> Result<&[u32], NoProcess> {
        self.groups()
    }

    fn program(&mut self) -> Result<Program<'_>, NoProcess> {
        self.program()
    }

    fn realtime(&mut self) -> Result<bool, NoProcess> {
        Ok(self.stat()?.realtime)
    }

    fn command(&mut self) -> Result<&[u8], NoProcess> {
        self.command()
    }

    fn environment(&mut self) -> Result<Option<&[u8]>, NoProcess> {
        self.environment()
    }

    fn control_groups(&mut self) -> Result<&[u8], NoProcess> {
        self.control_groups()
    }

    fn session(&mut self) -> Result<u32, NoProcess> {
        Ok(self.stat()?.session)
    }

    fn relative(&mut self, pid: u32) -> Result<Relative, NoProcess> {
        let mut reader = ProcessReader::new();
        let mut process = reader.process(pid)?;
        let parent = process.status()?.parent;
        let Program { executable, claimed } = process.program()?;
        Ok(Relative { program: executable.to_vec(), claimed: claimed.map(<[u8]>::to_vec), parent })
    }
}

impl Facts for KnownProcess {
    fn pid(&self) -> u32 {
        self.pid
    }

    fn status(&mut self) -> Result<Status, NoProcess> {
        Ok(self.status)
    }

    fn groups(&mut self) -> Result<&[u32], NoProcess> {
        Ok(&self.groups)
    }

    fn program(&mut self) -> Result<Program<'_>, NoProcess> {
        Ok(Program { executable: &self.program, claimed: self.claimed.as_deref() })
    }

    fn realtime(&mut self) -> Result<bool, NoProcess> {
        Ok(self.realtime)
    }

    fn command(&mut self) -> Result<&[u8], NoProcess> {
        Ok(&self.command)
    }

    fn environment(&mut self) -> Result<Option<&[u8]>, NoProcess> {
        Ok(self.environment.as_deref())
    }

    fn control_groups(&mut self) -> Result<&[u8], NoProcess> {
        Ok(&self.control_groups)
    }

    fn session(&mut self) -> Result<u32, NoProcess> {
        Ok(self.session)
    }

    fn relative(&mut self, pid: u32) -> Result<Relative, NoProcess> {
        let known = self.relatives.iter().find(|(number, _)| *number == pid);
        known.map(|(_, relative)| relative.clone()).ok_or(NoProcess { pid })
    }
}

/// The part of a path behind its last slash.
pub(crate) fn last(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or_default()
}
