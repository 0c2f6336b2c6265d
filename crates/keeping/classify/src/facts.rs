//! The facts of a process that rules need, as a trait: read from the running system, or known already.

use system::{Gone, Process, ProcessReader, Status};

/// Facts of one process, the cheap ones first. Each is read only if a rule needs it.
pub trait Facts {
    /// Its number.
    fn pid(&self) -> u32;
    /// Its effective user and group, its parent, and whether it is the kernel's own.
    ///
    /// # Errors
    /// [`Gone`], as of all that follow.
    fn status(&mut self) -> Result<Status, Gone>;
    /// Its effective user and group.
    ///
    /// # Errors
    /// [`Gone`].
    fn owner(&mut self) -> Result<(u32, u32), Gone> {
        let Status { uid, gid, .. } = self.status()?;
        Ok((uid, gid))
    }
    /// Is it a thread of the kernel's own?
    ///
    /// # Errors
    /// [`Gone`].
    fn kernel_thread(&mut self) -> Result<bool, Gone> {
        Ok(self.status()?.kernel_thread)
    }
    /// Its supplementary groups.
    ///
    /// # Errors
    /// [`Gone`].
    fn groups(&mut self) -> Result<&[u32], Gone>;
    /// The program that it runs: the executable's path, of a script the script's, else the process's name.
    ///
    /// # Errors
    /// [`Gone`].
    fn program(&mut self) -> Result<&[u8], Gone>;
    /// Is it scheduled as SCHED_FIFO or SCHED_RR?
    ///
    /// # Errors
    /// [`Gone`].
    fn realtime(&mut self) -> Result<bool, Gone>;
    /// Its arguments, each ended by a NUL byte.
    ///
    /// # Errors
    /// [`Gone`].
    fn command(&mut self) -> Result<&[u8], Gone>;
    /// What its environment was when its program began, `NAME=VALUE` each ended by a NUL byte; `None` if it can't be
    /// seen.
    ///
    /// # Errors
    /// [`Gone`].
    fn environment(&mut self) -> Result<Option<&[u8]>, Gone>;
    /// Where it is, one hierarchy a line, as `/proc/PID/cgroup` has it.
    ///
    /// # Errors
    /// [`Gone`].
    fn control_groups(&mut self) -> Result<&[u8], Gone>;
    /// The number of its session's leader; 0 if that is in another PID namespace.
    ///
    /// # Errors
    /// [`Gone`].
    fn session(&mut self) -> Result<u32, Gone>;
    /// Another process, which this one descends from or is led by.
    ///
    /// # Errors
    /// [`Gone`], which says nothing of this one.
    fn relative(&mut self, pid: u32) -> Result<Relative, Gone>;
}

/// What rules ask of a relative.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Relative {
    /// The program that it runs.
    pub program: Vec<u8>,
    /// Its parent.
    pub parent: u32,
}

/// A process whose facts are known already, such as one that is still to be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    /// Its number.
    pub pid: u32,
    /// Whose it is.
    pub status: Status,
    /// Supplementary groups.
    pub groups: Vec<u32>,
    /// The program.
    pub program: Vec<u8>,
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

impl Known {
    /// This process, as it will be once it runs `program` with these arguments (cgexec without a group): with its real
    /// user and group, as libcgroup has it.
    ///
    /// # Errors
    /// [`Gone`] without `/proc`.
    pub fn to_run(program: &[u8], command: Vec<u8>) -> Result<Known, Gone> {
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
        Ok(Known {
            pid: own.pid(),
            status,
            groups: own.groups()?.to_vec(),
            program: program.to_vec(),
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

    fn status(&mut self) -> Result<Status, Gone> {
        self.status()
    }

    fn owner(&mut self) -> Result<(u32, u32), Gone> {
        self.owner()
    }

    fn kernel_thread(&mut self) -> Result<bool, Gone> {
        self.kernel_thread()
    }

    fn groups(&mut self) -> Result<&[u32], Gone> {
        self.groups()
    }

    fn program(&mut self) -> Result<&[u8], Gone> {
        self.program()
    }

    fn realtime(&mut self) -> Result<bool, Gone> {
        Ok(self.stat()?.realtime)
    }

    fn command(&mut self) -> Result<&[u8], Gone> {
        self.command()
    }

    fn environment(&mut self) -> Result<Option<&[u8]>, Gone> {
        self.environment()
    }

    fn control_groups(&mut self) -> Result<&[u8], Gone> {
        self.control_groups()
    }

    fn session(&mut self) -> Result<u32, Gone> {
        Ok(self.stat()?.session)
    }

    fn relative(&mut self, pid: u32) -> Result<Relative, Gone> {
        let mut reader = ProcessReader::new();
        let mut process = reader.process(pid)?;
        let parent = process.status()?.parent;
        Ok(Relative { program: process.program()?.to_vec(), parent })
    }
}

impl Facts for Known {
    fn pid(&self) -> u32 {
        self.pid
    }

    fn status(&mut self) -> Result<Status, Gone> {
        Ok(self.status)
    }

    fn groups(&mut self) -> Result<&[u32], Gone> {
        Ok(&self.groups)
    }

    fn program(&mut self) -> Result<&[u8], Gone> {
        Ok(&self.program)
    }

    fn realtime(&mut self) -> Result<bool, Gone> {
        Ok(self.realtime)
    }

    fn command(&mut self) -> Result<&[u8], Gone> {
        Ok(&self.command)
    }

    fn environment(&mut self) -> Result<Option<&[u8]>, Gone> {
        Ok(self.environment.as_deref())
    }

    fn control_groups(&mut self) -> Result<&[u8], Gone> {
        Ok(&self.control_groups)
    }

    fn session(&mut self) -> Result<u32, Gone> {
        Ok(self.session)
    }

    fn relative(&mut self, pid: u32) -> Result<Relative, Gone> {
        let known = self.relatives.iter().find(|(number, _)| *number == pid);
        known.map(|(_, relative)| relative.clone()).ok_or(Gone { pid })
    }
}

/// The part of a path behind its last slash.
pub(crate) fn last(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or_default()
}
