//! A program that runs while it is measured, and daemons with an `/etc` of their own in a mount namespace of their own:
//! rules and users are the run's, and this machine's files stay as they are. They end when dropped or with this process.

use std::{
    ffi::{OsStr, OsString},
    fs,
    io::Write as _,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

use nix::{
    sys::signal::{Signal, kill},
    time::ClockId,
    unistd::{Pid, SysconfVar, sysconf},
};
use tempfile::TempDir;
use units::ProcStat;

use crate::measure::{Done, Said, not_interrupted};

/// The user that only the daemons' `/etc` knows.
pub const USER: &str = "rf-test-bench";

/// How long an ending daemon may take.
const END: Duration = Duration::from_secs(10);

/// The directories that daemons see in place of the machine's.
pub struct Machine {
    directory: TempDir,
    /// The number of [`USER`], which no process has.
    pub user: u32,
}

impl Machine {
    pub fn new() -> Done<Machine> {
        let directory = tempfile::tempdir().said("a directory")?;
        let machine = Machine { directory, user: 4_100_000 + std::process::id() };
        // one that ended meanwhile is nobody's
        let nobodys =
            |entry: fs::DirEntry| entry.metadata().map_or(true, |process| process.uid() != machine.user);
        let processes = fs::read_dir("/proc").said("/proc")?;
        if !processes.flatten().all(nobodys) {
            return Err(format!("user {} is not unused", machine.user));
        }
        for directory in ["etc/cgconfig.d", "etc/cgrules.d", "run"] {
            let path = machine.path(directory);
            fs::create_dir_all(&path).said(path.display())?;
        }
        for file in ["group", "nsswitch.conf", "ld.so.cache", "localtime"] {
            // what this machine lacks is missing there too
            let _ = fs::copy(Path::new("/etc").join(file), machine.path("etc").join(file));
        }
        let users = fs::read_to_string("/etc/passwd").said("/etc/passwd")?;
        let own = format!("{USER}:x:{0}:65534::/:/bin/false\n", machine.user);
        machine.write("etc/passwd", &format!("{}\n{own}", users.trim_end()))?;
        machine.write("etc/cgconfig.conf", "")?;
        machine.write("etc/cgrules.conf", "")?;
        Ok(machine)
    }

    fn path(&self, file: &str) -> PathBuf {
        self.directory.path().join(file)
    }

    pub fn write(&self, file: &str, text: &str) -> Done {
        let path = self.path(file);
        fs::write(&path, text).said(path.display())
    }

    /// Libcgroup's daemon. It makes a socket, so `/run` is its own too.
    pub fn peer(&self) -> Done<Followed> {
        let words = ["/usr/sbin/cgrulesengd", "-n", "-Q"];
        if !Path::new(words[0]).exists() {
            return Err(format!("{} does not exist", words[0]));
        }
        let words = words.iter().map(OsString::from).collect();
        Followed::start(&mut self.command(&["etc", "run"], words))
    }

    /// Ours, once it is ready, with rules in a file of libcgroup's kind or of its own.
    pub fn ours(&self, program: &Path, rules: &str) -> Done<Followed> {
        self.daemon(program, &["--rules", rules, "--no-apply"])
    }

    /// Ours with these options, once it is ready.
    fn daemon(&self, program: &Path, options: &[&str]) -> Done<Followed> {
        let state = self.path("state").into_os_string();
        let words = [&["daemon"], options, &["--no-socket", "--state"]].concat();
        let words = [program.as_os_str()].into_iter().chain(words.iter().map(OsStr::new));
        let words = words.map(OsStr::to_owned).chain([state]).collect();
        let log = fs::File::create(self.path("log")).said("the daemon's log")?;
        let mut command = self.command(&["etc"], words);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        not_interrupted()?;
        match daemon::wait_for_ready(&mut command) {
            Ok(Ok(child)) => Ok(Followed { child }),
            Ok(Err(ended)) => Err(format!("our daemon did not start: {}\n{}", ended.status, self.log())),
            Err(error) => Err(format!("our daemon: {error}")),
        }
    }

    /// Ours with this layout, once it is ready.
    pub fn divided(&self, program: &Path, layout: &str) -> Done<Followed> {
        self.write("layout.toml", layout)?;
        let path = self.path("layout.toml");
        let path = path.to_str().ok_or("a directory's name is no text")?;
        self.daemon(program, &["--layout", path, "--check", "0", "--no-strict"])
    }

    /// What ours, started last, had to say.
    pub fn log(&self) -> String {
        fs::read_to_string(self.path("log")).unwrap_or_default()
    }

    fn command(&self, own: &[&str], words: Vec<OsString>) -> Command {
        let mut script: String =
            own.iter().map(|name| format!("mount --bind \"$0/{name}\" /{name} && ")).collect();
        script.push_str("exec \"$@\"");
        let mut command = bound(&["unshare", "--mount", "sh", "-c", &script]);
        command.arg(self.directory.path()).args(&words);
        command
    }
}

/// A command that ends with this process.
pub fn bound(words: &[&str]) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL"]).args(words);
    command
}

/// A process that is ended when dropped.
pub struct Followed {
    child: Child,
}

impl Followed {
    pub fn start(command: &mut Command) -> Done<Followed> {
        command.stdin(Stdio::null()).stdout(Stdio::null());
        Followed::spawn(command)
    }

    /// One whose output is read.
    pub fn start_to_read(command: &mut Command) -> Done<(Followed, ChildStdout)> {
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut followed = Followed::spawn(command)?;
        let output = followed.child.stdout.take();
        Ok((followed, output.ok_or("the program has no output")?))
    }

    /// One that waits for a line before it begins.
    pub fn start_waiting(command: &mut Command) -> Done<Followed> {
        command.stdin(Stdio::piped()).stdout(Stdio::null());
        Followed::spawn(command)
    }

    fn spawn(command: &mut Command) -> Done<Followed> {
        not_interrupted()?;
        let child = command.stderr(Stdio::null()).spawn();
        Ok(Followed { child: child.said(OsStr::display(command.get_program()))? })
    }

    /// The line that it waits for.
    pub fn begin(&mut self) -> Done {
        self.child.stdin.as_mut().ok_or("no input")?.write_all(b"begin\n").said("the program")
    }

    pub fn number(&self) -> u32 {
        self.child.id()
    }

    /// Refuses one that ended by itself.
    pub fn check(&mut self) -> Done {
        not_interrupted()?;
        match self.child.try_wait().said("the program")? {
            None => Ok(()),
            Some(status) => Err(format!("the program ended: {status}")),
        }
    }

    /// Lets it run for this time.
    pub fn go_on(&mut self, time: Duration) -> Done {
        let end = Instant::now() + time;
        while Instant::now() < end {
            std::thread::sleep(Duration::from_millis(50));
            self.check()?;
        }
        Ok(())
    }

    /// Its time on CPUs so far: all threads, those that ended too, and the processes that it waited for.
    pub fn cpu(&self) -> Done<Duration> {
        let clock = ClockId::pid_cpu_clock_id(self.pid()).and_then(ClockId::now);
        let own = clock.said("the program's CPU time")?;
        Ok(Duration::from(own) + self.waited_for()?)
    }

    /// The time on CPUs so far of its threads of this name.
    pub fn cpu_of_threads(&self, name: &str) -> Done<Duration> {
        let tasks = format!("/proc/{}/task", self.pid());
        let mut sum = 0;
        for task in fs::read_dir(&tasks).said(&tasks)?.flatten() {
            let read = |file: &str| fs::read_to_string(task.path().join(file)).unwrap_or_default();
            if read("comm").trim() == name {
                let schedstat = read("schedstat");
                let ran = schedstat.split_whitespace().next().and_then(|ran| ran.parse::<u64>().ok());
                sum += ran.ok_or_else(|| format!("{tasks}: no schedstat"))?;
            }
        }
        Ok(Duration::from_nanos(sum))
    }

    fn waited_for(&self) -> Done<Duration> {
        let path = format!("/proc/{}/stat", self.pid());
        let text = fs::read(&path).said(&path)?;
        let ticks = ProcStat::parse(&text).and_then(|stat| stat.ticks_waited_for());
        let ticks = ticks.ok_or_else(|| format!("{path} was cut short"))?;
        let each_second =
            sysconf(SysconfVar::CLK_TCK).ok().flatten().and_then(|ticks| u64::try_from(ticks).ok());
        Ok(Duration::from_millis(ticks * 1000 / each_second.unwrap_or(100).max(1)))
    }

    /// Waits until it has nothing more to do.
    pub fn rest(&mut self, limit: Duration) -> Done {
        let deadline = Instant::now() + limit;
        let mut quiet = 0;
        while quiet < 3 && Instant::now() < deadline {
            let before = self.cpu()?;
            std::thread::sleep(Duration::from_millis(20));
            // other processes of this machine may still wake it
            let busy = self.cpu()?.saturating_sub(before) > Duration::from_micros(100);
            quiet = if busy { 0 } else { quiet + 1 };
            self.check()?;
        }
        Ok(())
    }

    /// The most memory that it had at once, in bytes.
    pub fn resident(&self) -> Done<u64> {
        let path = format!("/proc/{}/status", self.pid());
        let text = fs::read_to_string(&path).said(&path)?;
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kibibytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
        kibibytes.map(|number| number << 10).ok_or_else(|| format!("{path} does not report its memory"))
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(self.child.id().cast_signed())
    }
}

impl Drop for Followed {
    fn drop(&mut self) {
        let deadline = Instant::now() + END;
        let _ = kill(self.pid(), Signal::SIGTERM);
        while matches!(self.child.try_wait(), Ok(None)) {
            if Instant::now() > deadline {
                let _ = self.child.kill();
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}
